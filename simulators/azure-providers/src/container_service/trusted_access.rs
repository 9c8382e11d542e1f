//! Access of other Azure services to a cluster (Azure REST reference, "Trusted Access Role Bindings").

use azure_engine::document::{Object, take_properties, text};
use azure_engine::provider::{AzureState, Expand, Presenting, Proposal, Protocol, Record, Writing};
use azure_engine::refusal::Result;
use azure_engine::types::member_table::Holds::Anything;
use azure_engine::types::member_table::Member;
use serde_json::{Value, json};

use super::protocol::{own_spelling, protocol};
use super::words::invalid;

pub(super) struct TrustedAccessRoleBindings;

const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("trusted_access.json"),
    tracked: false,
    ..protocol(
        "Microsoft.ContainerService/managedClusters/trustedAccessRoleBindings",
        "TrustedAccessRoleBinding",
    )
};

/// The services that have roles, with their roles.
const ROLES: [(&str, &str); 3] = [
    ("Microsoft.DataProtection/backupVaults", "backup-operator"),
    ("Microsoft.MachineLearningServices/workspaces", "mlworkload"),
    ("Microsoft.Security/pricings", "microsoft-defender-operator"),
];

static MEMBERS: [Member; 2] = [Member::new("roles", Anything), Member::new("sourceResourceId", Anything)];

shape!(TrustedAccessRoleBindings, PROTOCOL, without Acting);

impl Writing for TrustedAccessRoleBindings {
    fn before_write(&self, _azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let properties = Value::Object(take_properties(&mut proposal.body));
        let source = text(&properties, "sourceResourceId").unwrap_or_default();
        if !source.to_ascii_lowercase().starts_with("/subscriptions/") {
            return Err(invalid("sourceResourceId", format_args!("'{source}' is no resource id.")));
        }
        let roles = properties.get("roles").and_then(Value::as_array).map_or(&[] as &[Value], Vec::as_slice);
        let known = |role: &Value| {
            role.as_str()
                .is_some_and(|role| ROLES.iter().any(|(service, name)| role == format!("{service}/{name}")))
        };
        if roles.is_empty() || !roles.iter().all(known) {
            return Err(invalid("roles", "It must name roles that the location has, such as TYPE/ROLE."));
        }
        Ok(json!({ "properties": properties }))
    }
}

impl Presenting for TrustedAccessRoleBindings {
    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        document.insert("id".into(), own_spelling(&record.id).into());
    }
}

/// `locations/{location}/trustedAccessRoles`.
pub(super) fn roles() -> Value {
    let roles =
        ROLES.map(|(service, name)| json!({ "sourceResourceType": service, "name": name, "rules": [] }));
    json!({ "value": roles })
}
