//! Checks of pools.

use azure_engine::document::{Object, items};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};
use azure_engine::store::State;
use azure_types::ResourceId;
use serde_json::Value;

use super::members::FIXED;
use crate::container_service::control_plane::ControlPlane;
use crate::container_service::reading::{flag, number, word};
use crate::container_service::type_names::POOLS;
use crate::container_service::words::{BAD_REQUEST, NOT_ALLOWED, fixed, in_progress, invalid};

/// Longest name of a pool of Linux nodes, and of Windows nodes, whose host names have fifteen characters.
const LONGEST_NAME: [(&str, usize); 2] = [("Linux", 12), ("Windows", 6)];

/// Refuses a name that no pool can have.
pub(crate) fn check_name(name: &str, os: &str) -> Result<()> {
    let longest = LONGEST_NAME.iter().find(|(known, _)| *known == os).map_or(12, |(_, longest)| *longest);
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = name.len() <= longest
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(letters);
    if fits {
        return Ok(());
    }
    Err(invalid(
        "agentPoolProfile.name",
        format_args!(
            "Agent pool name must start with a lowercase letter, have max length of {longest}, and only have characters \
             a-z0-9."
        ),
    ))
}

/// Refuses a change of a member that is fixed at creation.
pub(super) fn check_fixed(old: &Value, new: &Object) -> Result<()> {
    let same = |member: &str| match (old.get(member), new.get(member)) {
        (Some(Value::String(old)), Some(Value::String(new))) => old.eq_ignore_ascii_case(new),
        (None, Some(Value::Bool(false))) => true,
        (old, new) => old == new,
    };
    match FIXED.into_iter().find(|member| !same(member)) {
        Some(member) => Err(fixed(&format!("agentPoolProfile.{member}"))),
        None => Ok(()),
    }
}

/// Refuses members that exclude each other.
pub(super) fn check_members(name: &str, control: &ControlPlane, new: &Object) -> Result<()> {
    let system = word(new, "mode") == "System";
    let windows = word(new, "osType") == "Windows";
    let spot = word(new, "scaleSetPriority") == "Spot";
    check_name(name, word(new, "osType"))?;
    if system && windows {
        return Err(invalid("agentPoolProfile.osType", "System node pools must be Linux."));
    }
    if system && spot {
        return Err(invalid(
            "agentPoolProfile.scaleSetPriority",
            "A system node pool cannot be a spot node pool.",
        ));
    }
    BAD_REQUEST.says_when(
        windows && control.plugin != "azure",
        "Windows agent pools can only be added to AKS clusters using Azure-CNI.",
    )?;
    check_count(name, system, new)?;
    for taint in new.get("nodeTaints").and_then(Value::as_array).into_iter().flatten() {
        let text = taint.as_str().unwrap_or_default();
        let effect = text.rsplit_once(':').filter(|(key, _)| !key.is_empty()).map(|(_, effect)| effect);
        if !effect.is_some_and(|effect| ["NoSchedule", "PreferNoSchedule", "NoExecute"].contains(&effect)) {
            let why = format!("Taint '{text}' is not in the form key=value:effect.");
            return Err(invalid("agentPoolProfile.nodeTaints", why));
        }
    }
    Ok(())
}

/// Checks the number of nodes, fixed or as the autoscaler's bounds.
fn check_count(name: &str, system: bool, new: &Object) -> Result<()> {
    let least = i64::from(system);
    let count = number(new, "count");
    if !flag(new, "enableAutoScaling") {
        if let Some(member) = ["minCount", "maxCount"].into_iter().find(|member| new.contains_key(*member)) {
            let why = format!("{member} of agent pool '{name}' can be set only with enableAutoScaling.");
            return Err(invalid(&format!("agentPoolProfile.{member}"), why));
        }
        return match count < least {
            true => Err(invalid("agentPoolProfile.count", "A system node pool must have at least one node.")),
            false => Ok(()),
        };
    }
    if let Some(member) = ["minCount", "maxCount"].into_iter().find(|member| !new.contains_key(*member)) {
        let why = format!("{member} of agent pool '{name}' must be set with enableAutoScaling.");
        return Err(invalid(&format!("agentPoolProfile.{member}"), why));
    }
    let (min, max) = (number(new, "minCount"), number(new, "maxCount"));
    if min < least || min > max {
        let why = format!(
            "minCount {min} of agent pool '{name}' must be at least {least} and at most maxCount {max}."
        );
        return Err(invalid("agentPoolProfile.minCount", why));
    }
    if !(min..=max).contains(&count) {
        let why = format!(
            "count {count} of agent pool '{name}' must be between minCount {min} and maxCount {max}."
        );
        return Err(invalid("agentPoolProfile.count", why));
    }
    Ok(())
}

/// Refuses to scale a pool while its autoscaler is on.
pub(super) fn check_scaling(name: &str, old: &Value, new: &Object) -> Result<()> {
    let was_on = old.get("enableAutoScaling") == Some(&Value::Bool(true));
    let count = old.get("count").and_then(Value::as_i64);
    BAD_REQUEST.says_when(
        !was_on && flag(new, "enableAutoScaling") && count.is_some_and(|count| count != number(new, "count")),
        format_args!(
            "Cannot manually scale and enable cluster autoscaler in the same update operation on \
             VMSS Agentpool '{name}'."
        ),
    )
}

/// Refuses to change a pool while its cluster is being changed or is stopped.
pub(crate) fn check_cluster(azure: &AzureState, cluster: &Record) -> Result<()> {
    if azure.operations.running(cluster.operation.as_ref()).is_some() || cluster.state == State::Deleting {
        return Err(in_progress(cluster.state.as_str()));
    }
    let power = azure_engine::document::text(&cluster.body, "properties/powerState/code");
    Code::ours(400, "OperationNotAllowed").says_when(
        power == Some("Stopped"),
        format_args!(
            "Operation is not allowed: managed cluster '{}' is in stopped state, please start it first.",
            cluster.id.name()
        ),
    )
}

/// Refuses to change a cluster while one of its pools is being changed.
pub(crate) fn check_pools(azure: &AzureState, cluster: &ResourceId) -> Result<()> {
    let busy = |pool: &&&Record| azure.operations.running(pool.operation.as_ref()).is_some();
    let pools = azure.store.of_type_below(POOLS, cluster);
    match pools.iter().find(busy) {
        Some(pool) => Err(in_progress(&format!("{} - {}", pool.id.name(), pool.state.as_str()))),
        None => Ok(()),
    }
}

/// Refuses to delete the last pool, or the last system pool.
pub(super) fn check_system_pool_left(azure: &AzureState, pool: &ResourceId) -> Result<()> {
    let Some(cluster) = pool.parent() else { return Ok(()) };
    let others = azure.store.of_type_below(POOLS, &cluster);
    let mut others =
        others.iter().filter(|other| other.id != *pool && other.state != State::Deleting).peekable();
    NOT_ALLOWED.says_when(others.peek().is_none(), "There has to be at least one agent pool.")?;
    let is_system =
        |other: &&Record| azure_engine::document::text(&other.body, "properties/mode") == Some("System");
    Code::ours(400, "OperationNotAllowed")
        .says_when(!others.any(is_system), "There has to be at least one system agent pool.")
}

/// Refuses machines that are not in the pool.
pub(super) fn machine_names(body: &Value) -> Result<Vec<String>> {
    let names: Vec<String> =
        items(body, "machineNames").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match names.is_empty() {
        true => Err(invalid("machineNames", "It must name at least one machine.")),
        false => Ok(names),
    }
}
