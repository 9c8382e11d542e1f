//! The cloud-node controller: describes new nodes and makes them schedulable, keeps labels in sync, and follows changes
//! of addresses.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, Existence, Instance, LogicalTime, Machines, Proof};
use freshness::AgeLimits;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use k8s::{Node, NodeAddress, Time, names};
use kube::Api;
use kube::api::{Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::api::{ApiError, FIELD_MANAGER, call};
use crate::events::Recorder;
use crate::node_addresses::{self, ProvidedAddressMissing};
use crate::observer::Observer;
use crate::queue::{MAX_PARALLEL_NODES, Next};
use crate::repeated_warning::RepeatedWarnings;
use clock::Clock;

/// Number and interval of attempts to write a node that others write concurrently: for a second, in which kubelet and
/// controllers fill a new node. Kubernetes' own library for cloud providers does the same.
const MAX_ATTEMPTS: u32 = 20;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum age of the list that shows the machine of a new node. A machine takes longer to start, so that no list of
/// this age contains an earlier machine of the same name; and nodes that join one after the other share lists, of which
/// Azure allows ten a minute for a scale set. A list without the machine counts only if it was read after the node
/// appeared.
const MAX_ANSWER_AGE: Duration = Duration::from_secs(10);

/// Minimum age of a node for an event that it is not initialised: a new machine takes some seconds to appear in Azure's
/// lists with its interface, which passes by itself.
const MAX_AGE_WITHOUT_EVENT: Duration = Duration::from_secs(60);

/// Maximum age of an answer in the periodic comparison of addresses.
const MAX_ADDRESS_AGE: Duration = Duration::from_secs(60);

/// Why a node could not be initialised yet.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(
        "failed to get instance metadata for node {node}: machine {} does not exist ({}); delete the Node, or correct \
         its spec.providerID",
        proof.machine,
        proof.answer
    )]
    InstanceAbsent { node: String, proof: Proof },
    #[error("failed to get instance metadata for node {node}: {reason}")]
    InstanceUnknown { node: String, reason: String },
    #[error(
        "cloud provider does not set node provider ID for node {node}: Azure does not manage it; start its kubelet without \
         --cloud-provider=external, or set spec.providerID"
    )]
    NoProviderId { node: String },
    #[error("provided node ip for node {} is not valid: {}", .0.node, .0)]
    ProvidedAddress(#[from] ProvidedAddressMissing),
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// The handling of the older forms of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OlderLabels {
    /// They are written beside the newer ones, and a missing newer form is added. An existing newer one stays, whatever
    /// its value: for the node manager it takes precedence, and an operator may have chosen it.
    Fill,
    /// They are written beside the newer ones and follow them.
    Follow,
    /// They are not written.
    Unused,
}

/// How nodes are initialised: all nodes of a cluster from one place, or each by its own agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// The field manager of writes in `managedFields`.
    pub manager: &'static str,
    /// Whether the cloud's values replace labels that a new node already has.
    pub overwrites_labels: bool,
    /// The handling of the older forms of labels.
    pub older_labels: OlderLabels,
    /// Whether a new node is marked as having no network until its routes exist.
    pub waits_for_routes: bool,
}

impl Policy {
    /// The policy of the cloud-node controller.
    pub const CONTROLLER: Self = Self {
        manager: FIELD_MANAGER,
        overwrites_labels: false,
        older_labels: OlderLabels::Fill,
        waits_for_routes: false,
    };

    /// Whether the controller has to reconcile a node.
    pub fn needs_work(&self, node: &Node) -> bool {
        node.has_taint(names::TAINT_UNINITIALIZED) || !self.label_fixes(node).is_empty()
    }

    /// Labels that do not match their other forms.
    fn label_fixes(&self, node: &Node) -> BTreeMap<&'static str, String> {
        let fix = |(old, new): &(&'static str, &'static str)| match self.older_labels {
            OlderLabels::Fill if node.label(new).is_none() => Some((*new, node.label(old)?.to_owned())),
            OlderLabels::Follow if node.label(old) != node.label(new) => {
                Some((*old, node.label(new)?.to_owned()))
            }
            _ => None,
        };
        names::LABEL_PAIRS.iter().filter_map(fix).collect()
    }
}

