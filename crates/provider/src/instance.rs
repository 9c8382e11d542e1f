//! Machines: whether they are there and what they are like.

use std::sync::Arc;

use azure_types::{NetworkInterface, ResourceId, ScaleSet, ScaleSetInstance};
use cloud::{Existence, Instance, LogicalTime, Presence, Proof};
use k8s::{Node, names};
use planner::instance::{self, InstanceName, ProviderId};

use crate::failure::{Failure, Kind};
use crate::provider::Inner;

/// A node that Azure does not manage: it is there, and there is nothing to say about it.
fn unmanaged(node: &Node) -> Instance {
    Instance { provider_id: node.spec.provider_id.clone(), ..Instance::default() }
}

/// Which machine a node stands for.
enum Subject {
    /// None that Azure manages: it is there, and there is nothing to say about it.
    Unmanaged,
    /// A machine of a uniform scale set.
    Instance {
        name: InstanceName,
        /// Whether it was found by the node's name, because the node has no provider id. It is there, then;
        /// but when it is not found any more, nothing proves that it was this node's.
        by_name: bool,
    },
    /// None that this release looks at, or none that it finds; the text says why.
    NotServed(String),
    /// Nobody knows; the text says why.
    Unknown(String),
}

/// What to do about a node whose machine this release does not look at.
const LEAVE_TO_NODE_MANAGER: &str = "this release looks at machines of uniform scale sets alone. Let a node manager \
     (cloud-node-manager) initialize the nodes of others (standalone machines, flexible scale sets, availability sets), \
     and start the controller manager with --controllers=*,-cloud-node";

impl Inner {
    /// Whether a node's machine is there (`cloud::Machines::presence`).
    pub(crate) async fn presence(&self, node: &Node, newer_than: LogicalTime) -> Existence<Presence> {
        let (name, by_name) = match self.subject(node, newer_than).await {
            Subject::Unmanaged => return Existence::Present(Presence { shut_down: false }),
            Subject::NotServed(reason) | Subject::Unknown(reason) => return Existence::Unknown(reason),
            Subject::Instance { name, by_name } => (name, by_name),
        };
        match self.listed(&name, newer_than).await {
            Ok(Some(document)) => {
                Existence::Present(Presence { shut_down: instance::is_shut_down(&*document) })
            }
            Ok(None) => self.confirm_absence(node, &name, by_name).await,
            Err(failure) => Existence::Unknown(failure.message),
        }
    }

    /// What a node's machine is like (`cloud::Machines::describe`).
    pub(crate) async fn describe(&self, node: &Node, newer_than: LogicalTime) -> Existence<Instance> {
        let (name, by_name) = match self.subject(node, newer_than).await {
            Subject::Unmanaged => return Existence::Present(unmanaged(node)),
            Subject::NotServed(reason) => {
                return Existence::Unknown(format!("{reason}: {LEAVE_TO_NODE_MANAGER}"));
            }
            Subject::Unknown(reason) => return Existence::Unknown(reason),
            Subject::Instance { name, by_name } => (name, by_name),
        };
        match self.listed(&name, newer_than).await {
            Ok(Some(document)) => match self.instance_of(node, &name, &document, newer_than).await {
                Ok(instance) => Existence::Present(instance),
                Err(failure) => Existence::Unknown(failure.message),
            },
            Ok(None) => self.confirm_absence(node, &name, by_name).await,
            Err(failure) => Existence::Unknown(failure.message),
        }
    }

