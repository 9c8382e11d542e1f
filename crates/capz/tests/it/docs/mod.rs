//! Every manifest of `docs/clusters/`, applied to a world with the controllers: each has the result that the page
//! gives, if it gives one (`docs/clusters/README.md`). The sections of a page share one world, except for those that
//! need feature gates.

mod addons;
mod index;
mod managed;
pub mod page;
mod pattern;
pub mod stage;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::rights;
use crate::world::World;
use tokio::time::Instant;

use page::{Expected, Page, Place, Section, pages};
use stage::{DEFAULT_CLUSTER, Made};

/// How long to wait for a result.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long objects are left alone: longer than the controllers let an object rest.
const SETTLES: Duration = Duration::from_secs(12);
/// The interval between two checks.
const LOOK: Duration = Duration::from_secs(1);

/// What is missing of this expectation, if anything.
fn missing(world: &World, expected: &Expected) -> Option<String> {
    match expected {
        Expected::Refused(_) => None,
        Expected::None(place) => resources(world, place).first().map(|it| format!("{it:#}")),
        Expected::Holds { place, pattern } if place.is_object() => match object(world, place) {
            Some(object) => pattern::missing(pattern, &object),
            None => Some("it is not there".to_owned()),
        },
        Expected::Holds { place, pattern } => {
            let found = resources(world, place);
            let [document] = &found[..] else { return Some(format!("there are {}", found.len())) };
            pattern::missing(pattern, document)
        }
        Expected::Warns { place, words } => {
            let events = warnings(world, place);
            (!events.iter().any(|event| event.contains(words))).then(|| format!("{events:#?}"))
        }
    }
}

/// An object; of a Secret its data, parsed as JSON where possible.
fn object(world: &World, place: &Place) -> Option<Value> {
    // Some are in another namespace, or cluster-scoped.
    let all = world.kubernetes.list(&place.kind);
    let named = || all.iter().find(|it| it["metadata"]["name"] == place.name.as_str());
    let object = world.get(&place.kind, &place.name).or_else(|| named().map(|it| it.value().clone()))?;
    if place.kind != "Secret" {
        return Some(object);
    }
    let read = |name: &String| {
        let text = world.secret(&place.name, name).unwrap_or_default();
        (name.clone(), serde_json::from_str(&text).unwrap_or(Value::String(text)))
    };
    Some(object["data"].as_object()?.keys().map(read).collect::<Map<_, _>>().into())
}

/// The resources of this type and name, including those embedded in others' documents.
fn resources(world: &World, place: &Place) -> Vec<Value> {
    fn gather(value: &Value, end: &str, found: &mut Vec<Value>) {
        match value {
            Value::Object(members) => {
                let is_it = members
                    .get("id")
                    .and_then(Value::as_str)
                    .is_some_and(|id| id.to_lowercase().ends_with(end));
                // References contain only the ID.
                let is_whole = members.contains_key("name") || members.contains_key("tags");
                if is_it && is_whole {
                    found.push(value.clone());
                } else {
                    members.values().for_each(|value| gather(value, end, found));
                }
            }
            Value::Array(entries) => entries.iter().for_each(|value| gather(value, end, found)),
            _ => {}
        }
    }
    let end = format!("/{}/{}", place.kind, place.name).to_lowercase();
    let mut found = Vec::new();
    for document in &world.azure.documents() {
        gather(document, &end, &mut found);
    }
    // Some exist by themselves, and in the document of their parent.
    let mut known = BTreeSet::new();
    found.retain(|document| known.insert(stage::text(&document["id"]).to_lowercase()));
    found
}

fn warnings(world: &World, place: &Place) -> Vec<String> {
    let about = |event: &Value| {
        let object =
            if event["regarding"].is_object() { &event["regarding"] } else { &event["involvedObject"] };
        event["type"] == "Warning"
            && object["kind"] == place.kind.as_str()
            && object["name"] == place.name.as_str()
    };
    let words = |event: &Value| {
        let note = if event["note"].is_string() { &event["note"] } else { &event["message"] };
        format!("{}: {}", stage::text(&event["reason"]), stage::text(note))
    };
    let events = world.kubernetes.list("Event");
    events.iter().map(|event| event.value()).filter(|event| about(event)).map(words).collect()
}

fn is_ready(world: &World, place: &Place) -> bool {
    world.get(&place.kind, &place.name).is_some_and(|it| it["status"]["ready"] == true)
}

/// The world of a page, whose cluster `my-cluster` is ready.
async fn world(conditions: Conditions) -> World {
    let gates = conditions.gates;
    let mut world = World::tuned(1, |azure| {
        if !conditions.zones {
            azure.zones.clear();
        }
    });
    world.settings.gates.api_server_ilb = gates.api_server_ilb;
    world.settings.gates.edge_zone = gates.edge_zone;
    world.settings.gates.aks_resource_health = conditions.aks_resource_health;
    stage::azure(&world, conditions.zones);
    world.token = rights::TOKEN.to_owned();
    let actions = rights::shipped("all");
    rights::allow(&world.azure, &actions);
    world.start();
    let own = json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
        "metadata": { "name": DEFAULT_CLUSTER }, "spec": {} });
    let mut made = Made::default();
    stage::apply(&world, &own, &[], gates, &mut made).unwrap();
    ready(&world, &made, &[]).await;
    world
}

