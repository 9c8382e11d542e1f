//! Who made what in Azure, and who changed what another made: kept by a wire that sees each call with its caller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arm::Transport;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use azure_simulator::Azure;
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What the token of a cluster begins with; its number follows.
const TOKEN: &str = "cluster-";

/// How long after the creation of a group another one counts as made at the same moment.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Members that Azure derives from other resources, or changes with each write.
const DERIVED: [&str; 11] = [
    "etag",
    "uniqueId",
    "provisioningState",
    "resourceGuid",
    "timeCreated",
    "latestModelApplied",
    "managedBy",
    "numberOfRecordSets",
    "numberOfVirtualNetworkLinks",
    "peeringSyncLevel",
    "peeringState",
];

/// The client that a cluster is to Azure.
pub(super) fn client_of(cluster: usize) -> String {
    format!("{TOKEN}{cluster}")
}

/// Who made a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// The cluster with this number.
    Cluster(usize),
    /// People, or other programs.
    Others,
}

/// Which cluster made what, and which writes were wrong.
#[derive(Debug, Default)]
struct Books {
    /// Makers by id in lower case.
    makers: BTreeMap<String, Maker>,
    /// When groups were made that clusters made, and by which of them at the same moment, by id in lower case.
    groups: BTreeMap<String, (Instant, BTreeSet<usize>)>,
    /// What each cluster asked for when it made a resource, by id in lower case.
    asked: BTreeMap<String, (ResourceId, Value)>,
    /// When each cluster wrote first.
    began: BTreeMap<usize, Instant>,
    /// How many writes Azure took.
    writes: usize,
    /// What clusters did to what is not theirs.
    harm: Vec<String>,
}

/// The books of one world. Clones are the same books.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Books>>);

/// A way to Azure that may break after a call: the call is carried out, and neither its answer nor a later one arrives.
#[derive(Debug, Clone)]
pub(super) struct Cut {
    calls: Arc<AtomicUsize>,
    last: Option<usize>,
    /// Cancelled once the last call has been carried out.
    pub(super) broken: CancellationToken,
}

impl Cut {
    pub(super) fn never() -> Self {
        Self { calls: Arc::default(), last: None, broken: CancellationToken::new() }
    }

    pub(super) fn after(calls: usize) -> Self {
        Self { last: Some(calls), ..Self::never() }
    }

    fn is_past(&self, number: usize) -> bool {
        self.last.is_some_and(|last| number > last)
    }
}

impl Ledger {
    /// A way to Azure that is written down.
    pub(super) fn transport(&self, azure: &Azure, cut: &Cut) -> Transport {
        let (ledger, seen, cut) = (self.clone(), azure.clone(), cut.clone());
        let router: Router = azure.router().layer(from_fn(move |request: Request, next: Next| {
            let (ledger, azure, cut) = (ledger.clone(), seen.clone(), cut.clone());
            async move {
                let number = cut.calls.fetch_add(1, Ordering::Relaxed);
                if cut.is_past(number) {
                    std::future::pending::<()>().await;
                }
                let answer = ledger.pass(&azure, request, next).await;
                if cut.last == Some(number) {
                    cut.broken.cancel();
                    std::future::pending::<()>().await;
                }
                answer
            }
        }));
        Transport::in_process(router)
    }

