//! The controllers of one configuration, and their replacement by those of the next.

use std::sync::Arc;

use cloud::ClusterState;
use kube::Client;
use planner::Cluster;
use provider::Provider;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::azure;
use crate::environment::ProcessEnvironment;
use crate::flags::CommandLine;
use crate::flags::ranges::Ranges;
use crate::observe::Meter;
use crate::pod_routes;

/// A configuration that Azure has accepted, with a client of its own.
#[derive(Clone)]
pub(crate) struct Generation {
    /// 1 for the configuration at start.
    pub number: u64,
    pub azure: arm::Client,
    /// Its zones are empty until [`Generation::with_zones`].
    pub cluster: Cluster,
    pub ranges: Ranges,
    /// Findings for the log, or for a plan.
    pub warnings: Vec<String>,
}

impl Generation {
    /// Fails if a configuration cannot serve this command line.
    pub fn check(line: &CommandLine, cluster: &Cluster) -> anyhow::Result<()> {
        if line.enabled("service-lb-controller") {
            planner::placement::check(cluster)?;
        }
        Ok(())
    }

    /// Connects to Azure and looks for obstacles.
    ///
    /// # Errors
    /// The configuration cannot serve this command line, the credential is refused, or there is an obstacle to routes.
    pub async fn prepare(
        number: u64,
        line: &CommandLine,
        cluster: Cluster,
        environment: &ProcessEnvironment,
        meter: &Arc<Meter>,
    ) -> anyhow::Result<Self> {
        Self::check(line, &cluster)?;
        let azure = azure::connect(&cluster.config, environment, Arc::clone(meter) as _).await?;
        let ranges = ranges(line, &cluster);
        let findings = pod_routes::examine(&azure, &cluster, &ranges).await?;
        let ranges = ranges.without(&findings.reserved);
        Ok(Self { number, azure, cluster, ranges, warnings: findings.warnings })
    }

    /// Lets metrics show this generation: it is in force.
    pub fn show(&self, meter: &Meter) {
        meter.configured(&self.cluster.config, self.azure.budgets());
    }

    /// With the zones of the region.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn with_zones(mut self) -> anyhow::Result<Self> {
        self.cluster.region_zones = azure::region_zones(&self.azure, &self.cluster.config).await?;
        Ok(self)
    }

    /// Runs the controllers until `stop`, or rests until then if the configuration says so.
    async fn serve(
        &self,
        client: Client,
        options: controllers::Options,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let state = ClusterState::default();
        // The provider ends with its last user, after the controllers have ended their work: their own stop signal
        // would interrupt its writes.
        let provider_options =
            provider::Options { cluster_ranges: self.ranges.cluster.clone(), ..provider::Options::default() };
        let provider =
            Provider::new(self.cluster.clone(), self.azure.clone(), state.clone(), provider_options);
        let cloud = controllers::Cloud::of(provider.clone(), state);
        let cloud = cloud.with_routes(provider.clone()).with_node_ranges(provider);
        Ok(controllers::run(client, cloud, options, stop).await?)
    }
}

/// Runs the controllers of one generation after the other until `stop`. `options` says how.
///
/// # Errors
/// The zones of the first generation cannot be read, or the options are invalid.
pub(crate) async fn serve(
    client: Client,
    line: &CommandLine,
    mut generations: watch::Receiver<Arc<Generation>>,
    options: impl Fn(&Generation) -> controllers::Options,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    while !stop.is_cancelled() {
        let mut generation = Arc::clone(&generations.borrow_and_update());
        let rests = line.flags.enable_dynamic_reloading && generation.cluster.config.disable_cloud_provider;
        if generation.number == 1 && !rests {
            let zones = Generation::clone(&generation).with_zones();
            let Some(with_zones) = stop.run_until_cancelled(zones).await else { return Ok(()) };
            generation = Arc::new(with_zones?);
        }
        let own = stop.child_token();
        let serving = async {
            if rests {
                tracing::warn!("disableCloudProvider=true: no controller runs until it is false");
                own.cancelled().await;
                return Ok(());
            }
            generation.serve(client.clone(), options(&generation), own.clone()).await
        };
        let replacement = async {
            // Without a sender no other generation follows.
            if generations.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            tracing::info!("The controllers end, to start again with the new configuration");
            own.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = serving => ended?,
            () = replacement => {}
        }
    }
    Ok(())
}

/// The handling of pod CIDRs. Routes are enabled by default, and most clusters need none: without a table there are
/// none, and the rest runs.
fn ranges(line: &CommandLine, cluster: &Cluster) -> Ranges {
    // Validated before.
    let ranges = line.ranges().unwrap_or_default();
    if !ranges.unreadable.is_empty() {
        let entries = ranges.unreadable.join(",");
        tracing::warn!(
            entries,
            "--service-cluster-ip-range: no range of addresses, so that nodes may get addresses of Services for their \
             pods; pass the range of the cluster's Services, such as 10.0.0.0/16"
        );
    }
    let has_table = cluster.route_table_id().is_some();
    if ranges.routes && !has_table {
        tracing::warn!(
            "no routes to pods are written: routeTableName is not set in the cloud configuration; name the route table of \
             the nodes' subnet there, or pass --configure-cloud-routes=false where the pod network needs none"
        );
    }
    Ranges { routes: ranges.routes && has_table, ..ranges }
}
