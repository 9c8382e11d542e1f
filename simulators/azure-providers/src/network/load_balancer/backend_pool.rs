//! Backend pools: NIC membership, which the NIC side owns, and IP addresses, which the pool owns
//! (Azure Load Balancer, "Backend pool management").

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{
    backend_address,
    balancer::Balancer,
    inbound_nat_rule,
    pool_members::{entries, member_keys, members},
};
use crate::network::shared::codes::MIXED_MEMBERSHIP;
use crate::network::shared::{addresses::holder_in_network, children::old_child};
use azure_engine::document::{self, items, name, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::reference::{Role, is_of};
use azure_engine::types::member_table::Holds::{Derived, Number, Objects, Text, Users, Uses, Word};
use azure_engine::types::member_table::Member;

pub(super) static MEMBERS: [Member; 12] = [
    Member::new("backendIPConfigurations", Derived),
    Member::new("drainPeriodInSeconds", Number(0, 3_600)),
    Member::new("inboundNatRules", Users("inboundNatRules")),
    Member::new("loadBalancerBackendAddresses", Objects(&backend_address::ENTRY)),
    Member::new("loadBalancingRules", Users("loadBalancingRules")),
    Member::new("location", Text),
    Member::new("outboundRule", Derived),
    Member::new("outboundRules", Users("outboundRules")),
    Member::new("provisioningState", Derived),
    Member::new("resourceGuid", Derived),
    Member::new("syncMode", Word(&["Automatic", "Manual"], false)),
    Member::new("virtualNetwork", Uses("virtualNetworks")).role(Role::Model),
];

/// Checks a pool; it keeps its addresses where the write does not mention them.
pub(super) fn check(
    balancer: &Balancer<'_>,
    id: &ResourceId,
    properties: &mut document::Object,
) -> Result<()> {
    let old = old_child(balancer.old, id);
    let mut network = properties.get("virtualNetwork").and_then(|network| stored_reference(network, "id"));
    let addresses = match properties.remove("loadBalancerBackendAddresses") {
        Some(given) => {
            let given = given.as_array().map_or(&[][..], Vec::as_slice);
            backend_address::checked(balancer, id, network.as_ref(), given)?
        }
        None => {
            // A write without addresses keeps them, and their network.
            let kept = old.and_then(|old| stored_reference(old, "properties/virtualNetwork/id"));
            if let (None, Some(kept)) = (&network, kept) {
                properties.insert("virtualNetwork".into(), json!({ "id": kept }));
                network = Some(kept);
            }
            old.map_or_else(Vec::new, |old| items(old, "properties/loadBalancerBackendAddresses").to_vec())
        }
    };
    Code::ours(400, "BackendAddressPoolSyncModeRequiresVirtualNetwork").details_when(
        properties.contains_key("syncMode") && network.is_none(),
        format_args!("Backend address pool {id} with a syncMode needs a virtualNetwork."),
    )?;
    MIXED_MEMBERSHIP.details_when(
        addresses.iter().any(holds_address) && members(balancer.azure, id).next().is_some(),
        format_args!(
            "Backend address pool {id} has members by network interface and cannot hold IP addresses as well."
        ),
    )?;
    properties.insert("loadBalancerBackendAddresses".into(), addresses.into());
    Ok(())
}

/// Whether an entry is a member itself, rather than settings for a member by network interface.
pub(crate) fn holds_address(entry: &Value) -> bool {
    entry.get("properties").is_some_and(|properties| properties.get("ipAddress").is_some())
}

/// Adds the pool's entries: its own, with the network interface that has the address, and generated ones for members by
/// network interface.
pub(crate) fn present(
    azure: &AzureState,
    balancer: &Record,
    id: &ResourceId,
    properties: &mut document::Object,
) {
    let network = properties.get("virtualNetwork").and_then(|network| stored_reference(network, "id"));
    let Some(Value::Array(stored)) = properties.remove("loadBalancerBackendAddresses") else { return };
    let (own, notes): (Vec<Value>, Vec<Value>) = stored.into_iter().partition(holds_address);
    let mut shown = Vec::with_capacity(own.len());
    for mut entry in own {
        let network = entry_network(&entry).or_else(|| network.clone());
        let address = text(&entry, "properties/ipAddress").map(str::to_owned);
        let interface = address
            .as_ref()
            .and_then(|address| address.parse::<IpAddr>().ok())
            .zip(network)
            .and_then(|(address, network)| holder_in_network(azure, &network, address))
            .filter(|holder| is_of(holder, "/ipconfigurations/"));
        if let Some(properties) = entry.get_mut("properties").and_then(Value::as_object_mut) {
            if let Some(interface) = interface {
                properties.insert("networkInterfaceIPConfiguration".into(), json!({ "id": interface }));
            }
            map_ports(balancer, id, address.as_deref(), properties);
        }
        shown.push(entry);
    }
    for member in members(azure, id) {
        let mut properties = document::Object::new();
        properties.insert("networkInterfaceIPConfiguration".into(), json!({ "id": member }));
        let note = notes.iter().find(|note| {
            stored_reference(note, "properties/networkInterfaceIPConfiguration/id").as_ref() == Some(member)
        });
        if let Some(state) = note.and_then(|note| text(note, "properties/adminState")) {
            properties.insert("adminState".into(), state.into());
        }
        map_ports(balancer, id, Some(&member.to_lower()), &mut properties);
        shown.push(json!({ "name": backend_address::generated_name(member), "properties": properties }));
    }
    properties.insert("loadBalancerBackendAddresses".into(), shown.into());
}

fn entry_network(entry: &Value) -> Option<ResourceId> {
    stored_reference(entry, "properties/virtualNetwork/id")
        .or_else(|| stored_reference(entry, "properties/subnet/id")?.parent())
}

fn map_ports(balancer: &Record, pool: &ResourceId, member: Option<&str>, properties: &mut document::Object) {
    let mappings =
        member.map(|member| inbound_nat_rule::mappings(balancer, pool, member)).unwrap_or_default();
    if !mappings.is_empty() {
        properties.insert("inboundNatRulesPortMapping".into(), mappings.into());
    }
}

/// `queryInboundNatRulePortMapping`: the ports that lead to one member, named by its IP configuration or
/// by its address.
pub(crate) fn port_mapping(
    azure: &AzureState,
    balancer: &Record,
    pool: &ResourceId,
    asked: &Value,
) -> Result<Value> {
    let member = match (stored_reference(asked, "ipConfiguration/id"), text(asked, "ipAddress")) {
        (Some(configuration), _) => Some(configuration.to_lower()),
        (None, Some(address)) => {
            let has = |member: &&ResourceId| {
                azure
                    .document(member)
                    .is_some_and(|shown| text(&shown, "properties/privateIPAddress") == Some(address))
            };
            Some(members(azure, pool).find(has).map_or_else(|| address.to_owned(), ResourceId::to_lower))
        }
        (None, None) => None,
    };
    let known = member.filter(|member| member_keys(azure, balancer, pool).contains(member));
    match known {
        Some(member) => {
            Ok(json!({ "inboundNatRulePortMappings": inbound_nat_rule::mappings(balancer, pool, &member) }))
        }
        None => Err(Code::ours(400, "BackendAddressNotFoundInPool").details(format_args!(
            "Backend address pool {pool} has no member with the given ipConfiguration or ipAddress."
        ))),
    }
}

/// `migrateToIpBased`: the members by network interface become addresses that the pool holds itself.
pub(crate) fn migrate(azure: &mut AzureState, balancer: &ResourceId, asked: &Value) -> Result<Value> {
    let wanted: Vec<String> =
        items(asked, "pools").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let record = azure.store.get(balancer).ok_or_else(|| Refusal::child_not_found(balancer))?;
    Code::ours(400, "MigrateToIpBasedNotSupportedForSku").details_when(
        text(&record.body, "sku/name") != Some("Standard"),
        format_args!("The pools of load balancer {balancer} can be migrated only with sku Standard."),
    )?;
    let known = names(items(&record.body, "properties/backendAddressPools"));
    if let Some(absent) = wanted.iter().find(|pool| !known.contains(&pool.to_ascii_lowercase())) {
        return Err(Refusal::child_not_found(&balancer.child("backendAddressPools", absent)));
    }
    for pool in &wanted {
        let pool = balancer.child("backendAddressPools", pool);
        let states: Vec<Value> = azure.store.get(balancer).map_or_else(Vec::new, |record| {
            entries(record, &pool).filter(|entry| !holds_address(entry)).cloned().collect()
        });
        let mut network = None;
        let moved: Vec<Value> = members(azure, &pool)
            .filter_map(|member| {
                let shown = azure.document(member)?;
                let address = text(&shown, "properties/privateIPAddress")?;
                network =
                    network.take().or_else(|| stored_reference(&shown, "properties/subnet/id")?.parent());
                let state = states.iter().find(|state| {
                    stored_reference(state, "properties/networkInterfaceIPConfiguration/id").as_ref()
                        == Some(member)
                });
                let mut properties = json!({ "ipAddress": address });
                if let Some(state) = state.and_then(|state| text(state, "properties/adminState")) {
                    properties["adminState"] = state.into();
                }
                Some(json!({ "name": backend_address::generated_name(member), "properties": properties }))
            })
            .collect();
        if moved.is_empty() {
            continue;
        }
        azure.release(&pool);
        let stored = azure.store.get_mut(balancer).and_then(|record| {
            record.version += 1;
            let pools = record.body.get_mut("properties")?.get_mut("backendAddressPools")?.as_array_mut()?;
            pools
                .iter_mut()
                .find(|item| name(item).eq_ignore_ascii_case(pool.name()))?
                .get_mut("properties")?
                .as_object_mut()
        });
        if let Some(properties) = stored {
            properties.insert("loadBalancerBackendAddresses".into(), moved.into());
            if let Some(network) = network {
                properties.insert("virtualNetwork".into(), json!({ "id": network }));
            }
        }
        azure.changed(balancer);
    }
    Ok(json!({ "migratedPools": wanted }))
}

/// The scale set that an id belongs to, if it belongs to one.
pub(crate) fn scale_set_of(id: &ResourceId) -> Option<ResourceId> {
    let mut next = Some(id.clone());
    while let Some(id) = next {
        if is_of(&id, "/virtualmachinescalesets/") {
            return Some(id);
        }
        next = id.parent().filter(|parent| parent.namespace().is_some());
    }
    None
}

/// The scale set that uses a pool, if one does.
pub(crate) fn scale_set_using(azure: &AzureState, pool: &ResourceId) -> Option<ResourceId> {
    azure.store.referrers(pool).find_map(|referrer| scale_set_of(&referrer.from))
}

/// The names of the pools in a list, lower case.
pub(crate) fn names(pools: &[Value]) -> HashSet<String> {
    pools.iter().filter_map(|pool| text(pool, "name")).map(str::to_ascii_lowercase).collect()
}

/// How many rules lead to each pool, by its id in lower case; `properties` are a balancer's.
pub(crate) fn rules_by_pool(properties: &Value) -> HashMap<String, u64> {
    let mut counts = HashMap::new();
    for rule in items(properties, "loadBalancingRules").iter().chain(items(properties, "inboundNatRules")) {
        if let Some(pool) = text(rule, "properties/backendAddressPool/id") {
            *counts.entry(pool.to_ascii_lowercase()).or_default() += 1;
        }
    }
    counts
}
