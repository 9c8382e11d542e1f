//! The node IPAM controller: assigns each node a pod range from each cluster range (NODE-106 to NODE-114).
//!
//! Watch events are entered into the [`Ledger`] at once, before any node is reconciled: a node's range is never
//! assigned to another one. The controller assigns ranges, and never changes conditions.

mod cidr_set;
mod ledger;
#[cfg(test)]
mod tests;
mod turnover;

use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, Existence, MaskSizes, NodeRanges};
use freshness::AgeLimits;
use ipnet::IpNet;
use k8s::{Node, is_deleting};
use kube::api::{ListParams, Patch};
use kube::{Api, Client};
use parking_lot::Mutex;
use serde_json::json;

use crate::api::{ApiError, call, patch_params};
use crate::events::Recorder;
use crate::observer::Observer;
use crate::queue::Next;
use crate::repeated_warning::RepeatedWarnings;
pub use cidr_set::{MaskProblem, check_mask};
use ledger::{Ledger, Twin};
pub use turnover::RangeTurnover;

/// Number and interval of attempts to write a node's ranges before an event is recorded.
const MAX_ATTEMPTS: u32 = 3;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum age of scale sets whose tags define the sizes of ranges: the tags are written once in a scale set's life,
/// and nodes that join together share lists.
const MAX_ANSWER_AGE: Duration = Duration::from_secs(60);

/// The source of nodes' ranges (`--cluster-cidr`, `--service-cluster-ip-range`, `--cidr-allocator-type`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeOptions {
    /// The cluster's ranges, at most one per family: a node gets one from each, in this order.
    pub cluster: Vec<IpNet>,
    /// Ranges that no node gets, because Services use them.
    pub reserved: Vec<IpNet>,
    /// The sizes of nodes' ranges; `None` if scale sets define them ([`crate::Cloud::node_ranges`]).
    pub masks: Option<MaskSizes>,
}

/// Whether a node has no ranges.
fn is_without_ranges(node: &Node) -> bool {
    !is_deleting(&node.metadata) && node.pod_ranges().is_empty()
}

fn uid(node: &Node) -> &str {
    node.metadata.uid.as_deref().unwrap_or_else(|| node.name())
}

/// The node IPAM controller.
pub(crate) struct Ipam {
    api: Api<Node>,
    /// Set if masks are not the same for all nodes.
    ranges: Option<Arc<dyn NodeRanges>>,
    masks: Option<MaskSizes>,
    state: ClusterState,
    age_limits: Arc<AgeLimits>,
    recorder: Recorder,
    observer: Arc<dyn Observer>,
    warnings: RepeatedWarnings,
    ledger: Mutex<Ledger>,
}

impl Ipam {
    pub fn new(
        client: Client,
        options: &RangeOptions,
        ranges: Option<Arc<dyn NodeRanges>>,
        state: ClusterState,
        age_limits: Arc<AgeLimits>,
        recorder: Recorder,
        observer: Arc<dyn Observer>,
    ) -> Self {
        let ledger = Mutex::new(Ledger::new(&options.cluster, &options.reserved));
        let (api, warnings, masks) = (Api::all(client), RepeatedWarnings::default(), options.masks);
        let this = Self { api, ranges, masks, state, age_limits, recorder, observer, warnings, ledger };
        this.change(|_| ());
        this
    }

    /// Changes the ledger, and reports the changes to the observer.
    fn change<T>(&self, how: impl FnOnce(&mut Ledger) -> T) -> T {
        let (done, turnover) = {
            let mut ledger = self.ledger.lock();
            let done = how(&mut ledger);
            (done, ledger.turnover())
        };
        for change in &turnover {
            self.observer.ranges_changed(change);
        }
        done
    }

    /// Records the current state of a node. Returns whether it has to be reconciled.
    pub fn see(&self, node: &Node) -> bool {
        if node.pod_ranges().is_empty() {
            return is_without_ranges(node);
        }
        let parsed: Vec<IpNet> = node
            .pod_ranges()
            .into_iter()
            .filter_map(|range| Some(range.parse::<IpNet>().ok()?.trunc()))
            .collect();
        let oddities = self.change(|ledger| ledger.adopt(uid(node), node.name(), &parsed));
        let name = node.name();
        for range in oddities.outside {
            tracing::warn!(node = name, %range, "the node's range is in none of --cluster-cidr");
            if self.masks.is_none() {
                let text = format!(
                    "The node's range {range} is in none of --cluster-cidr: it is not kept from other nodes, and its \
                     route stays when the node goes. Correct --cluster-cidr, or delete the Node and let it register again"
                );
                self.recorder.warning(node, "CIDROutOfRange", text);
            }
        }
        for twin in oddities.shared {
            self.tell_of(node, &twin);
        }
        false
    }

