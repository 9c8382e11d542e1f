//! Matches a node to its machine: by provider ID, or by name if it has none.

use std::sync::Arc;
use std::time::Duration;

use azure_types::{ResourceId, VirtualMachine, VmId};
use cloud::{Existence, LogicalTime, Proof};
use k8s::{Node, names};
use planner::instance::{self, MachineDocument, MachineName, ProviderId};
use planner::scale_set::is_flexible;

use crate::failure::Failure;
use crate::observed::MachineAnswer;
use crate::provider::Inner;

/// The minimum age of a node for declaring its machine absent by name alone: a new machine takes a while to appear in
/// Azure's lists, and a kubelet whose node is deleted does not register again by itself.
const MIN_AGE_OF_NAMELESS: Duration = Duration::from_secs(5 * 60);

/// How a node's machine was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundBy {
    /// By the node's provider ID.
    Id,
    /// By the node's name. If it is found, it exists; if it is no longer found, that does not prove that it was this
    /// node's.
    Name,
}

/// The machine of a node.
pub(super) enum Subject {
    /// Not managed by Azure: it exists, without further properties.
    Unmanaged,
    /// A machine of Azure.
    Machine { name: MachineName, found: FoundBy },
    /// The node has no provider ID, and no list of this resource group that could contain its machine does.
    Nowhere { group: ResourceId },
    /// Unknown; the text says why.
    Unknown(String),
}

/// A machine with a node's name.
struct Namesake {
    name: MachineName,
    vm_id: Option<VmId>,
}

/// The virtual machines with a node's name: by host name, or else by resource name.
fn called<'a>(machines: impl Iterator<Item = &'a VirtualMachine> + Clone, name: &str) -> Vec<Namesake> {
    let is_there = |machine: &&VirtualMachine| !instance::is_being_deleted(*machine);
    let namesake = |machine: &VirtualMachine| {
        Some(Namesake { name: MachineName::Machine(machine.id.clone()?), vm_id: machine.vm_id() })
    };
    let ids = |machines: &mut dyn Iterator<Item = &'a VirtualMachine>| -> Vec<Namesake> {
        machines.filter(is_there).filter_map(namesake).collect()
    };
    let by_host = ids(&mut machines.clone().filter(|machine| instance::is_called(*machine, name)));
    if !by_host.is_empty() {
        return by_host;
    }
    let bears =
        |machine: &&VirtualMachine| machine.name.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(name));
    ids(&mut machines.filter(bears))
}

/// The explanation for a node without provider ID whose name no machine has.
pub(super) fn nowhere(node: &Node, group: &ResourceId) -> String {
    format!(
        "the node has no providerID (it is not initialized yet), and no machine in resource group {} is called {}; if \
         its machine is in another group, label the node {}=<group>, and if it is not Azure's, {}=false",
        group.name(),
        node.name(),
        names::LABEL_RESOURCE_GROUP,
        names::LABEL_MANAGED,
    )
}

/// The explanation for a node whose name only another machine has.
fn not_it(node: &Node, other: &MachineName) -> String {
    format!(
        "the only machine that is called {} is {}, and its vmId is not the systemUUID of the node: the node's machine may not be in \
         Azure's lists yet, or not any more; to say which it is, give the node its providerID by the kubelet's --provider-id",
        node.name(),
        other.id()
    )
}

/// The prefix of Azure's provider IDs. An ID that continues in another way was meant to be one.
const AZURES: &str = "azure://";

fn unreadable(node: &Node) -> String {
    format!(
        "error splitting providerID {} of node {}: it names no machine; delete the node, and let its kubelet register it \
         again",
        node.spec.provider_id,
        node.name()
    )
}

impl Inner {
    pub(super) async fn subject(&self, node: &Node, newer_than: LogicalTime) -> Subject {
        if !node.is_managed() {
            return Subject::Unmanaged;
        }
        let by_id = |name| Subject::Machine { name, found: FoundBy::Id };
        match instance::parse_provider_id(&node.spec.provider_id) {
            ProviderId::Instance(name) => by_id(MachineName::Instance(name)),
            ProviderId::Machine(id) => by_id(MachineName::Machine(id)),
            ProviderId::Unreadable => Subject::Unknown(unreadable(node)),
            ProviderId::Other if node.spec.provider_id.starts_with(AZURES) => {
                Subject::Unknown(unreadable(node))
            }
            ProviderId::Other if !node.spec.provider_id.is_empty() => Subject::Unmanaged,
            ProviderId::Other => match self.by_name(node, newer_than).await {
                Ok(subject) => subject,
                Err(failure) => Subject::Unknown(failure.message),
            },
        }
    }

