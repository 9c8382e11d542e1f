//! `Microsoft.KubernetesConfiguration`: extensions of managed clusters (Azure REST reference, "Extensions").

use azure_engine::document::{Object, fill, into_object, take_properties, text};
use azure_engine::provider::{
    AzureState, Expand, KeyForm, LiesIn, Polling, Presenting, Proposal, Protocol, Provider, Record, UrlForm,
    Writing,
};
use azure_engine::refusal::words::{USUAL, Words};
use azure_engine::refusal::{Code, Result};
use azure_engine::store::State;
use azure_engine::types::member_table::Holds::{Anything, Derived, Flag};
use azure_engine::types::member_table::Member;
use serde_json::{Value, json};

struct Extensions;

const VERSIONS: [&str; 4] = ["2023-05-01", "2024-11-01", "2022-11-01", "2022-03-01"];

static WORDS: Words = Words { refuses_unknown: false, ..USUAL };

const PROTOCOL: Protocol = {
    let usual = Protocol::new("Microsoft.KubernetesConfiguration/extensions", "Extension", &VERSIONS);
    Protocol {
        members: &MEMBERS,
        example: include_str!("example.json"),
        words: &WORDS,
        tracked: false,
        lies_in: LiesIn::Anything,
        first_state: State::Creating,
        create_status: 201,
        polling: Polling {
            key: KeyForm::Guid,
            urls: UrlForm::Apart,
            times: true,
            gone_status: 204,
            ..usual.polling
        },
        ..usual
    }
};

/// The resources that extensions can be installed on.
const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";

static MEMBERS: [Member; 16] = [
    Member::new("aksAssignedIdentity", Anything),
    Member::new("autoUpgradeMinorVersion", Flag),
    Member::new("configurationProtectedSettings", Anything),
    Member::new("configurationSettings", Anything),
    Member::new("currentVersion", Derived),
    Member::new("customLocationSettings", Derived),
    Member::new("errorInfo", Derived),
    Member::new("extensionType", Anything),
    Member::new("identity", Anything),
    Member::new("isSystemExtension", Derived),
    Member::new("packageUri", Derived),
    Member::new("plan", Anything),
    Member::new("releaseTrain", Anything),
    Member::new("scope", Anything),
    Member::new("statuses", Anything),
    Member::new("version", Anything),
];

shape!(Extensions, PROTOCOL, without Acting);

impl Writing for Extensions {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let on = id.parent().and_then(|id| azure.store.get(&id));
        if on.is_none_or(|on| on.resource_type.name() != CLUSTERS) {
            return Err(Code::ours(400, "InvalidClusterType")
                .says(format_args!("The extension {id} is on no managed cluster.")));
        }
        let mut properties = take_properties(&mut proposal.body);
        let Some(kind) =
            properties.get("extensionType").and_then(Value::as_str).filter(|kind| !kind.is_empty())
        else {
            return Err(Code::ours(400, "ValidationFailed").says("The extension type is missing."));
        };
        for member in ["extensionType", "scope"] {
            let old = proposal.old_member(&format!("properties/{member}"));
            if let (Some(old), Some(new)) = (old, properties.get(member))
                && member_changed(old, new)
            {
                return Err(Code::ours(400, "ExtensionPropertyChangeNotAllowed")
                    .says(format_args!("The {member} of the extension {id} cannot be changed.")));
            }
        }
        // Extensions are installed into a namespace of their own by default.
        let namespace = kind.to_ascii_lowercase().replace('.', "-");
        let scope = properties.get("scope");
        if scope.is_none_or(|scope| scope.get("cluster").is_none() && scope.get("namespace").is_none()) {
            properties.insert("scope".into(), json!({ "cluster": { "releaseNamespace": namespace } }));
        }
        fill(&mut properties, "autoUpgradeMinorVersion", true);
        fill(&mut properties, "releaseTrain", "Stable");
        fill(&mut properties, "configurationSettings", json!({}));
        fill(&mut properties, "statuses", json!([]));
        // Of secret settings, only the names are shown.
        if let Some(Value::Object(secrets)) = properties.get_mut("configurationProtectedSettings") {
            secrets.values_mut().for_each(|value| *value = "".into());
        }
        let mut stored = json!({ "properties": properties });
        for member in ["identity", "plan"] {
            if let Some(value) = proposal.body.remove(member) {
                stored[member] = value;
            }
        }
        Ok(stored)
    }
}

impl Presenting for Extensions {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        let version = text(&record.body, "properties/version").unwrap_or("1.0.0").to_owned();
        let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
        if record.state != State::Creating {
            properties.insert("currentVersion".into(), version.into());
        }
        properties.insert("isSystemExtension".into(), false.into());
        let kind =
            text(&record.body, "properties/aksAssignedIdentity/type").unwrap_or("SystemAssigned").to_owned();
        let identity = json!({
            "type": kind,
            "principalId": azure.seed.guid("extension principal", record.id.as_str(), record.incarnation),
            "tenantId": azure.tenant_of(record.id.subscription_id()),
        });
        properties.insert("aksAssignedIdentity".into(), Value::Object(into_object(identity)));
    }
}

fn member_changed(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::String(old), Value::String(new)) => !old.eq_ignore_ascii_case(new),
        _ => old != new,
    }
}

pub(crate) fn provider() -> Provider {
    Provider::new("Microsoft.KubernetesConfiguration", vec![&Extensions])
}