    async fn subject(&self, node: &Node, newer_than: LogicalTime) -> Subject {
        if !node.is_managed() {
            return Subject::Unmanaged;
        }
        match instance::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Instance(name) => Subject::Instance { name, by_name: false },
            ProviderId::Machine(id) => {
                Subject::NotServed(format!("{id} is no instance of a uniform scale set"))
            }
            ProviderId::Unreadable => Subject::Unknown(format!(
                "error splitting providerID {} of node {}: it names no machine; delete the node, and let its kubelet \
                 register it again",
                node.spec.provider_id,
                node.name()
            )),
            ProviderId::Other if !node.spec.provider_id.is_empty() => Subject::Unmanaged,
            ProviderId::Other => match self.by_name(node, newer_than).await {
                Ok(Some(name)) => Subject::Instance { name, by_name: true },
                Ok(None) => Subject::NotServed(format!(
                    "no machine of a uniform scale set in the node's resource group is called {}, and the node \
                     has no providerID",
                    node.name()
                )),
                Err(failure) => Subject::Unknown(failure.message),
            },
        }
    }

    /// The machine that bears a node's name. A scale set's prefix only suggests it: the machine's own host
    /// name says whether it is the one.
    async fn by_name(&self, node: &Node, newer_than: LogicalTime) -> Result<Option<InstanceName>, Failure> {
        let config = &self.cluster.config;
        let group = node.label(names::LABEL_RESOURCE_GROUP).filter(|group| !group.is_empty());
        let group = ResourceId::group(&config.subscription_id, group.unwrap_or(&config.resource_group));
        let sets = self.observed.scale_sets(&group).list(newer_than).await?;
        let sets: Vec<ScaleSet> = sets.iter().map(|set| ScaleSet::clone(set)).collect();
        for name in instance::candidates_for_node_name(node.name(), &sets) {
            let document = self.listed(&name, newer_than).await?;
            if document.is_some_and(|document| instance::is_called(&*document, node.name())) {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// The machine as the list of its scale set shows it; `None` if the list does not hold it, or shows that
    /// it is being deleted.
    async fn listed(
        &self,
        name: &InstanceName,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<ScaleSetInstance>>, Failure> {
        let instances = self.observed.instances(&name.scale_set);
        let document = match instances.get(&name.instance_id, newer_than).await {
            Ok(document) => document,
            Err(failure) if failure.is_not_found() => None,
            Err(failure) => return Err(failure),
        };
        Ok(document.filter(|document| !instance::is_being_deleted(&**document)))
    }

    /// Asks Azure for the one machine that a list did not hold: only its own answer proves an absence.
    async fn confirm_absence<T>(&self, node: &Node, name: &InstanceName, by_name: bool) -> Existence<T> {
        let id = name.id();
        if by_name {
            return Existence::Unknown(format!(
                "{id} is not there, but was found by the node's name alone: the node has no providerID"
            ));
        }
        if self.is_young(node) {
            return Existence::Unknown(format!(
                "{id} is not there (yet): the node is younger than nodeInstanceNotFoundGracePeriod"
            ));
        }
        let read = LogicalTime::now();
        let absent = |answer| Existence::Absent(Proof { machine: id.to_string(), answer, read });
        match self.observed.instance(&id).await {
            Ok(document) if !instance::is_being_deleted(&document) => {
                Existence::Unknown(format!("{id} is there, but the list of its scale set does not show it"))
            }
            Ok(_) => absent("Azure is deleting it".to_owned()),
            Err(failure) if failure.is_not_found() => absent(failure.message),
            Err(failure) => Existence::Unknown(failure.message),
        }
    }

    async fn instance_of(
        &self,
        node: &Node,
        name: &InstanceName,
        document: &ScaleSetInstance,
        newer_than: LogicalTime,
    ) -> Result<Instance, Failure> {
        // Interfaces live as long as their machine: they are read again only for a machine not seen before.
        let mut interfaces = self.interfaces(name, self.observed.started).await?;
        if interfaces.is_empty() {
            interfaces = self.interfaces(name, newer_than).await?;
        }
        let interfaces: Vec<&NetworkInterface> = interfaces.iter().collect();
        let location = &self.cluster.config.location;
        // An interface names its public IPs alone, and nobody looks their addresses up yet.
        let facts = instance::describe(node.name(), document, None, &interfaces, &|_| None, location)
            .map_err(|error| Failure::new(Kind::Unavailable, error.to_string()))?;
        // A list that was read while the machine was made does not show its interface: a node that is described
        // by it would lose the addresses that its kubelet told.
        if !facts.addresses.iter().any(|address| address.kind == "InternalIP") {
            let message = format!("Azure shows no interface of {} with an address yet", name.id());
            return Err(Failure::new(Kind::Unavailable, message));
        }
        Ok(Instance {
            provider_id: facts.provider_id,
            instance_type: facts.instance_type,
            zone: facts.zone,
            region: facts.region,
            addresses: facts.addresses,
            ..Instance::default()
        })
    }

    async fn interfaces(
        &self,
        name: &InstanceName,
        newer_than: LogicalTime,
    ) -> Result<Vec<NetworkInterface>, Failure> {
        let machine = name.id();
        let all = self.observed.interfaces(&name.scale_set).list(newer_than).await?;
        let mine = all.iter().filter(|nic| nic.id.as_ref().is_some_and(|id| id.is_within(&machine)));
        Ok(mine.map(|nic| NetworkInterface::clone(nic)).collect())
    }

    /// Whether the node is so young that Azure may not show its machine yet (the grace rule of 4.2).
    fn is_young(&self, node: &Node) -> bool {
        let grace = self.cluster.config.node_instance_not_found_grace_period;
        let created = node.metadata.creation_timestamp.as_ref().filter(|_| !grace.is_zero());
        created.is_some_and(|created| self.clock.age(Some(created.0)) < grace)
    }
}
