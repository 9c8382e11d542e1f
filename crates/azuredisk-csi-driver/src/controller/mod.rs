//! The service Controller.
