//! Single requests that both servers answer alike: the life of an object of each kind, and random lives of objects of
//! random kinds.
//!
//! Code, reason, message, causes of a refusal, and all members of an object are equal. Messages that differ are listed,
//! with the reason, in [`WORDED_OTHERWISE`].

use std::collections::BTreeSet;

use http::Method;
use kube::Client;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Map, Value, json};

use crate::agreement::caller::{Answer, Caller, JSON, MERGE};
use crate::agreement::kinds::{KINDS, Row};

/// Checks in which only code and reason are equal, by the end of their names, and the reason.
const WORDED_OTHERWISE: [(&str, &str); 4] = [
    (", a wrong type", "the words are those of Go's decoder"),
    (", another kind", "the message names a line of Go's source, and the body's bytes"),
    ("Job, updated when it is gone", "it waits for a collector, and causes say Go's values of its template"),
    (", listed by an unknown field", "each kind has its own message for an unknown field"),
];

/// Checks that are left out, and the reason.
const LEFT_OUT: [(&str, &str); 1] =
    [("LimitRange, no name", "the server invents a name for this kind alone, which no two share")];

/// The number of steps in a random life.
const STEPS: usize = 40;

/// One request; `{version}` in its body stands for the object's current version.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub name: String,
    method: Method,
    path: String,
    content: &'static str,
    body: Value,
}

fn exchange(name: String, method: Method, path: String, body: Value) -> Exchange {
    Exchange { name, method, path, content: "application/json", body }
}

/// The life of one object of a kind.
fn life(row: &Row, namespace: &str) -> Vec<Exchange> {
    let all = row.path(namespace);
    let object_name = format!("agree-{}", row.kind.to_lowercase());
    let one = format!("{all}/{object_name}");
    let object = row.named(&object_name);
    let named = |name: &str| format!("{}, {name}", row.kind);
    let mut changed_name = object.clone();
    changed_name["metadata"]["name"] = "other".into();
    let mut stale = object.clone();
    stale["metadata"]["resourceVersion"] = "1".into();
    let mut foreign = object.clone();
    foreign["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    let mut wrong_kind = object.clone();
    wrong_kind["kind"] = "Nonsense".into();
    let mut wrong_name = object.clone();
    wrong_name["metadata"]["name"] = "Not_A_Name".into();
    let mut no_name = object.clone();
    no_name["metadata"]["name"] = Value::Null;
    let post = |name: &str, body: &Value| exchange(named(name), Method::POST, all.clone(), body.clone());
    let put = |name: &str, body: &Value| exchange(named(name), Method::PUT, one.clone(), body.clone());
    let get = |name: &str, path: String| exchange(named(name), Method::GET, path, Value::Null);
    let patch = |name: &str, content: &'static str, body: Value| Exchange {
        content,
        ..exchange(named(name), Method::PATCH, one.clone(), body)
    };
    let delete = |name: &str, path: String, body: Value| exchange(named(name), Method::DELETE, path, body);
    let missing_body = json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}});
    vec![
        get("one that is not there", one.clone()),
        post("tried", &object).to(format!("{all}?dryRun=All")),
        post("a wrong type", &row.wrong(&object_name)),
        post("another kind", &wrong_kind),
        post("a wrong name", &wrong_name),
        post("no name", &no_name),
        post("created", &object),
        post("created again", &object),
        get("read", one.clone()),
        get("listed by label", format!("{all}?labelSelector=check%3Dagreement")),
        get("listed by another label", format!("{all}?labelSelector=check%3Dnothing")),
        get("listed by name", format!("{all}?fieldSelector=metadata.name%3D{object_name}")),
        get("listed by an unknown field", format!("{all}?fieldSelector=nonsense%3Da")),
        get("listed by a broken selector", format!("{all}?labelSelector=a%3D%3D%3Db")),
        put("another name", &changed_name),
        put("an old version", &stale),
        put("another one of that name", &foreign),
        patch("merged", MERGE, row.change()),
        patch("merged again", MERGE, row.change()),
        patch("a label", MERGE, json!({"metadata": {"labels": {"more": "yes"}}})),
        patch("a test that fails", JSON, json!([{"op": "test", "path": "/metadata/name", "value": "x"}])),
        patch("a missing path", JSON, json!([{"op": "remove", "path": "/metadata/none"}])),
        patch("an unknown type", "application/nonsense", json!({})),
        get("nothing below it", format!("{one}/nonsense")),
        delete("another one", one.clone(), missing_body),
        delete("no such policy", format!("{one}?propagationPolicy=Nonsense"), Value::Null),
        delete("deleted", one.clone(), Value::Null),
        delete("deleted again", one.clone(), Value::Null),
        put("updated when it is gone", &object),
    ]
}

