//! Builds worlds.

use std::sync::Arc;

use arm::Credential;
use azure_simulator::{Azure, Budgets, LatencyProfile};
use cloud::MaskSizes;
use kube::Client;
use kubernetes_simulator::Kubernetes;
use serde_json::{Value, json};
use simulated_cluster::{
    ExtraSubnet, NodePool, Shape, StandaloneMachine, spawn_stand_ins, spawn_stand_ins_of,
};
use stand_ins::Pace;
use tokio_util::sync::CancellationToken;

use crate::foreign_parts::ForeignParts;
use crate::seed;
use crate::tap::Tap;
use crate::world::{CLUSTER, World};

/// A builder of worlds. By default a world has three machines in one uniform scale set, only IPv4, and an Azure that
/// answers at once and throttles as Azure does. Everything random is drawn from the seed that the environment names
/// ([`crate::seed`]).
#[derive(Debug, Clone)]
pub struct WorldBuilder {
    shape: Shape,
    latency: LatencyProfile,
    budgets: Option<Budgets>,
    seed: u64,
    config: Value,
    options: controllers::Options,
    credential: Credential,
    replicas: bool,
    name: String,
    azure: Option<Azure>,
    tap: Option<Arc<dyn Tap>>,
    pace: Pace,
    pod_range: Option<String>,
}

impl Default for WorldBuilder {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            latency: LatencyProfile::instant(),
            budgets: Some(Budgets::default()),
            seed: seed::current(),
            config: json!({}),
            options: controllers::Options::default(),
            credential: Credential::fixed("token"),
            replicas: false,
            name: CLUSTER.to_owned(),
            azure: None,
            tap: None,
            pace: Pace::default(),
            pod_range: None,
        }
    }
}

impl World {
    /// A builder of worlds.
    pub fn builder() -> WorldBuilder {
        WorldBuilder::default()
    }
}

impl WorldBuilder {
    /// Sets the number of machines in the first scale set.
    #[must_use]
    pub fn nodes(mut self, nodes: u64) -> Self {
        if let Some(pool) = self.shape.pools.first_mut() {
            pool.nodes = nodes;
        }
        self
    }

    /// Removes the default scale set.
    #[must_use]
    pub fn no_pools(mut self) -> Self {
        self.shape.pools.clear();
        self
    }

    /// Adds a scale set.
    #[must_use]
    pub fn pool(mut self, pool: NodePool) -> Self {
        self.shape.pools.push(pool);
        self
    }

    /// Adds a machine that belongs to no scale set.
    #[must_use]
    pub fn machine(mut self, machine: StandaloneMachine) -> Self {
        self.shape.machines.push(machine);
        self
    }

    /// Adds a machine that runs the control plane.
    #[must_use]
    pub fn control_plane(self) -> Self {
        self.machine(StandaloneMachine::control_plane("control-plane-0"))
    }

    /// Gives network, machines and Services IPv6 addresses in addition to IPv4 ones.
    #[must_use]
    pub fn dual_stack(mut self) -> Self {
        self.shape.dual_stack = true;
        self
    }

    /// Gives pods addresses of their own, as with kubenet: the controllers give nodes ranges for them, and write routes
    /// to the table of the nodes' subnet. With [`Self::dual_stack`], of both families.
    #[must_use]
    pub fn routes(mut self) -> Self {
        self.shape.route_table = Some("routes".to_owned());
        self
    }

    /// Sets the range of all pods, if nodes have ranges of their own.
    #[must_use]
    pub fn pod_range(mut self, range: &str) -> Self {
        self.pod_range = Some(range.to_owned());
        self
    }

    /// Adds a subnet of the virtual network, whose prefixes are in [`Shape::NETWORK_V4`] and [`Shape::NETWORK_V6`].
    #[must_use]
    pub fn subnet(mut self, name: &str, prefixes: &[&str]) -> Self {
        let prefixes = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        self.shape.more_subnets.push(ExtraSubnet { name: name.to_owned(), prefixes });
        self
    }

    /// Merges a patch into azure.json.
    #[must_use]
    pub fn config(mut self, patch: &Value) -> Self {
        json_patch::merge(&mut self.config, patch);
        self
    }

