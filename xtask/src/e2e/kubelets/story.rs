//! From kubelets without a cloud to a deleted machine.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use azure_simulator::PowerState;
use azure_simulator::packet::{self, AlwaysHealthy, Packet, Protocol, Source};
use k8s::api::api::core::v1::{Event, Node, Pod, Service};
use k8s::names::{LABEL_INSTANCE_TYPE, LABEL_REGION, LABEL_ZONE, TAINT_SHUTDOWN, TAINT_UNINITIALIZED};
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::json;

use super::place::{IMAGE, MACHINES, Place, WORDS};
use crate::e2e::capz::objects::create;
use crate::{print, program};

/// The time limit of a step on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);
/// A host on the internet.
const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));

/// Runs all steps.
///
/// # Errors
/// The first failed step.
pub async fn play(place: &mut Place) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(place.client.clone());
    until(place, "each kubelet has made its node", async |_| {
        let found = nodes.list(&ListParams::default()).await?.items;
        let is_new = |node: &Node| has_taint(node, TAINT_UNINITIALIZED) && provider_id(node).is_none();
        Ok((found.len() == MACHINES.len() && found.iter().all(is_new)).then_some(()))
    })
    .await?;
    let version = nodes.get(MACHINES[0]).await?.status.and_then(|status| status.node_info);
    let version = version.context("the node says nothing of itself")?;
    print::line(format_args!(
        "  ok  kubelet {} with {} made nodes that wait for a cloud provider",
        version.kubelet_version, version.container_runtime_version
    ));

    place.start_managers().await?;
    until(place, "each node is what its machine is", async |place| {
        for (machine, node) in place.shape.machines.iter().zip(&place.cluster.nodes) {
            let Some(found) = nodes.get_opt(&machine.name).await? else { return Ok(None) };
            let id = format!("azure://{}", place.shape.machine(machine));
            is_described(&found, &id, node.address())?;
        }
        Ok(Some(()))
    })
    .await?;
    print::line("  ok  the nodes have provider ids, labels and addresses of their machines, and are ready");

    let [first, second] = MACHINES;
    place.let_pull(&place.shape.machines[0])?;
    for machine in MACHINES {
        create(&place.client, &pod(machine)).await?;
    }
    let pods: Api<Pod> = Api::default_namespaced(place.client.clone());
    until(place, "the image is pulled where the machine may", async |_| {
        let pod = pods.get(first).await?;
        if let Some(words) = refusal(&pod) {
            bail!(words);
        }
        Ok(is_running(&pod).then_some(()))
    })
    .await?;
    print::line(format_args!("  ok  {first} pulled {IMAGE} with what acr-credential-provider gave"));
    let words = until(place, "the image is refused where the machine may not", async |_| {
        let pod = pods.get(second).await?;
        ensure!(!is_running(&pod), "{second} pulled an image without a role on its registry");
        Ok(refusal(&pod))
    })
    .await?;
    print::line(format_args!("  ok  {second} has no role, and is refused: {words}"));
    place.let_pull(&place.shape.machines[1])?;

    until(place, "a container's words are read at the machine's address", async |place| {
        let logs = Command::new(place.assets.join("kubectl"))
            .arg("--kubeconfig")
            .arg(&place.cluster.servers.kubeconfig)
            .args(["logs", first])
            .output()?;
        ensure!(logs.status.success(), "kubectl logs: {}", String::from_utf8_lossy(&logs.stderr).trim());
        Ok(String::from_utf8_lossy(&logs.stdout).contains(WORDS).then_some(()))
    })
    .await?;
    print::line("  ok  the API server reaches the kubelet at the address that its node manager wrote");

    create(&place.client, &service()).await?;
    let services: Api<Service> = Api::default_namespaced(place.client.clone());
    let address = until(place, "the Service has its address, and packets arrive", async |place| {
        let Some(address) = address_of(&services.get("web").await?) else { return Ok(None) };
        let packet = Packet::new(Source::internet(SENDER), address, 80, Protocol::Tcp);
        let verdict = packet::trace(&place.azure.azure, &AlwaysHealthy, &packet);
        ensure!(verdict.arrives, "{}", verdict.sentence());
        Ok(Some(address))
    })
    .await?;
    print::line(format_args!("  ok  the Service has the address {address}, which leads to the nodes"));
    until(place, "the image is pulled once the machine may", async |_| {
        Ok(is_running(&pods.get(second).await?).then_some(()))
    })
    .await?;
    print::line(format_args!("  ok  {second} was given the role, and pulled the image"));

    let machine = place.shape.machine(&place.shape.machines[1]);
    place.machines.cluster.nodes[1].stop_kubelet();
    place.azure.azure.set_power_state(&machine, PowerState::Deallocated)?;
    until(place, "the stopped machine's node is tainted", async |_| {
        Ok(has_taint(&nodes.get(second).await?, TAINT_SHUTDOWN).then_some(()))
    })
    .await?;
    place.azure.azure.set_power_state(&machine, PowerState::Running)?;
    place.machines.cluster.nodes[1].start_kubelet()?;
    until(place, "the node is ready again, and without the taint", async |_| {
        let node = nodes.get(second).await?;
        Ok((is_ready(&node) && !has_taint(&node, TAINT_SHUTDOWN)).then_some(()))
    })
    .await?;
    print::line(format_args!("  ok  {second} was stopped and tainted, started and used again"));

    place.machines.cluster.nodes[1].stop_kubelet();
    place.azure.azure.delete(&machine)?;
    until(place, "the lost machine's node is gone", async |_| {
        Ok(nodes.get_opt(second).await?.is_none().then_some(()))
    })
    .await?;
    let left = nodes.get(first).await?;
    ensure!(is_ready(&left), "{first} is not ready any more");
    // No more events for the stopped machine are expected since its node became ready again.
    let times = times_shut_down(&place.client, second).await?;
    ensure!(times == 1, "{second} was stopped once, and tainted as shut down {times} times");
    print::line(format_args!("  ok  the machine of {second} was deleted, and its node went; {first} stays"));
    Ok(())
}

