//! What the provider's types have in common.

use azure_engine::provider::{KeyForm, Pages, Polling, Protocol, UrlForm};
use azure_engine::store::State;

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 5] = ["2024-11-01", "2023-07-01", "2023-02-01", "2022-07-01", "2021-10-01"];

/// How requests about the provider's types are answered.
pub(super) const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    let usual = Protocol::new(resource_type, noun, &API_VERSIONS);
    Protocol {
        system_data: true,
        pages: Pages::EmptyLast,
        first_state: State::Creating,
        // Recorded: 200, also for a vault that was not there.
        create_status: 200,
        synchronous_delete: true,
        delete_status: 200,
        polling: Polling { key: KeyForm::Guid, urls: UrlForm::Nowhere, ..usual.polling },
        ..usual
    }
}
