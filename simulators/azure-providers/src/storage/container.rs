//! Containers of blobs.

use azure_engine::document::{Object, fill, take_properties, text};
use azure_engine::provider::{AzureState, Expand, Listing, Presenting, Proposal, Protocol, Record, Writing};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::types::member_table::Holds::{Anything, Derived, Flag, Word};
use azure_engine::types::member_table::Member;
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::account::sku::kind_of;
use super::modified::{modified, note};
use super::protocol::{part, said};

pub(crate) struct Containers;

pub(super) const RESOURCE_TYPE: &str = "Microsoft.Storage/storageAccounts/blobServices/containers";
const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("container.json"),
    ..part(RESOURCE_TYPE, "BlobContainer")
};

static MEMBERS: [Member; 17] = [
    Member::new("defaultEncryptionScope", Anything),
    Member::new("deleted", Derived),
    Member::new("denyEncryptionScopeOverride", Flag),
    Member::new("enableNfsV3AllSquash", Flag),
    Member::new("enableNfsV3RootSquash", Flag),
    Member::new("hasImmutabilityPolicy", Derived),
    Member::new("hasLegalHold", Derived),
    Member::new("immutabilityPolicy", Derived),
    Member::new("immutableStorageWithVersioning", Anything),
    Member::new("lastModifiedTime", Derived),
    Member::new("leaseDuration", Derived),
    Member::new("leaseState", Derived),
    Member::new("leaseStatus", Derived),
    Member::new("legalHold", Derived),
    Member::new("metadata", Anything),
    Member::new("publicAccess", Word(&["None", "Container", "Blob"], true)),
    Member::new("remainingRetentionDays", Derived),
];

shape!(Containers, PROTOCOL, without Acting);

impl Writing for Containers {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let properties = take_properties(&mut proposal.body);
        let account = proposal.id.parent().and_then(|service| service.parent());
        let account = account.and_then(|account| azure.store.get(&account));
        let allowed =
            account.and_then(|account| account.body.get("properties")?.get("allowBlobPublicAccess"));
        let public = properties.get("publicAccess").and_then(Value::as_str) != Some("None");
        let forbidden = account.is_some_and(|account| !kind_of(&account.body).services.contains(&"blob"))
            || allowed.and_then(Value::as_bool) == Some(false);
        if public && forbidden {
            return Err(Code::azures(409, "PublicAccessNotPermitted")
                .says(said(azure, "Public access is not permitted on this storage account.")));
        }
        Ok(json!({ "properties": properties }))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        note(azure, id);
    }

    fn after_removal(&self, azure: &mut AzureState, record: &Record) {
        super::contents::forget(azure, &record.id);
    }
}

impl Presenting for Containers {
    fn page_size(&self, _options: &azure_engine::settings::options::Options, listing: &Listing<'_>) -> usize {
        super::listing::page_size(listing.query)
    }

    fn list_entry(&self, azure: &AzureState, record: &Record, listing: &Listing<'_>) -> Option<Value> {
        let wanted = listing.query.get("$filter");
        if wanted.is_some_and(|filter| !super::listing::admits(filter, record.id.name())) {
            return None;
        }
        let mut document = azure.present(record, listing.expand);
        if let Some(properties) = document.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("legalHold");
            fill(properties, "immutableStorageWithVersioning", json!({ "enabled": false }));
        }
        Some(document)
    }

    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
        fill(properties, "defaultEncryptionScope", "$account-encryption-key");
        fill(properties, "denyEncryptionScopeOverride", false);
        for (member, value) in [
            ("deleted", json!(false)),
            ("remainingRetentionDays", json!(0)),
            ("leaseStatus", json!("Unlocked")),
            ("leaseState", json!("Available")),
            ("lastModifiedTime", json!(modified(record))),
            ("legalHold", json!({ "hasLegalHold": false, "tags": [] })),
            ("hasImmutabilityPolicy", json!(false)),
            ("hasLegalHold", json!(false)),
        ] {
            properties.insert(member.into(), value);
        }
    }

    fn present_written(&self, _azure: &AzureState, _record: &Record, _sent: &Object, document: &mut Object) {
        document.remove("etag");
        if let Some(Value::Object(properties)) = document.get_mut("properties") {
            properties.retain(|member, _| {
                matches!(
                    member.as_str(),
                    "deleted"
                        | "remainingRetentionDays"
                        | "publicAccess"
                        | "metadata"
                        | "hasImmutabilityPolicy"
                        | "hasLegalHold"
                )
            });
        }
    }

    fn absence_refusal(&self, azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        let service = id.parent()?;
        if let Some(service_type) = azure.resource_type(&service.resource_type())
            && azure.store.get(&service).is_none()
        {
            return service_type.absence_refusal(azure, &service);
        }
        Some(absent(azure))
    }
}

/// The refusal of an absent container.
pub(super) fn absent(azure: &AzureState) -> Refusal {
    Code::azures(404, "ContainerNotFound").says(said(azure, "The specified container does not exist."))
}

/// The public access level of a container.
pub(super) fn public_access(document: &Value) -> &str {
    text(document, "properties/publicAccess").unwrap_or("None")
}
