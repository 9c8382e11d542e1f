//! What Azure says of the nodes' subnet, against the ranges of pods and the route table (NODE-265, NODE-266).

use azure_types::{ResourceId, RouteTable, Subnet};
use ipnet::IpNet;

/// A range of the cluster's pods that has addresses in common with the nodes' subnet. A route to it would lead the
/// addresses of many machines to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubnetOverlap {
    /// The range of the cluster.
    pub cluster: IpNet,
    /// The subnet's range.
    pub subnet: IpNet,
    /// The subnet's name.
    pub name: String,
}

impl SubnetOverlap {
    /// Whether no address of the range is left to pods. Otherwise ranges beside the subnet can be given.
    pub fn is_whole(&self) -> bool {
        self.subnet.contains(&self.cluster)
    }

    /// What is wrong, without the remedy.
    pub fn reason(&self) -> String {
        let Self { cluster, subnet, name } = self;
        let how = match (cluster == subnet, self.is_whole()) {
            (true, _) => "is",
            (false, true) => "lies in",
            (false, false) => "holds",
        };
        format!("{how} the range {subnet} of the nodes' subnet {name}")
    }
}

/// The ranges of a subnet.
fn ranges_of(subnet: &Subnet) -> Vec<IpNet> {
    let Some(properties) = &subnet.properties else { return Vec::new() };
    let several = properties.address_prefixes.iter().flatten();
    let texts = several.chain(&properties.address_prefix);
    let mut ranges: Vec<IpNet> =
        texts.filter_map(|text| text.parse::<IpNet>().ok()).map(|range| range.trunc()).collect();
    ranges.sort();
    ranges.dedup();
    ranges
}

/// The ranges of the cluster that have addresses in common with the nodes' subnet.
pub fn subnet_overlaps(cluster_ranges: &[IpNet], name: &str, subnet: &Subnet) -> Vec<SubnetOverlap> {
    let subnets = ranges_of(subnet);
    let mut overlaps = Vec::new();
    for cluster in cluster_ranges.iter().map(IpNet::trunc) {
        for subnet in subnets.iter().filter(|range| range.contains(&cluster) || cluster.contains(*range)) {
            overlaps.push(SubnetOverlap { cluster, subnet: *subnet, name: name.to_owned() });
        }
    }
    overlaps
}

/// Whether the subnet has another table than the configured one, or none: whoever asks then has to look whether
/// the configured table is used at all ([`unused_table`]).
pub fn has_other_table(table: &ResourceId, subnet: &Subnet) -> bool {
    given_to(subnet) != Some(table)
}

fn given_to(subnet: &Subnet) -> Option<&ResourceId> {
    subnet.properties.as_ref()?.route_table.as_ref()?.id.as_ref()
}

/// Says that the configured table is given to no subnet: its routes lead nobody anywhere. `observed` is the table, if
/// it is there.
pub fn unused_table(
    table: &ResourceId,
    observed: Option<&RouteTable>,
    name: &str,
    subnet: &Subnet,
) -> Option<String> {
    let users = observed.and_then(|table| table.properties.as_ref()?.subnets.as_ref());
    if users.is_some_and(|users| !users.is_empty()) || !has_other_table(table, subnet) {
        return None;
    }
    let own = table.name();
    Some(match given_to(subnet) {
        Some(other) => format!(
            "route table {own} is given to no subnet; subnet {name} has {:?}: correct routeTableName and \
             routeTableResourceGroup in the cloud configuration, or give {own} to the subnet",
            other.name()
        ),
        None => format!(
            "route table {own} is given to no subnet, and subnet {name} has none: give {own} to the subnet, or correct \
             routeTableName in the cloud configuration"
        ),
    })
}
