//! Values by their schema, as field ownership sees them: the paths of a value, the difference between two values,
//! merging one into another, and removing paths.
//!
//! The rules are those of Kubernetes' structured merge: atomic maps and lists are leaves, other maps are compared by
//! member, sets by value, keyed lists by their keys.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::field_set::{FieldSet, PathElement};
use crate::object::go::go_type;
use crate::schema::{Form, ListType, Schema};

/// How the parts of a value are owned.
enum Shape<'a> {
    Leaf,
    Map(&'a Map<String, Value>),
    List(&'a [Value]),
}

fn shape<'a>(schema: &Schema, value: &'a Value) -> Shape<'a> {
    match value {
        Value::Object(map) if !schema.atomic => Shape::Map(map),
        Value::Array(list) if schema.list != ListType::Atomic => Shape::List(list),
        _ => Shape::Leaf,
    }
}

/// The path element of an item; `None` in an atomic list.
///
/// # Errors
/// The item lacks a key without a default.
fn element_of(schema: &Schema, item: &Value) -> Result<Option<PathElement>, String> {
    match &schema.list {
        ListType::Atomic => Ok(None),
        ListType::Set => Ok(Some(PathElement::Value(item.to_string()))),
        ListType::Map(keys) => {
            let mut found: BTreeMap<&str, &Value> = BTreeMap::new();
            for key in keys {
                let given = item.get(key).filter(|value| !value.is_null());
                let default = || schema.item_or_any().member(key)?.default.as_ref();
                let value = given.or_else(default).ok_or_else(|| {
                    format!(
                        "associative list with keys has an element that omits key field {key:?} (and doesn't have \
                         default value)"
                    )
                })?;
                found.insert(key, value);
            }
            serde_json::to_string(&found)
                .map(|keys| Some(PathElement::Key(keys)))
                .map_err(|error| format!("keys that are not JSON: {error}"))
        }
    }
}

fn id(schema: &Schema, item: &Value) -> Option<PathElement> {
    element_of(schema, item).ok().flatten()
}

/// Validates a value that will be applied. Each error names its path.
pub(super) fn check(schema: &Schema, value: &Value) -> Vec<String> {
    let mut errors = Vec::new();
    check_at(schema, value, "", &mut errors);
    errors
}

fn check_at(schema: &Schema, value: &Value, path: &str, errors: &mut Vec<String>) {
    let at_path = |what: String| if path.is_empty() { what } else { format!("{path}: {what}") };
    match (value, schema.form) {
        (Value::Null, _) => {}
        (Value::Object(map), None | Some(Form::Object)) => {
            for (name, member) in map {
                let at = format!("{path}.{name}");
                match schema.member(name) {
                    Some(schema) => check_at(schema, member, &at, errors),
                    None if schema.keeps_unknown() => {}
                    None => {
                        errors.push(format!("{at}: field not declared in schema"));
                        return;
                    }
                }
            }
        }
        (Value::Array(items), None | Some(Form::Array)) => {
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                let at = match element_of(schema, item) {
                    Err(why) => return errors.push(at_path(format!("element {index}: {why}"))),
                    Ok(None) => format!("{path}[{index}]"),
                    Ok(Some(element)) => {
                        let readable = element.readable();
                        if !seen.insert(element) {
                            errors.push(at_path(format!("duplicate entries for key {readable}")));
                        }
                        format!("{path}{readable}")
                    }
                };
                check_at(schema.item_or_any(), item, &at, errors);
            }
        }
        (_, None) => {}
        (value, Some(Form::Object)) => {
            errors.push(at_path(format!("expected map, got &{{{}}}", go_value(value))))
        }
        (value, Some(Form::Array)) => {
            errors.push(at_path(format!("expected list, got &{{{}}}", go_value(value))))
        }
        (Value::String(_), Some(Form::String)) | (Value::Bool(_), Some(Form::Boolean)) => {}
        (Value::Number(_), Some(Form::Integer | Form::Number)) => {}
        (value, Some(Form::String)) => errors.push(at_path(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_value(value)
        ))),
        (value, Some(Form::Boolean)) => {
            errors.push(at_path(format!("expected boolean, got &{{{}}}", go_value(value))))
        }
        (value, Some(Form::Integer | Form::Number)) => {
            errors.push(at_path(format!("expected numeric (int or float), got {}", go_type(value))))
        }
    }
}

