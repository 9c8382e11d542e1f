//! Obstacles in Azure to routes for pods, checked before anything is written: a missing resource group, pod CIDRs in
//! the nodes' own subnet, a table without a subnet (NODE-265 to NODE-267).

use std::time::Duration;

use anyhow::bail;
use arm::{ApiVersion, Class, Client};
use azure_types::{RouteTable, Subnet};
use ipnet::IpNet;
use planner::Cluster;
use planner::route::{SubnetOverlap, has_other_table, subnet_overlaps, unused_table};

use crate::azure::check_group;
use crate::flags::ranges::Ranges;

/// The timeout of the checks. The program does not wait longer for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The remedy for `--cluster-cidr`.
const REMEDY: &str = "pass a range outside the virtual network";

/// The findings about the nodes' subnet and the route table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Ranges that are not assigned to nodes, because the nodes' subnet has them.
    pub reserved: Vec<IpNet>,
    /// Warnings for users who start the program or request a plan.
    pub warnings: Vec<String>,
}

/// Looks for obstacles to routes for pod CIDRs; sends no requests if none are written. A subnet that cannot be read is
/// no reason to refuse anything.
///
/// # Errors
/// The route table's group does not exist, or all ranges for nodes are in their own subnet.
pub async fn examine(client: &Client, cluster: &Cluster, ranges: &Ranges) -> anyhow::Result<Findings> {
    let Some(table) = cluster.route_table_id().filter(|_| ranges.routes) else {
        return Ok(Findings::default());
    };
    let examined = async {
        let config = &cluster.config;
        // Without the group every write would fail, and each node would report that its network is unavailable.
        if let Some(group) = table.parent().filter(|_| !config.route_table_resource_group.is_empty()) {
            check_group::<RouteTable>(client, "routeTableResourceGroup", &group, "routeTables").await?;
        }
        let mut findings = Findings::default();
        if config.vnet_name.is_empty() || config.subnet_name.is_empty() {
            return Ok(findings);
        }
        let (name, id) = (&config.subnet_name, cluster.subnet_id(&config.subnet_name));
        let subnet = match client.get::<Subnet>(&id, ApiVersion::NETWORK, Class::Refresh).await {
            Ok(subnet) => subnet,
            Err(error) => {
                tracing::info!(%error, "cannot compare the ranges of pods with the nodes' subnet");
                return Ok(findings);
            }
        };
        judge_overlaps(&subnet_overlaps(&ranges.cluster, name, &subnet), ranges, &mut findings)?;
        if has_other_table(&table, &subnet) {
            let observed =
                client.get_optional::<RouteTable>(&table, ApiVersion::NETWORK, Class::Refresh).await;
            if let Ok(observed) = observed {
                findings.warnings.extend(unused_table(&table, observed.as_ref(), name, &subnet));
            }
        }
        Ok(findings)
    };
    tokio::time::timeout(TIMEOUT, examined).await.unwrap_or_else(|_late| Ok(Findings::default()))
}

/// Refuses a range that has no addresses left for pods if nodes get their ranges from it. Otherwise the addresses of
/// the subnet are not assigned.
fn judge_overlaps(
    overlaps: &[SubnetOverlap],
    ranges: &Ranges,
    findings: &mut Findings,
) -> anyhow::Result<()> {
    for overlap in overlaps {
        let given = format!("--cluster-cidr={}", overlap.cluster);
        let reason = overlap.reason();
        if overlap.is_whole() && ranges.ipam.is_some() {
            bail!(
                "{given} {reason}: routes to pods would take the traffic of the nodes themselves ({REMEDY}, or \
                 --configure-cloud-routes=false where pods have addresses of the subnet)"
            );
        }
        let outcome = if overlap.is_whole() {
            "a route to a range that holds a node's address is not written"
        } else {
            "no node gets a range there from this program"
        };
        findings.warnings.push(format!("{given} {reason}: {outcome} ({REMEDY})"));
        findings.reserved.push(overlap.subnet);
    }
    Ok(())
}
