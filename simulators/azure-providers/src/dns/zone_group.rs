//! Zone groups of private endpoints: they maintain the endpoint's names in private zones (Azure REST reference,
//! "Private Dns Zone Groups").

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::link::is_zone;
use super::service_zones::record_name;
use crate::network::protocol;
use azure_engine::document::{Object, items, name, stored_reference, take_properties, text};
use azure_engine::operation::Completion;
use azure_engine::provider::{
    Acting, AzureState, ChildCollection, EndedOperation, Expand, Presenting, Proposal, Protocol, Record,
    Shape, Writing,
};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::reference::Reference;

const CONFIGS: &str = "privateDnsZoneConfigs";

/// The time to live of the names.
const TTL: u32 = 10;

const BAD: Code = Code::ours(400, "PrivateDnsZoneConfigInvalid");

pub(super) struct ZoneGroups;

const PROTOCOL: Protocol = Protocol {
    example: include_str!("zone_group.json"),
    tracked: false,
    child_collections: &[ChildCollection { name: CONFIGS, writable: false, back_references: &[] }],
    ..protocol("Microsoft.Network/privateEndpoints/privateDnsZoneGroups", "PrivateDnsZoneGroup")
};

impl Shape for ZoneGroups {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let zones = items(&record.body, &format!("properties/{CONFIGS}")).iter();
        let zones = zones.filter_map(|config| {
            let from = record.id.child(CONFIGS, name(config));
            let to = stored_reference(config, "properties/privateDnsZoneId")?;
            Some(Reference::names(&from, to))
        });
        zones.collect()
    }
}

impl Writing for ZoneGroups {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let endpoint = id.parent().unwrap_or_else(|| id.clone());
        let others = azure.store.of_type_below(self.name(), &endpoint);
        Code::ours(400, "PrivateDnsZoneGroupLimitReached").details_when(
            others.iter().any(|other| other.id != *id),
            format_args!("Private endpoint {endpoint} has a DNS zone group already."),
        )?;
        let properties = Value::Object(take_properties(&mut proposal.body));
        let mut kept: Vec<Value> = Vec::new();
        for config in items(&properties, CONFIGS) {
            let zone = stored_reference(config, "properties/privateDnsZoneId");
            let (Some(zone), false) = (zone, name(config).is_empty()) else {
                return Err(BAD.details("A private DNS zone config needs a name and the id of a zone."));
            };
            BAD.details_when(
                kept.iter().any(|other| name(other).eq_ignore_ascii_case(name(config))),
                format_args!("There are two private DNS zone configs '{}'.", name(config)),
            )?;
            if !is_zone(azure, &zone) {
                return Err(Refusal::invalid_reference(&zone, id));
            }
            let given = text(config, "properties/privateDnsZoneId").unwrap_or_default();
            kept.push(json!({ "name": name(config), "properties": { "privateDnsZoneId": given } }));
        }
        Ok(json!({ "properties": { CONFIGS: kept } }))
    }

    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        if !ended.failed && *ended.completion == Completion::Write {
            keep_records(azure, id);
        }
    }

    fn after_removal(&self, azure: &mut AzureState, record: &Record) {
        for id in own_records(azure, &record.id) {
            azure.remove(&id);
        }
    }
}

impl Presenting for ZoneGroups {
    fn present(&self, _azure: &AzureState, _record: &Record, document: &mut Object, _expand: Expand) {
        if let Some(Value::Object(properties)) = document.get_mut("properties") {
            properties.entry(CONFIGS).or_insert_with(|| json!([]));
        }
    }

    fn present_child(&self, azure: &AzureState, record: &Record, _id: &ResourceId, properties: &mut Object) {
        let config = Value::Object(std::mem::take(properties));
        let zone = stored_reference(&config, "privateDnsZoneId");
        let shown: Vec<Value> = own_records(azure, &record.id)
            .iter()
            .filter(|id| id.parent().is_some_and(|parent| Some(&parent) == zone.as_ref()))
            .filter_map(|id| azure.store.get(id))
            .map(|record| shown(azure, record))
            .collect();
        if let Value::Object(config) = config {
            *properties = config;
        }
        properties.insert("recordSets".into(), shown.into());
    }

    fn absence_refusal(&self, _azure: &AzureState, id: &ResourceId) -> Option<Refusal> {
        // Recorded.
        Some(Code::azures(404, "NotFound").details(format_args!("Resource {} not found.", id.name())))
    }
}

impl Acting for ZoneGroups {}

/// One record set as the group shows it.
fn shown(azure: &AzureState, record: &Record) -> Value {
    let document = azure.present(record, Expand::default());
    let fqdn = text(&document, "properties/fqdn").unwrap_or_default().trim_end_matches('.');
    let addresses: Vec<&str> = items(&document, "properties/aRecords")
        .iter()
        .filter_map(|address| text(address, "ipv4Address"))
        .collect();
    json!({
        "recordType": "A",
        "recordSetName": record.id.name(),
        "fqdn": fqdn,
        "ttl": TTL,
        "provisioningState": "Succeeded",
        "ipAddresses": addresses,
    })
}

/// The hidden member of a record that holds the group owning it.
const OWNER: &str = "zoneGroup";

/// The records that a group has created.
fn own_records(azure: &AzureState, group: &ResourceId) -> Vec<ResourceId> {
    let group = group.to_lower();
    let sets = azure.store.of_type("Microsoft.Network/privateDnsZones/A");
    let own = sets.filter(|record| record.hidden.get(OWNER).and_then(Value::as_str) == Some(group.as_str()));
    own.map(|record| record.id.clone()).collect()
}

/// Creates the records of the endpoint's names in the group's zones, and deletes others.
fn keep_records(azure: &mut AzureState, group: &ResourceId) {
    let Some(record) = azure.store.get(group) else { return };
    let endpoint = group.parent().and_then(|endpoint| azure.store.get(&endpoint));
    let Some(endpoint) = endpoint.map(|endpoint| azure.present(endpoint, Expand::default())) else { return };
    let mut wanted: Vec<(ResourceId, Value)> = Vec::new();
    for config in items(&record.body, &format!("properties/{CONFIGS}")) {
        let Some(zone) = stored_reference(config, "properties/privateDnsZoneId") else { continue };
        for names in items(&endpoint, "properties/customDnsConfigs") {
            let fqdn = text(names, "fqdn").unwrap_or_default();
            if let (Some(name), true) = (record_name(fqdn, zone.name()), is_zone(azure, &zone)) {
                let addresses = items(names, "ipAddresses");
                let addresses: Vec<Value> =
                    addresses.iter().map(|address| json!({ "ipv4Address": address })).collect();
                wanted.push((zone.child("A", &name), addresses.into()));
            }
        }
    }
    let creator = format!(
        "created by private endpoint {} with resource guid {}",
        text(&endpoint, "name").unwrap_or_default(),
        text(&endpoint, "properties/resourceGuid").unwrap_or_default()
    );
    for id in own_records(azure, group) {
        if !wanted.iter().any(|(wanted, _)| *wanted == id) {
            azure.remove(&id);
        }
    }
    for (id, addresses) in wanted {
        let properties = json!({ "ttl": TTL, "metadata": { "creator": creator }, "aRecords": addresses });
        let mut body = Object::new();
        body.insert("properties".into(), properties);
        // A name that is invalid in the zone is left out.
        if azure.make(&id, body).is_ok()
            && let Some(record) = azure.store.get_mut(&id)
        {
            record.hidden.insert(OWNER.into(), group.to_lower().into());
        }
    }
}
