//! Several load balancers share the cluster's nodes: each node is in the pools of one entry's load balancers
//! ([`planner::placement`]).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use azure_types::LoadBalancer;
use futures::future::join_all;
use k8s::Node;
use planner::Balancer;
use planner::instance::{self, ProviderId};
use planner::load_balancer::{self as plans, Known};
use planner::placement::{self, MachineSets, NodePlaces};

use crate::failure::Failure;
use crate::load_balancer::{Owner, Wish, local_services};
use crate::provider::Inner;

/// What decides whether pools are as they should be. Hundreds of Services ask for it, and only a few times anything is
/// another.
fn fingerprint(
    nodes: &[Arc<Node>],
    places: &NodePlaces,
    load_balancers: &[(Balancer, Arc<LoadBalancer>)],
) -> u64 {
    let mut hasher = DefaultHasher::new();
    places.hash(&mut hasher);
    for node in nodes {
        (node.name(), node.is_draining()).hash(&mut hasher);
        node.internal_addresses().for_each(|address| address.hash(&mut hasher));
    }
    for (balancer, document) in load_balancers {
        (balancer, &document.etag).hash(&mut hasher);
    }
    hasher.finish()
}

impl Inner {
    /// Divides the nodes among the load balancers that exist, and brings the members of their pools to that; gives which
    /// nodes are where. Nothing where there is only one of each kind, and as long as not all nodes are known.
    ///
    /// What is written is for the versions that are known: a lost race is read again.
    pub(crate) async fn share_nodes(&self) -> Result<Option<Arc<NodePlaces>>, Failure> {
        if !self.cluster.has_several_load_balancers() || !self.state.nodes_synced() {
            return Ok(None);
        }
        let _one_at_a_time = self.sharing.lock().await;
        for balancer in self.cluster.balancers() {
            self.observed.load_balancers().get(&balancer.name, self.observed.started).await?;
        }
        let sets = self.machine_sets().await?;
        let nodes = self.state.nodes();
        let load_balancers = self.own_load_balancers();
        let places = Arc::new(placement::place_nodes(&self.cluster, &nodes, &sets, &load_balancers));
        *self.node_places.lock() = Some(Arc::clone(&places));
        let judged = fingerprint(&nodes, &places, &load_balancers);
        let mut settled = true;
        if *self.shared.lock() == Some(judged) {
            return Ok(Some(places));
        }
        for wave in placement::losers_first(&self.cluster, &nodes, &places, &load_balancers) {
            let due = wave.into_iter().filter(|balancer| self.is_due(balancer, &load_balancers, &places));
            let writes = due.map(|balancer| {
                settled = false;
                let writer = self.load_balancer(&balancer);
                let seen = self.observed.started;
                async move { writer.submit(Owner::Nodes, Wish::Members, seen, None).await.map(drop) }
            });
            join_all(writes).await.into_iter().collect::<Result<(), Failure>>()?;
        }
        *self.shared.lock() = settled.then_some(judged);
        Ok(Some(places))
    }

    fn own_load_balancers(&self) -> Vec<(Balancer, Arc<LoadBalancer>)> {
        self.cluster.own_among(self.observed.load_balancers().all_cached())
    }

    /// Whether the pools of a load balancer are not as they should be.
    fn is_due(
        &self,
        balancer: &Balancer,
        load_balancers: &[(Balancer, Arc<LoadBalancer>)],
        places: &NodePlaces,
    ) -> bool {
        let document = load_balancers.iter().find(|(one, _)| one == balancer);
        let nodes = self.state.nodes();
        let local_services = local_services(&self.cluster, &self.state);
        let known = Known {
            nodes: Some(&nodes),
            places: Some(places),
            local_services: local_services.as_deref(),
            ..Known::default()
        };
        document.is_some_and(|(_, document)| {
            plans::plan(&self.cluster, balancer, Some(document), &[], known).step.is_some()
        })
    }

    /// The sets of the machines that are nodes. They are read again only if a machine is not known yet.
    async fn machine_sets(&self) -> Result<MachineSets, Failure> {
        let nodes = self.state.nodes();
        let machines =
            nodes.iter().filter_map(|node| match instance::parse_provider_id(&node.spec.provider_id) {
                ProviderId::Machine(id) => Some(id),
                ProviderId::Instance(_) | ProviderId::Other => None,
            });
        let machines: Vec<_> = machines.collect();
        if machines.is_empty() {
            return Ok(MachineSets::default());
        }
        let mut known = self.membership.virtual_machines(self.observed.started).await?;
        let is_known = |id| known.iter().any(|machine| machine.id.as_ref() == Some(id));
        if !machines.iter().all(is_known) {
            known = self.membership.virtual_machines(self.state.nodes_changed()).await?;
        }
        Ok(MachineSets::new(known.iter().map(|machine| &**machine)))
    }
}
