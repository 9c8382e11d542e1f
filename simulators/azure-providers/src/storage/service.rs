//! The services of an account: their settings, which are there from the beginning (`blobServices/default` and the
//! like).

use azure_engine::document::{Object, at, into_object, merge, take_properties};
use azure_engine::provider::{
    Acting, AzureState, Expand, Presenting, Proposal, Protocol, Record, Shape, Source, Writing,
};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::account::sku::sku_of;
use super::protocol::part;
use super::words::BAD_VALUE;

/// What distinguishes one service from another.
pub(super) struct Service {
    protocol: Protocol,
    /// The segment of its path.
    pub(super) segment: &'static str,
    /// Its member of `primaryEndpoints`.
    pub(super) endpoint: &'static str,
    /// Azure's word.
    word: &'static str,
    /// Members with `enabled` and `days`: how long deleted items can be restored.
    retention: &'static [&'static str],
    /// The defaults of its settings.
    defaults: fn(&Value) -> Value,
}

const fn of(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol { creatable: false, etagged: false, create_status: 200, ..part(resource_type, noun) }
}

pub(super) static SERVICES: [Service; 4] = [
    Service {
        protocol: of("Microsoft.Storage/storageAccounts/blobServices", "BlobService"),
        segment: "blobServices",
        endpoint: "blob",
        word: "Blob",
        retention: &["deleteRetentionPolicy", "containerDeleteRetentionPolicy"],
        defaults: |_| {
            json!({
                "cors": { "corsRules": [] },
                "deleteRetentionPolicy": { "allowPermanentDelete": false, "enabled": false },
            })
        },
    },
    Service {
        protocol: of("Microsoft.Storage/storageAccounts/fileServices", "FileService"),
        segment: "fileServices",
        endpoint: "file",
        word: "File",
        retention: &["shareDeleteRetentionPolicy"],
        defaults: |account| {
            let smb = match sku_of(account).starts_with("Premium") {
                true => json!({ "multichannel": { "enabled": false } }),
                false => json!({}),
            };
            json!({
                "protocolSettings": { "smb": smb },
                "cors": { "corsRules": [] },
                "shareDeleteRetentionPolicy": { "enabled": true, "days": 7 },
            })
        },
    },
    Service {
        protocol: of("Microsoft.Storage/storageAccounts/queueServices", "QueueService"),
        segment: "queueServices",
        endpoint: "queue",
        word: "Queue",
        retention: &[],
        defaults: |_| json!({ "cors": { "corsRules": [] } }),
    },
    Service {
        protocol: of("Microsoft.Storage/storageAccounts/tableServices", "TableService"),
        segment: "tableServices",
        endpoint: "table",
        word: "Table",
        retention: &[],
        defaults: |_| json!({ "cors": { "corsRules": [] } }),
    },
];

pub(super) const FILE_SERVICES: &str = "fileServices";
pub(super) const BLOB_SERVICES: &str = "blobServices";

/// Longest retention of deleted items, in days.
const MAX_RETENTION: i64 = 365;

impl Service {
    /// The account's settings, where the account exists.
    fn account<'a>(azure: &'a AzureState, id: &ResourceId) -> Option<&'a Value> {
        azure.store.get(&id.parent()?).map(|record| &record.body)
    }
}

impl Shape for Service {
    fn protocol(&self) -> &'static Protocol {
        let known = SERVICES.iter().find(|known| known.segment == self.segment);
        known.map_or(&SERVICES[0].protocol, |known| &known.protocol)
    }
}

impl Writing for Service {
    fn before_write(&self, _azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let mut properties = Value::Object(take_properties(&mut proposal.body));
        let old = proposal.old.and_then(|old| old.body.get("properties"));
        // A PUT keeps members that it leaves out.
        if let (Some(old), Source::Put) = (old, proposal.source) {
            let mut merged = into_object(old.clone());
            merged.extend(into_object(properties));
            properties = Value::Object(merged);
        }
        for member in self.retention {
            let Some(policy) = properties.get(member) else { continue };
            let enabled = policy.get("enabled").and_then(Value::as_bool) == Some(true);
            let days = policy.get("days").and_then(Value::as_i64);
            if enabled && !days.is_some_and(|days| (1..=MAX_RETENTION).contains(&days)) {
                return Err(BAD_VALUE.says(format_args!(
                    "The value '{}' is not allowed for property {member}.days.",
                    days.map_or_else(|| "null".to_owned(), |days| days.to_string())
                )));
            }
        }
        Ok(json!({ "properties": properties }))
    }
}

impl Presenting for Service {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let Some(account) = Self::account(azure, &record.id) else { return };
        document.insert("sku".into(), account.get("sku").cloned().unwrap_or_default());
        let mut properties = (self.defaults)(account);
        merge(&mut properties, Value::Object(take_properties(document)));
        document.insert("properties".into(), properties);
    }

    fn present_written(&self, _azure: &AzureState, _record: &Record, sent: &Object, document: &mut Object) {
        document.remove("sku");
        retain_sent(sent, document);
    }

    fn absence_refusal(&self, azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        Self::account(azure, id)?;
        let offered = id.name().eq_ignore_ascii_case("default");
        offered.then(|| {
            Code::azures(400, "FeatureNotSupportedForAccount")
                .says(format_args!("{} is not supported for the account.", self.word))
        })
    }
}

impl Acting for Service {}

/// Of `properties`, an answer to a write shows what was sent.
pub(super) fn retain_sent(sent: &Object, document: &mut Object) {
    let none = json!({});
    if let Some(properties) = document.get_mut("properties") {
        retain(sent.get("properties").unwrap_or(&none), properties);
    }
}

/// Keeps the members of an object that another one has, in whatever case.
fn retain(sent: &Value, shown: &mut Value) {
    let (Value::Object(sent), Value::Object(shown)) = (sent, shown) else { return };
    shown.retain(|name, value| {
        let given = sent.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        if let Some((_, given)) = given {
            retain(given, value);
        }
        given.is_some()
    });
}

/// The retention of deleted shares of an account, in days; `None` where it is disabled.
pub(super) fn share_retention(azure: &AzureState, account: &ResourceId) -> Option<i64> {
    let settings = azure.document(&account.child(FILE_SERVICES, "default"))?;
    let policy = at(&settings, "properties/shareDeleteRetentionPolicy")?;
    let enabled = policy.get("enabled").and_then(Value::as_bool) == Some(true);
    enabled.then(|| policy.get("days").and_then(Value::as_i64)).flatten()
}
