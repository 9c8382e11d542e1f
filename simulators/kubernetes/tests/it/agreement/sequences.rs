//! The same random sequence of writes at two servers, with the same responses at each step.

use kube::Client;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Map, Value, json};

use crate::agreement::caller::{APPLY, Answer, Caller, JSON, MERGE, STRATEGIC};

const STEPS: usize = 250;

fn port(random: &mut SmallRng, number: u16) -> Value {
    let mut port =
        json!({"port": number, "name": format!("p{number}"), "targetPort": random.random_range(8000..8003)});
    if random.random_bool(0.5) {
        port["protocol"] = "TCP".into();
    }
    port
}

fn labels(random: &mut SmallRng, nulls: bool) -> Value {
    let mut map = Map::new();
    for key in ["a", "b", "c"] {
        match random.random_range(0..4) {
            0 => drop(map.insert(key.into(), json!("1"))),
            1 => drop(map.insert(key.into(), json!("2"))),
            2 if nulls => drop(map.insert(key.into(), Value::Null)),
            _ => {}
        }
    }
    Value::Object(map)
}

fn some<T: Clone>(random: &mut SmallRng, all: &[T]) -> Vec<T> {
    let mut chosen: Vec<T> = all.iter().filter(|_| random.random_bool(0.5)).cloned().collect();
    if random.random_bool(0.5) {
        chosen.reverse();
    }
    chosen
}

const FINALIZERS: [&str; 3] = ["example.com/x", "example.com/y", "example.com/z"];

/// Content type, query and body of a random write.
fn step(random: &mut SmallRng) -> (&'static str, String, Value) {
    match random.random_range(0..8) {
        0..4 => {
            let ports: Vec<Value> =
                some(random, &[80, 81, 82]).into_iter().map(|number| port(random, number)).collect();
            let manager = *["one", "two", "three"].choose(random).unwrap();
            let mut object = json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "web", "labels": labels(random, false)},
                "spec": {"ports": ports},
            });
            if random.random_bool(0.5) {
                object["metadata"]["finalizers"] = json!(some(random, &FINALIZERS));
            }
            if random.random_bool(0.3) {
                object["spec"]["sessionAffinity"] = json!(["None", "ClientIP"].choose(random));
            }
            (APPLY, format!("fieldManager={manager}&force={}", random.random_bool(0.5)), object)
        }
        4..6 => {
            let mut ports: Vec<Value> = vec![];
            for number in some(random, &[80, 81, 82, 83]) {
                let mut item = port(random, number);
                if random.random_bool(0.4) {
                    item = json!({"port": number, "$patch": "delete"});
                }
                ports.push(item);
            }
            let mut change = json!({"metadata": {"labels": labels(random, true)}, "spec": {"ports": ports}});
            if random.random_bool(0.3) {
                let order: Vec<Value> = some(random, &[80, 81, 82, 83])
                    .into_iter()
                    .map(|number: u16| json!({"port": number}))
                    .collect();
                let spec = match order.is_empty() {
                    true => json!({}),
                    false => json!({"$setElementOrder/ports": order}),
                };
                change["spec"] = spec;
            }
            if random.random_bool(0.3) {
                let member = *["finalizers", "$deleteFromPrimitiveList/finalizers"].choose(random).unwrap();
                change["metadata"][member] = json!(some(random, &FINALIZERS));
            }
            (STRATEGIC, "fieldManager=patcher".into(), change)
        }
        6 => {
            let change = json!({"metadata": {"labels": labels(random, true)}});
            (MERGE, "fieldManager=merger".into(), change)
        }
        _ => {
            let operation = ["add", "remove", "replace", "test"].choose(random).unwrap();
            let change = json!([{"op": operation, "path": "/metadata/labels/a", "value": "1"}]);
            (JSON, "fieldManager=editor".into(), change)
        }
    }
}

/// The parts of a response that both must agree on.
fn essence(answer: &Answer) -> Value {
    if answer.body["kind"] == "Status" {
        let message = match answer.code {
            409 => answer.body["message"].clone(),
            _ => Value::Null,
        };
        return json!({"code": answer.code, "message": message});
    }
    let object = &answer.body;
    let managers: Map<String, Value> = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|entry| {
            let name = format!("{} {}", entry["manager"], entry["operation"]);
            (name, entry["fieldsV1"].clone())
        })
        .collect();
    json!({
        "code": answer.code,
        "labels": object["metadata"]["labels"],
        "finalizers": object["metadata"]["finalizers"],
        "ports": object["spec"]["ports"],
        "affinity": object["spec"]["sessionAffinity"],
        "managers": managers,
    })
}

/// Runs `seed`'s sequence at both and panics at the first difference.
pub async fn agree(one: Client, other: Client, seed: u64) {
    let name = format!("sequence-{seed}");
    let one = Caller::new(one, &name).await;
    let other = Caller::new(other, &name).await;
    let mut random = SmallRng::seed_from_u64(seed);
    let mut history = vec![];
    for number in 0..STEPS {
        let (content, query, body) = step(&mut random);
        let at = format!("{}/web?{query}", one.at("services"));
        let answers = (one.patch(&at, content, &body).await, other.patch(&at, content, &body).await);
        let (left, right) = (essence(&answers.0), essence(&answers.1));
        history.push(format!("{content} {query} {body} -> {}", left["code"]));
        if left != right {
            let before = history.len().saturating_sub(6);
            panic!(
                "seed {seed}, step {number}:\n{}\nsimulator: {left:#}\n{}\nserver: {right:#}\n{}",
                history[before..].join("\n"),
                answers.0.body["message"],
                answers.1.body["message"],
            );
        }
    }
}
