//! What Azure says against routes to pods, before anything is written: a resource group that is not there, ranges of
//! pods in the nodes' own subnet, a table that no subnet uses (NODE-265 to NODE-267).

use std::time::Duration;

use anyhow::bail;
use arm::{ApiVersion, Class, Client, Listing};
use azure_types::{ResourceId, RouteTable, Subnet};
use ipnet::IpNet;
use planner::Cluster;
use planner::route::{SubnetOverlap, has_other_table, subnet_overlaps, unused_table};

use crate::flags::Ranges;

/// How long Azure may take to say what stands against routes. What it does not say is no reason to wait.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What to do about `--cluster-cidr`.
const REMEDY: &str = "pass a range outside the virtual network";

/// What was found out of the nodes' subnet and of the route table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// What no node may get for its pods, because the nodes' subnet has it.
    pub reserved: Vec<IpNet>,
    /// What to tell whoever starts the program or asks for a plan.
    pub warnings: Vec<String>,
}

/// Finds out what stands against routes to the ranges of pods; asks nothing where none are written. A subnet that
/// Azure does not show is no reason to refuse anything.
///
/// # Errors
/// Azure says that there is no group for the route table, or that nodes would get ranges out of their own subnet alone.
pub async fn examine(client: &Client, cluster: &Cluster, ranges: &Ranges) -> anyhow::Result<Findings> {
    let Some(table) = cluster.route_table_id().filter(|_| ranges.routes) else {
        return Ok(Findings::default());
    };
    let examined = async {
        check_group(client, cluster, &table).await?;
        let config = &cluster.config;
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

/// Whether the route table has a group of its own that is not there: then every write would fail, and each node would
/// say that its network is not available.
async fn check_group(client: &Client, cluster: &Cluster, table: &ResourceId) -> anyhow::Result<()> {
    let key = "routeTableResourceGroup";
    let group = &cluster.config.route_table_resource_group;
    let Some(id) = table.parent().filter(|_| !group.is_empty()) else { return Ok(()) };
    let listing = Listing::of(&id, "Microsoft.Network", "routeTables");
    let listed = client.list::<RouteTable>(&listing, ApiVersion::NETWORK, &[], Class::Refresh).await;
    match listed {
        Err(error) if error.is_not_found() => {
            bail!(
                "{key}={group}: Azure has no such resource group (correct it in the cloud configuration): {error}"
            )
        }
        _ => Ok(()),
    }
}

/// A range of which nothing is left to pods is refused where nodes get theirs out of it. Otherwise what the subnet has
/// is given to nobody.
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
