//! What must hold whatever clients do: random valid and invalid operations on every type never leave a
//! dangling reference, a duplicate address, a resource without its group, or an operation that never
//! ends; and the same seed and input give the same journal, byte for byte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../it/common/mod.rs"]
mod common;
mod invariants;
mod universe;

use std::time::Duration;

use azure_simulator::ExampleRequest;
use azure_simulator::{Azure, Fault, LatencyProfile, Options};
use azure_types::ResourceId;
use common::{Client, SUBSCRIPTION};
use proptest::prelude::*;
use serde_json::{Value, json};
use universe::{Choices, GROUPS, body, subjects, variant};

/// One thing that a client does; the salt decides the names and values in it.
#[derive(Debug, Clone, Copy)]
struct Act {
    verb: Verb,
    subject: usize,
    salt: u64,
}

#[derive(Debug, Clone, Copy)]
enum Verb {
    Put,
    /// A body in which something was replaced by nonsense.
    PutNonsense,
    /// With an `If-Match` that is right or wrong.
    PutIf,
    Patch,
    Delete,
    Act,
    PutGroup,
    DeleteGroup,
    Read,
    Wait,
}

fn acts(most: usize) -> impl Strategy<Value = Vec<Act>> {
    let verb = prop_oneof![
        40 => Just(Verb::Put),
        4 => Just(Verb::PutNonsense),
        4 => Just(Verb::PutIf),
        3 => Just(Verb::Patch),
        12 => Just(Verb::Delete),
        8 => Just(Verb::Act),
        2 => Just(Verb::PutGroup),
        1 => Just(Verb::DeleteGroup),
        4 => Just(Verb::Read),
        10 => Just(Verb::Wait),
    ];
    let act =
        (verb, any::<usize>(), any::<u64>()).prop_map(|(verb, subject, salt)| Act { verb, subject, salt });
    prop::collection::vec(act, 1..most)
}

fn options(seed: u64) -> Options {
    let mut latency = LatencyProfile::instant().with("*", "*", Duration::from_secs(5)).with(
        "PUT",
        "*/virtualMachineScaleSets",
        Duration::from_secs(11),
    );
    latency.jitter = 0.5;
    Options { seed, latency, budgets: None, ..Options::default() }
}

async fn send(
    client: &Client,
    method: &str,
    id: &str,
    version: &str,
    body: Option<Value>,
    etag: Option<&str>,
) {
    let headers: Vec<(&str, &str)> = etag.map(|etag| ("if-match", etag)).into_iter().collect();
    let path = format!("{id}?api-version={version}");
    // A fault may break the connection off; that is an answer, too.
    if let Some(reply) = client.try_send(method, &path, body.clone(), &headers).await {
        assert!(
            reply.status < 500 || reply.status == 501,
            "{method} {id}: {} {} for {}",
            reply.status,
            reply.body,
            body.unwrap_or_default()
        );
    }
}

/// Replaces something in a document by what has no business there.
fn spoil(choices: &mut Choices, value: &mut Value) {
    let nonsense = choices.pick(&[0u8, 1, 2, 3, 4, 5]);
    match value {
        Value::Object(members) if !members.is_empty() && !choices.once_in(5) => {
            let at = choices.below(members.len() as u64) as usize;
            if let Some(member) = members.values_mut().nth(at) {
                spoil(choices, member);
            }
        }
        Value::Array(items) if !items.is_empty() && !choices.once_in(5) => {
            let at = choices.below(items.len() as u64) as usize;
            spoil(choices, &mut items[at]);
        }
        other => {
            *other = match nonsense {
                0 => Value::Null,
                1 => json!(-1),
                2 => json!("\u{1f980}/../x"),
                3 => json!([[[]]]),
                4 => json!({ "id": "/not/an/id" }),
                _ => json!(true),
            }
        }
    }
}

/// The examples, apart: what is created, and actions.
struct Universe {
    puts: Vec<ExampleRequest>,
    actions: Vec<ExampleRequest>,
}

impl Universe {
    fn new() -> Self {
        let (puts, actions) = subjects().into_iter().partition(|subject| subject.method == "PUT");
        Self { puts, actions }
    }
}

async fn take(client: &Client, universe: &Universe, act: &Act) {
    let mut choices = Choices(act.salt);
    let subject = &universe.puts[act.subject % universe.puts.len()];
    let id = variant(&mut choices, &subject.path);
    let group = ResourceId::group(SUBSCRIPTION, choices.pick(&[GROUPS[1], GROUPS[1], GROUPS[1], GROUPS[0]]));
    let version = subject.api_version;
    match act.verb {
        Verb::Put => {
            let body = body(&mut choices, subject, &id);
            send(client, "PUT", &id, version, Some(body), None).await;
        }
        Verb::PutNonsense => {
            let mut body = body(&mut choices, subject, &id);
            spoil(&mut choices, &mut body);
            send(client, "PUT", &id, version, Some(body), None).await;
        }
        Verb::PutIf => {
            let body = body(&mut choices, subject, &id);
            let resource = ResourceId::parse(&id).unwrap();
            let document = client.azure.document(&resource);
            let current = document.and_then(|document| Some(document["etag"].as_str()?.to_owned()));
            let etag = current.filter(|_| !choices.once_in(3)).unwrap_or_else(|| "\"stale\"".into());
            send(client, "PUT", &id, version, Some(body), Some(&etag)).await;
        }
        Verb::Patch => {
            let body = json!({ "tags": { "act": act.salt.to_string() } });
            send(client, "PATCH", &id, version, Some(body), None).await;
        }
        Verb::Delete => send(client, "DELETE", &id, version, None, None).await,
        Verb::Act => {
            let action = &universe.actions[act.subject % universe.actions.len()];
            let path = variant(&mut choices, &action.path);
            let version = action.api_version;
            match path.strip_suffix("/delete").filter(|_| choices.once_in(2)) {
                // Now and then an instance itself goes.
                Some(set) => {
                    let instance = format!("{set}/virtualMachines/{}", choices.below(6));
                    send(client, "DELETE", &instance, version, None, None).await;
                }
                None => {
                    let body = Some(action.body.clone()).filter(|body| !body.is_null());
                    send(client, "POST", &path, version, body, None).await;
                }
            }
        }
        Verb::PutGroup => {
            send(client, "PUT", group.as_str(), "2021-04-01", Some(json!({ "location": "eastus" })), None)
                .await;
        }
        Verb::DeleteGroup => send(client, "DELETE", group.as_str(), "2021-04-01", None, None).await,
        Verb::Read => {
            let list = id.rsplit_once('/').map_or(id.as_str(), |(list, _)| list);
            send(client, "GET", list, version, None, None).await;
        }
        Verb::Wait => tokio::time::sleep(Duration::from_secs(choices.below(40))).await,
    }
}

