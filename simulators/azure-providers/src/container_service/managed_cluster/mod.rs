//! Managed clusters (Azure REST reference, "Managed Clusters"): a control plane that Azure runs, pools of nodes, and
//! the group that holds them.

mod actions;
mod checks;
mod defaults;
mod members;
mod present;

use std::time::Duration;

use azure_engine::answer::Answer;
use azure_engine::document::{Object, enumeration, fill, into_object, name, take_properties, text};
use azure_engine::operation::Completion;
use azure_engine::operation::execution::Execution;
use azure_engine::provider::{
    Acting, Action, AzureState, EndedOperation, Expand, Presenting, Proposal, Protocol, Record,
    ResourceRequest, Shape, StateNames, Writing,
};
use azure_engine::refusal::{Handled, Result};
use azure_engine::store::State;
use azure_engine::store::reference::Reference;
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::agent_pool;
use super::control_plane::{ControlPlane, control_of, control_plane};
use super::ending::{aborted, fail};
use super::kubeconfig::{Role, access_profile};
use super::kubernetes_version::{self, Version};
use super::nat_gateway;
use super::node_group::{NodeGroup, usual_name};
use super::preview_feature;
use super::private_access;
use super::protocol::{own_spelling, protocol};
use super::reading::drop_empty;
use super::scale_set;
use super::type_names::{CLUSTERS, POOLS, PROVISION};
use crate::resources::delete_group;

pub(super) struct ManagedClusters;

const PROTOCOL: Protocol = Protocol {
    members: &members::MEMBERS,
    example: include_str!("example.json"),
    actions: &[
        "abort",
        "accessProfiles/*/listCredential",
        "listClusterAdminCredential",
        "listClusterMonitoringUserCredential",
        "listClusterUserCredential",
        "resetAADProfile",
        "resetServicePrincipalProfile",
        "rotateClusterCertificates",
        "rotateServiceAccountSigningKeys",
        "start",
        "stop",
    ],
    states: StateNames {
        canceled: "Canceled",
        during_actions: &[
            ("abort", "Canceling"),
            ("rotateClusterCertificates", "RotatingClusterCertificates"),
            ("start", "Starting"),
            ("stop", "Stopping"),
        ],
        ..StateNames::USUAL
    },
    answers_every_request: true,
    ..protocol(CLUSTERS, "ManagedCluster")
};

impl Shape for ManagedClusters {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn references(&self, record: &Record) -> Vec<Reference> {
        // While it is written, a cluster holds its pools.
        let profiles = azure_engine::document::items(&record.body, "properties/agentPoolProfiles").iter();
        let subnets = profiles.flat_map(agent_pool::subnets);
        subnets.map(|to| Reference::in_model(&record.id, to)).collect()
    }

    fn owned(&self, azure: &AzureState, record: &Record) -> Vec<ResourceId> {
        NodeGroup::of(azure, &record.id).map(|group| group.id).into_iter().collect()
    }
}

impl Writing for ManagedClusters {
    fn before_write(&self, azure: &AzureState, mut proposal: Proposal<'_>) -> Result<Value> {
        let (id, old) = (proposal.id, proposal.old);
        if old.is_some() {
            agent_pool::check_pools(azure, id)?;
        }
        let mut body = std::mem::take(&mut proposal.body);
        let mut properties = take_properties(&mut body);
        let profiles = properties.remove("agentPoolProfiles");
        drop_empty(&mut properties);
        keep(old, &mut body, &mut properties);
        sku(&mut body)?;
        checks::check_dns(&properties)?;
        let location = body.get("location").and_then(Value::as_str).unwrap_or_default();
        fill(&mut properties, "nodeResourceGroup", usual_name(id, location));
        defaults::fill_in(&mut properties, azure.tenant_of(id.subscription_id()));
        versions(old, &mut properties)?;
        checks::check_identity(&body, &properties)?;
        let whole = Value::Object(properties);
        checks::check_fixed(&proposal, &whole)?;
        checks::check_network(&whole)?;
        checks::check_accounts(&whole)?;
        if old.is_none() {
            checks::check_node_group(azure, id, text(&whole, "nodeResourceGroup").unwrap_or_default())?;
        }
        let control = control_of(&whole)?;
        let profiles = match profiles {
            Some(Value::Array(profiles)) => profiles,
            _ => Vec::new(),
        };
        let pools = match old {
            None => {
                checks::check_pools(&profiles)?;
                profiles
                    .into_iter()
                    .map(|profile| pool(azure, id, &control, false, profile))
                    .collect::<Result<_, _>>()?
            }
            Some(_) => profiles
                .into_iter()
                .map(|profile| pool(azure, id, &control, true, profile))
                .collect::<Result<Vec<_>, _>>()?,
        };
        let mut properties = into_object(whole);
        properties.insert("agentPoolProfiles".into(), pools.into());
        body.insert("properties".into(), Value::Object(properties));
        Ok(Value::Object(body))
    }

