//! The node of a machine that is about to go: a simulated Kubernetes and the instance metadata of a simulated Azure in
//! one process, on virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, to_bytes};
use azure_simulator::imds::{EventPlan, EventType, MetadataService};
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use bytes::Bytes;
use clock::Clock;
use cloud_node_manager::source::ThisMachine;
use controllers::{AgentOptions, MachineEventOptions, run_agent};
use http::{Request, Response};
use imds::{Imds, Transport};
use kube::Client;
use kubernetes_simulator::{Fault, Kubernetes};
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

const NODE: &str = "worker000001";
const DRAINING: &str = "cloudprovider.azure.microsoft.com/draining";

/// The metadata service without a socket.
#[derive(Debug)]
struct InProcess {
    router: Router,
    is_away: Arc<AtomicBool>,
}

#[async_trait]
impl Transport for InProcess {
    async fn send(
        &self,
        request: Request<Bytes>,
    ) -> Result<Response<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
        if self.is_away.load(Ordering::Relaxed) {
            return Err("connection refused".into());
        }
        let (head, body) = self.router.clone().oneshot(request.map(Body::from)).await?.into_parts();
        Ok(Response::from_parts(head, to_bytes(body, usize::MAX).await?))
    }
}

struct World {
    azure: Azure,
    kubernetes: Kubernetes,
    is_away: Arc<AtomicBool>,
    stop: CancellationToken,
}