/// Marks the networks that exist as provisioned, as the core does.
fn provision(world: &World, made: &Made) {
    for cluster in made.actors.iter().filter(|it| it.kind == "AzureCluster" && is_ready(world, it)) {
        world.provisioned(&cluster.name);
    }
}

/// Waits until all objects are ready, except those with an expected result of their own.
async fn ready(world: &World, made: &Made, expected: &[&Expected]) {
    let says_itself = |place: &Place| {
        expected.iter().any(|expected| match expected {
            Expected::Holds { place: other, .. } | Expected::Warns { place: other, .. } => other == place,
            Expected::None(_) | Expected::Refused(_) => false,
        })
    };
    let begin = Instant::now();
    loop {
        provision(world, made);
        let Some(late) = made.actors.iter().find(|place| !is_ready(world, place) && !says_itself(place))
        else {
            return;
        };
        if begin.elapsed() > PATIENCE {
            let object = world.get(&late.kind, &late.name).unwrap_or_default();
            panic!("{late:?} is not ready: {:#}\n{:#?}", object["status"], warnings(world, late));
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn play(world: &World, section: &Section, gates: capz_api::Gates) {
    let all: Vec<&Value> = section.examples.iter().map(|example| &example.object).collect();
    let mut made = Made::default();
    for example in &section.examples {
        let done = stage::apply(world, &example.object, &all, gates, &mut made);
        let refusal = example.expected.iter().find_map(|it| match it {
            Expected::Refused(words) => Some(words),
            _ => None,
        });
        match (done, refusal) {
            (Ok(()), None) => {}
            (Err(words), Some(expected)) if words.contains(expected.as_str()) => {}
            (done, refusal) => panic!("expected {refusal:?}, but {done:?}: {:#}", example.object),
        }
    }
    let expected: Vec<&Expected> = section.examples.iter().flat_map(|example| &example.expected).collect();
    ready(world, &made, &expected).await;
    // A result that must not occur has had its time, too.
    tokio::time::sleep(SETTLES).await;
    ready(world, &made, &expected).await;
    let begin = Instant::now();
    for expected in expected {
        while let Some(what) = missing(world, expected) {
            assert!(begin.elapsed() < PATIENCE, "{expected:?}\n{what}");
            tokio::time::sleep(LOOK).await;
            provision(world, &made);
        }
    }
}

/// The requirements of a section on its world.
#[derive(Debug, Clone, Copy)]
struct Conditions {
    gates: capz_api::Gates,
    /// The gate `AKSResourceHealth`, which admission does not know.
    aks_resource_health: bool,
    /// Whether the region has zones.
    zones: bool,
}

fn conditions(section: &Section) -> Conditions {
    let mut conditions =
        Conditions { gates: capz_api::Gates::default(), aks_resource_health: false, zones: true };
    for condition in &section.conditions {
        match condition.as_str() {
            "gates: APIServerILB" => conditions.gates.api_server_ilb = true,
            "gates: AKSResourceHealth" => conditions.aks_resource_health = true,
            "gates: EdgeZone" => conditions.gates.edge_zone = true,
            "zones: none" => conditions.zones = false,
            other => panic!("{}: what is {other}?", section.title),
        }
    }
    conditions
}

fn run(page: &Page, sections: &[&Section]) -> Vec<String> {
    let Some(first) = sections.first() else { return Vec::new() };
    let conditions = conditions(first);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let world = runtime.block_on(world(conditions));
    let fails = |section: &&&Section| {
        let played = AssertUnwindSafe(|| runtime.block_on(play(&world, section, conditions.gates)));
        catch_unwind(played).is_err()
    };
    // All of them are tried: failures are printed as they occur.
    let failed = sections.iter().filter(fails).map(|section| format!("{}: {}", page.file, section.title));
    let mut failed: Vec<String> = failed.collect();
    let refused = rights::refused(&world.azure).into_iter();
    failed.extend(refused.map(|action| format!("{}: the shipped role lacks {action}", page.file)));
    failed
}

#[test]
fn examples_of_clusters_end_as_they_say() {
    let only = std::env::var("CERULEAN_PAGE").unwrap_or_default();
    let pages = pages();
    let failed: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = pages
            .iter()
            .filter(|page| page.file.contains(&only))
            .map(|page| scope.spawn(|| try_out(page)))
            .collect();
        runs.into_iter().flat_map(|run| run.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{failed:#?}");
}

fn try_out(page: &Page) -> Vec<String> {
    let has_any = |section: &&Section| !section.examples.is_empty();
    let (apart, together): (Vec<&Section>, Vec<&Section>) =
        page.sections.iter().filter(has_any).partition(|section| !section.conditions.is_empty());
    let mut failed = run(page, &together);
    failed.extend(apart.iter().flat_map(|section| run(page, &[section])));
    failed
}
