//! Tags of a subscription, a group or a resource as a resource of their own: `Microsoft.Resources/tags`.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::subscription_record::hold;
use azure_engine::answer::{Answer, Note};
use azure_engine::document::{Object, text};
use azure_engine::journal::differences;
use azure_engine::provider::{AzureState, ExtensionRequest};
use azure_engine::refusal::{Code, Handled, Refusal, Result};

/// Answers `{scope}/providers/Microsoft.Resources/tags/default`.
pub(super) fn answer(azure: &mut AzureState, request: &ExtensionRequest<'_>) -> Handled<Answer> {
    match request.segments {
        [tags, name] if tags.eq_ignore_ascii_case("tags") && name.eq_ignore_ascii_case("default") => {
            Some(tags_of(azure, request))
        }
        [tags, name] if tags.eq_ignore_ascii_case("tags") => {
            Some(Err(Code::ours(400, "InvalidResourceName")
                .says(format_args!("The tags of a scope are called 'default', not '{name}'."))))
        }
        _ => None,
    }
}

fn tags_of(azure: &mut AzureState, request: &ExtensionRequest<'_>) -> Result<Answer> {
    let scope = request.scope;
    if scope.group_name().is_some() {
        azure.require_group(scope)?;
    }
    let supported = match azure.store.get(scope) {
        Some(record) => record.resource_type.protocol().tracked || scope.namespace().is_none(),
        None => scope.namespace().is_none(),
    };
    Code::ours(400, "TagsNotSupported")
        .says_when(!supported, format_args!("Resources of type '{}' have no tags.", scope.resource_type()))?;
    let held = azure.store.get(scope).and_then(|record| record.body.get("tags"));
    let old = held.and_then(Value::as_object).cloned().unwrap_or_default();
    let given = || match request.body.get("properties").and_then(|properties| properties.get("tags")) {
        Some(Value::Object(tags)) => Ok(tags.clone()),
        _ => Err(Refusal::bad_content("properties.tags must be an object")),
    };
    let new = match request.method {
        "GET" => return Ok(Answer::ok(shown(scope, &old))),
        "PUT" => given()?,
        "DELETE" => Object::new(),
        "PATCH" => changed(old.clone(), given()?, text(request.body, "operation").unwrap_or_default())?,
        other => return Err(Refusal::method_not_allowed(other)),
    };
    if scope.group_name().is_some() {
        azure.require_writable_group(scope)?;
    }
    let mut envelope = Object::new();
    envelope.insert("tags".into(), Value::Object(new.clone()));
    azure.check_tags(&mut envelope)?;
    let note = Note {
        changes: differences(Some(&json!({ "tags": old })), Some(&json!({ "tags": new }))),
        ..Note::default()
    };
    if scope.namespace().is_none() && scope.group_name().is_none() {
        hold(azure, scope);
    }
    if let Some(record) = azure.store.get_mut(scope).filter(|_| old != new) {
        if let Some(document) = record.body.as_object_mut() {
            match new.is_empty() {
                true => document.remove("tags"),
                false => document.insert("tags".into(), Value::Object(new.clone())),
            };
        }
        if record.resource_type.protocol().etagged {
            record.version += 1;
        }
        azure.changed(scope);
    }
    Ok(match request.method {
        "DELETE" => Answer { note, ..Answer::empty(200) },
        _ => Answer { note, ..Answer::ok(shown(scope, &new)) },
    })
}

/// Tags after a PATCH. Names compare without case, and keep the spelling that was written last.
fn changed(mut tags: Object, given: Object, operation: &str) -> Result<Object> {
    let drop_name = |tags: &mut Object, name: &str| tags.retain(|held, _| !held.eq_ignore_ascii_case(name));
    match operation.to_ascii_lowercase().as_str() {
        "replace" => Ok(given),
        "merge" => {
            for (name, value) in given {
                drop_name(&mut tags, &name);
                tags.insert(name, value);
            }
            Ok(tags)
        }
        "delete" => {
            for (name, value) in given {
                // A given value must equal the present one.
                let any = value.as_str().is_none_or(str::is_empty);
                tags.retain(|held, has| !held.eq_ignore_ascii_case(&name) || !(any || *has == value));
            }
            Ok(tags)
        }
        _ => Err(Refusal::bad_content("operation must be Replace, Merge or Delete")),
    }
}

fn shown(scope: &ResourceId, tags: &Object) -> Value {
    json!({
        "id": format!("{scope}/providers/Microsoft.Resources/tags/default"),
        "name": "default",
        "type": "Microsoft.Resources/tags",
        "properties": { "tags": tags },
    })
}
