//! Divides the cluster's nodes among several load balancers: each node is in the pools of one entry's load balancers
//! ([`planner::placement`]).
//!
//! Each change of a load balancer or of nodes causes a new division. Each load balancer's own writer writes what is
//! due, in parallel and without an owner.

use std::collections::HashSet;
use std::sync::Arc;

use azure_types::{LoadBalancer, ResourceId};
use cloud::LogicalTime;
use planner::Balancer;
use planner::instance::{self, ProviderId};
use planner::placement::{self, MachineSets, NodePlaces, SharingInputs};
use tokio::time::{Instant, timeout_at};

use crate::failure::Failure;
use crate::intent_owner::IntentOwner;
use crate::load_balancer::LoadBalancerRequest;
use crate::member_writes::{Cause, Patience, Unfinished};
use crate::provider::Inner;

impl Inner {
    /// Divides the nodes among the existing load balancers, and waits until their pools match, for a limited time for
    /// those other than `own`. Returns the places of the nodes. Does nothing if there is only one load balancer of each
    /// kind, or while not all nodes are known.
    ///
    /// # Errors
    ///
    /// If load balancers cannot be read, the nodes of `own` cannot be written, or others have all of them.
    pub(crate) async fn share_nodes(
        &self,
        own: Option<&Balancer>,
    ) -> Result<Option<Arc<NodePlaces>>, Failure> {
        if !self.cluster.has_several_load_balancers() || !self.state.nodes_synced() {
            return Ok(None);
        }
        let places = self.divide_until_settled(Cause::Service(own), self.observed.started).await?;
        let failure =
            |own| self.member_writes.failure_of(own).or_else(|| self.member_writes.shortage_of(own));
        match own.and_then(failure) {
            Some(failure) => Err(failure),
            None => Ok(Some(places)),
        }
    }

    /// Brings the pools of all load balancers in line with the nodes, based on data read after `newer_than`.
    ///
    /// # Errors
    ///
    /// If one could not be written; the others are.
    pub(crate) async fn share_all_nodes(&self, newer_than: LogicalTime) -> Result<(), Unfinished> {
        self.require_nodes()?;
        self.member_writes.set_unread(None);
        self.divide_until_settled(Cause::Nodes, newer_than).await?;
        self.member_writes.unfinished().map_or(Ok(()), Err)
    }

    async fn divide_until_settled(
        &self,
        cause: Cause<'_>,
        mut newer_than: LogicalTime,
    ) -> Result<Arc<NodePlaces>, Failure> {
        let mut ended = self.member_writes.subscribe();
        let begun = Instant::now();
        let ended_before = match cause {
            Cause::Service(Some(own)) => self.member_writes.ended_writes(own),
            Cause::Service(None) | Cause::Nodes => 0,
        };
        loop {
            ended.mark_unchanged();
            let places = self.divide_nodes(newer_than).await?;
            newer_than = self.observed.started;
            // After each write there is more to do, or the division is complete.
            let is_over = match self.member_writes.patience(cause, begun, ended_before) {
                Patience::None => true,
                Patience::Until(deadline) => timeout_at(deadline, ended.changed()).await.is_err(),
                Patience::ForEver => ended.changed().await.is_err(),
            };
            if is_over {
                return Ok(places);
            }
        }
    }

    /// Divides the nodes, and starts writing what is due. Writes are planned on cached versions: after a lost race the
    /// load balancer is read again.
    async fn divide_nodes(&self, newer_than: LogicalTime) -> Result<Arc<NodePlaces>, Failure> {
        for balancer in self.cluster.balancers() {
            self.observed.load_balancers().get(&balancer.name, newer_than).await?;
        }
        let sets = self.machine_sets(newer_than).await;
        // A load balancer with only pools of single Services has no nodes to give.
        let all = self.observed.load_balancers().all_cached();
        let load_balancers = self.cluster.own_load_balancers(all, &[]);
        let (version, nodes) = self.state.nodes_in_version();
        let inputs = SharingInputs { version, nodes: &nodes, sets, load_balancers: &load_balancers };
        let (places, due) = self.member_writes.divide(&self.cluster, inputs);
        for balancer in due {
            let (writer, member_writes) = (self.load_balancer(&balancer), Arc::clone(&self.member_writes));
            let seen = self.observed.started;
            tokio::spawn(async move {
                let done = writer.submit(IntentOwner::Nodes, LoadBalancerRequest::Members, seen, None).await;
                let version = |document: &Arc<LoadBalancer>| document.etag.clone();
                let done = done.map(|done| done.observed.load_balancer.as_ref().and_then(version));
                member_writes.end(&balancer, done);
            });
        }
        Ok(places)
    }

    /// Whether nodes may be missing behind load balancers of SKU Basic because it is unknown in which scale sets or
    /// availability sets their machines are (LB-439).
    pub(crate) fn waits_for_sets(&self) -> bool {
        let is_used = self.cluster.config.uses_basic_load_balancer() && {
            let all = self.observed.load_balancers().all_cached();
            !self.cluster.own_load_balancers(all, &[]).is_empty()
        };
        is_used && {
            let known = self.membership.cached_virtual_machines();
            let sets = MachineSets::new(known.iter().map(|machine| &**machine));
            let places = placement::nodes_of_sets(&self.cluster, &self.state.nodes(), &sets);
            places.unknown().next().is_some()
        }
    }

    /// The nodes of each load balancer of SKU Basic; `None` for another SKU.
    ///
    /// # Errors
    ///
    /// If the machines' sets cannot be read.
    pub(crate) async fn nodes_of_sets(&self, newer_than: LogicalTime) -> Result<Option<NodePlaces>, Failure> {
        if !self.cluster.config.uses_basic_load_balancer() {
            return Ok(None);
        }
        let sets = self.machine_sets(newer_than).await;
        if let Some(failure) = self.member_writes.unread() {
            return Err(failure);
        }
        Ok(Some(placement::nodes_of_sets(&self.cluster, &self.state.nodes(), &sets)))
    }

    /// The scale sets and availability sets of nodes' machines. Read again only if a machine is unknown; unreadable
    /// ones count as unknown.
    pub(crate) async fn machine_sets(&self, newer_than: LogicalTime) -> MachineSets {
        let nodes = self.state.nodes();
        let machines =
            nodes.iter().filter_map(|node| match instance::parse_provider_id(&node.spec.provider_id) {
                ProviderId::Machine(id) => Some(id),
                ProviderId::Instance(_) | ProviderId::Unreadable | ProviderId::Other => None,
            });
        let machines: Vec<ResourceId> = machines.collect();
        if machines.is_empty() {
            self.member_writes.set_unread(None);
            return MachineSets::default();
        }
        let known = self.membership.cached_virtual_machines();
        let ids: HashSet<&ResourceId> = known.iter().filter_map(|machine| machine.id.as_ref()).collect();
        let may_ask = !self.member_writes.was_just_unread();
        let are_known = machines.iter().all(|id| ids.contains(id));
        if are_known {
            self.member_writes.set_unread(None);
        }
        if are_known || !may_ask {
            return MachineSets::new(known.iter().map(|machine| &**machine));
        }
        let newer_than = newer_than.max(self.state.machines_changed());
        let read = self.membership.virtual_machines(newer_than).await;
        let unread = read.err().inspect(|failure| {
            tracing::warn!(error = %failure.message, "the machine sets of nodes cannot be read");
        });
        self.member_writes.set_unread(unread);
        MachineSets::new(self.membership.cached_virtual_machines().iter().map(|machine| &**machine))
    }
}
