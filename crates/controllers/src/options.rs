//! What the controllers are started with: which of them run, how, and with which cloud.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use cloud::{ClusterState, LoadBalancers, Machines, NodeRanges, Routes};

use crate::health::HealthChecks;
use crate::ipam::RangeOptions;
use crate::observer::{NoObserver, Observer};

/// The enabled controllers (`--controllers`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Controllers {
    /// `service-lb-controller`: load balancers.
    pub service: bool,
    /// `cloud-node-controller`: describes new nodes. Upstream's does nothing because of a defect; the Helm chart
    /// disables it, because the node manager does the same on each node.
    pub cloud_node: bool,
    /// `cloud-node-lifecycle-controller`: deletes nodes whose machine does not exist.
    pub cloud_node_lifecycle: bool,
    /// `node-route-controller`: routes to the pods of nodes, if the cloud has any ([`Cloud::with_routes`]).
    pub route: bool,
    /// `node-ipam`: assigns pod ranges to nodes, if there are any ([`Options::ranges`]).
    pub node_ipam: bool,
}

impl Controllers {
    /// None of them.
    pub const NONE: Self = Self {
        service: false,
        cloud_node: false,
        cloud_node_lifecycle: false,
        route: false,
        node_ipam: false,
    };
}

impl Default for Controllers {
    /// All of them.
    fn default() -> Self {
        Self { service: true, cloud_node: true, cloud_node_lifecycle: true, route: true, node_ipam: true }
    }
}

/// Options of the controllers.
#[derive(Clone)]
pub struct Options {
    /// The enabled controllers.
    pub controllers: Controllers,
    /// The lifecycle controller's pause after the first lookup of the machine of a node that is not ready
    /// (`--node-monitor-period`). Later pauses are longer.
    pub node_monitor_period: Duration,
    /// Interval of the route controller's comparisons of all routes (`--route-reconciliation-period`).
    pub route_reconciliation_period: Duration,
    /// The source of nodes' pod ranges, if this program assigns them (`--allocate-node-cidrs`).
    pub ranges: Option<RangeOptions>,
    /// Interval of the node controller's comparisons of all addresses (`--node-status-update-frequency`).
    pub node_status_update_frequency: Duration,
    /// Interval of comparisons of everything that Services have in Azure (`--azure-resync-period`); zero for
    /// comparisons only on events.
    pub azure_resync_period: Duration,
    /// A label selector for nodes (`--node-filter-requirements`); `None` for all.
    pub node_selector: Option<String>,
    /// Whether writes require the lease that this program shares with AKS (LB-039 to LB-043).
    pub resource_lease: bool,
    /// How long running tasks may take to end after a stop.
    pub drain: Duration,
    /// The host's name, part of the source of events; may be empty.
    pub host: String,
    /// The wall clock.
    pub clock: Clock,
    /// Where controllers add health checks as they start.
    pub health: HealthChecks,
    /// Receives metrics.
    pub observer: Arc<dyn Observer>,
}

impl Default for Options {
    /// Upstream's defaults.
    fn default() -> Self {
        Self {
            controllers: Controllers::default(),
            node_monitor_period: Duration::from_secs(5),
            route_reconciliation_period: Duration::from_secs(10),
            ranges: None,
            node_status_update_frequency: Duration::from_secs(300),
            azure_resync_period: Duration::from_secs(300),
            node_selector: None,
            resource_lease: true,
            drain: Duration::from_secs(12),
            host: String::new(),
            clock: Clock::system(),
            health: HealthChecks::default(),
            observer: Arc::new(NoObserver),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("controllers", &self.controllers)
            .field("node_monitor_period", &self.node_monitor_period)
            .field("node_status_update_frequency", &self.node_status_update_frequency)
            .field("node_selector", &self.node_selector)
            .field("resource_lease", &self.resource_lease)
            .finish_non_exhaustive()
    }
}

/// Why the controllers cannot run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// An invalid value; the text names the flag and the remedy.
    #[error("{0}")]
    Options(String),
}

impl Options {
    pub(crate) fn validate(&self) -> Result<(), Error> {
        for (flag, period) in [
            ("--node-monitor-period", self.node_monitor_period),
            ("--route-reconciliation-period", self.route_reconciliation_period),
            ("--node-status-update-frequency", self.node_status_update_frequency),
        ] {
            if period.is_zero() {
                return Err(Error::Options(format!("{flag}=0s would never rest; give a longer time")));
            }
        }
        Ok(())
    }
}

/// The cloud that the controllers work with, and the shared state of the cluster.
#[derive(Clone)]
pub struct Cloud {
    /// Load balancers for Services.
    pub load_balancers: Arc<dyn LoadBalancers>,
    /// The machines of Nodes.
    pub machines: Arc<dyn Machines>,
    /// Routes to the pods of Nodes; `None` if none are written.
    pub routes: Option<Arc<dyn Routes>>,
    /// The sizes of Nodes' pod ranges; `None` if the cloud does not define them.
    pub node_ranges: Option<Arc<dyn NodeRanges>>,
    /// The Services and Nodes: the controllers' watches write them, and the cloud reads them.
    pub state: ClusterState,
}

impl Cloud {
    /// A cloud whose load balancers and machines are implemented by one value.
    pub fn of<C: LoadBalancers + Machines>(cloud: C, state: ClusterState) -> Self {
        let cloud = Arc::new(cloud);
        let load_balancers = Arc::clone(&cloud) as _;
        Self { load_balancers, machines: cloud, routes: None, node_ranges: None, state }
    }

    /// Adds routes to the pods of Nodes.
    #[must_use]
    pub fn with_routes(self, routes: impl Routes) -> Self {
        Self { routes: Some(Arc::new(routes)), ..self }
    }

    /// Adds the sizes of Nodes' pod ranges.
    #[must_use]
    pub fn with_node_ranges(self, ranges: impl NodeRanges) -> Self {
        Self { node_ranges: Some(Arc::new(ranges)), ..self }
    }
}

impl fmt::Debug for Cloud {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloud").field("state", &self.state).finish_non_exhaustive()
    }
}
