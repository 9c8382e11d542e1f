//! Logs, metrics under the established names, health endpoints.