    async fn pass(&self, azure: &Azure, request: Request, next: Next) -> Response {
        let method = request.method().as_str().to_owned();
        let Some(id) = (method != "GET").then(|| id_of(request.uri().path())).flatten() else {
            return next.run(request).await;
        };
        let cluster = caller(&request);
        let (parts, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.expect("bodies are in memory");
        let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
        let before = azure.document(&id);
        let answer = next.run(Request::from_parts(parts, Body::from(body))).await;
        let after = azure.document(&id);
        let is_taken = answer.status().is_success();
        if let Some(cluster) = cluster {
            let call = Call { cluster, method: &method, id: &id, before, after, asked, is_taken };
            self.0.lock().enter(azure, call);
        }
        answer
    }

    /// People, or other programs, made a resource.
    pub(super) fn others_made(&self, id: &ResourceId) {
        self.0.lock().makers.insert(id.to_lower(), Maker::Others);
    }

    /// A resource went, with all in it.
    pub(super) fn went(&self, id: &ResourceId) {
        self.0.lock().forget(id);
    }

    /// What a cluster made that exists in Azure.
    pub(super) fn made_by(&self, cluster: usize, azure: &Azure) -> Vec<Value> {
        let books = self.0.lock();
        let theirs = |document: &Value| books.maker(&id_in(document)) == Some(Maker::Cluster(cluster));
        azure.documents().into_iter().filter(theirs).collect()
    }

    /// Who made a resource.
    pub(super) fn maker(&self, id: &ResourceId) -> Option<Maker> {
        self.0.lock().maker(id)
    }

    /// What a cluster asked for when it made a resource, by id.
    pub(super) fn asked_by(&self, cluster: usize) -> Vec<(ResourceId, Value)> {
        let books = self.0.lock();
        let theirs = |(id, _): &&(ResourceId, Value)| books.maker(id) == Some(Maker::Cluster(cluster));
        books.asked.values().filter(theirs).cloned().collect()
    }

    /// Whether a cluster is one of several that made a group at the same moment. Which of them has it is decided by what they make
    /// in it first, and that may differ.
    pub(super) fn has_raced(&self, cluster: usize) -> bool {
        let books = self.0.lock();
        books.groups.values().any(|(_, makers)| makers.len() > 1 && makers.contains(&cluster))
    }

    /// Whether two clusters wrote first at the same moment: neither could see the other before.
    pub(super) fn began_together(&self, one: usize, other: usize) -> bool {
        let books = self.0.lock();
        let began = books.began.get(&one).zip(books.began.get(&other));
        began.is_some_and(|(one, other)| one.max(other).saturating_duration_since(*one.min(other)) < AT_ONCE)
    }

    /// Whether several clusters made this group at the same moment.
    pub(super) fn is_made_by_several(&self, group: &ResourceId) -> bool {
        self.0.lock().groups.get(&group.to_lower()).is_some_and(|(_, makers)| makers.len() > 1)
    }

    /// How many writes of all clusters Azure took.
    pub(super) fn all_writes(&self) -> usize {
        self.0.lock().writes
    }

    /// What clusters did to what is not theirs.
    pub(super) fn harm(&self) -> Vec<String> {
        self.0.lock().harm.clone()
    }
}

/// A write, and what it changed.
struct Call<'a> {
    cluster: usize,
    method: &'a str,
    id: &'a ResourceId,
    before: Option<Value>,
    after: Option<Value>,
    asked: Value,
    is_taken: bool,
}

impl Books {
    fn enter(&mut self, azure: &Azure, call: Call<'_>) {
        let Call { cluster, method, id, before, after, asked, is_taken } = call;
        let me = Maker::Cluster(cluster);
        if is_taken {
            self.writes += 1;
            self.began.entry(cluster).or_insert_with(Instant::now);
        }
        let deletes = method == "DELETE" && (is_taken || after.is_none());
        match (before, after) {
            (Some(_), _) if deletes => {
                self.judge_removal(azure, cluster, id);
                self.forget(id);
            }
            (None, Some(_)) => {
                self.makers.insert(id.to_lower(), me);
                if id.namespace().is_none() {
                    self.groups.insert(id.to_lower(), (Instant::now(), BTreeSet::from([cluster])));
                }
                self.judge_references(cluster, id, &asked);
            }
            (Some(before), Some(after)) => {
                // Azure takes no condition on the creation of a group: one that two make at the same moment is the last one's.
                if method == "PUT" && id.namespace().is_none() && self.is_made_twice(cluster, id) {
                    self.makers.insert(id.to_lower(), me);
                }
                let owner = self.maker(id);
                if owner.is_some_and(|owner| owner != me) && steady(before) != steady(after) {
                    let whose = whose(owner);
                    self.harm.push(format!("cluster {cluster} changed {id}, which {whose} made ({method})"));
                }
                // What Azure refuses ties nothing.
                if is_taken {
                    self.judge_references(cluster, id, &asked);
                }
            }
            _ => {}
        }
        if method == "PUT" && is_taken {
            // What it asked for first is its own: a later write repeats what Azure has added.
            self.asked.entry(id.to_lower()).or_insert_with(|| (id.clone(), asked));
        }
    }

