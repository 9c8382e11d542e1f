//! Extensions that machines of a set have by its model, as they can be read one by one ("Virtual Machine Scale Set
//! Extensions", "Virtual Machine Scale Set VM Extensions").

use serde_json::{Value, json};

use crate::compute::machine::guest;
use azure_engine::document::{at, name};
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Record};

/// `extensions` and `extensions/{name}` of a set.
pub(super) fn view(azure: &AzureState, set: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
    let shown = |extension: &Value| {
        let mut properties = at(extension, "properties").cloned().unwrap_or_else(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.retain(|member, _| !member.starts_with("protectedSettings"));
            properties.insert("provisioningState".into(), set.state.as_str().into());
        }
        json!({
            "id": set.id.child("extensions", name(extension)),
            "name": name(extension),
            "type": "Microsoft.Compute/virtualMachineScaleSets/extensions",
            "properties": properties,
        })
    };
    select(azure, set, guest::of_model(set).iter().map(shown).collect(), below)
}

/// The same of an instance.
pub(super) fn view_of_instance(
    azure: &AzureState,
    instance: &Record,
    below: &[&str],
) -> Option<Result<Value, Refusal>> {
    select(azure, instance, guest::extensions(azure, instance), below)
}

fn select(
    azure: &AzureState,
    of: &Record,
    all: Vec<Value>,
    below: &[&str],
) -> Option<Result<Value, Refusal>> {
    match below {
        [_] => Some(Ok(json!({ "value": all }))),
        [_, wanted] => {
            let found = all.into_iter().find(|extension| name(extension).eq_ignore_ascii_case(wanted));
            Some(found.ok_or_else(|| azure.not_found(&of.id.child("extensions", wanted))))
        }
        _ => None,
    }
}
