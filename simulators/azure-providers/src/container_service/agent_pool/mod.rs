//! Pools of nodes (Azure REST reference, "Agent Pools"): each is a scale set in its cluster's node group.

mod checks;
mod machines;
mod members;

use std::time::Duration;

use azure_engine::answer::Answer;
use azure_engine::document::{Object, at, fill, into_object, stored_reference, take_properties, text};
use azure_engine::operation::Completion;
use azure_engine::provider::{
    Acting, Action, AzureState, EndedOperation, Expand, Presenting, Proposal, Protocol, Record,
    ResourceRequest, Shape, StateNames, Writing,
};
use azure_engine::refusal::{Handled, Result};
use azure_engine::store::State;
use azure_engine::store::reference::Reference;
use azure_engine::types::member_table::{Written, normalise};
use azure_types::ResourceId;
use serde_json::{Value, json};

pub(super) use self::checks::{check_name, check_pools};

use super::control_plane::{ControlPlane, control_plane};
use super::ending::{abort, aborted, fail};
use super::kubernetes_version::{self, Version};
use super::protocol::{own_spelling, protocol};
use super::reading::{drop_empty, number, word};
use super::type_names::{POOLS, PROVISION};
use super::words::NOT_ALLOWED;
use super::{node_image, preview_feature, scale_set};

/// The size of machines of pools without one: our choice, Azure takes what the region has.
const USUAL_SIZE: &str = "Standard_D2s_v3";
/// Gigabytes of a system disk where the pool gives no size.
const USUAL_DISK: i64 = 128;

pub(super) struct AgentPools;

const PROTOCOL: Protocol = Protocol {
    members: &members::MEMBERS,
    example: include_str!("example.json"),
    tracked: false,
    actions: &["abort", "deleteMachines", "upgradeNodeImageVersion"],
    states: StateNames {
        canceled: "Canceled",
        during_actions: &[("abort", "Canceling"), ("upgradeNodeImageVersion", "UpgradingNodeImageVersion")],
        ..StateNames::USUAL
    },
    answers_every_request: true,
    ..protocol(POOLS, "AgentPool")
};

/// The names of changes of a member, the most important first.
const CHANGES: [(&str, &str); 2] = [("orchestratorVersion", "Upgrading"), ("count", "Scaling")];

impl Shape for AgentPools {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        let subnets = record.body.get("properties").map(subnets).unwrap_or_default();
        subnets.into_iter().map(|to| Reference::in_model(&record.id, to)).collect()
    }

    fn owned(&self, azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        scale_set::of_pool(azure, &record.id).into_iter().collect()
    }
}

impl Writing for AgentPools {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let id = proposal.id;
        let cluster = id.parent().and_then(|id| azure.store.get(&id)).ok_or_else(|| azure.not_found(id))?;
        checks::check_cluster(azure, cluster)?;
        let properties = take_properties(&mut proposal.body);
        let most = azure.limit("containerService.agentPoolsPerCluster");
        let pools = azure.store.of_type_below(POOLS, &cluster.id).len() as u64;
        if proposal.old.is_none() && pools >= most {
            let text =
                format!("The maximum number of agent pools per cluster is {most}. It has been reached.");
            return Err(NOT_ALLOWED.says(text));
        }
        let old = proposal.old.and_then(|old| old.body.get("properties"));
        let control = control_plane(cluster)?;
        let stored = complete(id, &control, old, properties)?;
        if old.is_some() && word(&stored, "mode") != "System" {
            checks::check_system_pool_left(azure, id)?;
        }
        Ok(json!({ "properties": stored }))
    }

    fn state_during_write(&self, old: &Value, new: &Value) -> Option<&'static str> {
        let member = |body, member: &str| at(body, &format!("properties/{member}")).cloned();
        if member(old, "powerState") != member(new, "powerState") {
            let stops = text(new, "properties/powerState/code") == Some("Stopped");
            return Some(if stops { "Stopping" } else { "Starting" });
        }
        let changed = CHANGES.into_iter().find(|(name, _)| member(old, name) != member(new, name));
        changed.map(|(_, word)| word)
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, _old: Option<&Value>) {
        azure.later(id, PROVISION, Some(Duration::ZERO));
    }

    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        match ended.completion {
            Completion::Step(_) => {
                if let Err(refusal) = scale_set::reconcile(azure, id) {
                    fail(azure, id, refusal);
                }
            }
            Completion::Delete if !ended.failed => {}
            Completion::Action(action, _) if action == "abort" => aborted(azure, id),
            _ if !ended.failed => finish(azure, id),
            _ => {}
        }
    }

    fn before_delete(&self, azure: &AzureState, record: &Record) -> Result<()> {
        let cluster = record.id.parent().and_then(|id| azure.store.get(&id));
        cluster.map_or(Ok(()), |cluster| checks::check_cluster(azure, cluster))?;
        checks::check_system_pool_left(azure, &record.id)
    }

    fn after_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        scale_set::delete(azure, id);
    }
}

