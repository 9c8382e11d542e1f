//! Storage accounts: created in the background, changed and deleted at once.
//!
//! `sku` holds kinds and skus, `keys` the two keys, `sas` signed tokens, `network_rules` the firewall, `endpoints`
//! names and regions.

mod actions;
mod endpoints;
pub(super) mod keys;
mod network_rules;
pub(super) mod sas;
pub(super) mod sku;

pub(super) use self::endpoints::find;
pub(super) use self::network_rules::is_reachable;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::protocol::protocol;
use super::service::SERVICES;
use super::tables::ACCOUNTS;
use super::words::BAD_VALUE;
use crate::name_availability::{free, refused};
use crate::network::service_connections;
use azure_engine::document::{Object, at, drop_nulls, fill, merge, take_properties, text};
use azure_engine::provider::{
    Acting, Action, AzureState, Expand, KeyForm, PartWrite, Polling, Presenting, Proposal, Protocol, Record,
    Source, UrlForm, Writing,
};
use azure_engine::refusal::{Code, Handled, Result};
use azure_engine::store::State;
use azure_engine::types::member_table::Holds::{Anything, Derived, Flag, Word};
use azure_engine::types::member_table::Member;

pub(crate) struct Accounts;

const USUAL: Protocol = protocol(ACCOUNTS, "StorageAccount");
const PROTOCOL: Protocol = Protocol {
    members: &MEMBERS,
    example: include_str!("example.json"),
    synchronous: false,
    synchronous_update: true,
    first_state: State::Creating,
    actions: actions::ACTIONS,
    create_status: 202,
    bare_acceptance: true,
    names_absent_parent: false,
    polling: Polling {
        key: KeyForm::Guid,
        urls: UrlForm::Final,
        segment: "asyncoperations",
        location_on_writes: true,
        ..USUAL.polling
    },
    ..USUAL
};

static MEMBERS: [Member; 39] = [
    Member::new("accessTier", Word(&["Hot", "Cool", "Cold", "Premium"], false)),
    Member::new("accountMigrationInProgress", Derived),
    Member::new("allowBlobPublicAccess", Flag),
    Member::new("allowCrossTenantReplication", Flag),
    Member::new("allowSharedKeyAccess", Flag),
    Member::new("allowedCopyScope", Word(&["PrivateLink", "AAD"], false)),
    Member::new("azureFilesIdentityBasedAuthentication", Anything),
    Member::new("blobRestoreStatus", Derived),
    Member::new("creationTime", Derived),
    Member::new("customDomain", Anything),
    Member::new("defaultToOAuthAuthentication", Flag),
    Member::new("dnsEndpointType", Word(&["Standard", "AzureDnsZone"], false)),
    Member::new("enableExtendedGroups", Flag),
    Member::new("encryption", Anything),
    Member::new("failoverInProgress", Derived),
    Member::new("geoReplicationStats", Derived),
    Member::new("immutableStorageWithVersioning", Anything),
    Member::new("isHnsEnabled", Flag),
    Member::new("isLocalUserEnabled", Flag),
    Member::new("isNfsV3Enabled", Flag),
    Member::new("isSftpEnabled", Flag),
    Member::new("isSkuConversionBlocked", Derived),
    Member::new("keyCreationTime", Derived),
    Member::new("keyPolicy", Anything),
    Member::new("largeFileSharesState", Word(&["Disabled", "Enabled"], false)),
    Member::new("lastGeoFailoverTime", Derived),
    Member::new("minimumTlsVersion", Word(&["TLS1_0", "TLS1_1", "TLS1_2", "TLS1_3"], false)),
    Member::new("networkAcls", Anything),
    Member::new("primaryEndpoints", Derived),
    Member::new("primaryLocation", Derived),
    Member::new("privateEndpointConnections", Derived),
    Member::new("publicNetworkAccess", Word(&["Enabled", "Disabled", "SecuredByPerimeter"], false)),
    Member::new("routingPreference", Anything),
    Member::new("sasPolicy", Anything),
    Member::new("secondaryEndpoints", Derived),
    Member::new("secondaryLocation", Derived),
    Member::new("statusOfPrimary", Derived),
    Member::new("statusOfSecondary", Derived),
    Member::new("supportsHttpsTrafficOnly", Flag),
];

/// Members that are fixed at creation, and their defaults.
const FIXED_MEMBERS: [(&str, &str); 4] = [
    ("isHnsEnabled", "false"),
    ("isNfsV3Enabled", "false"),
    ("dnsEndpointType", "\"Standard\""),
    ("encryption/requireInfrastructureEncryption", "false"),
];

/// Refuses changes of members that are fixed at creation.
fn check_fixed(old: &Value, properties: &Value) -> Result<()> {
    for (member, otherwise) in FIXED_MEMBERS {
        let shown = |value: Option<&Value>| value.map_or_else(|| otherwise.to_owned(), Value::to_string);
        let given = at(properties, member);
        if given.is_some() && shown(given) != shown(at(old, &format!("properties/{member}"))) {
            return Err(Code::azures(409, "AccountPropertyCannotBeUpdated").says(format_args!(
                "The property '{member}' was specified in the input, but it cannot be updated as it is read-only after \
                 account creation. For more information, see - https://aka.ms/storageaccountupdate"
            )));
        }
    }
    Ok(())
}

/// The refusal of a taken name.
fn taken(name: &str) -> String {
    format!("The storage account named {name} is already taken.")
}

shape!(Accounts, PROTOCOL);

