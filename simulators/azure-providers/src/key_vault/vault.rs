//! Vaults (Azure REST reference, "Vaults").

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::host::{self, RESOURCE_TYPE};
use super::protocol::protocol;
use super::{access_policy, contents, deleted_vault, key, naming, secret, soft_delete};
use crate::network::service_connections;
use azure_engine::document::{Object, fill, into_object, items, remove_at, take_properties, text};
use azure_engine::provider::{
    Acting, AzureState, Expand, PartWrite, Presenting, Proposal, Protocol, Record, Writing,
};
use azure_engine::refusal::{Code, Handled, Result};
use azure_engine::store::State;
use azure_engine::types::member_table::Holds::{Anything, Derived, Flag, Number, Word};
use azure_engine::types::member_table::Member;

/// The only group that private endpoints connect to, and the zone of its names.
const LINK_GROUP: &str = "vault";
const LINK_ZONE: &str = "privatelink.vaultcore.azure.net";

pub(super) struct Vaults;

const PROTOCOL: Protocol =
    Protocol { members: &MEMBERS, example: include_str!("vault.json"), ..protocol(RESOURCE_TYPE, "Vault") };

static MEMBERS: [Member; 16] = [
    Member::new("accessPolicies", Anything),
    Member::new("createMode", Word(&["default", "recover"], false)),
    Member::new("enablePurgeProtection", Flag),
    Member::new("enableRbacAuthorization", Flag),
    Member::new("enableSoftDelete", Flag),
    Member::new("enabledForDeployment", Flag),
    Member::new("enabledForDiskEncryption", Flag),
    Member::new("enabledForTemplateDeployment", Flag),
    Member::new("hsmPoolResourceId", Derived),
    Member::new("networkAcls", Anything),
    Member::new("privateEndpointConnections", Derived),
    Member::new("publicNetworkAccess", Word(&["Enabled", "Disabled"], true)),
    Member::new("sku", Anything),
    Member::new("softDeleteRetentionInDays", Number(7, 90)).or(90),
    Member::new("tenantId", Anything),
    Member::new("vaultUri", Derived),
];

const BAD: Code = Code::ours(400, "BadRequest");

shape!(Vaults, PROTOCOL);

impl Writing for Vaults {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let mut properties = take_properties(&mut proposal.body);
        let recovers = text_of(&properties, "createMode").eq_ignore_ascii_case("recover");
        match (proposal.old, recovers) {
            (None, true) => {
                let deleted = soft_delete::find(azure, proposal.id.name())
                    .filter(|deleted| deleted.id.subscription_id() == proposal.id.subscription_id())
                    .ok_or_else(|| deleted_vault::absent(proposal.id.name()))?;
                return Ok(deleted_vault::kept(deleted));
            }
            (None, false) => naming::check_free(azure, proposal.id)?,
            (Some(_), _) => {}
        }
        check_forever(&proposal, &properties)?;
        properties.remove("createMode");
        fill(&mut properties, access_policy::MEMBER, json!([]));
        fill(&mut properties, "enabledForDeployment", false);
        properties.insert("enableSoftDelete".into(), true.into());
        BAD.says_when(
            text_of(&properties, "tenantId").is_empty(),
            "The property 'tenantId' of a vault is missing.",
        )?;
        let sku = properties.remove("sku").map(into_object).unwrap_or_default();
        properties.insert("sku".into(), check_sku(&sku)?);
        if let Some(policies) = properties.get(access_policy::MEMBER) {
            access_policy::check(azure, policies)?;
        }
        if let Some(rules) = properties.get_mut("networkAcls") {
            check_network(rules)?;
        }
        Ok(proposal.keep(&["location", "tags"]).stored(properties))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        if old.is_none() {
            soft_delete::forget(azure, id.name());
            contents::open(azure, id.name());
        }
    }

    fn after_removal(&self, azure: &mut AzureState, record: &Record) {
        deleted_vault::keep(azure, record);
    }
}

impl Presenting for Vaults {
    fn present_unfinished(&self, _azure: &AzureState, record: &Record, document: &mut Object) {
        // Recorded: the first answer has the host without a path.
        if let Some(Value::Object(properties)) = document.get_mut("properties") {
            properties.insert("vaultUri".into(), format!("https://{}", host::of(record.id.name())).into());
        }
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        fill(document, "tags", json!({}));
        let mut connections = service_connections::list(azure, &record.id);
        // The contract of vaults has neither of them here.
        for connection in &mut connections {
            remove_at(connection, "name");
            remove_at(connection, "type");
        }
        let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
        properties.insert("vaultUri".into(), host::uri(record).into());
        if record.state == State::Creating {
            properties.insert("provisioningState".into(), "RegisteringDns".into());
        }
        if !connections.is_empty() {
            properties.insert(service_connections::COLLECTION.into(), connections.into());
        }
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        let (first, rest) = below.split_first()?;
        match (first.to_ascii_lowercase().as_str(), rest) {
            ("secrets", rest) => secret::view(azure, record, rest),
            ("keys", rest) => key::view(azure, record, rest),
            ("accesspolicies", [change]) => Some(Ok(json!({
                "id": format!("{}/accessPolicies/{change}", record.id),
                "type": "Microsoft.KeyVault/vaults/accessPolicies",
                "location": record.body["location"],
                "properties": { "accessPolicies": record.body["properties"][access_policy::MEMBER] },
            }))),
            ("privatelinkresources", []) => Some(Ok(json!({ "value": [{
                "id": format!("{}/privateLinkResources/{LINK_GROUP}", record.id),
                "name": LINK_GROUP,
                "type": "Microsoft.KeyVault/vaults/privateLinkResources",
                "properties": {
                    "groupId": LINK_GROUP, "requiredMembers": ["default"], "requiredZoneNames": [LINK_ZONE],
                },
            }] }))),
            _ => service_connections::view(azure, &record.id, below),
        }
    }
}

