//! Performs the actions.

use kube::Api;
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::authorities::{AUTHORITIES, new_secret};
use crate::objects::{
    Drain, GroupKind, Key, Kind, annotation, is_deleting, key, list, name, namespace, text,
};
use crate::round::{Action, condition_of};
use crate::runner::{Runner, Written, core_resource};

/// Why an action failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("{0} is not known")]
    Kind(String),
    #[error("the workload cluster does not answer")]
    Away,
    #[error(transparent)]
    Certificates(#[from] certificate_authority::TlsError),
}

impl Failure {
    /// Whether the API answered with this status code.
    pub(crate) fn is(&self, code: u16) -> bool {
        matches!(self, Failure::Api(kube::Error::Api(status)) if status.code == code)
    }
}

impl Runner {
    /// Performs an action, and returns whether anything was done.
    pub(crate) async fn perform(&mut self, cluster: &Key, action: Action) -> Result<bool, Failure> {
        match action {
            Action::Create(kind, document) => self.create(&kind, &document).await?,
            Action::Patch(kind, key, patch) => return self.patch(kind, key, patch, false).await,
            Action::PatchStatus(kind, key, status) => {
                return self.patch(kind, key, json!({ "status": status }), true).await;
            }
            Action::Delete(kind, key) => self.delete(&kind, &key).await?,
            Action::InOrder(actions) => return Box::pin(self.in_order(cluster, actions)).await,
            Action::MakeAuthorities { cluster, owner } => {
                for (suffix, ..) in AUTHORITIES {
                    let known = (cluster.0.clone(), format!("{}-{suffix}", cluster.1));
                    if self.objects.get(&Kind::Secret.into(), &known).is_none() {
                        self.create(&Kind::Secret.into(), &new_secret(&cluster, suffix, &owner)?).await?;
                    }
                }
            }
            Action::CreateThere(document) => {
                let client = self.there(cluster).ok_or(Failure::Away)?;
                let kind = text(&document["kind"]).to_owned();
                let api = there(&client, &kind, namespace(&document));
                let object = DynamicObject::deserialize(&document).map_err(kube::Error::SerdeError)?;
                let made = api.create(&PostParams::default(), &object).await?;
                self.keep_there(cluster, &kind, made);
            }
            Action::PatchThere { plural, key, patch } => {
                let client = self.there(cluster).ok_or(Failure::Away)?;
                let kind = if plural == "nodes" { "Node" } else { "Secret" };
                let patch = Patch::Merge(&patch);
                let changed =
                    there(&client, kind, &key.0).patch(&key.1, &PatchParams::default(), &patch).await?;
                self.keep_there(cluster, kind, changed);
            }
            Action::DeleteNode { machine, node } => self.delete_node(cluster, machine, &node).await?,
            Action::Drain { machine, node } => {
                let remaining = self.drain(cluster, &node).await.ok();
                self.objects.drains.insert(machine, Drain { remaining, at: (self.clock)() });
            }
        }
        Ok(true)
    }

    /// Performs actions in order; if an object cannot be created, the objects created before it are removed.
    async fn in_order(&mut self, cluster: &Key, actions: Vec<Action>) -> Result<bool, Failure> {
        let mut made = Vec::new();
        let mut done = false;
        for action in actions {
            let creates = match &action {
                Action::Create(kind, document) => Some((kind.clone(), key(document))),
                _ => None,
            };
            match self.perform(cluster, action).await {
                Ok(acted) => done |= acted,
                Err(error) => {
                    for (kind, key) in made.iter().rev() {
                        if let Err(error) = self.delete(kind, key).await {
                            tracing::debug!(?key, %error, "an object that is no longer needed is left");
                        }
                    }
                    return Err(error);
                }
            }
            made.extend(creates);
        }
        Ok(done)
    }

    fn known_api(&self, kind: &GroupKind, namespace: &str) -> Result<Api<DynamicObject>, Failure> {
        self.api(kind, namespace).ok_or_else(|| Failure::Kind(kind.dotted()))
    }

    fn keep(&mut self, kind: &GroupKind, object: DynamicObject) {
        // Objects from JSON always serialize.
        if let Ok(object) = serde_json::to_value(object) {
            self.objects.insert(kind, object);
        }
    }

    fn keep_there(&mut self, cluster: &Key, kind: &str, object: DynamicObject) {
        if let (Some(workload), Ok(object)) = (self.workload(cluster), serde_json::to_value(object)) {
            workload.objects.insert(&GroupKind::new("", kind), object);
        }
    }

    async fn create(&mut self, kind: &GroupKind, document: &Value) -> Result<(), Failure> {
        let api = self.known_api(kind, namespace(document))?;
        let object = DynamicObject::deserialize(document).map_err(kube::Error::SerdeError)?;
        let made = api.create(&PostParams::default(), &object).await?;
        self.keep(kind, made);
        Ok(())
    }

