//! What the provider's types have in common.

use azure_engine::provider::Protocol;

/// Versions of the resources API, newest first.
pub(super) const API_VERSIONS: [&str; 7] =
    ["2025-04-01", "2024-03-01", "2022-09-01", "2021-04-01", "2020-06-01", "2019-05-01", "2018-05-01"];

/// How requests about most of the provider's types are answered.
pub(super) const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol::new(resource_type, noun, &API_VERSIONS)
}
