//! Records what each cluster created in Azure, and what others changed of it. A transport observes each call and its
//! caller.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arm::Transport;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use azure_simulator::Azure;
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::Value;
use testkit::KillSwitch;
use tokio::time::Instant;

/// The prefix of a cluster's token, followed by its number.
const TOKEN: &str = "cluster-";

/// Two creations of a group within this time count as simultaneous.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Members that Azure derives from other resources, or changes with each write.
const DERIVED: [&str; 12] = [
    "etag",
    "uniqueId",
    "provisioningState",
    "resourceGuid",
    "timeCreated",
    "LastOwnershipUpdateTime",
    "latestModelApplied",
    "managedBy",
    "numberOfRecordSets",
    "numberOfVirtualNetworkLinks",
    "peeringSyncLevel",
    "peeringState",
];

/// The client ID of a cluster.
pub(super) fn client_of(cluster: usize) -> String {
    format!("{TOKEN}{cluster}")
}

/// The creator of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    /// The cluster with this number.
    Cluster(usize),
    /// People, or other programs.
    Others,
}

/// What each cluster created, and which writes were wrong.
#[derive(Debug, Default)]
struct Books {
    /// Creators by ID in lower case.
    makers: BTreeMap<String, Maker>,
    /// The groups that clusters created: the time, and the clusters that created each at the same moment, by ID in
    /// lower case.
    groups: BTreeMap<String, (Instant, BTreeSet<usize>)>,
    /// The document with which each cluster created a resource, by ID in lower case.
    asked: BTreeMap<String, (ResourceId, Value)>,
    /// The time of each cluster's first write.
    began: BTreeMap<usize, Instant>,
    /// The number of writes that Azure accepted.
    writes: usize,
    /// Wrong writes to other owners' resources.
    harm: Vec<String>,
}

/// The ledger of one world. Clones share their contents.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger(Arc<Mutex<Books>>);

impl Ledger {
    /// A recorded transport to Azure, which may break.
    pub(super) fn transport(&self, azure: &Azure, switch: &KillSwitch) -> Transport {
        let (ledger, seen) = (self.clone(), azure.clone());
        switch.transport_to(azure.router().layer(from_fn(move |request: Request, next: Next| {
            let (ledger, azure) = (ledger.clone(), seen.clone());
            async move { ledger.pass(&azure, request, next).await }
        })))
    }

