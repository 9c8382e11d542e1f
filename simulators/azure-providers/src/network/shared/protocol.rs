//! What the provider's types have in common.

use azure_engine::provider::{Concurrency, EtagForm, KeyForm, Polling, Protocol, UrlForm};

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 7] =
    ["2025-05-01", "2024-07-01", "2024-05-01", "2022-07-01", "2020-11-01", "2019-03-01", "2018-11-01"];

/// How requests about most of the provider's types are answered.
pub(crate) const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    let usual = Protocol::new(resource_type, noun, &API_VERSIONS);
    Protocol {
        concurrency: Concurrency::Supersede,
        only_tags: true,
        etag: EtagForm::WeakGuid,
        etagged: true,
        counts_referrers: true,
        counts_ends: true,
        unchanged_at_once: true,
        polling: Polling { key: KeyForm::Guid, urls: UrlForm::Apart, gone_status: 204, ..usual.polling },
        ..usual
    }
}