fn go_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The paths of a value: its leaves and items, and members without a schema of their own.
pub(super) fn fields(schema: &Schema, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    add_fields(schema, value, &mut set);
    set.compact();
    set
}

fn add_fields(schema: &Schema, value: &Value, set: &mut FieldSet) {
    match shape(schema, value) {
        Shape::Leaf => {
            // In the place of a map or list, null is an empty one.
            if !(value.is_null() && is_granular(schema)) {
                set.insert();
            }
        }
        Shape::Map(map) => {
            for (name, member) in map {
                let child = set.child(PathElement::Field(name.clone()));
                add_fields(schema.member_or_any(name), member, child);
                let empty = member.is_null() || member.as_object().is_some_and(Map::is_empty);
                if empty || !schema.properties.contains_key(name) {
                    child.insert();
                }
            }
        }
        Shape::List(items) => {
            for item in items {
                let Some(element) = id(schema, item) else { continue };
                let child = set.child(element);
                child.insert();
                if item.is_object() {
                    add_fields(schema.item_or_any(), item, child);
                }
            }
        }
    }
}

fn is_granular(schema: &Schema) -> bool {
    match schema.form {
        Some(Form::Object) => !schema.atomic,
        Some(Form::Array) => schema.list != ListType::Atomic,
        _ => false,
    }
}

/// The difference between an old and a new object.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Fields that are new or have another value.
    pub(super) changed: FieldSet,
    /// Fields that are gone.
    pub(super) removed: FieldSet,
}

impl Difference {
    fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

/// The difference between `old` and `new`.
pub(super) fn compare(schema: &Schema, old: &Value, new: &Value) -> Difference {
    compare_at(schema, Some(old), Some(new))
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(map)) => map.is_empty(),
        Some(Value::Array(list)) => list.is_empty(),
        Some(_) => false,
    }
}

fn compare_at(schema: &Schema, old: Option<&Value>, new: Option<&Value>) -> Difference {
    let mut difference = Difference::default();
    if old == new {
        return difference;
    }
    let is_leaf = |value: &Value| matches!(shape(schema, value), Shape::Leaf);
    let granular = old.is_some_and(|value| !is_leaf(value)) || new.is_some_and(|value| !is_leaf(value));
    if !granular || (is_empty(old) && is_empty(new)) {
        match new {
            Some(_) => difference.changed.insert(),
            None => difference.removed.insert(),
        }
        return difference;
    }
    // Values of different types have no common parts: all paths of one are removed, all of the other are added.
    match (old.map(|value| shape(schema, value)), new.map(|value| shape(schema, value))) {
        (None | Some(Shape::Leaf), None | Some(Shape::Leaf)) => {}
        (Some(Shape::Map(old)), Some(Shape::Map(new))) => {
            compare_maps(schema, Some(old), Some(new), &mut difference)
        }
        (Some(Shape::List(old)), Some(Shape::List(new))) => compare_lists(schema, old, new, &mut difference),
        (old, new) => {
            match old {
                Some(Shape::Map(old)) => compare_maps(schema, Some(old), None, &mut difference),
                Some(Shape::List(old)) => compare_lists(schema, old, &[], &mut difference),
                None | Some(Shape::Leaf) => {}
            }
            match new {
                Some(Shape::Map(new)) => compare_maps(schema, None, Some(new), &mut difference),
                Some(Shape::List(new)) => compare_lists(schema, &[], new, &mut difference),
                None | Some(Shape::Leaf) => {}
            }
        }
    }
    match (old, new) {
        (None, _) => difference.changed.insert(),
        (_, None) => difference.removed.insert(),
        (Some(old), Some(new)) => {
            if [old, new].into_iter().any(|value| !value.is_null() && is_leaf(value)) {
                difference.changed.insert();
            }
        }
    }
    difference
}