/// A patch with everything that initialisation writes except addresses, conditional on the version that was read.
fn initialisation(node: &Node, instance: &Instance, policy: &Policy) -> Value {
    let described = [
        (names::LABEL_INSTANCE_TYPE, names::LABEL_INSTANCE_TYPE_BETA, &instance.instance_type),
        (names::LABEL_ZONE, names::LABEL_ZONE_BETA, &instance.zone),
        (names::LABEL_REGION, names::LABEL_REGION_BETA, &instance.region),
    ];
    let mut labels = BTreeMap::new();
    for (new, old, value) in described.into_iter().filter(|(.., value)| !value.is_empty()) {
        labels.insert(new, value);
        if policy.older_labels != OlderLabels::Unused {
            labels.insert(old, value);
        }
    }
    labels.extend(instance.labels.iter().map(|(key, value)| (key.as_str(), value)));
    labels.retain(|key, _| policy.overwrites_labels || node.label(key).is_none());
    let taints: Vec<_> =
        node.spec.taints.iter().filter(|taint| taint.key != names::TAINT_UNINITIALIZED).collect();
    let provider_id =
        if node.spec.provider_id.is_empty() { &instance.provider_id } else { &node.spec.provider_id };
    json!({
        "metadata": {"resourceVersion": node.metadata.resource_version, "labels": labels},
        "spec": {"providerID": provider_id, "taints": taints},
    })
}

/// A status patch which says that pods of the node have no network yet; `None` if the node already says so.
fn awaited_routes(node: &Node, now: Time) -> Option<Value> {
    let mut conditions = node.status.conditions.iter();
    let is_said =
        conditions.any(|one| one.kind == names::CONDITION_NETWORK_UNAVAILABLE && one.status == "True");
    (!is_said).then(|| {
        let version = &node.metadata.resource_version;
        json!({"metadata": {"resourceVersion": version}, "status": {"conditions": [{
            "type": names::CONDITION_NETWORK_UNAVAILABLE, "status": "True", "reason": "NodeInitialization",
            "message": "Waiting for cloud routes", "lastHeartbeatTime": now, "lastTransitionTime": now,
        }]}})
    })
}

/// A status patch that replaces all addresses.
fn address_patch(node: &Node, addresses: &[NodeAddress]) -> Value {
    let mut list: Vec<Value> =
        addresses.iter().map(|address| json!({"type": address.kind, "address": address.address})).collect();
    list.push(json!({"$patch": "replace"}));
    json!({
        "metadata": {"resourceVersion": node.metadata.resource_version},
        "status": {"addresses": list},
    })
}

/// The cloud-node controller: for all nodes of a cluster, or for those in one watch.
pub(crate) struct NodeController {
    pub api: Api<Node>,
    pub machines: Arc<dyn Machines>,
    pub state: ClusterState,
    pub age_limits: Arc<AgeLimits>,
    /// `None` if the program has no right to write events.
    pub recorder: Option<Recorder>,
    pub observer: Arc<dyn Observer>,
    pub clock: Clock,
    pub policy: Policy,
    pub warnings: RepeatedWarnings,
    /// When each uninitialised node was first reconciled, by name and UID.
    pub came: Mutex<HashMap<String, (String, LogicalTime)>>,
}

impl NodeController {
    /// Reconciles one node.
    pub async fn reconcile(&self, name: &str) -> Next {
        let Some(node) = self.state.node(name) else {
            self.forget(name);
            return Next::Done;
        };
        match self.sync(&node).await {
            Ok(()) => {
                self.forget(name);
                Next::Done
            }
            Err(Error::Api(error)) if error.is_not_found() => {
                self.forget(name);
                Next::Done
            }
            Err(error) => {
                if self.warnings.is_due(name, &error.to_string()) {
                    tracing::warn!(node = name, %error, "failed to initialize node");
                } else {
                    tracing::debug!(node = name, %error, "failed to initialize node");
                }
                self.record_failure(&node, &error);
                Next::Retry
            }
        }
    }