async fn seconds(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

impl World {
    /// A scale set of two machines, and the node of the second.
    fn new() -> Self {
        let azure = Azure::new(Options::default());
        let pools = vec![NodePool::new("workers", "worker", 2)];
        Shape { pools, ..Shape::default() }.lay_out(&azure).unwrap();
        let kubernetes = Kubernetes::new(kubernetes_simulator::Options::default());
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
        kubernetes.create(node).unwrap();
        Self { azure, kubernetes, is_away: Arc::default(), stop: CancellationToken::new() }
    }

    async fn start(&mut self, drains: bool, approves: bool) {
        self.stop.cancel();
        seconds(10).await;
        self.stop = CancellationToken::new();
        let router = MetadataService::new(self.azure.clone()).router();
        let transport = InProcess { router, is_away: Arc::clone(&self.is_away) };
        let endpoint = "http://imds/instances/workers_1".parse().unwrap();
        let machine = Arc::new(ThisMachine::new(Imds::over(endpoint, transport), NODE));
        let source = machine.clone();
        let events = MachineEventOptions { source, interval: Duration::from_secs(1), drains, approves };
        let options = AgentOptions {
            node: NODE.into(),
            node_status_update_frequency: Duration::from_secs(300),
            older_labels: false,
            wait_routes: false,
            events: Some(events),
            clock: Clock::following_tokio(self.kubernetes.now().as_duration().unsigned_abs()),
        };
        let client = Client::new(self.kubernetes.router(), "default");
        let run = run_agent(client, machine, options, self.stop.clone());
        tokio::spawn(async move { run.await.unwrap() });
        seconds(2).await;
    }

    fn machine(&self, number: u32) -> ResourceId {
        let sets = self.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets");
        let set: ResourceId = sets[0]["id"].as_str().unwrap().parse().unwrap();
        set.child("virtualMachines", &number.to_string())
    }

    fn plan(&self, event_type: EventType, machines: &[u32], description: &str) -> String {
        let plan = EventPlan {
            event_type,
            machines: machines.iter().map(|number| self.machine(*number)).collect(),
            in_seconds: (event_type != EventType::Preempt).then_some(3600),
            duration_seconds: None,
            description: description.to_owned(),
            by_user: false,
        };
        self.azure.plan_event(plan).unwrap()
    }

    fn node(&self) -> Value {
        self.kubernetes.get("Node", "", NODE).unwrap().value().clone()
    }

    fn condition(&self) -> Option<[String; 3]> {
        let node = self.node();
        let all = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let one = all.into_iter().find(|one| one["type"] == "VMEventScheduled")?;
        Some(["status", "reason", "message"].map(|name| one[name].as_str().unwrap().to_owned()))
    }

    /// Status and reason of the condition.
    fn says(&self) -> String {
        self.condition().map(|[status, reason, _]| format!("{status} {reason}")).unwrap_or_default()
    }

    fn taint(&self) -> String {
        let node = self.node();
        let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        let own = taints.iter().find(|taint| taint["key"] == DRAINING);
        own.map(|taint| format!("{}:{}", taint["value"].as_str().unwrap(), taint["effect"].as_str().unwrap()))
            .unwrap_or_default()
    }

    fn events(&self) -> Vec<String> {
        let events = self.kubernetes.list("Event");
        events.iter().map(|event| event.value()["reason"].as_str().unwrap().to_owned()).collect()
    }

    fn writes(&self) -> u64 {
        self.kubernetes.requests("patch", "nodes") + self.kubernetes.requests("patch", "nodes/status")
    }

    /// Whether an event waits for its time.
    async fn waits(&self, id: &str) -> bool {
        let uri = "/instances/workers_0/metadata/scheduledevents?api-version=2020-07-01";
        let request = Request::get(uri).header("metadata", "true").body(Body::empty()).unwrap();
        let router = MetadataService::new(self.azure.clone()).router();
        let body = router.oneshot(request).await.unwrap().into_body();
        let list: Value = serde_json::from_slice(&to_bytes(body, usize::MAX).await.unwrap()).unwrap();
        let events = list["Events"].as_array().unwrap();
        events.iter().any(|event| event["EventId"] == id && event["EventStatus"] == "Scheduled")
    }
}

/// NODE-220, NODE-221
#[tokio::test(start_paused = true)]
async fn node_221_a_node_says_what_will_happen_to_its_machine() {
    let mut world = World::new();
    world.start(false, false).await;
    seconds(60).await;
    let written = world.writes();
    assert_eq!(world.says(), "", "nothing is said where nothing is announced");
    // An event of another machine.
    world.plan(EventType::Reboot, &[0], "");
    seconds(5).await;
    assert_eq!((world.says().as_str(), world.writes()), ("", written));

    let reboot = world.plan(EventType::Reboot, &[0, 1], "Host maintenance.");
    seconds(2).await;
    let [status, reason, message] = world.condition().unwrap();
    assert_eq!([status.as_str(), reason.as_str()], ["True", "RebootScheduled"]);
    for part in ["Reboot will not take place before ", " GMT, for 60 s: Host maintenance.", &reboot] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(world.events(), ["RebootScheduled"]);
    seconds(600).await;
    assert_eq!(world.writes(), written + 1, "it is said once");

    let preempt = world.plan(EventType::Preempt, &[1], "");
    seconds(2).await;
    let [_, reason, message] = world.condition().unwrap();
    assert_eq!(reason, "PreemptScheduled", "the worst one");
    assert!(message.contains(&preempt) && message.contains(&reboot), "{message}");
    assert_eq!(world.taint(), "", "draining is not enabled");
    assert_eq!(world.events(), ["RebootScheduled", "PreemptScheduled"]);
}

/// NODE-221
#[tokio::test(start_paused = true)]
async fn node_221_what_is_over_is_over() {
    let mut world = World::new();
    world.start(true, false).await;
    let plan = EventPlan {
        event_type: EventType::Freeze,
        machines: vec![world.machine(1)],
        in_seconds: Some(20),
        duration_seconds: Some(5),
        description: String::new(),
        by_user: false,
    };
    world.azure.plan_event(plan).unwrap();
    seconds(3).await;
    assert_eq!(world.says(), "True FreezeScheduled");
    seconds(20).await;
    let [.., message] = world.condition().unwrap();
    assert!(message.starts_with("Freeze takes place now, for 5 s"), "{message}");
    seconds(10).await;
    assert_eq!((world.says().as_str(), world.taint().as_str()), ("False NoVMEventScheduled", ""));
    let written = world.writes();
    seconds(600).await;
    assert_eq!(world.writes(), written);
}

/// NODE-222
#[tokio::test(start_paused = true)]
async fn node_222_a_machine_that_goes_away_lets_its_node_drain() {
    for (event_type, taint, says) in [
        (EventType::Preempt, "spot-eviction:NoSchedule", "True PreemptScheduled"),
        (EventType::Terminate, "termination:NoSchedule", "True TerminateScheduled"),
        (EventType::Redeploy, "", "True RedeployScheduled"),
        (EventType::Reboot, "", "True RebootScheduled"),
        (EventType::Freeze, "", "True FreezeScheduled"),
    ] {
        let mut world = World::new();
        world.start(true, false).await;
        world.plan(event_type, &[1], "");
        seconds(2).await;
        assert_eq!((world.taint().as_str(), world.says().as_str()), (taint, says));
        // Removing the taint is a decision that stays.
        world.kubernetes.merge("Node", "", NODE, &json!({"spec": {"taints": null}})).unwrap();
        seconds(5).await;
        assert_eq!(world.taint(), "");
    }
}

/// NODE-222
#[tokio::test(start_paused = true)]
async fn node_222_an_eviction_is_followed_while_writes_fail() {
    let mut world = World::new();
    world.start(true, false).await;
    world.kubernetes.inject(Fault::status(500).verb("patch").resource("nodes").times(3));
    world.plan(EventType::Preempt, &[1], "");
    seconds(10).await;
    assert_eq!(world.taint(), "spot-eviction:NoSchedule");
}

/// NODE-223
#[tokio::test(start_paused = true)]
async fn node_223_what_is_cancelled_is_taken_back_also_after_a_restart() {
    for restarts in [false, true] {
        let mut world = World::new();
        world.start(true, false).await;
        let event = world.plan(EventType::Terminate, &[1], "");
        seconds(5).await;
        assert_eq!(world.taint(), "termination:NoSchedule");
        if restarts {
            world.start(true, false).await;
        }
        assert!(world.azure.cancel_event(&event));
        seconds(100).await;
        assert_eq!(world.taint(), "termination:NoSchedule", "it may be on its way");
        assert_eq!(world.says(), "True TerminateScheduled");
        seconds(60).await;
        assert_eq!((world.taint().as_str(), world.says().as_str()), ("", "False NoVMEventScheduled"));
    }
}

/// NODE-223
#[tokio::test(start_paused = true)]
async fn node_223_a_taint_of_somebody_else_stays() {
    let mut world = World::new();
    let taint = json!([{"key": DRAINING, "value": "spot-eviction", "effect": "NoSchedule"}]);
    world.kubernetes.merge("Node", "", NODE, &json!({"spec": {"taints": taint}})).unwrap();
    world.start(true, false).await;
    let event = world.plan(EventType::Terminate, &[1], "");
    seconds(5).await;
    assert!(world.azure.cancel_event(&event));
    seconds(300).await;
    assert_eq!(
        (world.taint().as_str(), world.says().as_str()),
        ("spot-eviction:NoSchedule", "False NoVMEventScheduled")
    );
}

/// NODE-224
#[tokio::test(start_paused = true)]
async fn node_224_only_what_is_of_this_machine_alone_begins_earlier() {
    for (event_type, machines, after, approved) in [
        (EventType::Freeze, &[1][..], 3, true),
        (EventType::Freeze, &[0, 1], 100, false),
        (EventType::Freeze, &[0], 100, false),
        (EventType::Reboot, &[1], 25, false),
        (EventType::Reboot, &[1], 35, true),
        (EventType::Redeploy, &[1], 35, true),
    ] {
        for approves in [true, false] {
            let mut world = World::new();
            world.start(false, approves).await;
            let event = world.plan(event_type, machines, "");
            seconds(after).await;
            let waits = world.waits(&event).await;
            assert_eq!(waits, !(approved && approves), "{event_type:?} {machines:?} {after} s");
        }
    }
    // A machine that is to be deleted is deleted once its node has drained for a while; without draining, the event is
    // not approved early.
    for drains in [true, false] {
        let mut world = World::new();
        world.start(drains, true).await;
        world.plan(EventType::Terminate, &[1], "");
        seconds(25).await;
        assert!(world.azure.document(&world.machine(1)).is_some());
        seconds(15).await;
        assert_eq!(world.azure.document(&world.machine(1)).is_none(), drains);
    }
}

/// NODE-225
#[tokio::test(start_paused = true)]
async fn node_225_while_nobody_answers_everything_stays() {
    let mut world = World::new();
    world.start(true, false).await;
    let event = world.plan(EventType::Terminate, &[1], "");
    seconds(5).await;
    world.is_away.store(true, Ordering::Relaxed);
    assert!(world.azure.cancel_event(&event));
    seconds(3000).await;
    assert_eq!(
        (world.taint().as_str(), world.says().as_str()),
        ("termination:NoSchedule", "True TerminateScheduled")
    );
    world.is_away.store(false, Ordering::Relaxed);
    seconds(130).await;
    assert_eq!((world.taint().as_str(), world.says().as_str()), ("", "False NoVMEventScheduled"));
}

/// NODE-226
#[tokio::test(start_paused = true)]
async fn node_226_without_the_right_to_write_events_the_node_says_it_alone() {
    let mut world = World::new();
    world.kubernetes.inject(Fault::status(403).verb("create").resource("events"));
    world.start(true, false).await;
    world.plan(EventType::Preempt, &[1], "");
    seconds(5).await;
    assert_eq!(
        (world.taint().as_str(), world.says().as_str()),
        ("spot-eviction:NoSchedule", "True PreemptScheduled")
    );
    assert_eq!(world.events(), Vec::<String>::new());
    assert_eq!(world.kubernetes.requests("create", "events"), 1, "what is refused is not asked for again");
}