impl Exchange {
    fn to(mut self, path: String) -> Self {
        self.path = path;
        self
    }

    async fn send(&self, caller: &Caller) -> Answer {
        let body = (!self.body.is_null()).then_some((self.content, &self.body));
        caller.send(self.method.clone(), &self.path, body).await
    }

    /// Sends it to both. Returns the difference, if any.
    async fn differs(&self, simulator: &Caller, server: &Caller) -> Option<String> {
        let (ours, theirs) = (self.send(simulator).await, self.send(server).await);
        let worded = WORDED_OTHERWISE.iter().any(|(end, _)| self.name.ends_with(end));
        let settled = |body: &Value| settled(body.clone(), worded);
        let difference = if ours.code != theirs.code {
            Some(format!("code {} and {}", ours.code, theirs.code))
        } else {
            difference(&settled(&ours.body), &settled(&theirs.body), "")
        };
        difference.map(|difference| {
            format!(
                "{}: {} {} {}\n  {difference}\n  simulator: {}\n  server:    {}",
                self.name, self.method, self.path, self.body, ours.body, theirs.body
            )
        })
    }
}

/// A response without the parts that differ from server to server.
fn settled(mut body: Value, worded: bool) -> Value {
    if body["kind"] == "Status" && worded {
        body = json!({"code": body["code"], "reason": body["reason"]});
    }
    forget(&mut body);
    body
}

/// A text with a word in place of every UID.
fn without_uids(text: &str) -> String {
    let is_uid = |word: &str| word.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let mark = |character: char| !character.is_ascii_alphanumeric() && character != '-';
    let words = text.split_inclusive(mark).map(|word| {
        let bare = word.trim_end_matches(mark);
        if is_uid(bare) { word.replace(bare, "UID") } else { word.to_owned() }
    });
    words.collect()
}

/// A text without the template that a message shows with Go's field names.
fn without_templates(text: &str) -> String {
    const BEGIN: &str = "spec.template: Invalid value: ";
    const END: &str = ": field is immutable";
    match (text.find(BEGIN), text.rfind(END)) {
        (Some(begin), Some(end)) if begin < end => {
            format!("{}{BEGIN}{}", &text[..begin], &text[end..])
        }
        _ => text.to_owned(),
    }
}

fn forget(value: &mut Value) {
    const OWN: [&str; 9] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "selfLink",
        "controller-uid",
        "lastTransitionTime",
        "lastPhaseTransitionTime",
    ];
    match value {
        Value::Object(members) => {
            if members.get("field").is_some_and(|field| field == "spec.template") {
                members.remove("message");
            }
            members.retain(|name, value| !OWN.contains(&name.as_str()) && !value.is_null());
            members.values_mut().for_each(forget);
        }
        Value::Array(entries) => entries.iter_mut().for_each(forget),
        Value::String(text) => *text = without_templates(&without_uids(text)),
        _ => {}
    }
}

/// The first difference between two responses.
fn difference(ours: &Value, theirs: &Value, at: &str) -> Option<String> {
    match (ours, theirs) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            let of =
                |members: &Map<String, Value>, name: &String| members.get(name).cloned().unwrap_or_default();
            names
                .into_iter()
                .find_map(|name| difference(&of(ours, name), &of(theirs, name), &format!("{at}.{name}")))
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let pairs = ours.iter().zip(theirs).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (ours, theirs))| difference(ours, theirs, &format!("{at}[{index}]")))
        }
        _ if ours == theirs => None,
        _ => Some(format!("{at}: {ours} and {theirs}")),
    }
}

