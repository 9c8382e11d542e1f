//! What the provider's types have in common.

use azure_engine::provider::Protocol;
use azure_engine::refusal::words::{USUAL, Words};
use azure_engine::refusal::{Code, Refusal};
use azure_engine::types::protocol::LiesIn;

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 5] =
    ["2022-04-01", "2020-10-01-preview", "2020-04-01-preview", "2018-01-01-preview", "2015-07-01"];

static WORDS: Words = Words { unreadable, ..USUAL };

/// The provider words unreadable documents in its own way.
fn unreadable(refusal: Refusal) -> Refusal {
    match refusal.details.as_deref() {
        Some([detail]) if refusal.code == azure_engine::refusal::UNREADABLE => {
            Code::azures(400, "InvalidRequestContent").says(format_args!(
                "The request content was invalid and could not be deserialized: '{}'.",
                detail.message
            ))
        }
        _ => refusal,
    }
}

/// How requests about the provider's types are answered: at once, and without etags and states.
pub(super) const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol {
        words: &WORDS,
        tracked: false,
        lies_in: LiesIn::Anything,
        shows_state: false,
        synchronous: true,
        synchronous_delete: true,
        delete_status: 200,
        shows_deleted: true,
        ..Protocol::new(resource_type, noun, &API_VERSIONS)
    }
}
