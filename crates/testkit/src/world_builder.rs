//! How a world is set up.

use azure_simulator::{Azure, Budgets, LatencyProfile};
use kube::Client;
use kubernetes_simulator::Kubernetes;
use kubernetes_simulator::kubelet::Pace;
use simulated_cluster::{NodePool, Shape, stand_ins};
use tokio_util::sync::CancellationToken;

use crate::World;

/// A world in the making. It begins with three machines, an Azure that answers at once and throttles as
/// Azure does, and everything random drawn from seed 1.
#[derive(Debug, Clone)]
pub struct WorldBuilder {
    shape: Shape,
    latency: LatencyProfile,
    budgets: Option<Budgets>,
    seed: u64,
    options: controllers::Options,
}

impl Default for WorldBuilder {
    fn default() -> Self {
        Self {
            shape: Shape::default(),
            latency: LatencyProfile::instant(),
            budgets: Some(Budgets::default()),
            seed: 1,
            options: controllers::Options::default(),
        }
    }
}

impl WorldBuilder {
    /// How many machines the scale set has.
    #[must_use]
    pub fn nodes(mut self, nodes: u64) -> Self {
        self.shape.pools = vec![NodePool::new("workers", "worker", nodes)];
        self
    }

    /// How long Azure's operations take.
    #[must_use]
    pub fn latency(mut self, latency: LatencyProfile) -> Self {
        self.latency = latency;
        self
    }

    /// Azure's token buckets; `None` for an Azure that throttles nobody.
    #[must_use]
    pub fn budgets(mut self, budgets: Option<Budgets>) -> Self {
        self.budgets = budgets;
        self
    }

    /// Source of everything random.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How the controllers run. Clock and seed are the world's.
    #[must_use]
    pub fn options(mut self, options: controllers::Options) -> Self {
        self.options = options;
        self
    }

    /// Lays everything out and starts the stand-ins, but no controllers.
    pub fn build(self) -> World {
        let Self { shape, latency, budgets, seed, options } = self;
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options { seed, ..Default::default() });
        let azure = Azure::new(azure_simulator::Options {
            seed,
            subscription: shape.subscription.clone(),
            tenant: shape.tenant.clone(),
            region: shape.region.clone(),
            latency,
            budgets,
            start: kubernetes.now(),
            ..Default::default()
        });
        shape.lay_out(&azure).expect("the cluster's parts are sound");
        let client = Client::new(kubernetes.router(), "default");
        let stop = CancellationToken::new();
        let answers = stand_ins::spawn(&azure, &client, Pace::default(), &stop);
        let options = controllers::Options { seed, ..options };
        World {
            azure,
            kubernetes,
            client,
            shape,
            answers,
            options,
            running: None,
            stand_ins: Some(stop.drop_guard()),
        }
    }

    /// As [`Self::build`], starts the controllers and waits until every machine is an initialised node.
    pub async fn start(self) -> World {
        let mut world = self.build();
        world.start();
        world.settle().await;
        world
    }
}
