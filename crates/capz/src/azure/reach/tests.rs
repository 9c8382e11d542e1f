//! Goals that change while they are reconciled, on the simulated Azure.

use azure_simulator::{Azure, Fault, FaultAction, LatencyProfile, Options};
use capz_planner::{Observation, service, tags};
use serde_json::json;

use super::*;

/// The goals of a cluster, as a function of the observed state.
struct GoalsOf<F> {
    goals: F,
    reported: Vec<Vec<Future>>,
}

impl<F: FnMut(&ObservedResources) -> Result<Vec<Goal>, Failure> + Send> Subject for GoalsOf<F> {
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure> {
        (self.goals)(observed)
    }

    async fn report(&mut self, _: &Plan, operations: Vec<Future>) -> Result<(), Failure> {
        self.reported.push(operations);
        Ok(())
    }

    fn has_changed(&self) -> bool {
        false
    }

    fn changes(&self) -> Changes {
        Changes::default()
    }
}

/// An Azure with an empty group, in which every write takes ten seconds.
fn azure() -> (Azure, Client, ResourceId) {
    let latency = LatencyProfile::instant().with("*", "Microsoft.Network/*", Duration::from_secs(10));
    let options = Options { latency, ..Options::default() };
    let group = ResourceId::group(&options.subscription, "g");
    let azure = Azure::new(options);
    azure.put(&group, json!({ "location": "eastus" })).unwrap();
    let cloud = arm::Cloud::built_in(&cloud_config::PUBLIC).unwrap();
    let transport = arm::Transport::in_process(azure.router());
    let client = Client::builder(cloud, transport, arm::Credential::fixed("t")).build();
    (azure, client, group)
}

fn address(group: &ResourceId, name: &str) -> Goal {
    let document = json!({
        "location": "eastus", "sku": { "name": "Standard" }, "tags": { (tags::owner_key("c")): "owned" },
        "properties": { "publicIPAllocationMethod": "Static" },
    });
    Goal::new(group.resource("Microsoft.Network", "publicIPAddresses", name), &service::PUBLIC_IPS, document)
}

async fn reach<F>(client: &Client, goals: F, kept: &[Future]) -> (Result<Plan, Failure>, Vec<Vec<Future>>)
where
    F: FnMut(&ObservedResources) -> Result<Vec<Goal>, Failure> + Send,
{
    let access =
        AzureAccess { client: client.clone(), tenant: "t".into(), credential: arm::Credential::fixed("t") };
    let (reads, written) = (Reads::default(), RecentWrites::default());
    let reach = Reach {
        access: &access,
        reads: &reads,
        written: &written,
        claimant: "c".into(),
        not_before: Instant::now(),
        requeue: Duration::from_secs(15),
    };
    let mut subject = GoalsOf { goals, reported: Vec::new() };
    let reached = reach.run(&mut subject, kept).await.map(|(_, plan)| plan);
    (reached, subject.reported)
}

fn writes(azure: &Azure, name: &str) -> usize {
    let ours = |path: &str| path.contains(&format!("publicIPAddresses/{name}"));
    azure.journal().entries.iter().filter(|entry| entry.method == "PUT" && ours(&entry.path)).count()
}

/// A goal that is added later, of a type that was listed before: its resource is read, and not assumed to be absent.
#[tokio::test(start_paused = true)]
async fn a_goal_that_comes_later_is_read_first() {
    let (azure, client, group) = azure();
    let (first, second) = (address(&group, "first"), address(&group, "second"));
    // Foreign.
    azure
        .put(
            &second.id,
            json!({ "location": "eastus", "sku": { "name": "Standard" },
        "properties": { "publicIPAllocationMethod": "Static" } }),
        )
        .unwrap();
    let before = azure.document(&second.id);
    let (one, two) = (first.clone(), second.clone());
    let goals = move |observed: &ObservedResources| {
        let is_there = matches!(observed.get(&one.id), Observation::Present(_));
        Ok(if is_there { vec![one.clone(), two.clone()] } else { vec![one.clone()] })
    };
    let (reached, _) = reach(&client, goals, &[]).await;
    let plan = reached.unwrap();
    assert_eq!(plan.state_of(&first.id), Some(&State::Reached));
    assert_eq!(plan.state_of(&second.id), Some(&State::Foreign));
    assert_eq!((writes(&azure, "first"), writes(&azure, "second")), (1, 0));
    assert_eq!(azure.document(&second.id), before);
}