    fn state_during_write(&self, old: &Value, new: &Value) -> Option<&'static str> {
        let version = |body| text(body, "properties/kubernetesVersion");
        (version(old) != version(new)).then_some("Upgrading")
    }

    fn after_write(&self, azure: &mut AzureState, id: &ResourceId, old: Option<&Value>) {
        let Some(record) = azure.store.get_mut(id) else { return };
        let properties = record.body.get_mut("properties").and_then(Value::as_object_mut);
        let profiles =
            properties.and_then(|properties| properties.remove("agentPoolProfiles")).unwrap_or_default();
        azure.changed(id);
        for pool in pools(azure, id) {
            if let Some(pool) = azure.store.get_mut(&pool).filter(|pool| pool.state != State::Deleting) {
                pool.state = State::Updating;
            }
        }
        for profile in profiles.as_array().into_iter().flatten() {
            store_pool(azure, id, profile, old.is_none());
        }
        azure.later(id, PROVISION, Some(Duration::ZERO));
    }

    fn after_operation(&self, azure: &mut AzureState, id: &ResourceId, ended: EndedOperation<'_>) {
        match ended.completion {
            Completion::Step(_) => self.step(azure, id),
            Completion::Delete | Completion::Report(_) => {}
            Completion::Action(action, _) if action == "abort" => aborted(azure, id),
            _ => finish(azure, id, ended.failed),
        }
    }

    fn after_delete(&self, azure: &mut AzureState, id: &ResourceId) {
        for pool in pools(azure, id) {
            azure.doom(&pool);
        }
        azure.later(id, PROVISION, Some(Duration::ZERO));
    }
}

impl Presenting for ManagedClusters {
    fn present_unfinished(&self, _azure: &AzureState, _record: &Record, document: &mut Object) {
        present::accepted(document);
    }

    fn present(&self, azure: &AzureState, record: &Record, document: &mut Object, _expand: Expand) {
        present::present(azure, record, document);
    }

    fn view(&self, azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
        let [view, rest @ ..] = below else { return None };
        match (view.to_ascii_lowercase().as_str(), rest) {
            ("upgradeprofiles", ["default"]) => Some(Ok(upgrade_profile(azure, record))),
            ("privatelinkresources", []) => Some(Ok(private_access::link_resources(record))),
            ("availableagentpoolversions", []) => Some(available_versions(record)),
            ("accessprofiles", [role]) => Some(access_profile(azure, record, Role::of(role)?)),
            _ => None,
        }
    }
}

impl Acting for ManagedClusters {
    fn answer_request(&self, azure: &mut AzureState, request: &ResourceRequest<'_>) -> Handled<Answer> {
        preview_feature::check_cluster(azure, request).err().map(Err)
    }

    fn act(&self, azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
        actions::begin(azure, id, action, body)
    }

    fn acts_during_operations(&self, action: &str) -> bool {
        actions::reads(action)
    }
}

impl ManagedClusters {
    /// The step right after a write or a deletion was accepted: the node group is created, or deleted.
    fn step(&self, azure: &mut AzureState, id: &ResourceId) {
        let going = azure.store.get(id).is_some_and(|record| record.state == State::Deleting);
        let done = match NodeGroup::of(azure, id).filter(|_| going) {
            Some(group) if azure.store.get(&group.id).is_some() => {
                // Subnets of other groups would hold the gateway.
                let _ = nat_gateway::withdraw(&group, azure);
                let name = group.id.group_name().unwrap_or_default().to_owned();
                delete_group(azure, id.subscription_id(), &name, &Execution::default()).map(drop)
            }
            Some(_) => Ok(()),
            None => provision(azure, id),
        };
        if let Err(refusal) = done {
            fail(azure, id, refusal);
        }
    }
}

/// Reconciles the node group and the scale sets in it with the cluster's document.
fn provision(azure: &mut AzureState, id: &ResourceId) -> Result<()> {
    let Some(group) = NodeGroup::of(azure, id) else { return Ok(()) };
    group.lay_out(azure)?;
    nat_gateway::lay_out(&group, azure)?;
    private_access::lay_out(&group, azure)?;
    pools(azure, id).iter().try_for_each(|pool| scale_set::reconcile(azure, pool))
}

/// Ends the operation of a cluster and, through it, those of its pools.
fn finish(azure: &mut AzureState, id: &ResourceId, failed: bool) {
    if !failed {
        if let Some(record) = azure.store.get_mut(id)
            && let Ok(control) = control_of(&record.body["properties"])
        {
            record.body["properties"]["currentKubernetesVersion"] = control.version.to_string().into();
        }
        if provision(azure, id).is_err()
            && let Some(record) = azure.store.get_mut(id)
        {
            record.state = State::Failed;
        }
    }
    for pool in pools(azure, id) {
        let Some(record) = azure.store.get_mut(&pool) else { continue };
        if !matches!(record.state, State::Creating | State::Updating) {
            continue;
        }
        record.state = if failed { State::Failed } else { State::Succeeded };
        if !failed {
            agent_pool::finish(azure, &pool);
        }
    }
}

fn pools(azure: &AzureState, cluster: &ResourceId) -> Vec<ResourceId> {
    let pools = azure.store.of_type_below(POOLS, cluster);
    pools.into_iter().map(|pool| pool.id.clone()).collect()
}