    fn forget(&self, name: &str) {
        self.warnings.forget(name);
        self.came.lock().remove(name);
    }

    /// When this node was first reconciled, if that was earlier.
    fn came(&self, node: &Node) -> Option<LogicalTime> {
        let uid = node.metadata.uid.clone().unwrap_or_default();
        let mut all = self.came.lock();
        let known = all.get(node.name()).filter(|(known, _)| *known == uid).map(|(_, came)| *came);
        if known.is_none() {
            all.insert(node.name().to_owned(), (uid, LogicalTime::now()));
        }
        known
    }

    /// Describes the machine of a new node. Data that was read for other nodes before it appeared may show the machine,
    /// but cannot prove its absence.
    async fn describe_new(&self, node: &Node) -> Existence<Instance> {
        let shared = self.age_limits.within(MAX_ANSWER_AGE);
        if self.came(node).is_none()
            && let Existence::Present(instance) = self.machines.describe(node, shared).await
        {
            return Existence::Present(instance);
        }
        let came = self.came(node).unwrap_or(LogicalTime::BEGINNING);
        self.machines.describe(node, came.max(shared)).await
    }

    /// Records an event about a node that stays unschedulable because of the cloud's answer or its kubelet. It is
    /// retried; as the text contains the cause, repetitions increase the count of one event.
    fn record_failure(&self, node: &Node, error: &Error) {
        let age = self.clock.age(node.metadata.creation_timestamp.as_ref().map(|created| created.0));
        // An API server that refuses writes gets no further write because of it.
        let is_of_api = matches!(error, Error::Api(_));
        if is_of_api || age < MAX_AGE_WITHOUT_EVENT || !node.has_taint(names::TAINT_UNINITIALIZED) {
            return;
        }
        let Some(recorder) = &self.recorder else { return };
        let taint = names::TAINT_UNINITIALIZED;
        recorder.warning(
            node,
            "FailedToInitializeNode",
            format!("No pods are scheduled to the node, because it keeps the taint {taint}: {error}"),
        );
    }