    /// Records an event on the later of two nodes that its range overlaps the other's, whichever was seen first.
    fn tell_of(&self, seen: &Node, Twin { range, other }: &Twin) {
        let Some((name, of)) = other else {
            let text = format!(
                "The node's range {range} overlaps what --service-cluster-ip-range or the nodes' subnet has: delete the \
                 Node and let it register again"
            );
            tracing::warn!(node = seen.name(), reason = text, "a pod range is reserved for others");
            return self.recorder.warning(seen, "CIDRNotUnique", text);
        };
        let known = self.state.node(name);
        let is_later = |node: &&Node| node.metadata.creation_timestamp > seen.metadata.creation_timestamp;
        let (later, own, earlier, others) = match known.as_deref().filter(is_later) {
            Some(node) => (node, of, seen.name(), range),
            None => (seen, range, name.as_str(), of),
        };
        let text = format!(
            "The node's range {own} overlaps {others} of {earlier}: delete one of the two Nodes and let it register again"
        );
        tracing::warn!(node = later.name(), reason = text, "two nodes have overlapping pod ranges");
        self.recorder.warning(later, "CIDRNotUnique", text);
    }

    /// Releases the ranges of a deleted node.
    pub fn forget(&self, node: &Node) {
        self.change(|ledger| ledger.forget(uid(node)));
        self.warnings.forget(node.name());
    }

    /// The nodes without ranges.
    pub fn waiting(&self) -> Vec<String> {
        let nodes = self.state.nodes();
        nodes.iter().filter(|node| is_without_ranges(node)).map(|node| node.name().to_owned()).collect()
    }

    /// Records nodes that are not watched: they keep their ranges, too.
    pub async fn see_all(&self) -> Result<(), ApiError> {
        for node in call(|| "list all nodes".to_owned(), self.api.list(&ListParams::default())).await? {
            self.see(&node);
        }
        Ok(())
    }

    /// Reconciles one node. All nodes must have been recorded.
    pub async fn reconcile(&self, name: &str) -> Next {
        let Some(node) = self.state.node(name).filter(|node| is_without_ranges(node)) else {
            self.warnings.forget(name);
            return Next::Done;
        };
        if self.ledger.lock().is_written(uid(&node)) {
            return Next::Done;
        }
        let masks = match self.masks(&node).await {
            Ok(Some(masks)) => masks,
            // The node has to be initialised first.
            Ok(None) => return Next::Done,
            Err(reason) => {
                if self.warnings.is_due(name, &reason) {
                    tracing::warn!(node = name, reason, "no range yet: its size is not known");
                }
                return Next::Retry;
            }
        };
        let assigned = self.change(|ledger| ledger.assign(uid(&node), name, masks));
        let ranges = match assigned {
            Ok(ranges) => ranges,
            Err(error) => {
                self.tell(&node, "CIDRNotAvailable", &error.to_string());
                return Next::Retry;
            }
        };
        match self.write(&node, &ranges).await {
            Ok(()) => {
                self.ledger.lock().written(uid(&node));
                tracing::info!(node = name, ?ranges, "gave the node its ranges");
                self.warnings.forget(name);
                Next::Done
            }
            Err(error) => {
                // If it is unknown whether the write succeeded, the node keeps the ranges until the watch shows more.
                if !error.is_transient() {
                    self.change(|ledger| ledger.forget(uid(&node)));
                }
                if error.is_not_found() {
                    return Next::Done;
                }
                if !error.is_conflict() {
                    self.tell(&node, "CIDRAssignmentFailed", &error.to_string());
                }
                Next::Retry
            }
        }
    }

    /// The sizes of the node's ranges; `None` for a node whose machine is unknown so far.
    async fn masks(&self, node: &Node) -> Result<Option<MaskSizes>, String> {
        let Some(ranges) = self.ranges.as_ref().filter(|_| self.masks.is_none()) else {
            return Ok(self.masks);
        };
        if node.spec.provider_id.is_empty() {
            return Ok(None);
        }
        match ranges.mask_sizes(node, self.age_limits.within(MAX_ANSWER_AGE)).await {
            Existence::Present(masks) => Ok(Some(masks)),
            Existence::Absent(proof) => Err(proof.answer),
            Existence::Unknown(reason) => Err(reason),
        }
    }

    /// Writes the ranges, if the node is still the same. The API server refuses other ranges for a node that has some.
    async fn write(&self, node: &Node, ranges: &[IpNet]) -> Result<(), ApiError> {
        let texts: Vec<String> = ranges.iter().map(ToString::to_string).collect();
        let patch = json!({
            "metadata": {"uid": node.metadata.uid},
            "spec": {"podCIDR": texts.first(), "podCIDRs": texts},
        });
        let (name, params, patch) = (node.name(), patch_params(), Patch::Strategic(patch));
        let mut attempt = 1;
        loop {
            let request = self.api.patch(name, &params, &patch);
            match call(|| format!("write the ranges of node {name}"), request).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                    tokio::time::sleep(ATTEMPT_INTERVAL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Records an event with upstream's text, followed by the cause; not repeated with each attempt.
    fn tell(&self, node: &Node, status: &'static str, cause: &str) {
        let name = node.name();
        if self.warnings.is_due(name, cause) {
            tracing::warn!(node = name, status, reason = cause, "the node has no ranges for its pods");
            self.recorder.normal(node, status, format!("Node {name} status is now: {status}: {cause}"));
        }
    }
}
