//! What the provider's types have in common.

use azure_engine::provider::{KeyForm, Polling, Protocol, Readiness, UrlForm};
use azure_engine::store::State;
use azure_types::ResourceId;

use super::words::WORDS;

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 8] = [
    "2025-10-02-preview",
    "2025-10-01",
    "2025-08-01",
    "2025-05-01",
    "2025-03-01",
    "2025-02-01",
    "2024-09-01",
    "2023-10-01",
];

/// How requests about most of the provider's types are answered.
pub(super) const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    let usual = Protocol::new(resource_type, noun, &API_VERSIONS);
    Protocol {
        words: &WORDS,
        first_state: State::Creating,
        readiness: Readiness::UnderWay,
        polling: Polling {
            key: KeyForm::Guid,
            urls: UrlForm::Apart,
            times: true,
            gone_status: 204,
            ..usual.polling
        },
        ..usual
    }
}

/// The id of something of this provider in the provider's own spelling.
pub(super) fn own_spelling(id: &ResourceId) -> String {
    id.as_str().replacen("/resourceGroups/", "/resourcegroups/", 1)
}
