//! What the provider's types have in common.

use azure_engine::provider::{AzureState, EtagForm, Protocol};
use azure_engine::refusal::Refusal;

use super::words::WORDS;

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 13] = [
    "2025-06-01",
    "2025-01-01",
    "2024-01-01",
    "2023-05-01",
    "2023-04-01",
    "2023-01-01",
    "2022-09-01",
    "2021-09-01",
    "2021-06-01",
    "2021-04-01",
    "2021-02-01",
    "2019-06-01",
    "2018-02-01",
];

/// How requests about most of the provider's types are answered: at once.
pub(super) const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol {
        words: &WORDS,
        synchronous: true,
        synchronous_delete: true,
        delete_status: 200,
        names_absent_parent: true,
        ..Protocol::new(resource_type, noun, &API_VERSIONS)
    }
}

/// The same for the parts of an account, which have no location, tags or state of their own.
pub(super) const fn part(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol {
        tracked: false,
        shows_state: false,
        presents_writes: true,
        etag: EtagForm::Hexadecimal,
        etagged: true,
        etag_on_writes: true,
        ..protocol(resource_type, noun)
    }
}

/// The message of a refusal by one of the storage services: its text, with the request's id and time.
pub(super) fn said(azure: &AzureState, words: &str) -> String {
    let request = azure.seed.guid("request", "", azure.requests);
    format!("{words}\nRequestId:{request}\nTime:{}", azure.time())
}

/// A refusal as the storage services send it: Resource Manager's and those of faults get the request's id and time here.
pub(super) fn dated(azure: &AzureState, refusal: Refusal) -> Refusal {
    if refusal.message.contains("\nRequestId:") {
        return refusal;
    }
    Refusal { message: said(azure, &refusal.message), ..refusal }
}
