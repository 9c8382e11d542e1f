//! Child documents of a document.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::{Object, items, name};
use azure_engine::provider::Record;

/// The children of a collection that the type's table has checked: the id of each and its `properties`.
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
