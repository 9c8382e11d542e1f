//! Hypothetical changes: the present documents, machines and probes with some changes.

use std::net::IpAddr;
use std::sync::Arc;

use azure_types::ResourceId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::balancer::AdminState;
use super::json::id_of;
use super::machine::{Machine, Power};
use super::network::Network;
use super::probe_answers::ProbeAnswers;
use azure_engine::document::edit::Edit;
use azure_engine::document::reading::Documents;

/// A hypothetical change: nothing in the simulated Azure changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Change {
    /// A document differs.
    Edit {
        /// The resource, or a child that its document holds, such as a rule.
        id: ResourceId,
        /// The edit.
        edit: Edit,
    },
    /// A resource or child is gone, with everything below it.
    Remove {
        /// Its id.
        id: ResourceId,
    },
    /// A machine is set down in all pools, as before its deletion.
    Drain {
        /// Its host name or resource name.
        node: String,
    },
    /// A machine answers no health probe.
    Silence {
        /// Its host name or resource name.
        node: String,
    },
    /// A machine is stopped, but stays on its host.
    Stop {
        /// Its host name or resource name.
        node: String,
    },
}

/// Documents with changes.
struct Changed<'a> {
    documents: &'a dyn Documents,
    changes: &'a [Change],
}

impl Documents for Changed<'_> {
    fn document(&self, id: &ResourceId) -> Option<Value> {
        self.documents.document(id).and_then(|document| self.changed(document))
    }

    fn of_type(&self, resource_type: &str) -> Vec<Value> {
        self.documents
            .of_type(resource_type)
            .into_iter()
            .filter_map(|document| self.changed(document))
            .collect()
    }

    fn at_once(&self, read: &mut dyn FnMut(&dyn Documents)) {
        self.documents.at_once(&mut |documents| read(&Changed { documents, changes: self.changes }));
    }
}

impl Changed<'_> {
    fn changed(&self, mut document: Value) -> Option<Value> {
        let Some(own) = id_of(&document) else { return Some(document) };
        for change in self.changes {
            match change {
                Change::Remove { id } if own == *id || own.is_within(id) => return None,
                Change::Remove { id } if id.is_within(&own) => {
                    Edit::removing(&path_within(&own, id)).apply(&mut document);
                }
                Change::Edit { id, edit } if own == *id => edit.apply(&mut document),
                Change::Edit { id, edit } if id.is_within(&own) => {
                    let path = path_within(&own, id);
                    // A missing child is not created by changing it.
                    let child = azure_engine::document::edit::find(&document, &path)
                        .first()
                        .map(|child| (*child).clone());
                    if let Some(mut child) = child {
                        edit.apply(&mut child);
                        Edit::setting(&path, child).apply(&mut document);
                    }
                }
                _ => {}
            }
        }
        Some(document)
    }
}

/// Where a document holds a child: `properties/{collection}/{name}`, and so on down.
fn path_within(holder: &ResourceId, child: &ResourceId) -> String {
    let above = holder.type_and_name_pairs().len();
    let below = child.type_and_name_pairs();
    let steps = below.iter().skip(above).map(|(collection, name)| format!("properties/{collection}/{name}"));
    steps.collect::<Vec<_>>().join("/")
}

/// The network with changes.
pub(super) fn changed_network(documents: &dyn Documents, changes: &[Change]) -> Network {
    let mut network = Network::read(&Changed { documents, changes });
    for change in changes {
        match change {
            Change::Drain { node } => network.drain(node),
            Change::Stop { node } => network.stop(node),
            _ => {}
        }
    }
    network
}

impl Network {
    fn drain(&mut self, node: &str) {
        let interfaces = &self.interfaces;
        let is = |index: usize| {
            let interface = interfaces.get(index);
            interface
                .and_then(|of| Some((of.machine.as_ref()?, of.machine_state()?)))
                .is_some_and(|(id, machine)| Self::matches_name(id, machine, node))
        };
        for pool in self.balancers.iter_mut().flat_map(|balancer| &mut balancer.pools) {
            for member in pool.members.iter_mut().filter(|member| member.interface.is_some_and(is)) {
                member.admin_state = AdminState::Down;
            }
        }
    }

    fn stop(&mut self, node: &str) {
        let called = self.machines.iter_mut().filter(|(id, machine)| Self::matches_name(id, machine, node));
        for (_, machine) in called {
            Arc::make_mut(machine).power = Power::Stopped;
        }
        let machines = &self.machines;
        for interface in &mut self.interfaces {
            interface.targets.machine = interface.machine.as_ref().and_then(|id| machines.get(id)).cloned();
        }
    }
}

/// Answers as they are, but for machines that were silenced.
pub(super) struct Silenced<'a> {
    pub(super) probes: &'a dyn ProbeAnswers,
    machines: Vec<ResourceId>,
}

impl<'a> Silenced<'a> {
    pub(super) fn new(network: &Network, probes: &'a dyn ProbeAnswers, changes: &[Change]) -> Self {
        let silent = |id: &ResourceId, machine: &Machine| {
            changes.iter().any(|change| {
                matches!(change, Change::Silence { node } if Network::matches_name(id, machine, node))
            })
        };
        let machines = network
            .machines
            .iter()
            .filter(|(id, machine)| silent(id, machine))
            .map(|(id, _)| id.clone())
            .collect();
        Self { probes, machines }
    }
}

impl ProbeAnswers for Silenced<'_> {
    fn answers(
        &self,
        instance: &ResourceId,
        node_address: IpAddr,
        protocol: &str,
        port: u16,
        path: Option<&str>,
    ) -> bool {
        !self.machines.contains(instance) && self.probes.answers(instance, node_address, protocol, port, path)
    }
}
