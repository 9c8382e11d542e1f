//! The service Node.