impl Acting for Vaults {
    fn write_below(&self, azure: &mut AzureState, id: &ResourceId, write: PartWrite<'_>) -> Handled<bool> {
        let (first, rest) = write.below.split_first()?;
        match (first.to_ascii_lowercase().as_str(), rest, write.body) {
            ("secrets", [name], Some(body)) => Some(secret::put(azure, id, name, body).map(|()| true)),
            ("keys", [name], Some(body)) => Some(key::put(azure, id, name, body).map(|()| true)),
            ("accesspolicies", [change], Some(body)) => change_policies(azure, id, change, body),
            _ => service_connections::write_view(azure, id, write),
        }
    }
}

fn text_of<'a>(properties: &'a Object, member: &str) -> &'a str {
    properties.get(member).and_then(Value::as_str).unwrap_or_default()
}

/// Settings that cannot be turned off again ("Azure Key Vault soft-delete overview").
fn check_forever(proposal: &Proposal<'_>, properties: &Object) -> Result<()> {
    let given = |member: &str| properties.get(member);
    BAD.says_when(
        given("enableSoftDelete") == Some(&Value::Bool(false)),
        "The property \"enableSoftDelete\" cannot be set to false: all vaults have it.",
    )?;
    BAD.says_when(
        given("enablePurgeProtection") == Some(&Value::Bool(false)),
        "The property \"enablePurgeProtection\" cannot be set to false. Enabling the purge \
             protection for a vault is an irreversible action.",
    )?;
    let old = proposal.old_member("properties/softDeleteRetentionInDays");
    if let (Some(old), Some(new)) = (old, given("softDeleteRetentionInDays"))
        && old != new
    {
        return Err(BAD.says(
            "The property \"softDeleteRetentionInDays\" has been set already and it can't be modified.",
        ));
    }
    Ok(())
}

fn check_sku(sku: &Object) -> Result<Value> {
    let given = text_of(sku, "name");
    let name = ["standard", "premium"].into_iter().find(|known| known.eq_ignore_ascii_case(given));
    let name = name.ok_or_else(|| BAD.says(format_args!("The sku '{given}' of a vault is not known.")))?;
    Ok(json!({ "family": "A", "name": name }))
}

/// Network rules: their words, addresses and subnets.
fn check_network(rules: &mut Value) -> Result<()> {
    let mut kept = into_object(std::mem::take(rules));
    azure_engine::document::enumeration(&mut kept, "defaultAction", &["Allow", "Deny"], true)?;
    azure_engine::document::enumeration(&mut kept, "bypass", &["AzureServices", "None"], true)?;
    fill(&mut kept, "ipRules", json!([]));
    fill(&mut kept, "virtualNetworkRules", json!([]));
    *rules = Value::Object(kept);
    for rule in items(rules, "ipRules") {
        let given = text(rule, "value").unwrap_or_default();
        let address = given.split('/').next().unwrap_or_default();
        let range = given.parse::<ipnet::IpNet>().is_ok() || given.parse::<std::net::IpAddr>().is_ok();
        BAD.says_when(!range, format_args!("The address '{address}' of a network rule is invalid."))?;
    }
    for rule in items(rules, "virtualNetworkRules") {
        let given = text(rule, "id").unwrap_or_default();
        BAD.says_when(
            ResourceId::parse(given).is_err(),
            format_args!("The subnet '{given}' of a network rule is no resource id."),
        )?;
    }
    Ok(())
}

/// PUT of `accessPolicies/{add, replace, remove}`.
fn change_policies(azure: &mut AzureState, id: &ResourceId, change: &str, body: &Value) -> Handled<bool> {
    let record = azure.store.get(id)?;
    let given = items(body, "properties/accessPolicies");
    let old = items(&record.body, "properties/accessPolicies");
    let policies = Value::Array(access_policy::changed(old, change, given)?);
    if let Err(refusal) = access_policy::check(azure, &policies) {
        return Some(Err(refusal));
    }
    if let Some(record) = azure.store.get_mut(id) {
        record.body["properties"][access_policy::MEMBER] = policies;
        record.version += 1;
    }
    azure.changed(id);
    Some(Ok(true))
}
