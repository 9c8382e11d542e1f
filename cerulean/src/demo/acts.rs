//! The acts of the demo: manifests, a lost node, a changed port, a deleted Service.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use azure_simulator::packet::{Protocol, Source, Verdict};
use k8s::api::api::core::v1::Namespace;
use k8s::{ObjectKey, Service};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client};
use kubernetes_simulator::{Kubernetes, Options};
use serde_json::{Value, json};
use simulated_cluster::{Shape, manifests};

use super::report::{self, Outcome};
use super::stage::Stage;
use crate::manifests::{Manifest, declared, has_kind, is_service};
use crate::screen::Tone;

/// The time in which health probes find pods: two rounds of five seconds.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Applies manifests, waits until every Service has an address or a warning with the reason, and shows the results.
pub async fn apply(stage: &mut Stage, manifests: &[Manifest]) -> anyhow::Result<Vec<Outcome>> {
    stage.screen.heading("Applying manifests");
    let mut keys = Vec::new();
    for manifest in manifests {
        let source = &manifest.source;
        let Some(object) = prepared(&stage.cluster.client, manifest).await? else {
            let (kind, name) = (manifest.kind(), manifest.text("/metadata/name"));
            stage.screen.line(format_args!(
                "  {source}: {kind} {name} skipped: the simulated Kubernetes has no such kind"
            ));
            continue;
        };
        for applied in manifests::apply(&stage.cluster.client, &[object]).await? {
            let kind = applied.types.as_ref().map(|types| types.kind.as_str()).unwrap_or_default();
            let key = ObjectKey::of(&applied.metadata);
            stage.screen.line(format_args!("  {source}: {kind} {key}"));
            let wants = applied.data.pointer("/spec/type").is_some_and(|kind| kind == "LoadBalancer");
            if kind == "Service" && wants {
                keys.push(key);
            }
        }
    }
    if keys.is_empty() {
        stage.screen.note("none of these objects is a Service of type LoadBalancer");
    }
    let outcomes = stage
        .until("every Service has its address or a warning", async |stage: &Stage| {
            let mut outcomes = Vec::new();
            for key in &keys {
                let Some(outcome) = outcome(stage, key).await? else { return Ok(None) };
                outcomes.push(outcome);
            }
            Ok(Some(outcomes))
        })
        .await?;
    report::services(stage, &outcomes).await?;
    let topology = stage.cluster.topology();
    report::load_balancers(stage, &topology);
    report::security_rules(stage, &topology);
    report::writes(stage, "Changes in Azure");
    Ok(outcomes)
}

/// Applies manifests to an API server of its own, so that refusals are reported before anything is started.
///
/// # Errors
/// The API server's first refusal.
pub async fn rehearse(shape: &Shape, manifests: &[Manifest]) -> anyhow::Result<()> {
    let options = Options { dual_stack: shape.dual_stack, ..Options::default() };
    let kubernetes = Kubernetes::new(options);
    let client = Client::new(kubernetes.router(), "default");
    for manifest in manifests {
        if let Some(object) = prepared(&client, manifest).await? {
            let applied = manifests::apply(&client, &[object]).await;
            applied.with_context(|| manifest.source.clone())?;
        }
    }
    Ok(())
}

/// Whether this is a Service that a cluster without IPv6 refuses: then the demo's cluster has both families, like the
/// cluster that it was printed from.
pub fn needs_ipv6(manifest: &Manifest) -> bool {
    let spec = &manifest.object["spec"];
    let families = spec["ipFamilies"].as_array().map(Vec::as_slice).unwrap_or_default();
    manifest.kind() == "Service"
        && (spec["ipFamilyPolicy"] == "RequireDualStack" || families.iter().any(|family| family == "IPv6"))
}

