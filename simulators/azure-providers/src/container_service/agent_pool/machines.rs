//! The machines of a pool (Azure REST reference, "Machines"): a view of its scale set's instances.

use azure_engine::document::{items, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::state::inner_request::PLATFORM;
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::checks::machine_names;
use crate::container_service::protocol::own_spelling;
use crate::container_service::scale_set;

const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

/// The instances of a pool's scale set: their host names and ids.
fn instances(azure: &AzureState, pool: &ResourceId) -> Vec<(String, ResourceId)> {
    let Some(set) = scale_set::of_pool(azure, pool) else { return Vec::new() };
    let instances = azure.store.of_type_below(INSTANCES, &set);
    let named = |id: &ResourceId| {
        let document = azure.document(id)?;
        Some((text(&document, "properties/osProfile/computerName")?.to_owned(), id.clone()))
    };
    instances.into_iter().filter_map(|instance| named(&instance.id)).collect()
}

/// All machines of a pool.
pub(super) fn all(azure: &AzureState, pool: &ResourceId) -> Vec<Value> {
    instances(azure, pool).into_iter().map(|(name, id)| shown(azure, pool, &name, &id)).collect()
}

/// One machine.
pub(super) fn one(azure: &AzureState, pool: &ResourceId, name: &str) -> Result<Value> {
    let found = instances(azure, pool).into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    match found {
        Some((name, id)) => Ok(shown(azure, pool, &name, &id)),
        None => Err(absent(pool, name)),
    }
}

fn absent(pool: &ResourceId, name: &str) -> Refusal {
    Code::ours(404, "NotFound")
        .says(format_args!("Machine '{name}' of agent pool '{}' was not found.", pool.name()))
}

fn shown(azure: &AzureState, pool: &ResourceId, name: &str, instance: &ResourceId) -> Value {
    let document = azure.document(instance).unwrap_or_default();
    let interfaces = items(&document, "properties/networkProfile/networkInterfaces").iter();
    let interfaces = interfaces.filter_map(|nic| azure.document(&ResourceId::parse(text(nic, "id")?).ok()?));
    let addresses: Vec<Value> = interfaces
        .flat_map(|nic| items(&nic, "properties/ipConfigurations").to_vec())
        .filter_map(|ip| {
            let address = text(&ip, "properties/privateIPAddress")?;
            let family = if address.contains(':') { "IPv6" } else { "IPv4" };
            Some(json!({ "ip": address, "family": family }))
        })
        .collect();
    let mut shown = json!({
        "id": format!("{}/machines/{name}", own_spelling(pool)),
        "name": name,
        "type": "Microsoft.ContainerService/managedClusters/agentPools/machines",
        "properties": { "network": { "ipAddresses": addresses }, "resourceId": instance },
    });
    if let Some(zones) = document.get("zones") {
        shown["zones"] = zones.clone();
    }
    shown
}

/// Deletes machines of a pool that a client names.
///
/// # Errors A machine is not in the pool, or the scale set refuses.
pub(super) fn delete(azure: &mut AzureState, pool: &ResourceId, body: &Value) -> Result<()> {
    let names = machine_names(body)?;
    let known = instances(azure, pool);
    let numbers: Vec<String> = names
        .iter()
        .map(|name| {
            let found = known.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, id)| id.name().to_owned()).ok_or_else(|| absent(pool, name))
        })
        .collect::<Result<_, _>>()?;
    let Some(set) = scale_set::of_pool(azure, pool) else { return Ok(()) };
    azure.ask(PLATFORM, "POST", &set, Some("delete"), json!({ "instanceIds": numbers }))?;
    if let Some(record) = azure.store.get_mut(pool) {
        let count = record.body["properties"]["count"].as_u64().unwrap_or_default();
        record.body["properties"]["count"] = count.saturating_sub(numbers.len() as u64).into();
    }
    Ok(())
}
