//! The scale set behind a pool: its model, with one instance for each node of the pool.

use azure_engine::document::{Object, at, fill, into_object, stored_reference, text};
use azure_engine::operation::Status;
use azure_engine::provider::AzureState;
use azure_engine::refusal::Result;
use azure_engine::state::inner_request::PLATFORM;
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::node_group::{NodeGroup, POOLS, given_identity};
use super::node_image;

/// The id of a pool's scale set, whether or not it exists. Names of Windows' hosts are short.
pub(super) fn of_pool(azure: &AzureState, pool: &ResourceId) -> Option<ResourceId> {
    let group = NodeGroup::of(azure, &pool.parent()?)?;
    let record = azure.store.get(pool)?;
    let windows = text(&record.body, "properties/osType") == Some("Windows");
    let name = match windows {
        true => format!("aks{}", pool.name()),
        false => format!("aks-{}-{}-vmss", pool.name(), group.number),
    };
    Some(group.id.resource("Microsoft.Compute", "virtualMachineScaleSets", &name))
}

/// Creates the scale set of a pool, or updates what differs from the pool.
///
/// # Errors
/// What Compute refuses.
pub(super) fn reconcile(azure: &mut AzureState, pool: &ResourceId) -> Result<()> {
    let Some(set) = of_pool(azure, pool) else { return Ok(()) };
    let Some(wanted) = document(azure, pool, &set) else { return Ok(()) };
    let Some(record) = azure.store.get(&set) else {
        return azure.ask(PLATFORM, "PUT", &set, None, wanted).map(drop);
    };
    let same = |path: &str| at(&record.body, path) == at(&wanted, path);
    let image = "properties/virtualMachineProfile/storageProfile/imageReference/id";
    if same("sku/capacity") && same("tags") && same(image) {
        return Ok(());
    }
    let mut change = json!({ "location": wanted["location"], "tags": wanted["tags"], "sku": wanted["sku"] });
    if !same(image) {
        change["properties"]["virtualMachineProfile"]["storageProfile"]["imageReference"]["id"] =
            at(&wanted, image).cloned().unwrap_or_default();
    }
    azure.ask(PLATFORM, "PUT", &set, None, change).map(drop)
}

/// Waits for a running operation of a pool's scale set: AKS ends after it.
///
/// # Errors The operation failed.
pub(super) fn settle(azure: &mut AzureState, pool: &ResourceId) -> Result<()> {
    let Some(set) = of_pool(azure, pool) else { return Ok(()) };
    let key = azure.store.get(&set).and_then(|record| record.operation.clone());
    let Some(key) = key else { return Ok(()) };
    azure.finish(&key);
    match azure.operations.get(&key).map(|operation| &operation.status) {
        Some(Status::Failed(refusal) | Status::Canceled(refusal)) => Err(refusal.clone()),
        _ => Ok(()),
    }
}

/// Updates the machines of a pool that are behind its scale set's model.
///
/// # Errors
/// What Compute refuses.
pub(super) fn follow_model(azure: &mut AzureState, pool: &ResourceId) -> Result<()> {
    let Some(set) = of_pool(azure, pool) else { return Ok(()) };
    let instances =
        azure.store.of_type_below("Microsoft.Compute/virtualMachineScaleSets/virtualMachines", &set);
    let behind = |id: &ResourceId| {
        let document = azure.document(id);
        document.as_ref().and_then(|document| at(document, "properties/latestModelApplied"))
            == Some(&Value::Bool(false))
    };
    let old: Vec<String> = instances
        .iter()
        .filter(|instance| behind(&instance.id))
        .map(|instance| instance.id.name().to_owned())
        .collect();
    if old.is_empty() {
        return Ok(());
    }
    azure.ask(PLATFORM, "POST", &set, Some("manualupgrade"), json!({ "instanceIds": old })).map(drop)
}

/// Deletes the scale set of a pool.
pub(super) fn delete(azure: &mut AzureState, pool: &ResourceId) {
    if let Some(set) = of_pool(azure, pool).filter(|set| azure.store.get(set).is_some()) {
        // A scale set that cannot be deleted now is deleted with the pool's record.
        let _ = azure.ask(PLATFORM, "DELETE", &set, None, Value::Null);
    }
}