/// The object in a form that this cluster accepts, though it was written for or printed by another one: without the
/// values that the other API server set, and in an existing namespace. `None` for a kind that is not simulated.
async fn prepared(client: &Client, manifest: &Manifest) -> anyhow::Result<Option<Value>> {
    let is_service = is_service(client, manifest).await?;
    if !is_service && !has_kind(client, manifest).await? {
        return Ok(None);
    }
    let mut object = declared(&manifest.object);
    if is_service
        && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        && spec.get("clusterIP").is_some_and(|address| address != "None")
    {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    let name = manifest.text("/metadata/namespace");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    if !name.is_empty() && namespaces.get_opt(name).await?.is_none() {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        manifests::apply(client, &[namespace]).await?;
    }
    Ok(Some(object))
}

/// The result for a Service; `None` while it is open.
async fn outcome(stage: &Stage, key: &ObjectKey) -> anyhow::Result<Option<Outcome>> {
    let Some(service) = stage.service(key).await? else { return Ok(None) };
    if !service.status.load_balancer.ingress.is_empty() {
        return Ok(Some(Outcome { key: key.clone(), warning: None }));
    }
    let warning = stage.latest_warning(key, service.uid()).await?;
    Ok(warning.map(|warning| Outcome { key: key.clone(), warning: Some(warning) }))
}

/// Sends a packet to each port of each Service that has an address, from the location of its clients. Returns how many
/// did not arrive.
pub async fn send_packets(stage: &mut Stage, outcomes: &[Outcome]) -> anyhow::Result<usize> {
    stage.screen.heading("Test packets and their paths");
    settle(stage).await?;
    let mut lost = 0;
    for Outcome { key, .. } in outcomes.iter().filter(|outcome| outcome.warning.is_none()) {
        let service = stage.service(key).await?.with_context(|| format!("{key} is gone"))?;
        for port in &service.spec.ports {
            let protocol = match port.protocol.as_str() {
                "UDP" => Protocol::Udp,
                "" | "TCP" => Protocol::Tcp,
                other => {
                    stage.screen.line(format_args!("  {key}: no test packet for protocol {other}"));
                    continue;
                }
            };
            let from = sender(stage, &service).await?;
            let verdict = stage.send(from, &address(&service), u16::try_from(port.port)?, protocol)?;
            show(stage, &verdict, true);
            if !verdict.arrives {
                lost += 1;
                if let Some(reason) = without_pods(stage, key).await? {
                    stage.screen.line(format_args!("        {key} {reason}"));
                }
            }
        }
    }
    Ok(lost)
}

/// Why no pod answers for a Service, if its object says so. The oracle only knows that no node answers the probe.
async fn without_pods(stage: &Stage, key: &ObjectKey) -> anyhow::Result<Option<&'static str>> {
    let services: Api<k8s::api::api::core::v1::Service> =
        Api::namespaced(stage.cluster.client.clone(), &key.namespace);
    let service = services.get_opt(&key.name).await?;
    let selector = service.and_then(|service| service.spec?.selector).unwrap_or_default();
    Ok(selector.is_empty().then_some(
        "has no selector, so no pods are behind it: set spec.selector (any labels will do here) and it is served",
    ))
}

/// Sends the examples' packets: those that must arrive and those that must not.
pub async fn send_example_packets(stage: &mut Stage) -> anyhow::Result<()> {
    let (web, resolver, orders) = (
        address_of(stage, "shop", "web").await?,
        address_of(stage, "default", "resolver").await?,
        address_of(stage, "default", "orders").await?,
    );
    let node = stage.nodes().await?.first().context("there is no node")?.name().to_owned();
    stage.screen.heading("Test packets and their paths");
    let internet =
        |address: &str| -> anyhow::Result<Source> { Ok(Source::Internet { address: address.parse()? }) };
    settle(stage).await?;
    for (from, to, port, protocol, arrives) in [
        (internet("203.0.113.7")?, &web, 80, Protocol::Tcp, true),
        (internet("203.0.113.7")?, &web, 443, Protocol::Tcp, true),
        (internet("198.51.100.9")?, &resolver, 53, Protocol::Udp, true),
        (internet("192.0.2.66")?, &resolver, 53, Protocol::Udp, false),
        (Source::Node { node }, &orders, 5432, Protocol::Tcp, true),
        (internet("203.0.113.7")?, &orders, 5432, Protocol::Tcp, false),
    ] {
        let verdict = stage.send(from, to, port, protocol)?;
        expect(stage, &verdict, arrives)?;
    }
    Ok(())
}

/// Waits until the health probes have found the pods of every Service. For a Service without pods this times out, and
/// its packets show it.
async fn settle(stage: &mut Stage) -> anyhow::Result<()> {
    let found = async |stage: &Stage| {
        let topology = stage.cluster.topology();
        let mut rules = topology.addresses.iter().flat_map(|address| &address.rules);
        Ok(rules.all(|rule| rule.total > 0 && rule.taking > 0).then_some(()))
    };
    stage.within(PROBE_TIMEOUT, "the health probes have found the pods", found).await.map(|_| ())
}

/// Deletes a machine in Azure.
pub async fn lose_a_node(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading("Azure deletes a machine: worker000001");
    let pool = stage.shape.pools.first().context("there is no scale set")?.name.clone();
    stage.cluster.azure.remove_instance(&stage.shape.scale_set(&pool), "1")?;
    stage
        .until("the node is deleted", async |stage: &Stage| {
            Ok((!stage.nodes().await?.iter().any(|node| node.name() == "worker000001")).then_some(()))
        })
        .await?;
    stage.screen.verdict(
        true,
        "its Node is deleted: it was not ready, and Azure says that the machine does not exist",
    );
    let web = address_of(stage, "shop", "web").await?;
    let verdict =
        stage.send(Source::Internet { address: "203.0.113.8".parse()? }, &web, 80, Protocol::Tcp)?;
    expect(stage, &verdict, true)?;
    report::writes(stage, "Changes in Azure");
    Ok(())
}