impl Writing for Accounts {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let old = proposal.old.map(|old| &old.body);
        if old.is_none() && find(azure, proposal.id.name()).is_some() {
            return Err(Code::azures(409, "StorageAccountAlreadyTaken").says(taken(proposal.id.name())));
        }
        sku::normalise(&mut proposal.body, old)?;
        let mut properties = Value::Object(take_properties(&mut proposal.body));
        if let Some(old) = old {
            check_fixed(old, &properties)?;
        }
        // A PUT of what exists is an update: members that it leaves out stay.
        if let (Some(old), Source::Put) = (old.and_then(|old| old.get("properties")), proposal.source) {
            let mut merged = old.clone();
            merge(&mut merged, properties);
            properties = merged;
        }
        drop_nulls(&mut properties);
        let mut properties = azure_engine::document::into_object(properties);
        let kind = sku::kind_of(&json!({ "kind": proposal.body.get("kind") }));
        fill(&mut properties, "supportsHttpsTrafficOnly", true);
        fill(&mut properties, "allowBlobPublicAccess", false);
        fill(&mut properties, "allowCrossTenantReplication", false);
        fill(&mut properties, "minimumTlsVersion", "TLS1_0");
        if let Some(tier) = kind.access_tier {
            fill(&mut properties, "accessTier", tier);
        }
        encryption(&mut properties)?;
        network_rules::normalise(azure, &mut properties)?;
        let kept = ["location", "tags", "sku", "kind", "identity", "extendedLocation", "zones"];
        Ok(proposal.keep(&kept).stored(properties))
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        if old.is_some() {
            return;
        }
        let Some(kind) = azure.store.get(id).map(|record| sku::kind_of(&record.body)) else { return };
        for service in &SERVICES {
            if kind.services.contains(&service.endpoint) {
                // An empty document is never refused.
                let _ = azure.make(&id.child(service.segment, "default"), Object::new());
            }
        }
    }

    fn after_removal(&self, azure: &mut AzureState, record: &Record) {
        super::contents::forget(azure, &record.id);
    }
}

impl Presenting for Accounts {
    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        fill(document, "tags", json!({}));
        let region = text(&record.body, "location").unwrap_or_default();
        let Some(Value::Object(properties)) = document.get_mut("properties") else { return };
        let created = record.created.to_string();
        properties.insert("creationTime".into(), created.as_str().into());
        properties.insert("keyCreationTime".into(), keys::creation_times(record));
        let connections = in_own_words(service_connections::list(azure, &record.id).into());
        properties.insert(service_connections::COLLECTION.into(), connections);
        if let Some(Value::Object(services)) =
            properties.get_mut("encryption").and_then(|encryption| encryption.get_mut("services"))
        {
            for service in services.values_mut().filter_map(Value::as_object_mut) {
                service.insert("lastEnabledTime".into(), created.as_str().into());
            }
        }
        endpoints::present(record, region, properties);
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        match below {
            [word] if word.eq_ignore_ascii_case("privateLinkResources") => {
                Some(Ok(endpoints::link_resources(record)))
            }
            _ => service_connections::view(azure, &record.id, below).map(|shown| shown.map(in_own_words)),
        }
    }
}

impl Acting for Accounts {
    fn write_below(&self, azure: &mut AzureState, id: &ResourceId, write: PartWrite<'_>) -> Handled<bool> {
        service_connections::write_view(azure, id, write)
    }

    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        actions::act(azure, id, &action.to_ascii_lowercase(), body)
    }
}

/// Renames the member `actionsRequired` of other providers to `actionRequired`.
fn in_own_words(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(in_own_words).collect(),
        Value::Object(members) => {
            let own =
                |name: String| if name == "actionsRequired" { "actionRequired".to_owned() } else { name };
            members.into_iter().map(|(name, value)| (own(name), in_own_words(value))).collect()
        }
        other => other,
    }
}

/// Brings `encryption` into the form that is stored: blobs and files are always encrypted.
fn encryption(properties: &mut Object) -> Result<()> {
    let mut encryption = match properties.remove("encryption") {
        None => Object::new(),
        Some(Value::Object(encryption)) => encryption,
        Some(other) => {
            return Err(
                BAD_VALUE.says(format_args!("The value '{other}' is not allowed for property encryption."))
            );
        }
    };
    azure_engine::document::enumeration(
        &mut encryption,
        "keySource",
        &["Microsoft.Storage", "Microsoft.Keyvault"],
        true,
    )?;
    let mut services = match encryption.remove("services") {
        Some(Value::Object(services)) => services,
        _ => Object::new(),
    };
    for service in ["file", "blob"] {
        fill(&mut services, service, json!({}));
    }
    for service in services.values_mut().filter_map(Value::as_object_mut) {
        service.remove("lastEnabledTime");
        fill(service, "keyType", "Account");
        service.insert("enabled".into(), true.into());
    }
    encryption.insert("services".into(), Value::Object(services));
    properties.insert("encryption".into(), Value::Object(encryption));
    Ok(())
}

/// Whether keys may sign requests to an account.
pub(super) fn takes_keys(account: &Value) -> bool {
    at(account, "properties/allowSharedKeyAccess").and_then(Value::as_bool) != Some(false)
}

/// `checkNameAvailability`
pub(super) fn name_availability(azure: &AzureState, body: &Value) -> Result<Value> {
    let Some(name) = text(body, "name") else { return Err(super::words::bad_parameters("name")) };
    if !super::tables::is_account_name(name) {
        return Ok(refused("AccountNameInvalid", super::tables::bad_account_name(name).message));
    }
    Ok(match find(azure, name) {
        Some(_) => refused("AlreadyExists", taken(name)),
        None => free(),
    })
}