    /// Sets the latency of Azure's operations.
    #[must_use]
    pub fn latency(mut self, latency: LatencyProfile) -> Self {
        self.latency = latency;
        self
    }

    /// Sets Azure's token buckets; `None` disables throttling.
    #[must_use]
    pub fn budgets(mut self, budgets: Option<Budgets>) -> Self {
        self.budgets = budgets;
        self
    }

    /// Sets the seed of everything random.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the options of the controllers. Clock and seed are the world's.
    #[must_use]
    pub fn options(mut self, options: controllers::Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the controllers' credential; by default they have a token that never expires.
    #[must_use]
    pub fn credential(mut self, credential: Credential) -> Self {
        self.credential = credential;
        self
    }

    /// Runs the controllers as replicas that elect a leader ([`World::change_leader`]).
    #[must_use]
    pub fn replicas(mut self) -> Self {
        self.replicas = true;
        self
    }

    /// Sets the cluster's name, and so that of its load balancers; `kubernetes` by default.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        name.clone_into(&mut self.name);
        self
    }

    /// Sets the cluster's initial resources in Azure.
    #[must_use]
    pub fn shape(mut self, shape: Shape) -> Self {
        self.shape = shape;
        self
    }

    /// Changes the cluster's initial resources in Azure.
    #[must_use]
    pub fn change_shape(mut self, change: impl FnOnce(&mut Shape)) -> Self {
        change(&mut self.shape);
        self
    }

    /// Uses this Azure, which may contain other clusters: nodes are only the machines of this shape. Its latency and
    /// budgets stay. Clusters with the same seed would give their Services the same UIDs.
    #[must_use]
    pub fn in_azure(mut self, azure: &Azure) -> Self {
        self.azure = Some(azure.clone());
        self
    }

    /// Puts a tap on the controllers' transport to Azure.
    #[must_use]
    pub fn tap(mut self, tap: Arc<dyn Tap>) -> Self {
        self.tap = Some(tap);
        self
    }

    /// Sets the heartbeat pace of kubelets.
    #[must_use]
    pub fn pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Creates everything and starts the stand-ins, but no controllers.
    pub fn build(self) -> World {
        let Self {
            shape,
            latency,
            budgets,
            seed,
            config,
            options,
            credential,
            replicas,
            name,
            azure,
            tap,
            pace,
            pod_range,
        } = self;
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options {
            seed,
            dual_stack: shape.dual_stack,
            ..Default::default()
        });
        let neighbours = azure.is_some();
        let azure = azure.unwrap_or_else(|| {
            Azure::new(azure_simulator::Options {
                seed,
                subscription: shape.subscription.clone(),
                tenant: shape.tenant.clone(),
                region: shape.region.clone(),
                latency,
                budgets,
                start: kubernetes.now(),
                ..Default::default()
            })
        });
        shape.lay_out(&azure).expect("the cluster's parts are sound");
        let client = Client::new(kubernetes.router(), "default");
        let stop = CancellationToken::new();
        let answers = if neighbours {
            spawn_stand_ins_of(Arc::new(shape.clone()), &azure, &client, pace, &stop)
        } else {
            spawn_stand_ins(&azure, &client, pace, &stop)
        };
        let parse = |range: &&str| range.parse().expect("it is a range");
        let pod_ranges = pod_range.as_deref().map_or_else(|| shape.pod_ranges(), |range| vec![range]);
        let ranges = shape.route_table.as_ref().map(|_| controllers::RangeOptions {
            cluster: pod_ranges.iter().map(parse).collect(),
            reserved: Vec::new(),
            masks: Some(MaskSizes { v4: 24, v6: 64 }),
        });
        let options = controllers::Options { seed, ranges: ranges.or(options.ranges), ..options };
        World {
            azure,
            kubernetes,
            client,
            shape,
            answers,
            options,
            credential,
            running: None,
            stand_ins: Some(stop.drop_guard()),
            config,
            seed,
            foreign: ForeignParts::default(),
            replicas: replicas.then_some(0),
            retired: Vec::new(),
            name,
            tap,
        }
    }

    /// Like [`Self::build`], but starts the controllers and waits until every machine is an initialised node.
    pub async fn start(self) -> World {
        let mut world = self.build();
        world.start();
        world.settle().await;
        world
    }
}
