//! Zones of new resources.

use azure_types::ExtendedLocation;

use super::cluster::Cluster;

/// The zones of a new address: all of the region's; none in an edge zone or with SKU Basic.
pub(crate) fn of_new_address(cluster: &Cluster) -> Option<Vec<String>> {
    let is_zonal = cluster.config.uses_standard_load_balancer();
    if !is_zonal || cluster.config.extended_location().is_some() || cluster.region_zones.is_empty() {
        return None;
    }
    let mut zones = cluster.region_zones.clone();
    zones.sort();
    zones.dedup();
    Some(zones)
}

/// The edge zone of a new resource, if the cluster is in one.
pub(crate) fn edge(cluster: &Cluster) -> Option<ExtendedLocation> {
    cluster.config.extended_location().map(|(name, kind)| ExtendedLocation {
        name: Some(name.to_owned()),
        kind: Some(kind.to_owned()),
        ..Default::default()
    })
}