async fn run(acts: &[Act], seed: u64, faults: Vec<Fault>, check: bool) -> Azure {
    let client = Client::with_group(options(seed)).await;
    faults.into_iter().for_each(|fault| client.azure.inject(fault));
    let universe = Universe::new();
    for act in acts {
        take(&client, &universe, act).await;
        if check {
            invariants::check(&client.azure);
        }
    }
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    // Due operations end at the next read: here, while the runtime has the time.
    client.azure.running_operations();
    client.azure
}

/// After a long time all operations have ended, and every resource says how.
fn ended(azure: &Azure) {
    assert_eq!(azure.running_operations(), 0, "every operation ends");
    for document in azure.documents() {
        let state = document["properties"]["provisioningState"].as_str();
        // Clusters are accepted before their scale sets, for which a subnet may be too small, are made.
        let may_fail =
            document["type"].as_str().unwrap_or_default().starts_with("Microsoft.ContainerService/");
        let well = matches!(state, Some("Succeeded") | None) || may_fail && state == Some("Failed");
        assert!(well, "{} is {state:?}", document["id"]);
    }
    invariants::check(azure);
}

fn in_paused_time<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}

/// 48 cases, or as many as `PROPTEST_CASES` says.
fn config() -> ProptestConfig {
    let cases =
        if std::env::var_os("PROPTEST_CASES").is_some() { ProptestConfig::default().cases } else { 48 };
    ProptestConfig { cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_dangles_whatever_clients_do(acts in acts(120)) {
        ended(&in_paused_time(run(&acts, 1, Vec::new(), true)));
    }
}

/// The universe is rich enough: most types come to exist, so that the properties above say something.
#[test]
fn the_random_workload_reaches_every_type() {
    let acts = long_workload(12_000);
    let azure = in_paused_time(run(&acts, 1, Vec::new(), false));
    let journal = azure.journal();
    for subject in Universe::new().puts {
        let kind = subject.resource_type;
        let created = journal.writes_of(kind).len();
        assert!(created > 0, "{kind} was written {created} times");
    }
    ended(&azure);
}

/// One fixed workload, from a seed.
fn long_workload(length: usize) -> Vec<Act> {
    let mut choices = Choices(42);
    let verbs = [
        Verb::Put,
        Verb::Put,
        Verb::Put,
        Verb::Put,
        Verb::Put,
        Verb::PutNonsense,
        Verb::PutIf,
        Verb::Patch,
        Verb::Delete,
        Verb::Act,
        Verb::Read,
        Verb::Wait,
    ];
    (0..length)
        .map(|at| {
            let verb = match at % 400 {
                0 => Verb::PutGroup,
                399 => Verb::DeleteGroup,
                _ => choices.pick(&verbs),
            };
            Act { verb, subject: choices.below(1 << 32) as usize, salt: choices.next() }
        })
        .collect()
}

/// Some of everything that can go wrong on the way.
fn faults() -> Vec<Fault> {
    serde_json::from_value(json!([
        { "method": "PUT", "skip": 30, "count": 20, "action": { "do": "slowOperation", "ms": 90_000 } },
        { "method": "PUT", "skip": 200, "count": 20, "action": { "do": "dropAnswer" } },
        { "method": "PUT", "skip": 300, "count": 10, "action": { "do": "failOperation", "code": "InternalExecutionError" } },
        { "method": "DELETE", "skip": 50, "count": 10, "action": { "do": "throttle", "retryAfter": 7 } },
        { "method": "DELETE", "skip": 90, "count": 10, "action": { "do": "delay", "ms": 2_500 } },
    ]))
    .unwrap()
}

#[test]
fn the_same_seed_and_input_give_the_same_journal_byte_for_byte() {
    let acts = long_workload(3_000);
    let told = |seed| {
        let azure = in_paused_time(run(&acts, seed, faults(), false));
        let journal = serde_json::to_string(&azure.journal()).unwrap();
        (journal, serde_json::to_string(&azure.documents()).unwrap())
    };
    let (one, again, other) = (told(7), told(7), told(8));
    assert!(one.0.lines().next().is_some_and(|journal| journal.len() > 500_000), "a long journal");
    assert!(one == again, "two runs of one seed differ");
    assert_ne!(one.1, other.1, "another seed gives other identifiers");
}
