//! What the provider's types have in common.

use azure_engine::provider::{EtagForm, KeyForm, Placement, Polling, Protocol, UrlForm};

/// The type of zones.
pub(super) const ZONES: &str = "Microsoft.Network/privateDnsZones";

/// Versions that clients of today use, newest first.
const API_VERSIONS: [&str; 3] = ["2024-06-01", "2020-06-01", "2018-09-01"];

/// How requests about zones and links are answered: recorded.
pub(super) const fn protocol(resource_type: &'static str, noun: &'static str, etag: EtagForm) -> Protocol {
    let usual = Protocol::new(resource_type, noun, &API_VERSIONS);
    Protocol {
        placement: Placement::Global,
        etag,
        etagged: true,
        shows_written: false,
        create_status: 202,
        update_status: 202,
        patch_status: 202,
        polling: Polling {
            key: KeyForm::Named("FrontEndAsyncOperation"),
            urls: UrlForm::InGroup("privateDnsOperationStatuses", "privateDnsOperationResults"),
            location_on_writes: true,
            ..usual.polling
        },
        ..usual
    }
}

/// The name of an operation, which is part of its key.
pub(super) fn operation_name(noun: &str, verb: &str) -> String {
    let verb = if verb == "Put" { "Upsert" } else { verb };
    format!("{verb}{noun}")
}

/// The protocol of record sets: synchronous.
pub(crate) const fn record_set(
    resource_type: &'static str,
    api_versions: &'static [&'static str],
) -> Protocol {
    Protocol {
        tracked: false,
        etag: EtagForm::Guid,
        etagged: true,
        etag_on_writes: true,
        shows_state: false,
        synchronous: true,
        synchronous_delete: true,
        delete_status: 200,
        ..Protocol::new(resource_type, "RecordSet", api_versions)
    }
}

/// The same for private zones.
pub(super) const fn private_record_set(resource_type: &'static str) -> Protocol {
    Protocol { example: include_str!("zone.json"), ..record_set(resource_type, &API_VERSIONS) }
}
