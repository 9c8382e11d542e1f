//! The driver's controller in these worlds.

use azure_simulator::Azure;
use azuredisk_csi_driver::controller::ControllerOptions;
use kube::Client;
use kubernetes_simulator::Kubernetes;
use simulated_cluster::Shape;
use testkit::KillSwitch;

use super::attacher::Controller;
use crate::world::{Driver, World};

/// A Kubernetes with the nodes of a shape; `off` is the one whose machine is off.
pub fn kubernetes(shape: &Shape, off: Option<&str>) -> Kubernetes {
    let kubernetes = Kubernetes::new(kubernetes_simulator::Options::default());
    let world = world(&kubernetes, &Azure::new(azure_simulator::Options::default()), shape);
    for machine in &shape.machines {
        let ready = if off == Some(&*machine.name) { "Unknown" } else { "True" };
        world.node(&machine.name, &shape.machine(machine), ready);
    }
    kubernetes
}

/// A controller as it is when the program starts.
pub fn start(kubernetes: &Kubernetes, azure: &Azure, shape: &Shape) -> Driver {
    world(kubernetes, azure, shape).driver_with(&KillSwitch::never(), ControllerOptions::default())
}

fn world(kubernetes: &Kubernetes, azure: &Azure, shape: &Shape) -> World {
    let client = Client::new(kubernetes.router(), "default");
    World { azure: azure.clone(), kubernetes: kubernetes.clone(), client, shape: shape.clone() }
}

impl Controller for Driver {
    async fn publish(&self, volume: &str, node: &str) -> Result<i64, String> {
        self.publish(volume, node).await.map(i64::from).map_err(|status| status.to_string())
    }

    async fn unpublish(&self, volume: &str, node: &str) -> Result<(), String> {
        self.unpublish(volume, node).await.map_err(|status| status.to_string())
    }
}
