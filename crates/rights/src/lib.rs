//! What the programs may do in Kubernetes and in Azure.
//!
//! Two tables are the only source: [`azure::GRANTS`] has the actions in Azure, [`kubernetes::RULES`] the rules in
//! Kubernetes, each with the [`Feature`] that needs it and the reason. From them come the files of `deploy/rights`
//! ([`files`]), the tables of `docs/rights.md` ([`page`]), and what the configuration of one cluster needs ([`need`]),
//! which `cerulean rights` prints. [`audit`] compares roles with what an API server has logged.

pub mod audit;
pub mod azure;
mod feature;
pub mod files;
pub mod kubernetes;
pub mod need;
pub mod page;

pub use feature::{Feature, Program};