/// How often events reported that a node was tainted because its machine is shut down.
async fn times_shut_down(client: &Client, node: &str) -> anyhow::Result<i32> {
    let events: Api<Event> = Api::all(client.clone());
    let is_it = |event: &&Event| {
        event.involved_object.name.as_deref() == Some(node)
            && event.reason.as_deref() == Some("TaintAdded")
            && event.message.as_deref().is_some_and(|message| message.contains(TAINT_SHUTDOWN))
    };
    let all = events.list(&ListParams::default()).await?.items;
    Ok(all.iter().filter(is_it).map(|event| event.count.unwrap_or(1)).sum())
}

/// Waits until `condition` returns a value.
async fn until<T>(
    place: &mut Place,
    what: &str,
    condition: impl AsyncFn(&Place) -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    program::until(place, Place::must_run, what, STEP_TIMEOUT, condition).await
}

/// Fails unless a node is ready and matches its machine.
fn is_described(node: &Node, id: &str, address: Ipv4Addr) -> anyhow::Result<()> {
    ensure!(!has_taint(node, TAINT_UNINITIALIZED), "the node waits for a cloud provider");
    ensure!(is_ready(node), "the node is not ready");
    ensure!(provider_id(node) == Some(id), "the provider id is {:?}, and not {id}", provider_id(node));
    let labels = node.metadata.labels.clone().unwrap_or_default();
    for (label, value) in
        [(LABEL_INSTANCE_TYPE, "Standard_D2s_v5"), (LABEL_REGION, "westeurope"), (LABEL_ZONE, "westeurope-1")]
    {
        let found = labels.get(label).map(String::as_str);
        ensure!(found == Some(value), "the label {label} is {found:?}, and not {value}");
    }
    let addresses = node.status.as_ref().and_then(|status| status.addresses.clone()).unwrap_or_default();
    let internal: Vec<&str> =
        addresses.iter().filter(|one| one.type_ == "InternalIP").map(|one| one.address.as_str()).collect();
    ensure!(internal == [address.to_string()], "the addresses are {internal:?}, and not {address}");
    Ok(())
}

fn provider_id(node: &Node) -> Option<&str> {
    node.spec.as_ref()?.provider_id.as_deref()
}

fn has_taint(node: &Node, key: &str) -> bool {
    node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).any(|taint| taint.key == key)
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

fn is_running(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
}

/// The registry's message to a client without permission.
fn refusal(pod: &Pod) -> Option<String> {
    let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
    let mut messages = statuses.filter_map(|status| status.state.as_ref()?.waiting.as_ref()?.message.clone());
    messages.find(|message| message.contains(IMAGE) && message.contains("401 Unauthorized"))
}

fn address_of(service: &Service) -> Option<IpAddr> {
    let ingress = service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?.first()?;
    ingress.ip.as_ref()?.parse().ok()
}

/// A pod of the image on one node, with the node's name.
fn pod(node: &str) -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": node, "namespace": "default", "labels": {"app": "web"}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "app", "image": IMAGE, "imagePullPolicy": "Always"}],
        },
    })
}

fn service() -> serde_json::Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
    })
}
