//! What the provider's types have in common.

use azure_engine::provider::{EtagForm, KeyForm, Polling, Protocol, Readiness, UrlForm};
use azure_engine::store::State;

use crate::compute::tables::words::WORDS;

/// Versions that clients of today use, newest first; 2018-10-01 serves the NICs of instances.
const API_VERSIONS: [&str; 7] =
    ["2025-04-01", "2024-07-01", "2023-09-01", "2021-07-01", "2019-07-01", "2018-10-01", "2017-12-01"];

/// How requests about most of the provider's types are answered.
pub(crate) const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    let usual = Protocol::new(resource_type, noun, &API_VERSIONS);
    Protocol {
        words: &WORDS,
        etag: EtagForm::Counter,
        etagged: true,
        etag_on_writes: true,
        first_state: State::Creating,
        puts_merge: true,
        readiness: Readiness::UnderWay,
        polling: Polling { key: KeyForm::Guid, urls: UrlForm::Monitor, times: true, ..usual.polling },
        ..usual
    }
}
