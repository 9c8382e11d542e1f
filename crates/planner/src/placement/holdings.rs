//! The nodes that each of several load balancers has, and the nodes that each may have now (LB-434). A machine can be
//! behind only one load balancer of a flavor. So a node that moves first leaves one and then joins the other, and a
//! load balancer that cannot be written keeps its nodes (and only those) from the load balancer that they belong to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use azure_types::LoadBalancer;
use k8s::Node;

use super::nodes::{addresses_in, by_address};
use crate::machines::node_places::{NodePlaces, NodeShare};
use crate::model::{Balancer, Cluster};
use crate::resources::load_balancer::ListedLoadBalancer;

/// The nodes that are in the pools of each load balancer, or are about to be.
#[derive(Debug, Clone, Default)]
pub struct Holdings(BTreeMap<Balancer, BTreeSet<String>>);

impl Holdings {
    /// Reads the nodes of load balancers from their documents. A load balancer that is not given holds none.
    pub fn of(
        cluster: &Cluster,
        nodes: &[Arc<Node>],
        load_balancers: &[(Balancer, ListedLoadBalancer)],
    ) -> Self {
        let mut holdings = Self::default();
        holdings.see(
            cluster,
            nodes,
            load_balancers.iter().map(|(balancer, document)| (balancer, &**document)),
        );
        holdings
    }

    /// Updates the nodes of some load balancers from their documents, and leaves the others unchanged.
    pub fn see<'a>(
        &mut self,
        cluster: &Cluster,
        nodes: &[Arc<Node>],
        load_balancers: impl IntoIterator<Item = (&'a Balancer, &'a LoadBalancer)>,
    ) {
        let by_address = by_address(nodes);
        for (balancer, document) in load_balancers {
            let addresses = addresses_in(cluster, document).into_iter();
            let held =
                addresses.filter_map(|address| by_address.get(&address)).map(|node| (*node).to_owned());
            self.0.insert(balancer.clone(), held.collect());
        }
    }

    /// Drops load balancers that no longer exist.
    pub fn retain(&mut self, is_there: impl Fn(&Balancer) -> bool) {
        self.0.retain(|balancer, _| is_there(balancer));
    }

    /// The nodes that a load balancer may have now: of the nodes that belong to it, the ones that it already has, and
    /// the ones that no other of its flavor has.
    pub fn share(&self, places: &NodePlaces, balancer: &Balancer) -> NodeShare {
        let own = self.0.get(balancer);
        let others: Vec<&BTreeSet<String>> = self
            .0
            .iter()
            .filter(|(other, _)| *other != balancer && other.flavor == balancer.flavor)
            .map(|(_, held)| held)
            .collect();
        let is_free = |node: &&str| {
            own.is_some_and(|own| own.contains(*node)) || !others.iter().any(|held| held.contains(*node))
        };
        let nodes = places.on(balancer).filter(is_free).map(str::to_owned).collect();
        NodeShare { nodes, may_be_empty: places.has_any() }
    }

    /// Whether a load balancer cannot have all nodes that belong to it, because others have some of them.
    pub fn is_short(&self, places: &NodePlaces, balancer: &Balancer) -> bool {
        self.share(places, balancer).nodes.len() < places.on(balancer).count()
    }

    /// The other load balancers of its flavor that have nodes which belong to it, each with their number.
    pub fn holders(&self, places: &NodePlaces, balancer: &Balancer) -> Vec<(Balancer, usize)> {
        let others = self.0.iter().filter(|(one, _)| *one != balancer && one.flavor == balancer.flavor);
        let counted = others.map(|(one, held)| {
            (one.clone(), places.on(balancer).filter(|node| held.contains(*node)).count())
        });
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Records that a load balancer gets these nodes in addition to the ones that it has.
    pub fn claim(&mut self, balancer: &Balancer, share: &NodeShare) {
        self.0.entry(balancer.clone()).or_default().extend(share.nodes.iter().cloned());
    }
}
