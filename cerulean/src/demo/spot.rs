//! An act of the demo: Azure evicts a spot machine, and traffic leaves it before it is gone.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use azure_simulator::imds::{EventPlan, EventType};
use azure_simulator::packet::{AlwaysHealthy, FlowPlan, FlowReport, Network, NodeFlows};
use azure_types::ResourceId;
use k8s::names::{DRAINING_SPOT_EVICTION, TAINT_DRAINING};
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape};
use tokio::time::Instant;

use super::acts::address_of;
use super::report;
use super::stage::{SPOT_NODE, Stage};

/// The scale set of spot machines.
const POOL: &str = "spot";

/// The minimum notice of an eviction in Azure, in seconds ("Scheduled Events", Preempt).
const NOTICE_IN_AZURE: i64 = 30;
/// The notice in the demo: enough for everything that has to happen before, and a short wait.
const NOTICE: i64 = 6;

/// Adds a spot machine to the shape, in a cluster whose load balancers mark draining nodes.
pub fn prepare(mut shape: Shape) -> Shape {
    shape.pools.push(NodePool::new(POOL, POOL, 1).spot());
    shape.settings.insert("enableLoadBalancerAdminState".to_owned(), true.into());
    shape
}

/// Announces and carries out the eviction of the spot machine. Every step is shown with the time since the notice.
pub async fn take_back(stage: &mut Stage) -> anyhow::Result<()> {
    stage.screen.heading(format_args!("Azure takes a spot machine back: {SPOT_NODE}"));
    let machine = stage.shape.scale_set(POOL).child("virtualMachines", "0");
    let web = address_of(stage, "shop", "web").await?.parse()?;
    let flows = FlowPlan::new(web, 80);
    let before = Network::read(&stage.cluster.azure);

    let notice = Instant::now();
    let plan = EventPlan {
        event_type: EventType::Preempt,
        machines: vec![machine.clone()],
        in_seconds: Some(NOTICE),
        duration_seconds: None,
        description: String::new(),
        by_user: false,
    };
    stage.cluster.azure.plan_event(plan)?;
    stage.screen.moment(
        notice.elapsed(),
        format_args!(
            "its metadata announces the eviction (Preempt) for {NOTICE} s later; in Azure that is {NOTICE_IN_AZURE} s at least"
        ),
    );
    let taint = stage
        .until("the node is tainted", async |stage: &Stage| {
            let nodes = stage.nodes().await?;
            let node =
                nodes.iter().find(|node| node.name() == SPOT_NODE).context("the node is gone already")?;
            Ok(node.spec.taints.iter().find(|taint| taint.key == TAINT_DRAINING).cloned())
        })
        .await?;
    stage.screen.moment(
        notice.elapsed(),
        format_args!("its node manager taints the Node: {}={}:{}", taint.key, taint.value, taint.effect),
    );
    ensure!(taint.value == DRAINING_SPOT_EVICTION, "the taint has the value {}", taint.value);
    let down = stage
        .until("no load balancer sends the machine new connections", async |stage: &Stage| {
            let states = states(stage, &machine);
            ensure!(!states.is_empty(), "the machine has left the pools already");
            Ok(states.values().all(|state| state == "Down").then_some(states))
        })
        .await?;
    let after = Network::read(&stage.cluster.azure);
    let balancers: Vec<&str> = down.keys().map(String::as_str).collect();
    stage.screen.moment(
        notice.elapsed(),
        format_args!("the controller manager sets its AdminState to Down on {}", balancers.join(" and ")),
    );
    let answers = &stage.cluster.answers;
    drains(stage, &before.flows_after(answers, &after, answers, &flows))?;
    // From here on everything is too late for its connections.
    ensure!(stage.cluster.azure.document(&machine).is_some(), "the machine went before its traffic did");

    stage
        .until("the machine is gone", async |stage: &Stage| {
            Ok(stage.cluster.azure.document(&machine).is_none().then_some(()))
        })
        .await?;
    stage.screen.moment(notice.elapsed(), "Azure deletes the machine");
    stage
        .until("the node is deleted", async |stage: &Stage| {
            Ok((!stage.nodes().await?.iter().any(|node| node.name() == SPOT_NODE)).then_some(()))
        })
        .await?;
    stage.screen.moment(notice.elapsed(), "the controller manager deletes the Node");
    let left = states(stage, &machine);
    stage.screen.verdict(left.is_empty(), "its address is in no backend pool any more");
    ensure!(left.is_empty(), "the machine is still in backend pools: {left:?}");
    let now = Network::read(&stage.cluster.azure);
    let answers = &stage.cluster.answers;
    // Probes are answered as of now, but that machine answered them before.
    let [since, all] = [&after, &before].map(|then| then.flows_after(&AlwaysHealthy, &now, answers, &flows));
    goes_on(stage, &since, &all)?;
    report::writes(stage, "Changes in Azure");
    Ok(())
}

