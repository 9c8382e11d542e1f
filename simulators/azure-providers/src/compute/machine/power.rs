//! Power states and the actions of scale sets and instances ("States and billing status of Azure Virtual Machines").

use std::collections::BTreeSet;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::disk::ownership;
use crate::compute::machine::data_disk::check_unread;
use crate::compute::machine::guest;
use crate::compute::machine::is_machine;
use crate::compute::scale_set::capacity::{lower, protects};
use crate::compute::scale_set::members::instances;
use crate::compute::scale_set::uniform::apply_model;
use crate::compute::tables::type_names::SET_TYPE;
use crate::compute::tables::words::missing;
use azure_engine::document::items;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Record};
use azure_engine::refusal::{Code, Handled, Refusal, Result};
use azure_engine::store::State;

/// An action, with the power state while it runs and after it.
struct PowerAction {
    name: &'static str,
    power: Option<(&'static str, &'static str)>,
    /// Whether the caller must name the instances.
    names_instances: bool,
}

const fn power_action(
    name: &'static str,
    power: Option<(&'static str, &'static str)>,
    names_instances: bool,
) -> PowerAction {
    PowerAction { name, power, names_instances }
}

/// The states of a starting machine.
const UP: Option<(&str, &str)> = Some(("starting", "running"));

const ACTIONS: [PowerAction; 9] = [
    power_action("start", UP, false),
    power_action("powerOff", Some(("stopping", "stopped")), false),
    power_action("deallocate", Some(("deallocating", "deallocated")), false),
    power_action("restart", UP, false),
    power_action("redeploy", UP, false),
    power_action("reimage", UP, false),
    power_action("reapply", None, false),
    power_action("manualupgrade", None, true),
    power_action("delete", None, true),
];

/// Starts an action on a scale set (some or all of its instances) or on one instance.
pub(crate) fn begin(azure: &mut AzureState, id: &ResourceId, action: &str, body: &Value) -> Handled<Action> {
    let known = ACTIONS.iter().find(|known| known.name.eq_ignore_ascii_case(action))?;
    let set = azure.store.get(id)?.resource_type.name() == SET_TYPE;
    if !set && known.names_instances {
        return None;
    }
    let targets = if set { named_instances(azure, id, known, body) } else { Ok(vec![id.clone()]) };
    Some(targets.and_then(|targets| {
        if known.name == "start" {
            targets.iter().try_for_each(|target| check_unread(azure, target))?;
        }
        Ok(run(azure, id, known, &targets))
    }))
}

fn run(azure: &mut AzureState, id: &ResourceId, known: &PowerAction, targets: &[ResourceId]) -> Action {
    for target in targets {
        if known.name == "delete" {
            azure.doom(target);
            continue;
        }
        let Some(record) = azure.store.get_mut(target) else { continue };
        record.state = State::Updating;
        if let Some((during, _)) = known.power {
            record.hidden.insert("power".into(), during.into());
        }
    }
    match known.name {
        "manualupgrade" => targets.iter().for_each(|target| apply_model(azure, target)),
        "delete" => lower(azure, id, targets.len() as u64),
        _ => {}
    }
    Action::begun(Completion::Action(known.name.into(), json!(targets)))
}

fn named_instances(
    azure: &AzureState,
    id: &ResourceId,
    known: &PowerAction,
    body: &Value,
) -> Result<Vec<ResourceId>> {
    let all = instances(azure, id);
    let names = items(body, "instanceIds");
    if names.is_empty() && known.names_instances {
        return Err(missing("instanceIds"));
    }
    if names.is_empty() || names.iter().any(|name| name == "*") {
        // Instances that are protected from actions of the set are left out, unless the caller names them.
        let protected = |record: &Record| protects(record, "protectFromScaleSetActions");
        return Ok(all.into_iter().filter(|id| !azure.store.get(id).is_some_and(protected)).collect());
    }
    let names: BTreeSet<&str> = names.iter().map(|name| name.as_str().unwrap_or_default()).collect();
    let named = |name| all.iter().find(|instance| instance.name() == name).cloned();
    names.into_iter().map(|name| named(name).ok_or_else(|| not_active(name))).collect()
}

/// No instance of a set has this number.
pub(crate) fn not_active(number: &str) -> Refusal {
    let text =
        format!("The provided instanceId {number} is not an active Virtual Machine Scale Set VM instanceId.");
    Refusal::invalid_parameter("instanceIds", text)
}

/// Ends an action that went well.
pub(crate) fn finish(azure: &mut AzureState, _id: &ResourceId, action: &str, targets: &Value) {
    let Some(known) = ACTIONS.iter().find(|known| known.name == action) else { return };
    let targets = targets.as_array().into_iter().flatten().filter_map(Value::as_str);
    for target in targets.filter_map(|target| ResourceId::parse(target).ok()) {
        if known.name == "delete" {
            azure.remove(&target);
            continue;
        }
        if let Some(record) = azure.store.get_mut(&target).filter(|record| record.state != State::Deleting) {
            record.state = State::Succeeded;
            if let Some((_, after)) = known.power {
                record.hidden.insert("power".into(), after.into());
            }
        }
        if matches!(known.name, "start" | "deallocate") {
            ownership::machine_switched(azure, &target);
        }
        if known.power == UP {
            guest::start(azure, &target, known.name == "reimage");
        }
    }
    azure.revision += 1;
}

/// Switches a machine's power state at once, like pulling its plug.
pub fn set(azure: &mut AzureState, instance: &ResourceId, state: &str) -> Result<()> {
    let missing = || {
        Code::azures(404, "ResourceNotFound").says(format_args!("The Resource '{instance}' was not found."))
    };
    let record = azure.store.get_mut(instance).ok_or_else(missing)?;
    Refusal::invalid_when(
        !is_machine(record),
        "id",
        format_args!(
            "'{instance}' has no power state: give the id of a virtual machine, or of one instance of a scale set, \
         .../virtualMachineScaleSets/NAME/virtualMachines/NUMBER."
        ),
    )?;
    record.hidden.insert("power".into(), state.into());
    azure.revision += 1;
    Ok(())
}
