//! The machines of a simulated Azure, as stand-in kubelets ask for them.

use std::net::IpAddr;

use azure_simulator::Azure;
use kubernetes_simulator::kubelet::{Machine, Machines};
use serde_json::Value;
use tokio::sync::watch;

/// The full type of a scale set's machines.
const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";

/// All machines of all scale sets.
#[derive(Debug, Clone)]
pub struct AzureMachines(pub Azure);

impl Machines for AzureMachines {
    fn machines(&self) -> Vec<Machine> {
        self.0.documents_of_type(INSTANCES).iter().filter_map(|instance| self.machine(instance)).collect()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

impl AzureMachines {
    /// The machine behind an instance's document; none while it has no address.
    fn machine(&self, instance: &Value) -> Option<Machine> {
        let name = host_name(instance)?;
        let interface = instance.pointer("/properties/networkProfile/networkInterfaces/0/id")?.as_str()?;
        let interface = self.0.document(&interface.parse().ok()?)?;
        let address =
            interface.pointer("/properties/ipConfigurations/0/properties/privateIPAddress")?.as_str()?;
        let address: IpAddr = address.parse().ok()?;
        let mut machine = Machine::new(name, address);
        machine.running = is_running(instance);
        Some(machine)
    }
}

/// Whether the machine runs, by its instance view.
fn is_running(instance: &Value) -> bool {
    let statuses = instance.pointer("/properties/instanceView/statuses").and_then(Value::as_array);
    let stopped = |status: &Value| {
        let code = status["code"].as_str().unwrap_or_default();
        code.starts_with("PowerState/") && code != "PowerState/running"
    };
    !statuses.is_some_and(|statuses| statuses.iter().any(stopped))
}

/// The host name of an instance, which is its node's name.
pub(crate) fn host_name(instance: &Value) -> Option<String> {
    Some(instance.pointer("/properties/osProfile/computerName")?.as_str()?.to_ascii_lowercase())
}
