//! Reports the network in Azure in the AzureCluster: IDs, tags and ranges.

use capz_api::azure_cluster::AzureClusterSpec;
use serde_json::Value;

use crate::observed::{Observation, ObservedResources};
use crate::scope::ClusterScope;

/// Writes the observed state of the network that `scope` declares into `spec`.
pub fn read_back(spec: &mut AzureClusterSpec, scope: ClusterScope<'_>, observed: &ObservedResources) {
    let Some(network) = spec.network_spec.as_mut() else { return };
    let mut any_subnet = false;
    for subnet in network.subnets.iter_mut().flatten() {
        let Some(name) = subnet.name.clone() else { continue };
        let Observation::Present(held) = observed.get(&scope.subnet(&name)) else { continue };
        any_subnet = true;
        if let Some(id) = held["id"].as_str() {
            subnet.id = Some(id.to_owned());
        }
        let ranges = texts(&held["properties"]["addressPrefixes"])
            .or_else(|| Some(vec![held["properties"]["addressPrefix"].as_str()?.to_owned()]));
        if let Some(ranges) = ranges {
            subnet.cidr_blocks = Some(ranges);
        }
        if let Some(gateway) = subnet.nat_gateway.as_mut()
            && let Some(id) = held["properties"]["natGateway"]["id"].as_str()
        {
            gateway.id = Some(id.to_owned());
        }
    }
    let Observation::Present(held) = observed.get(&scope.network()) else { return };
    let vnet = network.vnet.get_or_insert_default();
    vnet.id = held["id"].as_str().map(str::to_owned);
    vnet.tags = held["tags"].as_object().map(|tags| {
        tags.iter().map(|(key, value)| (key.clone(), value.as_str().unwrap_or_default().to_owned())).collect()
    });
    if any_subnet && let Some(ranges) = texts(&held["properties"]["addressSpace"]["addressPrefixes"]) {
        vnet.cidr_blocks = Some(ranges);
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let texts: Vec<String> =
        value.as_array()?.iter().filter_map(|it| it.as_str().map(str::to_owned)).collect();
    (!texts.is_empty()).then_some(texts)
}