    /// Whether a cluster is one of those that made a group at the same moment.
    fn is_made_twice(&mut self, cluster: usize, group: &ResourceId) -> bool {
        let Some((made, makers)) = self.groups.get_mut(&group.to_lower()) else { return false };
        if made.elapsed() < AT_ONCE {
            makers.insert(cluster);
        }
        makers.contains(&cluster)
    }

    /// What goes with a resource must be the cluster's.
    fn judge_removal(&mut self, azure: &Azure, cluster: usize, id: &ResourceId) {
        let inside = azure.documents().into_iter().map(|document| id_in(&document));
        for one in inside.filter(|one| one.is_within(id)).collect::<Vec<_>>() {
            let owner = self.maker(&one);
            // What Azure made by itself, such as a disk, goes with what it was made for.
            if owner.is_some_and(|owner| owner != Maker::Cluster(cluster)) {
                let whose = whose(owner);
                self.harm.push(format!("cluster {cluster} deleted {one} with {id}, which {whose} made"));
            }
        }
    }

    /// What a cluster ties itself to must not be another cluster's.
    fn judge_references(&mut self, cluster: usize, id: &ResourceId, asked: &Value) {
        let mut ids = Vec::new();
        references(asked, &mut ids);
        for other in ids {
            if let Some(Maker::Cluster(owner)) = self.maker(&other)
                && owner != cluster
            {
                self.harm.push(format!("cluster {cluster} tied {id} to {other}, which cluster {owner} made"));
            }
        }
    }

    /// Who made a resource, or what it lies in. The maker of a group is not the maker of what lies in it.
    fn maker(&self, id: &ResourceId) -> Option<Maker> {
        let mut next = Some(id.clone());
        while let Some(one) = next {
            if let Some(maker) = self.makers.get(&one.to_lower()) {
                return Some(*maker);
            }
            next = one.parent().filter(|parent| parent.namespace().is_some());
        }
        None
    }

    fn forget(&mut self, id: &ResourceId) {
        self.makers.retain(|key, _| !ResourceId::parse(key).is_ok_and(|one| one.is_within(id)));
        self.asked.retain(|_, (one, _)| !one.is_within(id));
        self.groups.remove(&id.to_lower());
    }
}

fn whose(owner: Option<Maker>) -> String {
    match owner {
        Some(Maker::Cluster(owner)) => format!("cluster {owner}"),
        Some(Maker::Others) => "a user".to_owned(),
        None => "Azure".to_owned(),
    }
}

/// The resource that a request is about; for an action, the resource that acts.
fn id_of(path: &str) -> Option<ResourceId> {
    let path = path.trim_end_matches('/');
    ResourceId::parse(path).ok().or_else(|| ResourceId::parse(path.rsplit_once('/')?.0).ok())
}

/// The cluster that asks, as its token says.
fn caller(request: &Request) -> Option<usize> {
    let token = request.headers().get("authorization")?.to_str().ok()?;
    token.rsplit_once(TOKEN)?.1.parse().ok()
}

pub(super) fn id_in(document: &Value) -> ResourceId {
    document["id"].as_str().unwrap_or_default().parse().expect("documents have ids")
}

pub(super) fn references(value: &Value, found: &mut Vec<ResourceId>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                match value.as_str().filter(|_| name == "id").map(ResourceId::parse) {
                    Some(Ok(id)) => found.push(id),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// A document without what Azure derives: members of that kind, and lists of references that Azure writes down at their other
/// end.
pub(super) fn steady(mut document: Value) -> Value {
    strip(&mut document);
    document
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| !DERIVED.contains(&name.as_str()) && !is_list_of_references(value));
            members.values_mut().for_each(strip);
        }
        Value::Array(items) => {
            items.iter_mut().for_each(strip);
            // Items that have names have no order.
            if items.iter().all(|item| item["name"].is_string()) {
                items.sort_by_cached_key(|item| item["name"].as_str().map(str::to_owned));
            }
        }
        _ => {}
    }
}

fn is_list_of_references(value: &Value) -> bool {
    let is_reference =
        |item: &Value| item.as_object().is_some_and(|it| it.len() == 1 && it.contains_key("id"));
    value.as_array().is_some_and(|items| items.iter().all(is_reference))
}
