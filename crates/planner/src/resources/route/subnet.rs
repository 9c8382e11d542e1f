//! Checks of the nodes' subnet against the ranges of pods and the route table (NODE-265, NODE-266).

use azure_types::{ResourceId, RouteTable, Subnet};
use ipnet::IpNet;

/// A pod range of the cluster that overlaps the nodes' subnet. A route to it would direct the addresses of many
/// machines to a single one.
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
    /// Whether the overlap leaves no address of the range for pods. Otherwise ranges outside the subnet can be
    /// allocated.
    pub fn is_whole(&self) -> bool {
        self.subnet.contains(&self.cluster)
    }

    /// Describes the problem, without the remedy.
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

/// The ranges of the cluster that overlap the nodes' subnet.
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

/// Whether the subnet has another table than the configured one, or none. Then the caller checks whether the configured
/// table is used at all ([`unused_table`]).
pub fn has_other_table(table: &ResourceId, subnet: &Subnet) -> bool {
    given_to(subnet) != Some(table)
}

fn given_to(subnet: &Subnet) -> Option<&ResourceId> {
    subnet.properties.as_ref()?.route_table.as_ref()?.id.as_ref()
}

/// The warning that no subnet uses the configured table, so that its routes have no effect. `observed` is the table, if
/// it exists.
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
            "route table {own} is not assigned to any subnet; subnet {name} has {:?}: correct routeTableName and \
             routeTableResourceGroup in the cloud configuration, or assign {own} to the subnet",
            other.name()
        ),
        None => format!(
            "route table {own} is not assigned to any subnet, and subnet {name} has none: assign {own} to the subnet, or correct \
             routeTableName in the cloud configuration"
        ),
    })
}
