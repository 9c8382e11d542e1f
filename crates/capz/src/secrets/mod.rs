//! Secrets: those that users supply, and those that are made for objects of ours.

pub mod aso_secret;
pub mod azure_json;
pub mod bootstrap;
pub mod identity_secrets;
pub mod owned_secret;