    async fn sync(&self, node: &Node) -> Result<(), Error> {
        if !node.has_taint(names::TAINT_UNINITIALIZED) {
            return self.fix_labels(node).await;
        }
        let named = || node.name().to_owned();
        let instance = match self.describe_new(node).await {
            Existence::Present(instance) => instance,
            Existence::Absent(proof) => return Err(Error::InstanceAbsent { node: named(), proof }),
            Existence::Unknown(reason) => return Err(Error::InstanceUnknown { node: named(), reason }),
        };
        if instance.provider_id.is_empty() && node.spec.provider_id.is_empty() {
            return Err(Error::NoProviderId { node: named() });
        }
        let mut fresh: Option<Node> = None;
        let mut attempt = 1;
        loop {
            let current = fresh.as_ref().unwrap_or(node);
            if current.metadata.uid != node.metadata.uid || !current.has_taint(names::TAINT_UNINITIALIZED) {
                return Ok(());
            }
            match self.initialise(current, &instance).await {
                Ok(()) => {
                    let age =
                        self.clock.age(node.metadata.creation_timestamp.as_ref().map(|created| created.0));
                    self.observer.taint_removed(age);
                    tracing::info!(node = node.name(), age_ms = age.as_millis(), "Node initialised");
                    if let Some(recorder) = &self.recorder {
                        recorder.normal(node, "Synced", "Node synced successfully");
                    }
                    self.observer.node_initialized(age);
                    return Ok(());
                }
                Err(Error::Api(error)) if error.is_conflict() && attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(ATTEMPT_INTERVAL).await;
                    // Upstream reads its cache here and can lose all attempts to one stale copy.
                    let name = node.name();
                    fresh = Some(call(|| format!("read node {name}"), self.api.get(name)).await?);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Marks the node as having no network until the route controller has created its routes. Returns the resulting
    /// node.
    async fn await_routes(&self, node: &Node) -> Result<Option<Node>, Error> {
        let Some(patch) = awaited_routes(node, Time(self.clock.now())) else { return Ok(None) };
        let name = node.name();
        let (params, patch) = (self.patch_params(), Patch::Strategic(patch));
        let request = self.api.patch_status(name, &params, &patch);
        Ok(Some(call(|| format!("mark node {name} as waiting for routes"), request).await?))
    }

    fn patch_params(&self) -> PatchParams {
        PatchParams { field_manager: Some(self.policy.manager.to_owned()), ..PatchParams::default() }
    }

    /// Addresses first: after the last patch the node may take work, and must have them by then.
    async fn initialise(&self, node: &Node, instance: &Instance) -> Result<(), Error> {
        let waiting = if self.policy.waits_for_routes { self.await_routes(node).await? } else { None };
        let node = waiting.as_ref().unwrap_or(node);
        let addressed = self.write_addresses(node, &instance.addresses).await?;
        let patch = initialisation(addressed.as_ref().unwrap_or(node), instance, &self.policy);
        let name = node.name();
        let (params, patch) = (self.patch_params(), Patch::Strategic(patch));
        call(|| format!("initialise node {name}"), self.api.patch(name, &params, &patch)).await?;
        Ok(())
    }

    /// Writes the addresses if they differ. Returns the resulting node.
    async fn write_addresses(&self, node: &Node, cloud: &[NodeAddress]) -> Result<Option<Node>, Error> {
        if cloud.is_empty() {
            return Ok(None);
        }
        let desired = node_addresses::desired(node, cloud)?;
        if !node_addresses::differ(&node.status.addresses, &desired) {
            return Ok(None);
        }
        let name = node.name();
        let (params, patch) = (self.patch_params(), Patch::Strategic(address_patch(node, &desired)));
        let request = self.api.patch_status(name, &params, &patch);
        Ok(Some(call(|| format!("write the addresses of node {name}"), request).await?))
    }

    async fn fix_labels(&self, node: &Node) -> Result<(), Error> {
        let labels = self.policy.label_fixes(node);
        if labels.is_empty() {
            return Ok(());
        }
        let name = node.name();
        let (params, patch) =
            (self.patch_params(), Patch::Strategic(json!({"metadata": {"labels": labels}})));
        call(|| format!("label node {name}"), self.api.patch(name, &params, &patch)).await?;
        Ok(())
    }

    /// Compares the addresses of all initialised nodes, once the nodes are known and then every `period`, until `stop`.
    pub async fn follow_addresses(
        &self,
        known: impl Future<Output = ()>,
        period: Duration,
        stop: CancellationToken,
    ) {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = known => {}
        }
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.update_addresses() => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(period) => {}
            }
        }
    }

    async fn update_addresses(&self) {
        let nodes = self.state.nodes();
        // One list of machines serves all nodes, and a recent one of another request suffices.
        let newer_than = self.age_limits.within(MAX_ADDRESS_AGE);
        let mut nodes = nodes.iter().filter(|node| !node.has_taint(names::TAINT_UNINITIALIZED));
        // Each node that waits for a list takes some kilobytes. Later nodes find the list cached.
        let mut updates = FuturesUnordered::new();
        loop {
            while updates.len() < MAX_PARALLEL_NODES
                && let Some(node) = nodes.next()
            {
                updates.push(self.update_addresses_of(node, newer_than));
            }
            if updates.next().await.is_none() {
                return;
            }
        }
    }