/// The administrative state of the machine on each load balancer of which it is a member.
fn states(stage: &Stage, machine: &ResourceId) -> BTreeMap<String, String> {
    let balancers = stage.cluster.azure.documents_of_type("Microsoft.Network/loadBalancers");
    let list = |value: &Value, path: &str| {
        value.pointer(path).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let mut states = BTreeMap::new();
    for balancer in &balancers {
        for pool in list(balancer, "/properties/backendAddressPools") {
            for entry in list(&pool, "/properties/loadBalancerBackendAddresses") {
                let interface = entry.pointer("/properties/networkInterfaceIPConfiguration/id");
                let interface = interface.and_then(Value::as_str).and_then(|id| ResourceId::parse(id).ok());
                if interface.is_some_and(|id| id.is_within(machine)) {
                    let state = entry.pointer("/properties/adminState").unwrap_or(&json!("None")).clone();
                    let name = balancer["name"].as_str().unwrap_or_default().to_owned();
                    states.insert(name, state.as_str().unwrap_or_default().to_owned());
                }
            }
        }
    }
    states
}

/// The flows of the machine.
fn of_machine(report: &FlowReport) -> NodeFlows {
    let flows = report.nodes.iter().find(|flows| flows.node.eq_ignore_ascii_case(SPOT_NODE));
    flows.cloned().unwrap_or_default()
}

/// The machine keeps its connections, and gets no new ones.
fn drains(stage: &Stage, report: &FlowReport) -> anyhow::Result<()> {
    let change = report.change.clone().context("nothing has changed")?;
    let machine = of_machine(report);
    let kept = machine.before > 0 && machine.kept == machine.before && change.broken + change.moved == 0;
    stage.screen.verdict(
        kept,
        format_args!(
            "{} connections to shop/web go on, the {} of this machine among them",
            change.kept, machine.kept
        ),
    );
    ensure!(kept, "connections did not go on: {}", report.sentence());
    let elsewhere = machine.new == 0 && change.accepted == report.flows;
    stage.screen.verdict(
        elsewhere,
        format_args!(
            "{} new ones come to other machines, {} to this one",
            change.accepted - machine.new,
            machine.new
        ),
    );
    ensure!(elsewhere, "new connections did not go elsewhere: {}", report.sentence());
    Ok(())
}

/// Only clients with a connection to the evicted machine are affected: of all connections at the notice, and of those
/// that began `since`.
fn goes_on(stage: &Stage, since: &FlowReport, all: &FlowReport) -> anyhow::Result<()> {
    let kept = |report: &FlowReport| report.change.as_ref().map_or(0, |change| change.kept);
    let good = of_machine(all).before > 0
        && since.established == since.flows
        && kept(since) == since.established
        && kept(all) + of_machine(all).before == all.established;
    stage.screen.verdict(
        good,
        format_args!(
            "{} existing connections and {} new ones go on: only those still open on this machine end",
            kept(all),
            kept(since)
        ),
    );
    ensure!(good, "other connections ended, too: {} {}", since.sentence(), all.sentence());
    Ok(())
}