/// Moves the shop from port 443 to 8443.
pub async fn change_a_port(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading("shop/web moves from port 443 to 8443");
    let patch = json!({"spec": {"ports": [
        {"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
        {"name": "https", "port": 8443, "targetPort": 8443, "protocol": "TCP"},
    ]}});
    stage.services_in("shop").patch("web", &PatchParams::default(), &Patch::Merge(&patch)).await?;
    let web = address_of(stage, "shop", "web").await?;
    let from = || -> anyhow::Result<Source> { Ok(Source::Internet { address: "203.0.113.9".parse()? }) };
    let verdict = stage
        .until("port 8443 answers", async |stage: &Stage| {
            let verdict = stage.send(from()?, &web, 8443, Protocol::Tcp)?;
            Ok(verdict.arrives.then_some(verdict))
        })
        .await?;
    expect(stage, &verdict, true)?;
    let verdict = stage.send(from()?, &web, 443, Protocol::Tcp)?;
    expect(stage, &verdict, false)?;
    // Azure shows a change while the operation still runs; the write is logged when it has ended.
    stage
        .until("Azure has finished", async |stage: &Stage| {
            let both =
                ["/loadBalancers/", "/networkSecurityGroups/"].iter().all(|kind| stage.writes.hold(kind));
            Ok(both.then_some(()))
        })
        .await?;
    report::writes(stage, "Changes in Azure");
    Ok(())
}

/// Deletes the resolver with all its resources.
pub async fn delete_a_service(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading("default/resolver is deleted");
    let resolver = address_of(stage, "default", "resolver").await?;
    stage.services_in("default").delete("resolver", &DeleteParams::default()).await?;
    let key = ObjectKey::new("default", "resolver");
    stage
        .until("the Service is gone", async |stage: &Stage| {
            Ok(stage.service(&key).await?.is_none().then_some(()))
        })
        .await?;
    let topology = stage.cluster.topology();
    let left =
        topology.addresses.iter().any(|view| view.address.is_some_and(|ip| ip.to_string() == resolver));
    stage.screen.claim(!left, format_args!("its address {resolver} is released"))?;
    let named = |view: &azure_simulator::view::SecurityGroupView| {
        view.rules.iter().any(|rule| rule.destinations.contains(&resolver))
    };
    let open = topology.security_groups.iter().any(named);
    stage.screen.claim(!open, "no security rule names that address any more")?;
    report::writes(stage, "Changes in Azure");
    Ok(())
}

/// Shows the result for a packet, and its path.
fn show(stage: &Stage, verdict: &Verdict, should_arrive: bool) {
    let sentence = verdict.sentence();
    let (fate, way) = sentence.split_once(" Way: ").unwrap_or((sentence, ""));
    stage.screen.verdict(verdict.arrives == should_arrive, fate);
    for hop in way.trim_end_matches('.').split(", ").filter(|hop| !hop.is_empty()) {
        stage.screen.line(format_args!("        {}", stage.screen.paint(Tone::Quiet, hop)));
    }
}

/// Shows the result for a packet, and fails if it is not as expected.
pub fn expect(stage: &Stage, verdict: &Verdict, should_arrive: bool) -> anyhow::Result<()> {
    show(stage, verdict, should_arrive);
    let should = if should_arrive { "should have arrived" } else { "should not have arrived" };
    ensure!(verdict.arrives == should_arrive, "a packet {should}: {}", verdict.sentence());
    Ok(())
}

/// The location of a Service's clients: on the internet, inside the allowed range, or on a node.
async fn sender(stage: &Stage, service: &Service) -> anyhow::Result<Source> {
    let internal = service
        .annotation("service.beta.kubernetes.io/azure-load-balancer-internal")
        .is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if internal {
        let node = stage.nodes().await?.first().context("there is no node")?.name().to_owned();
        return Ok(Source::Node { node });
    }
    let range = service.spec.load_balancer_source_ranges.first();
    let allowed = range.and_then(|range| range.split('/').next()?.parse().ok());
    // Address ranges reserved for documentation.
    let anyone = if address(service).contains(':') {
        IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 7])
    } else {
        IpAddr::from([203, 0, 113, 7])
    };
    Ok(Source::Internet { address: allowed.unwrap_or(anyone) })
}

fn address(service: &Service) -> String {
    service.status.load_balancer.ingress.first().map(|ingress| ingress.ip.clone()).unwrap_or_default()
}

/// The first address of a Service.
pub async fn address_of(stage: &Stage, namespace: &str, name: &str) -> anyhow::Result<String> {
    let key = ObjectKey::new(namespace, name);
    Ok(address(&stage.service(&key).await?.with_context(|| format!("{key} is gone"))?))
}