fn compare_maps(
    schema: &Schema,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    difference: &mut Difference,
) {
    let names: BTreeSet<&String> = old.into_iter().chain(new).flat_map(Map::keys).collect();
    for name in names {
        let (before, after) = (old.and_then(|map| map.get(name)), new.and_then(|map| map.get(name)));
        let inner = compare_at(schema.member_or_any(name), before, after);
        add(difference, PathElement::Field(name.clone()), inner);
    }
}

fn compare_lists(schema: &Schema, old: &[Value], new: &[Value], difference: &mut Difference) {
    let (before, after) = (by_element(schema, old), by_element(schema, new));
    let elements: BTreeSet<&PathElement> = before.keys().chain(after.keys()).collect();
    for element in elements {
        let of = |items: &BTreeMap<PathElement, Vec<&Value>>| items.get(element).map_or(0, Vec::len);
        let inner = if of(&before) > 1 || of(&after) > 1 {
            // Items with equal keys are one value.
            let mut inner = Difference::default();
            match (before.get(element), after.get(element)) {
                (before, Some(items)) if before != Some(items) => inner.changed.insert(),
                (Some(_), None) => inner.removed.insert(),
                _ => {}
            }
            inner
        } else {
            let before = before.get(element).and_then(|items| items.first().copied());
            let after = after.get(element).and_then(|items| items.first().copied());
            compare_at(schema.item_or_any(), before, after)
        };
        add(difference, element.clone(), inner);
    }
}

fn add(difference: &mut Difference, element: PathElement, inner: Difference) {
    if inner.is_empty() {
        return;
    }
    if !inner.removed.is_empty() {
        *difference.removed.child(element.clone()) = inner.removed;
    }
    if !inner.changed.is_empty() {
        *difference.changed.child(element) = inner.changed;
    }
}

fn by_element<'a>(schema: &Schema, list: &'a [Value]) -> BTreeMap<PathElement, Vec<&'a Value>> {
    let mut items: BTreeMap<PathElement, Vec<&Value>> = BTreeMap::new();
    for item in list {
        if let Some(element) = id(schema, item) {
            items.entry(element).or_default().push(item);
        }
    }
    items
}

/// Merges `applied` into `live`.
pub(super) fn merge(schema: &Schema, live: Option<&Value>, applied: &Value) -> Value {
    match applied {
        Value::Object(wanted) if !schema.atomic => {
            let mut merged = live.and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, value) in wanted {
                let inner = schema.member_or_any(name);
                if value.is_null() && !inner.nullable {
                    merged.remove(name);
                    continue;
                }
                let value = merge(inner, merged.get(name), value);
                merged.insert(name.clone(), value);
            }
            Value::Object(merged)
        }
        Value::Array(wanted) if schema.list != ListType::Atomic => {
            let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            Value::Array(merge_list(schema, live, wanted))
        }
        other => other.clone(),
    }
}

