//! Extensions that machines of a set have by its model, as they can be read one by one ("Virtual Machine Scale Set
//! Extensions", "Virtual Machine Scale Set VM Extensions").

use serde_json::{Value, json};

use crate::compute::machine::guest;
use azure_engine::document::{items, name};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Handled, Result};
use azure_engine::state::inner_request::PLATFORM;
use azure_types::ResourceId;

/// `extensions` and `extensions/{name}` of a set.
pub(super) fn view(azure: &AzureState, set: &Record, below: &[&str]) -> Handled<Value> {
    let shown = |extension: &Value| {
        json!({
            "id": set.id.child("extensions", name(extension)),
            "name": name(extension),
            "type": "Microsoft.Compute/virtualMachineScaleSets/extensions",
            "properties": guest::shown_properties(extension, set.state.as_str()),
        })
    };
    select(azure, set, guest::of_model(set).iter().map(shown).collect(), below)
}

/// PUT (`body`) and DELETE of one extension: the model is written with it or without it.
pub(super) fn write(
    azure: &mut AzureState,
    set: &ResourceId,
    wanted: &str,
    body: Option<&Value>,
) -> Result<bool> {
    const PROFILE: &str = "extensionProfile";
    let Some(record) = azure.store.get(set) else { return Ok(false) };
    // The stored document has the secret members.
    let mut model = record.body.clone();
    let profile = &mut model["properties"]["virtualMachineProfile"][PROFILE];
    let mut all = items(profile, "extensions").to_vec();
    let there = all.iter().position(|extension| name(extension).eq_ignore_ascii_case(wanted));
    match (body, there) {
        (None, None) => return Ok(false),
        (None, Some(at)) => drop(all.remove(at)),
        (Some(body), there) => {
            let properties = body.get("properties").cloned().unwrap_or_else(|| json!({}));
            let extension = json!({ "name": wanted, "properties": properties });
            match there.and_then(|at| all.get_mut(at)) {
                Some(old) => *old = extension,
                None => all.push(extension),
            }
        }
    }
    profile["extensions"] = all.into();
    azure.ask(PLATFORM, "PUT", set, None, model).map(|_| true)
}

/// The same of an instance.
pub(super) fn view_of_instance(azure: &AzureState, instance: &Record, below: &[&str]) -> Handled<Value> {
    select(azure, instance, guest::extensions(azure, instance), below)
}

fn select(azure: &AzureState, of: &Record, all: Vec<Value>, below: &[&str]) -> Handled<Value> {
    match below {
        [_] => Some(Ok(json!({ "value": all }))),
        [_, wanted] => {
            let found = all.into_iter().find(|extension| name(extension).eq_ignore_ascii_case(wanted));
            Some(found.ok_or_else(|| azure.not_found(&of.id.child("extensions", wanted))))
        }
        _ => None,
    }
}
