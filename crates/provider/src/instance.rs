//! Machines: whether they are there and what they are like (`spec/nodes.md` 4.2, 5.3).

use std::time::Duration;

use azure_types::{NetworkInterface, ResourceId, ScaleSet};
use k8s::{Node, names};
use planner::instance::{self, InstanceName, ProviderId};

use crate::failure::Failure;
use crate::moment::Moment;
use crate::provider::Inner;
use crate::{Existence, Instance};

/// A node that Azure does not manage: it is there, and there is nothing to say about it.
fn unmanaged(node: &Node) -> Instance {
    Instance {
        provider_id: node.spec.provider_id.clone(),
        instance_type: String::new(),
        zone: String::new(),
        region: String::new(),
        addresses: Vec::new(),
        shut_down: false,
    }
}

impl Inner {
    /// The machine of a node, as Azure knows it no earlier than now.
    pub(crate) async fn instance(&self, node: &Node) -> Existence<Instance> {
        let asked = Moment::now();
        if !node.is_managed() {
            return Existence::Present(unmanaged(node));
        }
        let name = match instance::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Instance(name) => name,
            ProviderId::Machine(id) => {
                return Existence::Unknown(format!(
                    "{id} is no instance of a uniform scale set: this release does not look at other machines"
                ));
            }
            ProviderId::Other if !node.spec.provider_id.is_empty() => {
                return Existence::Present(unmanaged(node));
            }
            ProviderId::Other => match self.by_name(node, asked).await {
                Ok(Some(name)) => name,
                Ok(None) => {
                    return Existence::Unknown(format!(
                        "no uniform scale set in the cluster's resource group gives machines names like {}",
                        node.name()
                    ));
                }
                Err(failure) => return Existence::Unknown(failure.message),
            },
        };
        match self.describe(node, &name, asked).await {
            Ok(Some(instance)) => Existence::Present(instance),
            Ok(None) if self.is_young(node) => Existence::Unknown(format!(
                "{} is not there (yet): the node is younger than nodeInstanceNotFoundGracePeriod",
                name.id()
            )),
            Ok(None) => Existence::Absent,
            Err(failure) => Existence::Unknown(failure.message),
        }
    }

    /// The machine that a node's name names.
    async fn by_name(&self, node: &Node, asked: Moment) -> Result<Option<InstanceName>, Failure> {
        let config = &self.cluster.config;
        let group = node.label(names::LABEL_RESOURCE_GROUP).filter(|group| !group.is_empty());
        let group = ResourceId::group(&config.subscription_id, group.unwrap_or(&config.resource_group));
        let sets = self.observed.scale_sets(&group).all(asked).await?;
        let sets: Vec<ScaleSet> = sets.iter().map(|set| ScaleSet::clone(set)).collect();
        let found = instance::scale_set_of_node_name(node.name(), &sets);
        Ok(found
            .and_then(|(set, instance_id)| Some(InstanceName { scale_set: set.id.clone()?, instance_id })))
    }

    /// The machine's description; `None` where Azure's complete list does not hold it.
    async fn describe(
        &self,
        node: &Node,
        name: &InstanceName,
        asked: Moment,
    ) -> Result<Option<Instance>, Failure> {
        let instances = self.observed.instances(&name.scale_set);
        let document = match instances.one(&name.instance_id, asked).await {
            Ok(document) => document,
            Err(failure) if failure.is_missing() => None,
            Err(failure) => return Err(failure),
        };
        let Some(document) = document else { return Ok(None) };
        let state = document.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
        if state.is_some_and(|state| state.is("Deleting")) {
            return Ok(None);
        }
        // Interfaces live as long as their machine: they are read again only for a machine not seen before.
        let mut interfaces = self.interfaces(name, self.observed.started).await?;
        if interfaces.is_empty() {
            interfaces = self.interfaces(name, asked).await?;
        }
        let facts = instance::describe(&self.cluster, node.name(), &document, &interfaces)
            .map_err(|error| Failure::new(crate::failure::Kind::Busy, error.to_string()))?;
        Ok(Some(Instance {
            provider_id: facts.provider_id,
            instance_type: facts.instance_type,
            zone: facts.zone,
            region: facts.region,
            addresses: facts.addresses,
            shut_down: facts.shut_down,
        }))
    }

    async fn interfaces(&self, name: &InstanceName, since: Moment) -> Result<Vec<NetworkInterface>, Failure> {
        let machine = name.id();
        let all = self.observed.interfaces(&name.scale_set).all(since).await?;
        let mine = all.iter().filter(|nic| nic.id.as_ref().is_some_and(|id| id.is_within(&machine)));
        Ok(mine.map(|nic| NetworkInterface::clone(nic)).collect())
    }

    /// Whether the node is so young that Azure may not show its machine yet (the grace rule of 4.2).
    fn is_young(&self, node: &Node) -> bool {
        let grace = self.cluster.config.node_instance_not_found_grace_period;
        let Some(created) = node.metadata.creation_timestamp.as_ref().filter(|_| !grace.is_zero()) else {
            return false;
        };
        let created = Duration::from_secs(u64::try_from(created.0.as_second()).unwrap_or_default());
        self.clock.now().saturating_sub(created) < grace
    }
}
