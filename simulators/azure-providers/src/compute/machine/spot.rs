//! Spot machines, which Azure takes back when it needs the room.

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use azure_engine::answer::Answer;
use azure_engine::document::{Object, at, text};
use azure_engine::error::{Code, Refusal};
use azure_engine::inner_request::PLATFORM;
use azure_engine::operation::Completion;
use azure_engine::provider::{Action, AzureState, Record};

const EVICTION_POLICY_CAN_BE_SET_ONLY_ON_AZURE_SPOT_VIRTUAL_MACHINES: Code =
    Code::azures(400, "EvictionPolicyCanBeSetOnlyOnAzureSpotVirtualMachines");
const MAX_PRICE_IS_SUPPORTED_ONLY_FOR_AZURE_SPOT_VIRTUAL_MACHINES: Code =
    Code::azures(400, "MaxPriceIsSupportedOnlyForAzureSpotVirtualMachines");

/// Whether that priority of a machine or a model is the one of spot machines, or what it was called before.
pub(crate) fn names_spot(priority: Option<&Value>) -> bool {
    let is =
        |name: &str| priority.and_then(Value::as_str).is_some_and(|given| given.eq_ignore_ascii_case(name));
    is("Spot") || is("Low")
}

/// Refuses what only spot machines are told ("Error messages for Azure Spot Virtual Machines and scale sets").
pub(crate) fn check_members(profile: &Object) -> Result<(), Refusal> {
    if names_spot(profile.get("priority")) {
        return Ok(());
    }
    if profile.contains_key("evictionPolicy") {
        let text = "Eviction policy can be set only on Azure Spot Virtual Machines.";
        return Err(EVICTION_POLICY_CAN_BE_SET_ONLY_ON_AZURE_SPOT_VIRTUAL_MACHINES.says(text));
    }
    if profile.get("billingProfile").is_some_and(|profile| profile.get("maxPrice").is_some()) {
        let text = "Max price is supported only for Azure Spot Virtual Machines.";
        return Err(MAX_PRICE_IS_SUPPORTED_ONLY_FOR_AZURE_SPOT_VIRTUAL_MACHINES.says(text));
    }
    Ok(())
}

/// What a spot machine was told when it was made; `None` for others. The instances of a scale set are what
/// its model says.
fn profile<'a>(azure: &'a AzureState, machine: &'a Record) -> Option<&'a Value> {
    let own = machine.body.get("properties");
    let model = || {
        let set = azure.store.get(&machine.id.parent()?)?;
        at(&set.body, "properties/virtualMachineProfile")
    };
    let spot = |profile: &&Value| names_spot(profile.get("priority"));
    own.filter(spot).or_else(|| model().filter(spot))
}

/// Whether a machine is a spot one.
pub(crate) fn is_spot(azure: &AzureState, machine: &Record) -> bool {
    profile(azure, machine).is_some()
}

/// Whether a spot machine is deleted when it is evicted; `None` for machines that are not.
pub(crate) fn deleted_when_evicted(azure: &AzureState, id: &ResourceId) -> Option<bool> {
    let policy = text(profile(azure, azure.store.get(id)?)?, "evictionPolicy");
    Some(policy.is_some_and(|policy| policy.eq_ignore_ascii_case("Delete")))
}

/// `POST simulateEviction`: the machine goes as it would if its room were needed.
pub(crate) fn simulate_eviction(azure: &mut AzureState, id: &ResourceId) -> Result<Action, Refusal> {
    let Some(deleted) = deleted_when_evicted(azure, id) else {
        return Err(OPERATION_NOT_ALLOWED.says(format_args!(
            "Operation 'simulateEviction' is not allowed on VM '{}' since it is not a spot VM.",
            id.name()
        )));
    };
    match deleted {
        true => azure.ask(PLATFORM, "DELETE", id, None, Value::Null)?,
        false => azure.ask(PLATFORM, "POST", id, Some("deallocate"), Value::Null)?,
    };
    let answer = Some(Answer::empty(204));
    Ok(Action { completion: Completion::Report(Value::Null), answer })
}
