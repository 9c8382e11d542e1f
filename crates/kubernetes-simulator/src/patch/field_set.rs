//! Sets of fields of one object, and their `fieldsV1` form in `metadata.managedFields`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::schema::{self, List};

/// One element of a path into an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathElement {
    /// A member of a map: `f:name`.
    Field(String),
    /// An item of a keyed list, as the JSON of its keys: `k:{"port":80,"protocol":"TCP"}`.
    Key(String),
    /// A value of a set, as JSON: `v:"a"`.
    Value(String),
}

/// A set of paths, as a tree: a node is in the set when it is `member`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    member: bool,
    children: BTreeMap<PathElement, FieldSet>,
}

/// What tells a new state of an object from an old one.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Fields that are new or have another value.
    pub(super) changed: FieldSet,
    /// Fields that are gone.
    pub(super) removed: FieldSet,
}

/// Two items of a keyed list have the same keys, or an item lacks one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadList(pub(super) String);

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(FieldSet::is_empty)
    }

    /// The fields that an applied configuration names: leaves and list items. Maps and lists with
    /// nothing in them name nothing.
    pub(super) fn of_applied(kind: &str, object: &Value) -> Result<FieldSet, BadList> {
        let mut set = FieldSet::default();
        set.add_applied(kind, "", object)?;
        set.compact();
        Ok(set)
    }

    fn compact(&mut self) {
        self.children.values_mut().for_each(FieldSet::compact);
        self.children.retain(|_, child| child.member || !child.children.is_empty());
    }

    fn add_applied(&mut self, kind: &str, path: &str, value: &Value) -> Result<(), BadList> {
        match value {
            Value::Object(map) if !schema::atomic_map(kind, path) => {
                for (name, child) in map {
                    self.child(PathElement::Field(name.clone())).add_applied(
                        kind,
                        &schema::join(path, name),
                        child,
                    )?;
                }
            }
            Value::Array(list) => match schema::list(kind, path) {
                List::Atomic => self.member = true,
                rule => {
                    for (element, item) in
                        items(rule, list).map_err(|why| BadList(format!(".{path}: {why}")))?
                    {
                        let child = self.child(element);
                        child.member = true;
                        if item.is_object() {
                            child.add_applied(kind, path, item)?;
                        }
                    }
                }
            },
            _ => self.member = true,
        }
        Ok(())
    }

    /// Adds `value` and everything in it, containers included.
    fn add_all(&mut self, kind: &str, path: &str, value: &Value) {
        self.member = true;
        match value {
            Value::Object(map) if !schema::atomic_map(kind, path) => {
                for (name, child) in map {
                    self.child(PathElement::Field(name.clone())).add_all(
                        kind,
                        &schema::join(path, name),
                        child,
                    );
                }
            }
            Value::Array(list) => {
                let rule = schema::list(kind, path);
                if rule != List::Atomic
                    && let Ok(items) = items(rule, list)
                {
                    for (element, item) in items {
                        let child = self.child(element);
                        child.member = true;
                        if item.is_object() {
                            child.add_all(kind, path, item);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    /// Gives whoever owns a map or list and nothing in it all that is in it now. The API server does
    /// so because that is how an owner of an atomic one looks that is granular by now.
    pub(super) fn expand(&mut self, kind: &str, object: &Value) {
        self.expand_at(kind, "", object);
    }

    fn expand_at(&mut self, kind: &str, path: &str, value: &Value) {
        let holds_values = match value {
            Value::Object(_) => matches!(path, "metadata.labels" | "metadata.annotations" | "data"),
            Value::Array(_) => schema::list(kind, path) != List::Atomic,
            _ => false,
        };
        if holds_values && self.member && self.children.is_empty() {
            self.add_all(kind, path, value);
            return;
        }
        let Value::Object(map) = value else { return };
        for (element, child) in &mut self.children {
            if let PathElement::Field(name) = element
                && let Some(value) = map.get(name)
            {
                child.expand_at(kind, &schema::join(path, name), value);
            }
        }
    }

    fn child(&mut self, element: PathElement) -> &mut FieldSet {
        self.children.entry(element).or_default()
    }

    pub(super) fn union(&mut self, other: &FieldSet) {
        self.member |= other.member;
        for (element, theirs) in &other.children {
            self.child(element.clone()).union(theirs);
        }
    }

    /// Takes out what is in `other`.
    pub(super) fn subtract(&mut self, other: &FieldSet) {
        self.member &= !other.member;
        for (element, theirs) in &other.children {
            if let Some(ours) = self.children.get_mut(element) {
                ours.subtract(theirs);
            }
        }
        self.children.retain(|_, child| !child.is_empty());
    }

    pub(super) fn intersection(&self, other: &FieldSet) -> FieldSet {
        FieldSet {
            member: self.member && other.member,
            children: self
                .children
                .iter()
                .filter_map(|(element, ours)| {
                    let both = ours.intersection(other.children.get(element)?);
                    (!both.is_empty()).then(|| (element.clone(), both))
                })
                .collect(),
        }
    }

    /// The node at `element`.
    pub(super) fn at(&self, element: &PathElement) -> Option<&FieldSet> {
        self.children.get(element)
    }

    pub(super) fn is_member(&self) -> bool {
        self.member
    }

    pub(super) fn elements(&self) -> impl Iterator<Item = (&PathElement, &FieldSet)> {
        self.children.iter()
    }

    /// Every path in the set as people read it: `.spec.ports[port=80,protocol="TCP"].name`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = vec![];
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        let at = |element: &PathElement| format!("{prefix}{}", element.readable());
        // What is a member comes before what is inside of its siblings.
        paths.extend(self.children.iter().filter(|(_, child)| child.member).map(|(element, _)| at(element)));
        for (element, child) in &self.children {
            child.collect_paths(&at(element), paths);
        }
    }

    /// The `fieldsV1` document.
    pub(super) fn to_fields_v1(&self) -> Value {
        let mut document = Map::new();
        for (element, child) in &self.children {
            let mut inner = child.to_fields_v1();
            if child.member
                && !child.children.is_empty()
                && let Value::Object(inner) = &mut inner
            {
                inner.insert(".".into(), Value::Object(Map::new()));
            }
            document.insert(element.to_fields_v1(), inner);
        }
        Value::Object(document)
    }

    /// Reads a `fieldsV1` document; entries of a form not known are left out.
    pub(super) fn from_fields_v1(document: &Value) -> FieldSet {
        let mut set = FieldSet::default();
        let Some(document) = document.as_object() else { return set };
        for (name, inner) in document {
            let Some(element) = PathElement::from_fields_v1(name) else { continue };
            let mut child = FieldSet::from_fields_v1(inner);
            child.member = child.children.is_empty() || inner.get(".").is_some();
            set.children.insert(element, child);
        }
        set
    }
}

/// What tells `new` from `old`.
pub(super) fn compare(kind: &str, old: &Value, new: &Value) -> Difference {
    let mut difference = Difference::default();
    compare_at(kind, "", old, new, &mut difference.changed, &mut difference.removed);
    difference
}

fn compare_at(
    kind: &str,
    path: &str,
    old: &Value,
    new: &Value,
    changed: &mut FieldSet,
    removed: &mut FieldSet,
) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) if !schema::atomic_map(kind, path) => {
            for (name, after) in new {
                let at = schema::join(path, name);
                let element = PathElement::Field(name.clone());
                match old.get(name) {
                    Some(before) if before == after => {}
                    Some(before) => {
                        compare_child(kind, &at, before, after, element, changed, removed);
                    }
                    None => changed.child(element).add_all(kind, &at, after),
                }
            }
            for (name, before) in old {
                if !new.contains_key(name) {
                    let at = schema::join(path, name);
                    removed.child(PathElement::Field(name.clone())).add_all(kind, &at, before);
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            let rule = schema::list(kind, path);
            let (Ok(before), Ok(after), false) =
                (items(rule, before), items(rule, after), rule == List::Atomic)
            else {
                changed.member |= old != new;
                return;
            };
            for (element, after) in &after {
                match before.get(element) {
                    Some(before) if before == after => {}
                    Some(before) => {
                        compare_child(kind, path, before, after, element.clone(), changed, removed)
                    }
                    None => changed.child(element.clone()).add_all(kind, path, after),
                }
            }
            for (element, before) in &before {
                if !after.contains_key(element) {
                    removed.child(element.clone()).add_all(kind, path, before);
                }
            }
        }
        (old, new) => changed.member |= old != new,
    }
}

fn compare_child(
    kind: &str,
    path: &str,
    old: &Value,
    new: &Value,
    element: PathElement,
    changed: &mut FieldSet,
    removed: &mut FieldSet,
) {
    let (mut inner_changed, mut inner_removed) = (FieldSet::default(), FieldSet::default());
    compare_at(kind, path, old, new, &mut inner_changed, &mut inner_removed);
    if !inner_changed.is_empty() {
        changed.children.insert(element.clone(), inner_changed);
    }
    if !inner_removed.is_empty() {
        removed.children.insert(element, inner_removed);
    }
}

/// The items of a list under the elements that lead to them.
///
/// # Errors
/// When an item lacks a key that has no default, or two items have the same.
pub(super) fn items(rule: List, list: &[Value]) -> Result<BTreeMap<PathElement, &Value>, String> {
    let mut items = BTreeMap::new();
    for (index, item) in list.iter().enumerate() {
        let element = element_of(rule, item).map_err(|why| format!("element {index}: {why}"))?;
        if let Some(element) = element {
            let readable = element.readable();
            if items.insert(element, item).is_some() {
                return Err(format!("duplicate entries for key {readable}"));
            }
        }
    }
    Ok(items)
}

/// The element that leads to `item`; `None` in an atomic list.
pub(super) fn element_of(rule: List, item: &Value) -> Result<Option<PathElement>, String> {
    match rule {
        List::Atomic => Ok(None),
        List::Set => Ok(Some(PathElement::Value(item.to_string()))),
        List::Keyed(keys) => {
            let mut found: BTreeMap<&str, Value> = BTreeMap::new();
            for key in keys {
                let value = item
                    .get(key)
                    .filter(|value| !value.is_null())
                    .cloned()
                    .or_else(|| schema::key_default(key))
                    .ok_or_else(|| {
                        format!(
                            "associative list with keys has an element that omits key field {key:?} \
                             (and doesn't have default value)"
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

impl PathElement {
    fn to_fields_v1(&self) -> String {
        match self {
            PathElement::Field(name) => format!("f:{name}"),
            PathElement::Key(keys) => format!("k:{keys}"),
            PathElement::Value(value) => format!("v:{value}"),
        }
    }

    fn from_fields_v1(text: &str) -> Option<PathElement> {
        let (form, rest) = text.split_once(':')?;
        // Other programs may write the keys with spaces or in another order.
        let json = |text: &str| {
            serde_json::from_str::<BTreeMap<String, Value>>(text)
                .ok()
                .and_then(|keys| serde_json::to_string(&keys).ok())
        };
        match form {
            "f" => Some(PathElement::Field(rest.to_owned())),
            "k" => Some(PathElement::Key(json(rest)?)),
            "v" => Some(PathElement::Value(serde_json::from_str::<Value>(rest).ok()?.to_string())),
            _ => None,
        }
    }

    fn readable(&self) -> String {
        match self {
            PathElement::Field(name) => format!(".{name}"),
            PathElement::Value(value) => format!("[={value}]"),
            PathElement::Key(keys) => {
                let keys: BTreeMap<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let mut text = String::from("[");
                for (index, (key, value)) in keys.iter().enumerate() {
                    let comma = if index == 0 { "" } else { "," };
                    // Writing to a String cannot fail.
                    let _ = write!(text, "{comma}{key}={value}");
                }
                text.push(']');
                text
            }
        }
    }
}