/// Sends all lives to both. Returns how many requests agree, and the differences.
pub async fn lives(simulator: Client, server: Client) -> (usize, Vec<String>) {
    let simulator = Caller::new(simulator, "exchanges").await;
    let server = Caller::new(server, "exchanges").await;
    let (mut count, mut differences) = (0, Vec::new());
    for row in &KINDS {
        for exchange in life(row, &simulator.namespace) {
            if LEFT_OUT.iter().any(|(name, _)| exchange.name == *name) {
                continue;
            }
            match exchange.differs(&simulator, &server).await {
                None => count += 1,
                Some(difference) => differences.push(difference),
            }
        }
    }
    (count, differences)
}

/// A random request for one of two objects of a random kind.
fn random_exchange(random: &mut SmallRng, namespace: &str) -> Exchange {
    let row = KINDS.choose(random).unwrap();
    let name = *["agree-x", "agree-y"].choose(random).unwrap();
    let (all, one) = (row.path(namespace), format!("{}/{name}", row.path(namespace)));
    let title = format!("{} {name}", row.kind);
    let mut object = row.named(name);
    match random.random_range(0..10) {
        0..3 => exchange(title, Method::POST, all, object),
        3 => {
            object["metadata"]["labels"]["size"] = json!(random.random_range(0..3).to_string());
            // Whether an update of a missing object creates it depends on the kind.
            exchange(title, Method::PUT, one, object)
        }
        4 => Exchange { content: MERGE, ..exchange(title, Method::PATCH, one, row.change()) },
        5 => {
            let finalizers = random.random_bool(0.5).then_some(json!(["example.com/hold"]));
            let body = json!({"metadata": {"finalizers": finalizers}});
            Exchange { content: MERGE, ..exchange(title, Method::PATCH, one, body) }
        }
        6 => {
            let operation = ["add", "remove", "test"].choose(random).unwrap();
            let body = json!([{"op": operation, "path": "/metadata/labels/check", "value": "agreement"}]);
            Exchange { content: JSON, ..exchange(title, Method::PATCH, one, body) }
        }
        7 => exchange(title, Method::GET, one, Value::Null),
        8 => {
            let zero = json!({"gracePeriodSeconds": 0});
            exchange(title, Method::DELETE, one, zero)
        }
        _ => exchange(title, Method::GET, format!("{all}?labelSelector=check"), Value::Null),
    }
}

/// Sends requests in a fresh namespace at both. Returns the index and text of the first difference.
async fn run(
    simulator: &Client,
    server: &Client,
    namespace: &str,
    exchanges: &[Exchange],
) -> Option<(usize, String)> {
    let simulator = Caller::new(simulator.clone(), namespace).await;
    let server = Caller::new(server.clone(), namespace).await;
    for (index, exchange) in exchanges.iter().enumerate() {
        if let Some(difference) = exchange.differs(&simulator, &server).await {
            return Some((index, difference));
        }
    }
    None
}

/// Random lives. A difference is shrunk: requests that do not matter are left out, and the rest is reported with the
/// seed.
pub async fn random_lives(simulator: Client, server: Client, seed: u64) {
    let make = |namespace: &str| {
        let mut random = SmallRng::seed_from_u64(seed);
        // Cluster-scoped kinds would find the objects of an earlier run.
        let exchanges = std::iter::repeat_with(|| random_exchange(&mut random, namespace));
        exchanges.filter(|one| one.path.contains("/namespaces/")).take(STEPS).collect::<Vec<_>>()
    };
    let first = format!("lives-{seed}");
    let Some((end, mut difference)) = run(&simulator, &server, &first, &make(&first)).await else { return };
    let mut kept: Vec<usize> = (0..=end).collect();
    let mut tries = 0;
    let mut index = 0;
    while index + 1 < kept.len() {
        let mut fewer = kept.clone();
        fewer.remove(index);
        tries += 1;
        let namespace = format!("lives-{seed}-{tries}");
        let all = make(&namespace);
        let some: Vec<Exchange> = fewer.iter().filter_map(|at| all.get(*at).cloned()).collect();
        match run(&simulator, &server, &namespace, &some).await {
            Some((at, words)) => {
                difference = words;
                kept = fewer[..=at].to_vec();
            }
            None => index += 1,
        }
    }
    let all = make("shrunk");
    let told: Vec<String> = kept
        .iter()
        .filter_map(|at| all.get(*at))
        .map(|one| format!("{} {} {}", one.method, one.path, one.body))
        .collect();
    panic!("seed {seed}, {} requests are enough:\n{}\n{difference}", told.len(), told.join("\n"));
}
