//! The machine of a node.
//!
//! A node names its machine by its provider ID. Without Kubernetes, or before the node is initialised, the machine is found in Azure by
//! the node's name: a machine of that name, an instance of a scale set whose prefix it has, a machine with that host name.

use std::collections::HashMap;

use arm::{ApiVersion, Class, Client, Error, Listing};
use azure_types::{ResourceId, ScaleSet, ScaleSetInstance, VirtualMachine};
use machine::{candidates_for_node_name, is_called};
use parking_lot::Mutex;
use tonic::Status;
use volume_planner::ClusterPlace;
use volume_planner::attach::machine::is_uniform_instance;
use volume_planner::azure_error::AzureRequest;

use crate::controller::azure::{Azure, is_gone, status_of};
use crate::controller::kubernetes::KubernetesView;

const COMPUTE: &str = "Microsoft.Compute";
const MACHINES: &str = "virtualMachines";
const SCALE_SETS: &str = "virtualMachineScaleSets";
/// Digits of the number of an instance in its node's name, to the base 36.
const DIGITS: usize = 6;

/// Finds machines.
pub(super) struct Machines {
    azure: Azure,
    view: KubernetesView,
    /// Machines that were found in Azure. Whether one still exists is seen when it is read.
    found: Mutex<HashMap<String, ResourceId>>,
}

impl Machines {
    pub(super) fn new(azure: Azure, view: KubernetesView) -> Self {
        Self { azure, view, found: Mutex::default() }
    }

    /// The machine of a node. `None` means that Azure has none.
    pub(super) async fn find(&self, node: &str) -> Result<Option<ResourceId>, Status> {
        if let Some(machine) = self.view.node(node).and_then(|facts| facts.machine) {
            return Ok(Some(machine));
        }
        if let Some(machine) = self.found.lock().get(node).cloned() {
            return Ok(Some(machine));
        }
        let connection = self.azure.connection().await?;
        let found = search(&connection.client, &connection.place, node).await;
        let found = found.map_err(|error| status_of(AzureRequest::Machine, &error))?;
        if let Some(machine) = &found {
            self.found.lock().insert(node.to_owned(), machine.clone());
        }
        Ok(found)
    }

    /// Whether a machine is a node's, by the name of its ID or by its host name. One that is gone has only its ID.
    pub(super) async fn is_of(&self, machine: &ResourceId, node: &str) -> Result<bool, Status> {
        if node_name_of(machine).is_some_and(|name| name.eq_ignore_ascii_case(node)) {
            return Ok(true);
        }
        let client = &self.azure.connection().await?.client;
        let is_called = match is_uniform_instance(machine) {
            true => read::<ScaleSetInstance>(client, machine)
                .await
                .map(|it| it.is_some_and(|it| is_called(&it, node))),
            false => read::<VirtualMachine>(client, machine)
                .await
                .map(|it| it.is_some_and(|it| is_called(&it, node))),
        };
        is_called.map_err(|error| status_of(AzureRequest::Machine, &error))
    }

    /// Searches for the node's machine again next time: Azure says that this one does not exist.
    pub(super) fn forget(&self, node: &str) {
        self.found.lock().remove(node);
    }
}

async fn search(client: &Client, place: &ClusterPlace, node: &str) -> Result<Option<ResourceId>, Error> {
    let group = ResourceId::group(&place.subscription, &place.group);
    let own = group.resource(COMPUTE, MACHINES, node);
    if read::<VirtualMachine>(client, &own).await?.is_some() {
        return Ok(Some(own));
    }
    let sets: Vec<ScaleSet> = list(client, &group, SCALE_SETS).await?;
    for candidate in candidates_for_node_name(node, &sets) {
        let id = candidate.id();
        if read::<ScaleSetInstance>(client, &id).await?.is_some_and(|instance| is_called(&instance, node)) {
            return Ok(Some(id));
        }
    }
    let machines: Vec<VirtualMachine> = list(client, &group, MACHINES).await?;
    Ok(machines.into_iter().find(|machine| is_called(machine, node)).and_then(|machine| machine.id))
}

/// The document of a machine; `None` if Azure says that it does not exist.
async fn read<T: serde::de::DeserializeOwned>(
    client: &Client,
    machine: &ResourceId,
) -> Result<Option<T>, Error> {
    match client.get(machine, ApiVersion::COMPUTE, Class::Create).await {
        Ok(document) => Ok(Some(document)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A group that does not exist has none.
async fn list<T: serde::de::DeserializeOwned>(
    client: &Client,
    group: &ResourceId,
    kind: &str,
) -> Result<Vec<T>, Error> {
    let listing = Listing::of(group, COMPUTE, kind);
    match client.list(&listing, ApiVersion::COMPUTE, &[], Class::Create).await {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        other => other,
    }
}

/// The name that the node on a machine has if Azure's own names were kept; absent if the machine's ID does not show it.
pub(crate) fn node_name_of(machine: &ResourceId) -> Option<String> {
    match machine.type_and_name_pairs().as_slice() {
        [(_, name)] => Some((*name).to_owned()),
        [(_, set), (_, number)] => Some(format!("{set}{}", in_base_36(number.parse().ok()?)?)),
        _ => None,
    }
}

/// Six digits to the base 36; absent if the number needs more.
fn in_base_36(mut number: u64) -> Option<String> {
    let mut digits = Vec::new();
    for _ in 0..DIGITS {
        digits.push(char::from_digit((number % 36) as u32, 36)?);
        number /= 36;
    }
    (number == 0).then(|| digits.iter().rev().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.14: an instance's number has six digits to the base 36.
    #[test]
    fn a_machines_id_gives_its_nodes_name() {
        let group = ResourceId::group("s", "g");
        let set = group.resource(COMPUTE, SCALE_SETS, "pool");
        for (machine, expected) in [
            (group.resource(COMPUTE, MACHINES, "vm"), Some("vm")),
            (set.child(MACHINES, "0"), Some("pool000000")),
            (set.child(MACHINES, "36"), Some("pool000010")),
            (set.child(MACHINES, "2176782335"), Some("poolzzzzzz")),
            (set.child(MACHINES, "2176782336"), None),
            (set.child(MACHINES, "x"), None),
        ] {
            assert_eq!(node_name_of(&machine).as_deref(), expected, "{machine}");
        }
    }
}
