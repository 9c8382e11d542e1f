//! The guest of a machine: what runs on it. It is informed when the machine starts, and reports the result ("Azure
//! Virtual Machine Agent overview", "Virtual machine extensions and features").
//!
//! A request holds `{computerName, first, customData, userData, extensions}`; an answer is
//! `{failure: timeout | TEXT, extensions: {NAME: {failed, message}}}`.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::machine;
use crate::compute::machine::ending;
use crate::compute::scale_set::flexible;
use crate::compute::scale_set::instance_address::set_of;
use crate::compute::tables::type_names::{EXTENSION_TYPE, INSTANCE_TYPE};
use azure_engine::document::{at, items, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Refusal};
use azure_engine::store::State;

/// The hidden member with the last answer.
const ANSWER: &str = "guest";
/// The failure of a guest that never answered.
pub const TIMEOUT: &str = "timeout";

/// The scale set that a machine was created from.
fn model_of<'a>(azure: &'a AzureState, record: &Record) -> Option<&'a Record> {
    match record.resource_type.name() {
        INSTANCE_TYPE => set_of(azure, &record.id),
        _ => azure.store.get(&flexible::set_of(record)?),
    }
}

/// Informs the guest that its machine starts, for the first time or again.
pub(crate) fn start(azure: &mut AzureState, id: &ResourceId, first: bool) {
    if !azure.outside.listens {
        return;
    }
    let Some(record) = azure.store.get(id) else { return };
    let set = model_of(azure, record);
    let profile = |member: &str| {
        let own = at(&record.body, &format!("properties/{member}"));
        own.or_else(|| at(&set?.body, &format!("properties/virtualMachineProfile/{member}"))).cloned()
    };
    let what = json!({
        "computerName": profile("osProfile/computerName"),
        "first": first,
        "customData": profile("osProfile/customData").filter(|_| first),
        "userData": profile("userData"),
        "extensions": set.map_or(&[] as &[Value], of_model),
    });
    if let Some(record) = azure.store.get_mut(id) {
        record.hidden.insert(ANSWER.into(), json!({ "pending": true }));
    }
    azure.ask_outside(id, what);
}

/// Informs the guest of a machine that an extension was added.
pub(crate) fn extend(azure: &mut AzureState, extension: &ResourceId) {
    let Some(record) = azure.store.get(extension) else { return };
    let machine = extension.parent().and_then(|machine| azure.store.get(&machine));
    let what = json!({
        "computerName": machine.and_then(|machine| at(&machine.body, "properties/osProfile/computerName")),
        "first": false,
        "extensions": [{ "name": extension.name(), "properties": at(&record.body, "properties") }],
    });
    azure.ask_outside(extension, what);
}

/// The extensions that machines of a set have.
pub(crate) fn of_model(set: &Record) -> &[Value] {
    items(&set.body, "properties/virtualMachineProfile/extensionProfile/extensions")
}

/// Takes the guest's answer; returns why the creation of the machine fails.
pub(crate) fn record_report(azure: &mut AzureState, id: &ResourceId, answer: &Value) -> Option<Refusal> {
    let record = azure.store.get(id)?;
    let created = record.state == State::Creating;
    let extensions = model_of(azure, record).map(of_model).unwrap_or_default();
    let failed = extensions.iter().find_map(|extension| {
        let name = text(extension, "name").unwrap_or_default();
        let result = at(answer, "extensions")?.get(name)?;
        refusal_of(extension, result)
    });
    let failure = match text(answer, "failure") {
        Some(TIMEOUT) => Some(Code::azures(409, "OSProvisioningTimedOut").says(format_args!(
            "OS Provisioning for VM '{}' did not finish in the allotted time. The VM may still finish provisioning \
             successfully. Please check provisioning state later. For details on how to check current provisioning \
             state of Windows VMs, refer to https://aka.ms/WindowsVMLifecycle and Linux VMs, refer to \
             https://aka.ms/LinuxVMLifecycle.",
            machine::machine_name(id)
        ))),
        Some(words) => Some(Code::azures(409, "OSProvisioningInternalError").says(format_args!(
            "OS Provisioning failed for VM '{}' due to an internal error: {words}",
            machine::machine_name(id)
        ))),
        None => failed,
    };
    let own = azure.operations.running(record.operation.as_ref()).is_some();
    let record = azure.store.get_mut(id)?;
    record.hidden.insert(ANSWER.into(), answer.clone());
    if !created {
        return None;
    }
    // The machine has power, whatever the state of its system.
    record.hidden.entry("power").or_insert_with(|| "running".into());
    if !own {
        ending::settle(azure, id, failure.is_some());
    }
    failure
}

