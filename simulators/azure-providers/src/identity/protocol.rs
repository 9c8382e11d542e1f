//! What the provider's types have in common.

use azure_engine::provider::Protocol;

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 4] = ["2024-11-30", "2023-01-31", "2022-01-31-preview", "2018-11-30"];

/// How requests about most of the provider's types are answered.
pub(super) const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol::new(resource_type, noun, &API_VERSIONS)
}
