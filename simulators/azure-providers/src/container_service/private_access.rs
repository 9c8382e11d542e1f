//! Access to a private cluster's API server ("Create a private Azure Kubernetes Service (AKS) cluster"): an endpoint in
//! the nodes' subnet, and a private zone with its name.

use azure_engine::document::{at, into_object, items, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::Result;
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::host::{private_host, private_zone};
use super::node_group::NodeGroup;

/// The endpoint's name, and the group of the cluster that it leads to.
const ENDPOINT: &str = "kube-apiserver";
const GROUP: &str = "management";

/// Whether nodes reach the API server through an endpoint. With the server in a subnet of their network they need none.
fn has_endpoint(cluster: &Record) -> bool {
    let on = |member: &str| {
        at(&cluster.body, &format!("properties/apiServerAccessProfile/{member}")) == Some(&Value::Bool(true))
    };
    on("enablePrivateCluster") && !on("enableVnetIntegration")
}

/// The zone that a client gives.
fn given_zone(cluster: &Record) -> Option<ResourceId> {
    stored_reference(&cluster.body, "properties/apiServerAccessProfile/privateDNSZone")
}

/// Makes what is missing.
///
/// # Errors
/// What the network refuses.
pub(super) fn lay_out(group: &NodeGroup, azure: &mut AzureState) -> Result<()> {
    let Some(cluster) = azure.store.get(&group.cluster).filter(|cluster| has_endpoint(cluster)) else {
        return Ok(());
    };
    let (host, own, given) =
        (private_host(azure, cluster), private_zone(azure, cluster), given_zone(cluster));
    let wanted = text(&cluster.body, "properties/apiServerAccessProfile/privateDNSZone").unwrap_or("system");
    let without_zone = wanted.eq_ignore_ascii_case("none");
    let Some(subnet) = group.node_subnets(azure).into_iter().next() else { return Ok(()) };
    let endpoint = group.network_resource("privateEndpoints", ENDPOINT);
    group.make(
        azure,
        &endpoint,
        json!({
            "subnet": { "id": subnet },
            "privateLinkServiceConnections": [{ "name": ENDPOINT, "properties": {
                "privateLinkServiceId": group.cluster,
                "groupIds": [GROUP],
            } }],
        }),
    )?;
    if without_zone {
        return Ok(());
    }
    let zone = match given {
        Some(zone) => zone,
        None => {
            let zone = group.network_resource("privateDnsZones", &own);
            make_global(group, azure, &zone, json!({}))?;
            if let Some(network) = subnet.parent() {
                let link = zone.child("virtualNetworkLinks", host.split('.').next().unwrap_or_default());
                let link_properties =
                    json!({ "virtualNetwork": { "id": network }, "registrationEnabled": false });
                make_global(group, azure, &link, link_properties)?;
            }
            zone
        }
    };
    let Some(label) = host.strip_suffix(&format!(".{}", zone.name())) else { return Ok(()) };
    let Some(address) = address(azure, &endpoint) else { return Ok(()) };
    let record = zone.child("A", label);
    if azure.store.get(&record).is_some() || azure.store.get(&zone).is_none() {
        return Ok(());
    }
    let properties = json!({ "properties": { "ttl": 300, "aRecords": [{ "ipv4Address": address }] } });
    azure.make(&record, into_object(properties))
}

fn make_global(group: &NodeGroup, azure: &mut AzureState, id: &ResourceId, properties: Value) -> Result<()> {
    if azure.store.get(id).is_some() {
        return Ok(());
    }
    let document = json!({ "location": "global", "tags": group.tags(), "properties": properties });
    azure.make(id, into_object(document))
}

/// The address of the endpoint, which its interface has.
fn address(azure: &AzureState, endpoint: &ResourceId) -> Option<String> {
    let shown = azure.document(endpoint)?;
    let interface = stored_reference(items(&shown, "properties/networkInterfaces").first()?, "id")?;
    let interface = azure.document(&interface)?;
    let configuration = items(&interface, "properties/ipConfigurations").first()?;
    text(configuration, "properties/privateIPAddress").map(str::to_owned)
}

/// The possible targets of endpoints (`privateLinkResources`).
pub(super) fn link_resources(cluster: &Record) -> Value {
    let resource = json!({
        "id": cluster.id.child("privateLinkResources", GROUP),
        "name": GROUP,
        "type": "Microsoft.ContainerService/managedClusters/privateLinkResources",
        "groupId": GROUP,
        "requiredMembers": [GROUP],
    });
    json!({ "value": if has_endpoint(cluster) { vec![resource] } else { Vec::new() } })
}