impl Presenting for AgentPools {
    fn present(&self, _azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        document.insert("id".into(), own_spelling(&record.id).into());
    }

    fn present_unfinished(&self, _azure: &AzureState, _record: &Record, document: &mut Object) {
        if let Some(Value::Object(properties)) = document.get_mut("properties") {
            fill(properties, "nodeLabels", json!({}));
        }
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        let [view, rest @ ..] = below else { return None };
        match (view.to_ascii_lowercase().as_str(), rest) {
            ("upgradeprofiles", ["default"]) => Some(Ok(upgrade_profile(azure, record))),
            ("machines", []) => Some(Ok(json!({ "value": machines::all(azure, &record.id) }))),
            ("machines", [name]) => Some(machines::one(azure, &record.id, name)),
            _ => None,
        }
    }
}

impl Acting for AgentPools {
    fn answer_request(&self, azure: &mut AzureState, request: &ResourceRequest<'_>) -> Handled<Answer> {
        preview_feature::check_pool(azure, request).err().map(Err)
    }

    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        let cluster = id.parent().and_then(|id| azure.store.get(&id));
        if let Some(Err(refusal)) = cluster.map(|cluster| checks::check_cluster(azure, cluster)) {
            return Some(Err(refusal));
        }
        let action = action.to_ascii_lowercase();
        match action.as_str() {
            "upgradenodeimageversion" => {
                let record = azure.store.get_mut(id)?;
                let sku = text(&record.body, "properties/osSKU").unwrap_or("Ubuntu").to_owned();
                record.body["properties"]["nodeImageVersion"] = node_image::newest(&sku).into();
                azure.later(id, PROVISION, Some(Duration::ZERO));
            }
            "deletemachines" => {
                if let Err(refusal) = machines::delete(azure, id, body) {
                    return Some(Err(refusal));
                }
            }
            "abort" => abort(azure, id),
            _ => return None,
        }
        Some(Ok(Action::begun(Completion::Action(action, Value::Null))))
    }

    fn acts_during_operations(&self, action: &str) -> bool {
        action.eq_ignore_ascii_case("abort")
    }
}

/// Ends the operation of a pool successfully: its nodes are as it says.
pub(super) fn finish(azure: &mut AzureState, id: &ResourceId) {
    if let Some(record) = azure.store.get_mut(id) {
        let requested = text(&record.body, "properties/orchestratorVersion").unwrap_or_default();
        let current = text(&record.body, "properties/currentOrchestratorVersion").and_then(Version::stored);
        if let Ok(version) = kubernetes_version::resolve(requested, current) {
            record.body["properties"]["currentOrchestratorVersion"] = version.to_string().into();
        }
    }
    let done = scale_set::settle(azure, id)
        .and_then(|()| scale_set::reconcile(azure, id))
        .and_then(|()| scale_set::settle(azure, id))
        .and_then(|()| scale_set::follow_model(azure, id))
        .and_then(|()| scale_set::settle(azure, id));
    if let (Err(_), Some(record)) = (done, azure.store.get_mut(id)) {
        record.state = State::Failed;
    }
}

/// Checks a client's document of a pool and fills in defaults; `old` is the stored document.
///
/// # Errors
/// What AKS refuses.
pub(super) fn complete(
    id: &ResourceId,
    control: &ControlPlane,
    old: Option<&Value>,
    mut new: Object,
) -> Result<Object> {
    new.remove("name");
    drop_empty(&mut new);
    normalise(&members::MEMBERS, &Written { id, protocol: &PROTOCOL, old, used: false }, &mut new)?;
    let sent_count = new.contains_key("count");
    keep(old, &mut new);
    let autoscaled = |properties: Option<&Value>| properties == Some(&Value::Bool(true));
    if !autoscaled(new.get("enableAutoScaling"))
        && autoscaled(old.and_then(|old| old.get("enableAutoScaling")))
    {
        new.remove("minCount");
        new.remove("maxCount");
    } else if let (true, true, Some(count)) = (
        autoscaled(new.get("enableAutoScaling")),
        autoscaled(old.and_then(|old| old.get("enableAutoScaling"))),
        old.and_then(|old| old.get("count")).and_then(Value::as_i64),
    ) {
        // The autoscaler decides; new bounds count.
        let (min, max) = (number(&new, "minCount"), number(&new, "maxCount"));
        new.insert("count".into(), count.max(min).min(max.max(min)).into());
    } else if !sent_count && old.is_none() && new.contains_key("minCount") {
        let least = number(&new, "minCount");
        new.insert("count".into(), least.into());
    }
    defaults(control, old.is_some(), &mut new);
    versions(control, old, &mut new)?;
    checks::check_members(id.name(), control, &new)?;
    if let Some(old) = old {
        checks::check_fixed(old, &new)?;
        checks::check_scaling(id.name(), old, &new)?;
    }
    Ok(new)
}

