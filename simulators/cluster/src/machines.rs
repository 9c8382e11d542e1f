//! The machines of a simulated Azure, for stand-in kubelets.

use std::net::IpAddr;
use std::sync::Arc;

use azure_simulator::Azure;
use serde_json::Value;
use stand_ins::{Machine, Machines};
use tokio::sync::watch;

use crate::instance::{INSTANCES, host_name};
use crate::layout::{CONTROL_PLANE, KUBELET_TAG, ROLE_TAG, SAYS_PROVIDER_ID};
use crate::managed_clusters;
use crate::shape::Shape;

/// The full type of standalone virtual machines and of machines in flexible scale sets.
const VIRTUAL_MACHINES: &str = "Microsoft.Compute/virtualMachines";

/// The machines of an Azure, or of one cluster in it.
#[derive(Debug, Clone)]
pub struct AzureMachines {
    azure: Azure,
    of: Option<Arc<Shape>>,
}

impl Machines for AzureMachines {
    fn machines(&self) -> Vec<Machine> {
        let documents = [INSTANCES, VIRTUAL_MACHINES].map(|kind| self.azure.documents_of_type(kind));
        let mine = documents.iter().flatten().filter(|document| self.has(document));
        mine.filter_map(|document| self.machine(document)).collect()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.azure.subscribe()
    }
}

impl AzureMachines {
    /// All machines.
    pub fn all(azure: Azure) -> Self {
        Self { azure, of: None }
    }

    /// The machines of one cluster.
    pub fn of(azure: Azure, shape: Arc<Shape>) -> Self {
        Self { azure, of: Some(shape) }
    }

    /// Whether a machine belongs to these.
    pub(crate) fn has(&self, machine: &Value) -> bool {
        self.of.as_ref().is_none_or(|shape| shape.has_machine(machine))
    }

    /// The machine of a document; `None` while it has no address. A kubelet reports the first address of each family
    /// that its first interface has, IPv4 first.
    pub(crate) fn machine(&self, instance: &Value) -> Option<Machine> {
        let name = host_name(instance)?;
        let interface = instance.pointer("/properties/networkProfile/networkInterfaces/0/id")?.as_str()?;
        let interface = self.azure.document(&interface.parse().ok()?)?;
        let configurations = interface.pointer("/properties/ipConfigurations")?.as_array()?;
        let addresses: Vec<IpAddr> = configurations
            .iter()
            .filter_map(|one| one.pointer("/properties/privateIPAddress")?.as_str()?.parse().ok())
            .collect();
        let v4 = addresses.iter().find(|address| address.is_ipv4());
        let v6 = addresses.iter().find(|address| address.is_ipv6());
        let mut machine = Machine::new(name, *v4.or(v6)?);
        machine.internal_ips = v4.into_iter().chain(v6).copied().collect();
        if instance["tags"][ROLE_TAG] == CONTROL_PLANE {
            machine = machine.control_plane();
        }
        if instance["tags"][KUBELET_TAG] == SAYS_PROVIDER_ID {
            machine.provider_id = format!("azure://{}", instance["id"].as_str()?);
        }
        machine.running = is_running(instance);
        machine.system_uuid = instance["properties"]["vmId"].as_str().unwrap_or_default().to_owned();
        managed_clusters::complete(&self.azure, instance, &mut machine);
        Some(machine)
    }
}

/// Whether the machine runs, according to its instance view.
fn is_running(instance: &Value) -> bool {
    let statuses = instance.pointer("/properties/instanceView/statuses").and_then(Value::as_array);
    let stopped = |status: &Value| {
        let code = status["code"].as_str().unwrap_or_default();
        code.starts_with("PowerState/") && code != "PowerState/running"
    };
    !statuses.is_some_and(|statuses| statuses.iter().any(stopped))
}

/// The host name in a machine's document, if the machine runs.
pub fn running_host(machine: &Value) -> Option<String> {
    is_running(machine).then(|| host_name(machine)).flatten()
}
