//! Tests over several parts.