/// Merges both lists from their beginnings: items that only the live list has keep their order, applied items have the
/// order in which they are applied. A shared item that is not the next applied one is skipped until it is.
fn merge_list(schema: &Schema, live: &[Value], wanted: &[Value]) -> Vec<Value> {
    let mut before: BTreeMap<PathElement, Option<&Value>> = BTreeMap::new();
    let live: Vec<(Option<PathElement>, &Value)> = live.iter().map(|item| (id(schema, item), item)).collect();
    for (element, item) in &live {
        let Some(element) = element else { continue };
        // Items with equal keys are not merged into.
        before.entry(element.clone()).and_modify(|item| *item = None).or_insert(Some(item));
    }
    let wanted: Vec<(PathElement, &Value)> =
        wanted.iter().filter_map(|item| Some((id(schema, item)?, item))).collect();
    let applied: BTreeSet<&PathElement> = wanted.iter().map(|(element, _)| element).collect();
    let mut shared =
        wanted.iter().map(|(element, _)| element).filter(|element| before.contains_key(element)).peekable();
    let mut merged = Vec::with_capacity(live.len() + wanted.len());
    let (mut left, mut right) = (live.iter().peekable(), wanted.iter().peekable());
    let mut done: BTreeSet<&PathElement> = BTreeSet::new();
    loop {
        if let Some((element, item)) = left.peek() {
            let Some(element) = element.as_ref().filter(|element| applied.contains(element)) else {
                merged.push((*item).clone());
                left.next();
                continue;
            };
            let is_next = right.peek().is_none_or(|(wanted, _)| wanted == element);
            let passed_over = !is_next && shared.peek().is_some_and(|next| *next != element);
            if passed_over || is_next || done.contains(element) {
                left.next();
            }
            if passed_over {
                continue;
            }
        }
        let Some((element, item)) = right.next() else { break };
        done.insert(element);
        shared.next_if(|next| *next == element);
        let own = before.get(element).copied().flatten();
        merged.push(if item.is_object() { merge(schema.item_or_any(), own, item) } else { (*item).clone() });
    }
    merged
}

/// Adds the paths of members that have a schema and paths below them.
pub(super) fn with_named_members(schema: &Schema, set: &FieldSet) -> FieldSet {
    let mut named = set.clone();
    name_members(schema, &mut named);
    named
}

fn name_members(schema: &Schema, set: &mut FieldSet) {
    for (element, child) in set.elements_mut() {
        match element {
            PathElement::Field(name) => {
                if child.has_children() && schema.properties.contains_key(name) {
                    child.insert();
                }
                name_members(schema.member_or_any(name), child);
            }
            PathElement::Key(_) => name_members(schema.item_or_any(), child),
            PathElement::Value(_) => {}
        }
    }
}

/// Removes paths from a value. `None` if the value becomes empty.
pub(super) fn remove(schema: &Schema, value: &Value, gone: &FieldSet) -> Option<Value> {
    without(schema, value, gone, false)
}

/// The same, but a member that becomes empty stays as null.
pub(super) fn empty(schema: &Schema, value: &Value, gone: &FieldSet) -> Option<Value> {
    without(schema, value, gone, true)
}

fn without(schema: &Schema, value: &Value, gone: &FieldSet, keeps_null: bool) -> Option<Value> {
    match shape(schema, value) {
        Shape::Leaf => (!matches!(value, Value::Object(_) | Value::Array(_))).then(|| value.clone()),
        Shape::Map(map) => {
            let mut kept = Map::new();
            for (name, member) in map {
                let member = match gone.at(&PathElement::Field(name.clone())) {
                    Some(inner) if inner.is_member() => None,
                    Some(inner) if !inner.is_empty() => {
                        let left = without(schema.member_or_any(name), member, inner, keeps_null);
                        left.or(keeps_null.then_some(Value::Null))
                    }
                    _ => Some(member.clone()),
                };
                if let Some(member) = member {
                    kept.insert(name.clone(), member);
                }
            }
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Shape::List(items) => {
            let mut kept = Vec::new();
            for item in items {
                let inner = id(schema, item).and_then(|element| gone.at(&element));
                kept.extend(match inner {
                    Some(inner) if inner.is_member() => None,
                    Some(inner) if !inner.is_empty() => {
                        without(schema.item_or_any(), item, inner, keeps_null)
                    }
                    _ => Some(item.clone()),
                });
            }
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
    }
}

/// Replaces the paths below a value that has become a leaf since the set was written.
pub(super) fn reconcile(schema: &Schema, set: &mut FieldSet) {
    let leaf = schema.atomic || (schema.form == Some(Form::Array) && schema.list == ListType::Atomic);
    if leaf && set.has_children() {
        set.collapse();
    }
    for (element, child) in set.elements_mut() {
        match element {
            PathElement::Field(name) => reconcile(schema.member_or_any(name), child),
            PathElement::Key(_) => reconcile(schema.item_or_any(), child),
            PathElement::Value(_) => {}
        }
    }
}