    async fn update_addresses_of(&self, node: &Node, newer_than: LogicalTime) {
        let Existence::Present(instance) = self.machines.describe(node, newer_than).await else {
            tracing::debug!(node = node.name(), "node addresses not compared: machine existence unknown");
            return;
        };
        match self.write_addresses(node, &instance.addresses).await {
            Err(Error::Api(error)) if error.is_conflict() || error.is_not_found() => {
                tracing::debug!(%error, "node addresses are left to the next round");
            }
            Err(error) => {
                tracing::warn!(node = node.name(), %error, "failed to update node addresses")
            }
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(value: Value) -> Node {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn older_labels_fill_in_for_missing_ones() {
        let rows = [
            (json!({}), vec![]),
            (json!({names::LABEL_ZONE: "1"}), vec![]),
            (json!({names::LABEL_ZONE_BETA: "1", names::LABEL_ZONE: "1"}), vec![]),
            (json!({names::LABEL_ZONE_BETA: "1"}), vec![(names::LABEL_ZONE, "1")]),
            (
                json!({names::LABEL_REGION_BETA: "a", names::LABEL_REGION: "b",
                       names::LABEL_INSTANCE_TYPE_BETA: "s"}),
                vec![(names::LABEL_INSTANCE_TYPE, "s")],
            ),
        ];
        for (labels, expected) in rows {
            let node = node(json!({"metadata": {"name": "n1", "labels": labels}}));
            let fixes = Policy::CONTROLLER.label_fixes(&node);
            assert_eq!(fixes, expected.iter().map(|(k, v)| (*k, (*v).to_owned())).collect());
            assert_eq!(Policy::CONTROLLER.needs_work(&node), !expected.is_empty());
        }
    }

    /// NODE-120
    #[test]
    fn node_120_older_labels_follow_where_they_are_wanted() {
        let following = Policy { older_labels: OlderLabels::Follow, ..Policy::CONTROLLER };
        let unused = Policy { older_labels: OlderLabels::Unused, ..Policy::CONTROLLER };
        let rows = [
            (json!({names::LABEL_ZONE: "1"}), vec![(names::LABEL_ZONE_BETA, "1")]),
            (
                json!({names::LABEL_ZONE: "1", names::LABEL_ZONE_BETA: "2"}),
                vec![(names::LABEL_ZONE_BETA, "1")],
            ),
            (json!({names::LABEL_ZONE_BETA: "1"}), vec![]),
            (json!({names::LABEL_ZONE_BETA: "1", names::LABEL_ZONE: "1"}), vec![]),
        ];
        for (labels, expected) in rows {
            let node = node(json!({"metadata": {"name": "n1", "labels": labels}}));
            let expected: BTreeMap<_, _> = expected.iter().map(|(k, v)| (*k, (*v).to_owned())).collect();
            assert_eq!(following.label_fixes(&node), expected);
            assert_eq!(unused.label_fixes(&node), BTreeMap::new());
        }
    }

    #[test]
    fn initialising_is_one_conditional_patch_that_keeps_other_taints_and_labels() {
        let node = node(json!({
            "metadata": {"name": "n1", "resourceVersion": "7",
                         "labels": {"topology.kubernetes.io/region": "chosen"}},
            "spec": {"taints": [
                {"key": names::TAINT_UNINITIALIZED, "value": "true", "effect": "NoSchedule"},
                {"key": "mine", "value": "x", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
            ]},
        }));
        let instance = Instance {
            provider_id: "azure:///vm".into(),
            instance_type: "Standard_D2s_v5".into(),
            region: "westus2".into(),
            ..Instance::default()
        };
        assert_eq!(
            initialisation(&node, &instance, &Policy::CONTROLLER),
            json!({
                "metadata": {"resourceVersion": "7", "labels": {
                    "node.kubernetes.io/instance-type": "Standard_D2s_v5",
                    "beta.kubernetes.io/instance-type": "Standard_D2s_v5",
                    "failure-domain.beta.kubernetes.io/region": "westus2",
                }},
                "spec": {"providerID": "azure:///vm", "taints": [
                    {"key": "mine", "value": "x", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"},
                ]},
            })
        );
    }
}
