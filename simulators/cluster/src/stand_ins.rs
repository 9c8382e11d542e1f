//! The parts of a real cluster beside its API server: kubelets, and the controllers that monitor nodes, run pods and
//! write EndpointSlices.

use std::sync::Arc;

use azure_simulator::Azure;
use kube::Client;
use stand_ins::{Controllers, EndpointSlices, Kubelets, NodeMonitor, Pace};
use tokio_util::sync::CancellationToken;

use crate::machines::AzureMachines;
use crate::managed_clusters::forget_lost_nodes;
use crate::node_answers::NodeAnswers;
use crate::shape::Shape;

/// Runs, against the API behind `client` and until `stop`: a kubelet for each machine of `azure`, the controllers of
/// workloads and their pods, the node monitor, and one ready simulated pod on each node for every Service whose
/// selector matches no pod. Returns the nodes' responses to probes.
pub fn spawn_stand_ins(azure: &Azure, client: &Client, pace: Pace, stop: &CancellationToken) -> NodeAnswers {
    spawn(AzureMachines::all(azure.clone()), azure, client, pace, stop)
}

/// The same for one of several clusters: kubelets run only on the machines of its shape.
pub fn spawn_stand_ins_of(
    shape: Arc<Shape>,
    azure: &Azure,
    client: &Client,
    pace: Pace,
    stop: &CancellationToken,
) -> NodeAnswers {
    spawn(AzureMachines::of(azure.clone(), shape), azure, client, pace, stop)
}

fn spawn(
    machines: AzureMachines,
    azure: &Azure,
    client: &Client,
    pace: Pace,
    stop: &CancellationToken,
) -> NodeAnswers {
    let clock = azure.clock();
    let machines = Arc::new(machines);
    // Dropping the handles does not end them; the token does.
    let _kubelets = Kubelets::spawn_at(pace, client.clone(), machines.clone(), clock.clone(), stop.clone());
    let _monitor = NodeMonitor::spawn_at(pace, client.clone(), clock.clone(), stop.clone());
    let _controllers = Controllers::spawn(client.clone(), clock, stop.clone());
    let _slices = EndpointSlices::spawn_evenly(client.clone(), 1, stop.clone());
    let _lost = tokio::spawn(forget_lost_nodes(azure.clone(), client.clone(), stop.clone()));
    NodeAnswers::follow_machines(machines, azure.clone(), client, stop)
}
