//! Child collections of a sent document.

use azure_types::ResourceId;

use crate::network::shared::codes::INVALID_RESOURCE_NAME;
use azure_engine::document::{Object, into_object, name};
use azure_engine::error::Refusal;

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
