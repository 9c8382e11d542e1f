//! Instance views: the run-time state of a machine.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::compute::machine::fault_domain;
use crate::compute::machine::guest;
use crate::compute::machine::image;
use crate::compute::scale_set::instance_address::set_of;
use crate::compute::scale_set::members;
use crate::compute::tables::type_names::INSTANCE_TYPE;
use azure_engine::document::{Object, at, items};
use azure_engine::operation::FAILURE;
use azure_engine::provider::{AzureState, Expand, Record};
use azure_engine::store::State;

fn provisioning(state: State) -> (&'static str, &'static str, &'static str) {
    match state {
        State::Creating => ("ProvisioningState/creating", "Info", "Creating"),
        State::Updating => ("ProvisioningState/updating", "Info", "Updating"),
        State::Deleting => ("ProvisioningState/deleting", "Info", "Deleting"),
        State::Succeeded => ("ProvisioningState/succeeded", "Info", "Provisioning succeeded"),
        State::Failed | State::Canceled => ("ProvisioningState/failed", "Error", "Provisioning failed"),
    }
}

fn status((code, level, shown): (&str, &str, &str), time: &str) -> Value {
    json!({ "code": code, "level": level, "displayStatus": shown, "time": time })
}

/// The power state; `None` while the machine is being created.
fn power(record: &Record) -> Option<&str> {
    record.hidden.get("power").and_then(Value::as_str)
}

/// Shows the extensions of a machine or an instance, and its view where it is asked for.
pub(crate) fn present(azure: &AzureState, record: &Record, document: &mut Object, expand: Expand) {
    let extensions = guest::extensions(azure, record);
    if !extensions.is_empty() {
        document.insert("resources".into(), extensions.into());
    }
    if expand.instance_view {
        document["properties"]["instanceView"] = of(azure, record);
    }
}

/// The instance view of a machine; that of an instance shows its place in the set, too.
pub(crate) fn of(azure: &AzureState, record: &Record) -> Value {
    let mut view = of_machine(azure, record);
    if record.resource_type.name() == INSTANCE_TYPE {
        let set = set_of(azure, &record.id);
        let placement = set.map(|set| azure.seed.guid("placement group", set.id.as_str(), 0));
        let domain = fault_domain::of_number(set, record.id.name().parse().unwrap_or_default());
        view["placementGroupId"] = json!(placement);
        view["platformUpdateDomain"] = domain.into();
        view["platformFaultDomain"] = domain.into();
        view["computerName"] = json!(record.hidden.get("computerName"));
    }
    view
}

fn of_machine(azure: &AzureState, record: &Record) -> Value {
    let created = record.created.to_string();
    let mut made = status(provisioning(record.state), &created);
    if let Some(why) = record.hidden.get(FAILURE).filter(|_| record.state == State::Failed) {
        made["code"] =
            json!(format!("ProvisioningState/failed/{}", why["code"].as_str().unwrap_or_default()));
        made["message"] = why["message"].clone();
    }
    let mut statuses = vec![made];
    let power = power(record);
    if let Some(power) = power {
        let code = format!("PowerState/{power}");
        statuses.push(json!({ "code": code, "level": "Info", "displayStatus": format!("VM {power}") }));
    }
    let storage = at(&record.body, "properties/storageProfile").unwrap_or(&Value::Null);
    let image = image::of(storage);
    let ready = status(provisioning(State::Succeeded), &created);
    let disks = at(storage, "osDisk").into_iter().chain(items(storage, "dataDisks"));
    let disks: Vec<Value> =
        disks.map(|disk| json!({ "name": disk.get("name"), "statuses": [ready] })).collect();
    let mut view = json!({
        "computerName": at(&record.body, "properties/osProfile/computerName"),
        "disks": disks,
        "hyperVGeneration": image.generation,
        "statuses": statuses,
    });
    fault_domain::show(record, &mut view);
    let extensions = guest::views(azure, record);
    if !extensions.is_empty() {
        view["extensions"] = extensions.into();
    }
    // A guest agent reports only while its machine runs.
    if power != Some("running") {
        return view;
    }
    let ready = guest::is_ready(record);
    if ready && record.state != State::Creating {
        view["osName"] = image.os_name.into();
        view["osVersion"] = image.os_version.into();
    } else if record.state == State::Creating || record.state == State::Updating {
        return view;
    }
    let (version, words, message) = if ready {
        let words = ("ProvisioningState/succeeded", "Info", "Ready");
        let message = "GuestAgent is running and processing the extensions.";
        (image::agent_version(image.windows), words, message)
    } else {
        let words = ("ProvisioningState/Unavailable", "Warning", "Not Ready");
        ("Unknown", words, "VM status blob is found but not yet populated.")
    };
    let mut agent = status(words, &created);
    agent["message"] = message.into();
    view["vmAgent"] = json!({ "vmAgentVersion": version, "statuses": [agent] });
    view
}

/// The instance view of a scale set: how many machines are in which state.
pub(crate) fn of_set(azure: &AzureState, record: &Record) -> Value {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for instance in members::all(azure, &record.id) {
        *counts.entry(provisioning(instance.state).0.to_owned()).or_default() += 1;
        if let Some(power) = power(instance) {
            *counts.entry(format!("PowerState/{power}")).or_default() += 1;
        }
    }
    let summary: Vec<Value> =
        counts.into_iter().map(|(code, count)| json!({ "code": code, "count": count })).collect();
    let own = status(provisioning(record.state), &record.created.to_string());
    json!({ "virtualMachine": { "statusesSummary": summary }, "statuses": [own] })
}