    async fn pass(&self, azure: &Azure, request: Request, next: Next) -> Response {
        let method = request.method().as_str().to_owned();
        let is_read = is_read(&method, request.uri().path());
        let Some(id) = (!is_read).then(|| id_of(request.uri().path())).flatten() else {
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

    /// Records that people or other programs created a resource.
    pub(super) fn others_made(&self, id: &ResourceId) {
        self.0.lock().makers.insert(id.to_lower(), Maker::Others);
    }

    /// Records that a resource was deleted, with all its children.
    pub(super) fn went(&self, id: &ResourceId) {
        self.0.lock().forget(id);
    }

    /// The existing resources in Azure that a cluster created.
    pub(super) fn made_by(&self, cluster: usize, azure: &Azure) -> Vec<Value> {
        let books = self.0.lock();
        let theirs = |document: &Value| books.maker(&id_in(document)) == Some(Maker::Cluster(cluster));
        azure.documents().into_iter().filter(theirs).collect()
    }

    /// The creator of a resource.
    pub(super) fn maker(&self, id: &ResourceId) -> Option<Maker> {
        self.0.lock().maker(id)
    }

    /// The documents with which a cluster created its resources, by ID.
    pub(super) fn asked_by(&self, cluster: usize) -> Vec<(ResourceId, Value)> {
        let books = self.0.lock();
        let theirs = |(id, _): &&(ResourceId, Value)| books.maker(id) == Some(Maker::Cluster(cluster));
        books.asked.values().filter(theirs).cloned().collect()
    }

    /// Whether a cluster is one of several that created a group at the same moment. The first resources in the group
    /// decide which of them owns it, and that may differ.
    pub(super) fn has_raced(&self, cluster: usize) -> bool {
        let books = self.0.lock();
        books.groups.values().any(|(_, makers)| makers.len() > 1 && makers.contains(&cluster))
    }

    /// Whether two clusters wrote first at the same moment: neither could observe the other before.
    pub(super) fn began_together(&self, one: usize, other: usize) -> bool {
        let books = self.0.lock();
        let began = books.began.get(&one).zip(books.began.get(&other));
        began.is_some_and(|(one, other)| one.max(other).saturating_duration_since(*one.min(other)) < AT_ONCE)
    }

    /// Whether several clusters created this group at the same moment.
    pub(super) fn is_made_by_several(&self, group: &ResourceId) -> bool {
        self.0.lock().groups.get(&group.to_lower()).is_some_and(|(_, makers)| makers.len() > 1)
    }

    /// The number of writes of all clusters that Azure accepted.
    pub(super) fn all_writes(&self) -> usize {
        self.0.lock().writes
    }

    /// The wrong writes to other owners' resources.
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
                // Azure supports no condition on the creation of a group: if two clusters create it at the same moment,
                // the last one owns it.
                if method == "PUT" && id.namespace().is_none() && self.is_made_twice(cluster, id) {
                    self.makers.insert(id.to_lower(), me);
                }
                let owner = self.maker(id);
                if owner.is_some_and(|owner| owner != me) && steady(before) != steady(after) {
                    let whose = whose(owner);
                    self.harm.push(format!("cluster {cluster} changed {id}, which {whose} made ({method})"));
                }
                // A refused write creates no references.
                if is_taken {
                    self.judge_references(cluster, id, &asked);
                }
            }
            _ => {}
        }
        if method == "PUT" && is_taken {
            // The first document is its own: later writes repeat what Azure has added.
            self.asked.entry(id.to_lower()).or_insert_with(|| (id.clone(), asked));
        }
    }

    /// Whether a cluster is one of several that created a group at the same moment.
    fn is_made_twice(&mut self, cluster: usize, group: &ResourceId) -> bool {
        let Some((made, makers)) = self.groups.get_mut(&group.to_lower()) else { return false };
        if made.elapsed() < AT_ONCE {
            makers.insert(cluster);
        }
        makers.contains(&cluster)
    }

    /// Everything that is deleted with a resource must belong to the cluster.
    fn judge_removal(&mut self, azure: &Azure, cluster: usize, id: &ResourceId) {
        let inside = azure.documents().into_iter().map(|document| id_in(&document));
        for one in inside.filter(|one| one.is_within(id)).collect::<Vec<_>>() {
            let owner = self.maker(&one);
            // Resources that Azure created itself, such as a disk, are deleted with the resource that they belong to.
            if owner.is_some_and(|owner| owner != Maker::Cluster(cluster)) {
                let whose = whose(owner);
                self.harm.push(format!("cluster {cluster} deleted {one} with {id}, which {whose} made"));
            }
        }
    }

    /// The resources that a cluster refers to must not belong to another cluster.
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

    /// The creator of a resource, or of its parent. The creator of a group is not the creator of its resources.
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

/// Whether a request changes nothing: some credentials are read by a POST.
fn is_read(method: &str, path: &str) -> bool {
    method == "GET" || method == "POST" && path.rsplit('/').next().is_some_and(|it| it.starts_with("list"))
}

/// The resource of a request; for an action, the resource that acts.
fn id_of(path: &str) -> Option<ResourceId> {
    let path = path.trim_end_matches('/');
    ResourceId::parse(path).ok().or_else(|| ResourceId::parse(path.rsplit_once('/')?.0).ok())
}

/// The calling cluster, from its token.
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

/// A document without what Azure derives: derived members, and lists of references that Azure records at their other
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
            // Items with names are unordered.
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