/// Members that a client leaves out keep their values.
fn keep(old: Option<&Value>, new: &mut Object) {
    for (member, value) in old.and_then(Value::as_object).into_iter().flatten() {
        if !new.contains_key(member) {
            new.insert(member.clone(), value.clone());
        }
    }
}

fn defaults(control: &ControlPlane, updating: bool, new: &mut Object) {
    if number(new, "osDiskSizeGB") == 0 {
        new.insert("osDiskSizeGB".into(), USUAL_DISK.into());
    }
    let windows = word(new, "osType") == "Windows";
    let max_pods = match (control.plugin.as_str(), control.overlay) {
        ("azure", true) | ("none", _) => 250,
        ("azure", false) => 30,
        _ => 110,
    };
    for (member, value) in [
        ("count", json!(1)),
        ("vmSize", json!(USUAL_SIZE)),
        ("maxPods", json!(max_pods)),
        ("mode", json!("User")),
        ("osSKU", json!(if windows { "Windows2022" } else { "Ubuntu" })),
        ("enableNodePublicIP", json!(false)),
        ("enableFIPS", json!(false)),
        ("powerState", json!({ "code": "Running" })),
        ("securityProfile", json!({})),
    ] {
        fill(new, member, value);
    }
    if let Some(Value::Object(security)) = new.get_mut("securityProfile") {
        fill(security, "enableVTPM", false);
        fill(security, "enableSecureBoot", false);
    }
    if updating {
        fill(new, "enableAutoScaling", false);
    }
    if word(new, "scaleSetPriority") == "Spot" {
        spot(new);
    } else {
        let mut upgrade = new.remove("upgradeSettings").map(into_object).unwrap_or_default();
        fill(&mut upgrade, "maxSurge", "10%");
        new.insert("upgradeSettings".into(), Value::Object(upgrade));
    }
}

/// Spot nodes get a label and a taint, so that only pods that tolerate evictions are scheduled there.
fn spot(new: &mut Object) {
    const PRIORITY: &str = "kubernetes.azure.com/scalesetpriority";
    fill(new, "scaleSetEvictionPolicy", "Delete");
    fill(new, "spotMaxPrice", -1);
    let mut labels = new.remove("nodeLabels").map(into_object).unwrap_or_default();
    fill(&mut labels, PRIORITY, "spot");
    new.insert("nodeLabels".into(), Value::Object(labels));
    let taint = json!(format!("{PRIORITY}=spot:NoSchedule"));
    let mut taints =
        new.remove("nodeTaints").and_then(|taints| taints.as_array().cloned()).unwrap_or_default();
    if !taints.contains(&taint) {
        taints.push(taint);
    }
    new.insert("nodeTaints".into(), taints.into());
}

/// Sets the requested version, the running version, and the image of the nodes.
fn versions(control: &ControlPlane, old: Option<&Value>, new: &mut Object) -> Result<()> {
    fill(new, "orchestratorVersion", control.requested.as_str());
    let current = old.and_then(|old| text(old, "currentOrchestratorVersion")).and_then(Version::stored);
    let requested = word(new, "orchestratorVersion");
    // A new pool that names no patch is as its control plane.
    let wanted = kubernetes_version::resolve(requested, current.or(Some(control.version)))?;
    kubernetes_version::check_skew(wanted, control.version)?;
    if let Some(current) = current {
        kubernetes_version::check_pool_upgrade(current, wanted)?;
    }
    let shown = current.unwrap_or(wanted).to_string();
    new.insert("currentOrchestratorVersion".into(), shown.into());
    let image = node_image::usual(word(new, "osSKU"));
    fill(new, "nodeImageVersion", image);
    Ok(())
}

/// The subnets of nodes and of pods that `properties` name.
pub(super) fn subnets(properties: &Value) -> Vec<ResourceId> {
    ["vnetSubnetID", "podSubnetID"]
        .into_iter()
        .filter_map(|member| stored_reference(properties, member))
        .collect()
}

fn upgrade_profile(azure: &AzureState, record: &Record) -> Value {
    let current = text(&record.body, "properties/currentOrchestratorVersion").and_then(Version::stored);
    let cluster = record.id.parent().and_then(|id| azure.store.get(&id));
    let control = cluster.and_then(|cluster| control_plane(cluster).ok());
    let upgrades = current
        .zip(control)
        .map(|(from, control)| kubernetes_version::upgrade_list(from, Some(control.version)));
    let sku = text(&record.body, "properties/osSKU").unwrap_or("Ubuntu");
    json!({
        "id": format!("{}/upgradeProfiles/default", own_spelling(&record.id)),
        "name": "default",
        "type": "Microsoft.ContainerService/managedClusters/agentPools/upgradeProfiles",
        "properties": {
            "kubernetesVersion": current.map(|version| version.to_string()),
            "osType": text(&record.body, "properties/osType"),
            "upgrades": upgrades.unwrap_or_default(),
            "latestNodeImageVersion": node_image::newest(sku),
        },
    })
}