    /// The machine with a node's name. A scale set's prefix only gives a candidate, which the machine's own host name
    /// confirms. Machines of another cluster in the group may have the same name: their vmId distinguishes them.
    async fn by_name(&self, node: &Node, newer_than: LogicalTime) -> Result<Subject, Failure> {
        let config = &self.cluster.config;
        let group = node.label(names::LABEL_RESOURCE_GROUP).filter(|group| !group.is_empty());
        let group = ResourceId::group(&config.subscription_id, group.unwrap_or(&config.resource_group));
        let sets = self.observed.scale_sets(&group).list(newer_than).await?;
        let uniform = sets.iter().map(|set| &**set).filter(|set| !is_flexible(set));
        let mut found = Vec::new();
        for name in instance::candidates_for_node_name(node.name(), uniform) {
            let document = self.listed_instance(&name, newer_than).await?;
            let Some(document) = document.filter(|document| instance::is_called(&**document, node.name()))
            else {
                continue;
            };
            found.push(Namesake { name: MachineName::Instance(name), vm_id: document.vm_id() });
        }
        if !config.disable_availability_set_nodes || config.enable_vmss_flex_nodes {
            let all = self.observed.virtual_machines(&group);
            let in_list =
                |machines: Vec<Arc<VirtualMachine>>| called(machines.iter().map(|one| &**one), node.name());
            // If an instance has the name, this list is read only if its cached version contains another machine with
            // the name.
            if found.is_empty() || !in_list(all.all_cached()).is_empty() {
                let listed = all.list(newer_than).await;
                found.extend(in_list(listed.map_err(|failure| failure.while_doing("failed to list VMs"))?));
            }
        }
        let system = node.status.system_uuid;
        let is_it = |one: &Namesake| system.zip(one.vm_id).is_some_and(|(system, vm)| vm.is_of(system));
        if let Some(at) = found.iter().position(is_it) {
            found = vec![found.swap_remove(at)];
        } else if let [other] = &*found
            && other.vm_id.is_some()
            && system.is_some()
            && self.may_run_elsewhere(node)
        {
            return Ok(Subject::Unknown(not_it(node, &other.name)));
        }
        Ok(match found.len() {
            0 => Subject::Nowhere { group },
            1 => found.pop().map_or(Subject::Nowhere { group }, |one| Subject::Machine {
                name: one.name,
                found: FoundBy::Name,
            }),
            _ => {
                let ids: Vec<String> = found.iter().map(|one| one.name.id().to_string()).collect();
                Subject::Unknown(format!(
                    "several machines are called {}: {}; let only one of them run a kubelet, or give the node its \
                     providerID by the kubelet's --provider-id",
                    node.name(),
                    ids.join(", ")
                ))
            }
        })
    }

    /// Whether a node whose system UUID matches no listed machine may run on a machine that Azure does not list yet, or
    /// no longer. A kubelet that keeps running for minutes reports another UUID, as in a container.
    fn may_run_elsewhere(&self, node: &Node) -> bool {
        self.is_younger(node, MIN_AGE_OF_NAMELESS) || node.is_silent()
    }

    /// The conclusion for a node without provider ID whose name no machine has. It is absent only if its kubelet waits
    /// for a cloud, the node is not new, and Azure says that there is no virtual machine of exactly this name.
    pub(super) async fn absence_by_name<T>(
        &self,
        node: &Node,
        group: &ResourceId,
        newer_than: LogicalTime,
    ) -> Existence<T> {
        if !node.has_taint(names::TAINT_UNINITIALIZED)
            || self.is_younger(node, MIN_AGE_OF_NAMELESS)
            || self.is_young(node)
        {
            return Existence::Unknown(nowhere(node, group));
        }
        let id = group.resource("Microsoft.Compute", "virtualMachines", node.name());
        let name = MachineName::Machine(id.clone());
        match self.observed.read_machine(&name, newer_than).await {
            Ok(reading) => match &reading.answer {
                MachineAnswer::Gone(answer) => Existence::Absent(Proof {
                    machine: id.to_string(),
                    answer: format!(
                        "{answer} (no other machine of the resource group is called {})",
                        node.name()
                    ),
                    read: reading.read,
                }),
                MachineAnswer::Exists { .. } => {
                    Existence::Unknown(format!("{id} is there, but no list shows it yet"))
                }
            },
            Err(failure) => Existence::Unknown(failure.message),
        }
    }

    /// Whether the node is so young that Azure may not list its machine yet (the grace rule of 4.2).
    pub(super) fn is_young(&self, node: &Node) -> bool {
        self.is_younger(node, self.cluster.config.node_instance_not_found_grace_period)
    }

    /// Whether the node was created less than `age` ago; a node without creation time counts as old.
    fn is_younger(&self, node: &Node, age: Duration) -> bool {
        let created = node.metadata.creation_timestamp.as_ref().filter(|_| !age.is_zero());
        created.is_some_and(|created| self.clock.age(Some(created.0)) < age)
    }
}