/// Members that a PUT leaves out keep their values; of nested objects this holds for the network alone.
fn keep(old: Option<&Record>, body: &mut Object, properties: &mut Object) {
    let Some(old) = old else { return };
    for member in ["identity", "sku", "tags"] {
        if let (false, Some(value)) = (body.contains_key(member), old.body.get(member)) {
            body.insert(member.into(), value.clone());
        }
    }
    for (member, value) in old.body.get("properties").and_then(Value::as_object).into_iter().flatten() {
        match (properties.get_mut(member), value) {
            (None, value) => drop(properties.insert(member.clone(), value.clone())),
            (Some(Value::Object(new)), Value::Object(old)) if member == "networkProfile" => {
                for (inner, value) in old {
                    if !new.contains_key(inner) {
                        new.insert(inner.clone(), value.clone());
                    }
                }
            }
            _ => {}
        }
    }
}

fn sku(body: &mut Object) -> Result<()> {
    let mut sku = body.remove("sku").map(into_object).unwrap_or_default();
    enumeration(&mut sku, "name", &["Base", "Automatic"], true)?;
    enumeration(&mut sku, "tier", &["Free", "Standard", "Premium"], true)?;
    body.insert("sku".into(), Value::Object(sku));
    Ok(())
}

/// Sets the requested and the running version.
fn versions(old: Option<&Record>, properties: &mut Object) -> Result<()> {
    fill(properties, "kubernetesVersion", kubernetes_version::usual());
    let current =
        old.and_then(|old| text(&old.body, "properties/currentKubernetesVersion")).and_then(Version::stored);
    let requested = properties.get("kubernetesVersion").and_then(Value::as_str).unwrap_or_default();
    let wanted = kubernetes_version::resolve(requested, current)?;
    if let Some(current) = current {
        kubernetes_version::check_upgrade(current, wanted)?;
    }
    properties.insert("currentKubernetesVersion".into(), current.unwrap_or(wanted).to_string().into());
    Ok(())
}

/// Checks and completes one pool of a cluster that is written.
fn pool(
    azure: &AzureState,
    cluster: &ResourceId,
    control: &ControlPlane,
    updating: bool,
    profile: Value,
) -> Result<Value> {
    let id = cluster.child("agentPools", name(&profile));
    let old = azure.store.get(&id).and_then(|record| record.body.get("properties"));
    let profile = into_object(profile);
    match old {
        None if updating => return Err(checks::new_pool()),
        Some(old) => checks::check_pool_version(old, &profile, control.version)?,
        None => {}
    }
    let mut stored = agent_pool::complete(&id, control, old, profile)?;
    stored.insert("name".into(), id.name().into());
    Ok(Value::Object(stored))
}

/// Stores one pool of a cluster that was written.
fn store_pool(azure: &mut AzureState, cluster: &ResourceId, profile: &Value, new: bool) {
    let id = cluster.child("agentPools", name(profile));
    let mut properties = into_object(profile.clone());
    properties.remove("name");
    let body = json!({ "properties": properties });
    match azure.store.get_mut(&id) {
        Some(record) => {
            record.version += 1;
            record.body = body;
            azure.changed(&id);
        }
        None => {
            let created = azure.now();
            let mut record = Record::new(&agent_pool::AgentPools, &id, body, created);
            record.state = if new { State::Creating } else { State::Updating };
            azure.insert(record);
        }
    }
}

fn upgrade_profile(azure: &AzureState, record: &Record) -> Value {
    let current = text(&record.body, "properties/currentKubernetesVersion").and_then(Version::stored);
    let profile = |name: &str, os: &str, version: Option<Version>, most: Option<Version>| {
        let upgrades =
            version.map(|version| kubernetes_version::upgrade_list(version, most)).unwrap_or_default();
        let mut profile =
            json!({ "name": name, "osType": os, "kubernetesVersion": version.map(|v| v.to_string()) });
        if !upgrades.is_empty() {
            profile["upgrades"] = upgrades.into();
        }
        profile
    };
    let pools = azure.store.of_type_below(POOLS, &record.id);
    let pools: Vec<Value> = pools
        .into_iter()
        .map(|pool| {
            let version = text(&pool.body, "properties/currentOrchestratorVersion").and_then(Version::stored);
            profile(
                pool.id.name(),
                text(&pool.body, "properties/osType").unwrap_or("Linux"),
                version,
                current,
            )
        })
        .collect();
    json!({
        "id": format!("{}/upgradeprofiles/default", own_spelling(&record.id)),
        "name": "default",
        "type": "Microsoft.ContainerService/managedClusters/upgradeprofiles",
        "properties": { "controlPlaneProfile": profile("master", "Linux", current, None), "agentPoolProfiles": pools },
    })
}

fn available_versions(record: &Record) -> Result<Value> {
    let control = control_plane(record)?;
    Ok(json!({
        "id": format!("{}/availableAgentPoolVersions", own_spelling(&record.id)),
        "name": "default",
        "type": "Microsoft.ContainerService/managedClusters/availableAgentpoolVersions",
        "properties": { "agentPoolVersions": kubernetes_version::for_pools(control.version) },
    }))
}
