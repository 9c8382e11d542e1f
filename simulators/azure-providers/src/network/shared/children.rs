//! Child collections of a sent document.

use azure_types::ResourceId;
use serde_json::Value;

use crate::network::shared::codes::INVALID_RESOURCE_NAME;
use azure_engine::document::{Object, into_object, items, name};
use azure_engine::error::Refusal;
use azure_engine::provider::Record;

/// Takes a child collection out of `properties`, as objects with a name; refuses two of one name.
pub(crate) fn take_children(
    parent: &ResourceId,
    properties: &mut Object,
    collection: &str,
) -> Result<Option<Vec<Object>>, Refusal> {
    let Some(value) = properties.remove(collection) else { return Ok(None) };
    let serde_json::Value::Array(items) = value else {
        return Err(Refusal::bad_format(format!("Member '{collection}' must be an array.")));
    };
    let mut seen = std::collections::HashSet::new();
    let mut children = Vec::with_capacity(items.len());
    for item in items {
        let child = name(&item).to_owned();
        INVALID_RESOURCE_NAME.details_when(child.is_empty()
            || child.contains(['/', '\\', '?', '#', '%', '<', '>', '&', ':'])
            || child.len() > 80, format_args!(
                    "Resource name '{child}' in {parent}/{collection} is invalid: it must have 1 to 80 characters."
                ))?;
        if !seen.insert(child.to_ascii_lowercase()) {
            return Err(Refusal::bad_format(format!(
                "Resource {parent}/{collection}/{child} has a duplicate: names in '{collection}' must be unique."
            ))
            .with_detail("DuplicateResourceName", child));
        }
        let mut item = into_object(item);
        item.retain(|member, _| matches!(member.as_str(), "name" | "properties" | "zones"));
        children.push(item);
    }
    Ok(Some(children))
}

/// The children of a collection that the type's table has looked at: the id of each and its `properties`.
pub(crate) fn each_child<'a>(
    parent: &'a ResourceId,
    properties: &'a mut Object,
    collection: &'a str,
) -> impl Iterator<Item = (ResourceId, &'a mut Object)> {
    let children = properties.get_mut(collection).and_then(Value::as_array_mut).into_iter().flatten();
    children.filter_map(move |child| {
        let id = parent.child(collection, name(child));
        Some((id, child.get_mut("properties")?.as_object_mut()?))
    })
}

/// A child as it is stored.
pub(crate) fn old_child<'a>(old: Option<&'a Record>, child: &ResourceId) -> Option<&'a Value> {
    let (collection, label) = child.type_and_name_pairs().last().copied()?;
    let children = items(&old?.body, &format!("properties/{collection}"));
    children.iter().find(|item| name(item).eq_ignore_ascii_case(label))
}