/// Why an extension fails, if it does.
pub(crate) fn refusal_of(extension: &Value, result: &Value) -> Option<Refusal> {
    if at(result, "failed") != Some(&Value::Bool(true)) {
        return None;
    }
    let of = |member: &str| text(extension, &format!("properties/{member}")).unwrap_or_default();
    let name = text(extension, "name").unwrap_or_default();
    let message = text(result, "message").unwrap_or_default();
    if message == TIMEOUT {
        return Some(Code::azures(409, "VMExtensionProvisioningTimeout").says(format_args!(
            "Provisioning of VM extension {name} has timed out. Extension provisioning has taken too long to complete. \
             The extension did not report a message. More information on troubleshooting is available at \
             https://aka.ms/VMExtensionCSELinuxTroubleshoot"
        )));
    }
    Some(Code::azures(409, "VMExtensionProvisioningError").says(format_args!(
        "VM has reported a failure when processing extension '{name}' (publisher '{}' and type '{}'). Error message: \
         '{message}'. More information on troubleshooting is available at \
         https://aka.ms/VMExtensionCSELinuxTroubleshoot.",
        of("publisher"),
        of("type")
    )))
}

/// Whether the agent of a running machine is ready; machines without a guest count as ready.
pub(crate) fn is_ready(record: &Record) -> bool {
    record.hidden.get(ANSWER).is_none_or(|answer| {
        answer.get("pending").is_none() && answer.get("failure").is_none_or(Value::is_null)
    })
}

/// The state of an extension from the model, as the guest reported it.
fn state_of(record: &Record, name: &str) -> (&'static str, String) {
    let answer = record.hidden.get(ANSWER);
    let result = answer.and_then(|answer| at(answer, "extensions")?.get(name));
    let message = result.and_then(|result| text(result, "message")).unwrap_or_default().to_owned();
    match result.and_then(|result| result.get("failed")) {
        Some(Value::Bool(true)) => ("Failed", message),
        _ if !is_ready(record) || record.state == State::Creating => ("Creating", message),
        _ => ("Succeeded", message),
    }
}

/// The properties of an extension in a set's model, as they are shown.
pub(crate) fn shown_properties(extension: &Value, state: &str) -> Value {
    let mut properties = at(extension, "properties").cloned().unwrap_or_else(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.retain(|member, _| !member.starts_with("protectedSettings"));
        properties.insert("provisioningState".into(), state.into());
    }
    properties
}

/// The extensions of a machine as documents: those of its set, and its own.
pub(crate) fn extensions(azure: &AzureState, record: &Record) -> Vec<Value> {
    let location = azure.location(&record.id);
    let full_type = format!("{}/extensions", record.resource_type.name());
    let of_set = model_of(azure, record).map(of_model).unwrap_or_default().iter().map(|extension| {
        let name = text(extension, "name").unwrap_or_default();
        json!({
            "id": record.id.child("extensions", name), "name": name, "type": full_type, "location": location,
            "properties": shown_properties(extension, state_of(record, name).0),
        })
    });
    let own = azure.store.of_type_below(EXTENSION_TYPE, &record.id);
    of_set.chain(own.into_iter().map(|own| azure.present(own, Default::default()))).collect()
}

/// Their entries in instance views.
pub(crate) fn views(azure: &AzureState, record: &Record) -> Vec<Value> {
    let of = |extension: &Value, member: &str| {
        text(extension, &format!("properties/{member}")).unwrap_or_default().to_owned()
    };
    extensions(azure, record)
        .iter()
        .map(|extension| {
            let name = text(extension, "name").unwrap_or_default();
            let state = text(extension, "properties/provisioningState").unwrap_or_default();
            let message = match azure.store.get(&record.id.child("extensions", name)) {
                Some(own) => own.hidden.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
                None => state_of(record, name).1,
            };
            json!({
                "name": name,
                "type": format!("{}.{}", of(extension, "publisher"), of(extension, "type")),
                "typeHandlerVersion": of(extension, "typeHandlerVersion"),
                "statuses": [status(state, &message)],
            })
        })
        .collect()
}

/// The status of an extension in a state.
pub(crate) fn status(state: &str, message: &str) -> Value {
    let (level, shown) = match state {
        "Succeeded" => ("Info", "Provisioning succeeded"),
        "Failed" => ("Error", "Provisioning failed"),
        _ => ("Info", "Transitioning"),
    };
    json!({
        "code": format!("ProvisioningState/{}", state.to_ascii_lowercase()),
        "level": level, "displayStatus": shown, "message": message,
    })
}