/// A request that was sent before the goals failed becomes an operation in the status, and the next reconcile resumes
/// it.
#[tokio::test(start_paused = true)]
async fn what_was_sent_is_kept_although_goals_fail() {
    let (azure, client, group) = azure();
    let (slow, quick) = (address(&group, "slow"), address(&group, "quick"));
    azure.inject(Fault::new(FaultAction::Delay { ms: 30_000 }).on_method("PUT").on_resource("slow").times(1));
    let (one, two) = (slow.clone(), quick.clone());
    let goals = move |observed: &ObservedResources| match observed.get(&two.id) {
        Observation::Present(_) => Err(Failure::Refused("no longer".into())),
        _ => Ok(vec![one.clone(), two.clone()]),
    };
    let (reached, reported) = reach(&client, goals, &[]).await;
    assert!(matches!(&reached, Err(Failure::Refused(words)) if words == "no longer"), "{reached:?}");
    let kept = reported.last().unwrap();
    assert_eq!(kept.iter().map(|it| it.name.as_deref().unwrap()).collect::<Vec<_>>(), ["slow"]);
    // The next reconcile does not send it again, although its goal is added late.
    let both = [quick.clone(), slow.clone()];
    let goals = move |observed: &ObservedResources| {
        let known = matches!(observed.get(&both[0].id), Observation::Present(_));
        Ok(both[..if known { 2 } else { 1 }].to_vec())
    };
    let (reached, _) = reach(&client, goals, kept).await;
    assert!(reached.unwrap().is_reached());
    assert_eq!((writes(&azure, "slow"), writes(&azure, "quick")), (1, 1));
}

/// A list did not show an existing resource. It is not replaced: other writers' values stay, and the desired ones are
/// added.
#[tokio::test(start_paused = true)]
async fn what_a_list_lacks_is_not_replaced() {
    let (azure, client, group) = azure();
    let mut goal = address(&group, "there");
    let mut held = goal.document.clone();
    held["properties"]["idleTimeoutInMinutes"] = json!(30);
    azure.put(&goal.id, held).unwrap();
    goal.document["tags"]["more"] = json!("wanted");
    let lost =
        FaultAction::Fail { status: 404, code: "ResourceGroupNotFound".into(), message: String::new() };
    azure.inject(Fault::new(lost).on_method("GET").on_resource("").times(1));
    let wanted = goal.clone();
    let (reached, _) = reach(&client, move |_: &ObservedResources| Ok(vec![wanted.clone()]), &[]).await;
    assert!(reached.unwrap().is_reached());
    let now = azure.document(&goal.id).unwrap();
    assert_eq!(
        (&now["properties"]["idleTimeoutInMinutes"], &now["tags"]["more"]),
        (&json!(30), &json!("wanted"))
    );
}

/// The answer to a creation is lost. The retry is refused because the resource exists, which counts as success.
#[tokio::test(start_paused = true)]
async fn a_creation_whose_answer_is_lost_comes_right() {
    let (azure, client, group) = azure();
    let goal = address(&group, "lost");
    azure.inject(Fault::new(FaultAction::DropAnswer).on_method("PUT").times(1));
    let wanted = goal.clone();
    let (reached, _) = reach(&client, move |_: &ObservedResources| Ok(vec![wanted.clone()]), &[]).await;
    assert!(reached.unwrap().is_reached());
    let journal = azure.journal();
    let answers: Vec<u16> =
        journal.entries.iter().filter(|entry| entry.method == "PUT").map(|entry| entry.status).collect();
    assert_eq!(answers.last(), Some(&412), "{answers:?}");
}
