//! Tags of a subscription, a group or a resource as a resource of their own: `Microsoft.Resources/tags`.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::subscription_record::hold;
use azure_engine::answer::{Answer, Note};
use azure_engine::document::{Object, members, text};
use azure_engine::error::Refusal;
use azure_engine::journal::differences;
use azure_engine::provider::{AzureState, Extension};

/// Answers `{scope}/providers/Microsoft.Resources/tags/default`.
pub(super) fn answer(azure: &mut AzureState, asked: &Extension<'_>) -> Option<Result<Answer, Refusal>> {
    match asked.segments {
        [tags, name] if tags.eq_ignore_ascii_case("tags") && name.eq_ignore_ascii_case("default") => {
            Some(tags_of(azure, asked))
        }
        [tags, name] if tags.eq_ignore_ascii_case("tags") => Some(Err(Refusal::new(
            400,
            "InvalidResourceName",
            format!("The tags of a scope are called 'default', not '{name}'."),
        ))),
        _ => None,
    }
}

fn tags_of(azure: &mut AzureState, asked: &Extension<'_>) -> Result<Answer, Refusal> {
    let scope = asked.scope;
    if scope.group_name().is_some() {
        azure.require_group(scope)?;
    }
    let supported = match azure.store.get(scope) {
        Some(record) => record.resource_type.protocol().tracked || scope.namespace().is_none(),
        None => scope.namespace().is_none(),
    };
    if !supported {
        return Err(Refusal::new(
            400,
            "TagsNotSupported",
            format!("Resources of type '{}' have no tags.", scope.resource_type()),
        ));
    }
    let held = azure.store.get(scope).and_then(|record| record.body.get("tags"));
    let old = held.and_then(Value::as_object).cloned().unwrap_or_default();
    let given = || match asked.body.get("properties").and_then(|properties| properties.get("tags")) {
        Some(Value::Object(tags)) => Ok(tags.clone()),
        _ => Err(Refusal::bad_content("properties.tags must be an object")),
    };
    let new = match asked.method {
        "GET" => return Ok(Answer::ok(shown(scope, &old))),
        "PUT" => given()?,
        "DELETE" => Object::new(),
        "PATCH" => changed(old.clone(), given()?, text(asked.body, "operation").unwrap_or_default())?,
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
    Ok(match asked.method {
        "DELETE" => Answer { note, ..Answer::empty(200) },
        _ => Answer { note, ..Answer::ok(shown(scope, &new)) },
    })
}

/// Tags after a PATCH. Names compare without case, and keep the spelling that was written last.
fn changed(mut tags: Object, given: Object, operation: &str) -> Result<Object, Refusal> {
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
                // A value that is named must be the one that is there.
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

/// The older way to manage tags: names and values of a subscription, and how often they are used.
pub(crate) fn tag_names(
    azure: &mut AzureState,
    method: &str,
    subscription: &str,
    segments: &[&str],
) -> Result<Answer, Refusal> {
    let scope = ResourceId::subscription(subscription);
    let (name, value) = match segments {
        [] if method == "GET" => return Ok(Answer::ok(json!({ "value": used_tags(azure, &scope) }))),
        [name] => (*name, None),
        [name, values, value] if values.eq_ignore_ascii_case("tagValues") => (*name, Some(*value)),
        _ => return Err(Refusal::method_not_allowed(method)),
    };
    let entry = |azure: &AzureState| {
        let used = used_tags(azure, &scope);
        let tag = used
            .into_iter()
            .find(|tag| text(tag, "tagName").is_some_and(|n| n.eq_ignore_ascii_case(name)))?;
        let Some(value) = value else { return Some(tag) };
        let values = tag.get("values").and_then(Value::as_array).cloned().unwrap_or_default();
        values.into_iter().find(|item| text(item, "tagValue").is_some_and(|v| v.eq_ignore_ascii_case(value)))
    };
    let there = entry(azure);
    match method {
        "PUT" => {
            hold(azure, &scope);
            if let Some(record) = azure.store.get_mut(&scope) {
                let names = record.hidden.entry("tagNames").or_insert_with(|| json!({}));
                let held = names.get(name).and_then(Value::as_array).cloned();
                if value.is_some() && held.is_none() && there.is_none() {
                    return Err(tag_not_found(name));
                }
                let mut values = held.unwrap_or_default();
                if let Some(value) = value.filter(|value| !values.iter().any(|held| held == value)) {
                    values.push(value.into());
                }
                names[name] = Value::Array(values);
            }
            let shown = entry(azure).unwrap_or_default();
            Ok(Answer { status: if there.is_some() { 200 } else { 201 }, ..Answer::ok(shown) })
        }
        "DELETE" => {
            let Some(there) = there else { return Ok(Answer::empty(204)) };
            if there.pointer("/count/value").and_then(Value::as_u64).unwrap_or_default() > 0 {
                return Err(Refusal::new(
                    409,
                    "TagInUse",
                    format!("The tag '{name}' is still used by resources and cannot be deleted."),
                ));
            }
            let names = azure.store.get_mut(&scope).and_then(|record| record.hidden.get_mut("tagNames"));
            if let Some(Value::Object(names)) = names {
                let of_name = names.iter_mut().find(|(held, _)| held.eq_ignore_ascii_case(name));
                match (value, of_name) {
                    (Some(value), Some((_, Value::Array(values)))) => values.retain(|held| held != value),
                    (Some(_), _) => {}
                    (None, _) => names.retain(|held, _| !held.eq_ignore_ascii_case(name)),
                }
            }
            Ok(Answer::empty(200))
        }
        other => Err(Refusal::method_not_allowed(other)),
    }
}

fn used_tags(azure: &AzureState, scope: &ResourceId) -> Vec<Value> {
    /// Values and their uses, by name.
    type Uses = std::collections::BTreeMap<String, (String, std::collections::BTreeMap<String, u64>)>;
    let mut uses = Uses::new();
    let planned = azure.store.get(scope).and_then(|record| record.hidden.get("tagNames"));
    for (name, values) in planned.into_iter().flat_map(members) {
        let entry =
            uses.entry(name.to_ascii_lowercase()).or_insert_with(|| (name.clone(), Default::default()));
        for value in values.as_array().into_iter().flatten().filter_map(Value::as_str) {
            entry.1.entry(value.to_owned()).or_default();
        }
    }
    for record in azure.store.below(scope) {
        for (name, value) in record.body.get("tags").into_iter().flat_map(members) {
            let entry =
                uses.entry(name.to_ascii_lowercase()).or_insert_with(|| (name.clone(), Default::default()));
            *entry.1.entry(value.as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    let count = |value: u64| json!({ "type": "Total", "value": value });
    uses.into_values()
        .map(|(name, values)| {
            let id = format!("{scope}/tagNames/{name}");
            let total = values.values().sum();
            let values: Vec<Value> = values
                .into_iter()
                .map(|(value, uses)| {
                    json!({ "id": format!("{id}/tagValues/{value}"), "tagValue": value, "count": count(uses) })
                })
                .collect();
            json!({ "id": id, "tagName": name, "count": count(total), "values": values })
        })
        .collect()
}

fn tag_not_found(name: &str) -> Refusal {
    Refusal::new(404, "TagNotFound", format!("The tag '{name}' could not be found."))
}