    async fn patch(
        &mut self,
        kind: GroupKind,
        key: Key,
        mut patch: Value,
        status: bool,
    ) -> Result<bool, Failure> {
        let version =
            self.objects.get(&kind, &key).map(|object| object["metadata"]["resourceVersion"].clone());
        let place = (kind.clone(), key.clone());
        // Does not repeat a write of members that the server drops.
        let vain = |(last, came): &Written| {
            *last == patch && came.as_deref() == version.as_ref().and_then(Value::as_str)
        };
        if self.written.get(&place).is_some_and(vain) {
            return Ok(false);
        }
        let api = self.known_api(&kind, &key.0)?;
        let written = patch.clone();
        let parameters = PatchParams::default();
        let changed = if status {
            api.patch_status(&key.1, &parameters, &Patch::Merge(&patch)).await?
        } else {
            // Merge patches replace lists: the version protects entries of other controllers.
            if let Some(version) = version {
                patch["metadata"]["resourceVersion"] = version;
            }
            api.patch(&key.1, &parameters, &Patch::Merge(&patch)).await?
        };
        self.written.insert(place, (written, changed.metadata.resource_version.clone()));
        let gone = changed.metadata.deletion_timestamp.is_some()
            && changed.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
        if gone {
            self.forget(&kind, &key);
        } else {
            self.keep(&kind, changed);
        }
        Ok(true)
    }

    async fn delete(&mut self, kind: &GroupKind, key: &Key) -> Result<(), Failure> {
        match self.known_api(kind, &key.0)?.delete(&key.1, &DeleteParams::default()).await {
            Ok(answer) => match answer.left() {
                Some(object) if object.metadata.finalizers.as_ref().is_some_and(|all| !all.is_empty()) => {
                    self.keep(kind, object);
                }
                _ => self.forget(kind, key),
            },
            Err(kube::Error::Api(status)) if status.code == 404 => self.forget(kind, key),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn delete_node(&mut self, cluster: &Key, machine: Key, node: &str) -> Result<(), Failure> {
        let deleted = match self.there(cluster) {
            Some(client) => there(&client, "Node", "")
                .delete(node, &DeleteParams::default())
                .await
                .map(drop)
                .map_err(Failure::from),
            None => Err(Failure::Away),
        };
        match deleted {
            Err(error) if !error.is(404) => {
                let now = (self.clock)();
                self.objects.stuck_nodes.entry(machine).or_insert(now);
                Err(error)
            }
            _ => {
                if let Some(workload) = self.workload(cluster) {
                    workload.objects.remove(&GroupKind::new("", "Node"), &(String::new(), node.to_owned()));
                }
                Ok(())
            }
        }
    }

    /// Cordons a node, evicts its pods, and returns the number of remaining pods.
    async fn drain(&mut self, cluster: &Key, node: &str) -> Result<usize, Failure> {
        let client = self.there(cluster).ok_or(Failure::Away)?;
        let cordon = json!({"spec": {"unschedulable": true}});
        let nodes = there(&client, "Node", "");
        let cordoned = nodes.patch(node, &PatchParams::default(), &Patch::Merge(&cordon)).await;
        let cordoned = match cordoned {
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(0),
            other => serde_json::to_value(other?).unwrap_or_default(),
        };
        let is_up = condition_of(&cordoned, "Ready").is_some_and(|one| one["status"] == "True");
        let of_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
        let pods = there(&client, "Pod", "").list(&of_node).await?;
        let mut remaining = 0;
        for pod in pods.items {
            let pod = serde_json::to_value(pod).unwrap_or_default();
            let owners = list(&pod["metadata"]["ownerReferences"]);
            let stays = owners.iter().any(|one| one["kind"] == "DaemonSet" || one["kind"] == "Node")
                || annotation(&pod, "kubernetes.io/config.mirror").is_some();
            // The pods of an unreachable node never terminate.
            if stays || (is_deleting(&pod) && !is_up) {
                continue;
            }
            remaining += 1;
            if !is_deleting(&pod) && evict(&client, &pod).await? {
                remaining -= usize::from(!pod_is_left(&client, &pod).await?);
            }
        }
        Ok(remaining)
    }
}

async fn pod_is_left(client: &Client, pod: &Value) -> Result<bool, Failure> {
    let found = there(client, "Pod", namespace(pod)).get_opt(name(pod)).await?;
    Ok(found.is_some_and(|found| found.metadata.uid.as_deref() == pod["metadata"]["uid"].as_str()))
}

/// Evicts a pod, and returns whether that was allowed. Servers before 1.22 support only the beta of evictions.
async fn evict(client: &Client, pod: &Value) -> Result<bool, Failure> {
    let api = there(client, "Pod", namespace(pod));
    for version in ["policy/v1", "policy/v1beta1"] {
        let eviction = json!({"apiVersion": version, "kind": "Eviction",
            "metadata": {"namespace": namespace(pod), "name": name(pod)}});
        let answer: Result<Value, kube::Error> =
            api.create_subresource("eviction", name(pod), &PostParams::default(), &eviction).await;
        match answer {
            Ok(_) => return Ok(true),
            Err(kube::Error::Api(status)) if status.code == 429 => return Ok(false),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(true),
            Err(kube::Error::Api(status)) if status.code < 500 && version == "policy/v1" => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// The API of a kind of the core group in a workload cluster; of all namespaces if the namespace is empty.
fn there(client: &Client, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let resource = core_resource(kind, &format!("{}s", kind.to_lowercase()));
    match namespace {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}