/// The desired document of a pool's scale set.
fn document(azure: &AzureState, pool: &ResourceId, set: &ResourceId) -> Option<Value> {
    let cluster_id = pool.parent()?;
    let cluster = azure.store.get(&cluster_id)?;
    let group = NodeGroup::of(azure, &cluster_id)?;
    let properties = azure.store.get(pool)?.body.get("properties")?.clone();
    let member = |path: &str| text(&properties, path).unwrap_or_default();
    let stopped = |body: &Value, path: &str| text(body, path) == Some("Stopped");
    let stands_still =
        stopped(&cluster.body, "properties/powerState/code") || stopped(&properties, "powerState/code");
    let count = at(&properties, "count").and_then(Value::as_u64).unwrap_or_default();
    let capacity = if stands_still { 0 } else { count };
    let windows = member("osType") == "Windows";
    let identity =
        cluster.body.get("properties").and_then(given_identity).unwrap_or_else(|| group.kubelet_identity());
    let mut document = json!({
        "location": text(&cluster.body, "location"),
        "tags": tags(&group, pool, &properties),
        "sku": { "name": member("vmSize"), "tier": "Standard", "capacity": capacity },
        "identity": { "type": "UserAssigned", "userAssignedIdentities": { identity.as_str(): {} } },
        "properties": {
            "orchestrationMode": "Uniform",
            "overprovision": false,
            "singlePlacementGroup": false,
            "upgradePolicy": { "mode": "Manual" },
            "virtualMachineProfile": {
                "osProfile": os_profile(&cluster.body, set, windows),
                "storageProfile": {
                    "imageReference": { "id": node_image::gallery_id(member("nodeImageVersion")) },
                    "osDisk": {
                        "createOption": "FromImage",
                        "osType": member("osType"),
                        "caching": "ReadWrite",
                        "diskSizeGB": at(&properties, "osDiskSizeGB"),
                    },
                },
                "networkProfile": { "networkInterfaceConfigurations": [interface(azure, &group, set, &properties)] },
            },
        },
    });
    if let Some(zones) =
        at(&properties, "availabilityZones").filter(|zones| zones.as_array().is_some_and(|z| !z.is_empty()))
    {
        document["zones"] = zones.clone();
    }
    if member("scaleSetPriority") == "Spot" {
        let profile = &mut document["properties"]["virtualMachineProfile"];
        profile["priority"] = "Spot".into();
        profile["evictionPolicy"] = member("scaleSetEvictionPolicy").into();
        profile["billingProfile"] = json!({ "maxPrice": at(&properties, "spotMaxPrice") });
    }
    Some(document)
}

fn tags(group: &NodeGroup, pool: &ResourceId, properties: &Value) -> Object {
    let mut tags = into_object(group.tags());
    tags.extend(at(properties, "tags").cloned().map(into_object).unwrap_or_default());
    let version = text(properties, "currentOrchestratorVersion").unwrap_or_default();
    for (tag, value) in [
        ("aks-managed-poolName", pool.name()),
        ("poolName", pool.name()),
        ("aks-managed-orchestrator", &format!("Kubernetes:{version}")),
        ("aks-managed-resourceNameSuffix", &group.number),
    ] {
        tags.insert(tag.into(), value.into());
    }
    tags
}

fn os_profile(cluster: &Value, set: &ResourceId, windows: bool) -> Value {
    let profile = if windows { "windowsProfile" } else { "linuxProfile" };
    let admin = text(cluster, &format!("properties/{profile}/adminUsername")).unwrap_or("azureuser");
    let mut os = json!({ "computerNamePrefix": set.name(), "adminUsername": admin });
    if !windows {
        os["linuxConfiguration"] = json!({ "disablePasswordAuthentication": true });
    }
    os
}

fn interface(azure: &AzureState, group: &NodeGroup, set: &ResourceId, properties: &Value) -> Value {
    let subnet = stored_reference(properties, "vnetSubnetID").unwrap_or_else(|| group.subnet());
    let balancer = group.balancer();
    let mut ip = json!({
        "name": "ipconfig1",
        "properties": { "primary": true, "privateIPAddressVersion": "IPv4", "subnet": { "id": subnet } },
    });
    if azure.store.get(&balancer).is_some() {
        let pools = POOLS.map(|pool| json!({ "id": balancer.child("backendAddressPools", pool) }));
        ip["properties"]["loadBalancerBackendAddressPools"] = json!(pools);
    }
    if at(properties, "enableNodePublicIP") == Some(&Value::Bool(true)) {
        let mut public = json!({ "name": "pub1" });
        if let Some(prefix) = stored_reference(properties, "nodePublicIPPrefixID") {
            public["properties"]["publicIPPrefix"] = json!({ "id": prefix });
        }
        ip["properties"]["publicIPAddressConfiguration"] = public;
    }
    let mut interface = into_object(json!({
        "primary": true,
        "enableIPForwarding": true,
        "networkSecurityGroup": { "id": group.security_group() },
        "ipConfigurations": [ip],
    }));
    fill(&mut interface, "enableAcceleratedNetworking", false);
    json!({ "name": set.name(), "properties": interface })
}
