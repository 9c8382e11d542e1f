//! Sets of fields of one object, and their `fieldsV1` form in `metadata.managedFields`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value};

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

/// A set of paths, as a tree: a node is in the set if `member` is true.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    member: bool,
    children: BTreeMap<PathElement, FieldSet>,
}

impl FieldSet {
    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.values().all(FieldSet::is_empty)
    }

    /// The node at `element`, created if missing.
    pub(super) fn child(&mut self, element: PathElement) -> &mut FieldSet {
        self.children.entry(element).or_default()
    }

    pub(super) fn union(&mut self, other: &FieldSet) {
        self.member |= other.member;
        for (element, theirs) in &other.children {
            self.child(element.clone()).union(theirs);
        }
    }

    /// Removes the paths in `other`.
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

    /// Adds the path of this node.
    pub(super) fn insert(&mut self) {
        self.member = true;
    }

    /// Removes the path of this node, but keeps those below it.
    pub(super) fn disown(&mut self) {
        self.member = false;
    }

    pub(super) fn is_member(&self) -> bool {
        self.member
    }

    pub(super) fn has_children(&self) -> bool {
        !self.children.is_empty()
    }

    /// Replaces all paths below this node by its own path.
    pub(super) fn collapse(&mut self) {
        self.member = true;
        self.children.clear();
    }

    /// Keeps some members of an object, with all paths below them.
    pub(super) fn retain_members(&mut self, keep: impl Fn(&str) -> bool) {
        self.children.retain(|element, _| match element {
            PathElement::Field(name) => keep(name),
            PathElement::Key(_) | PathElement::Value(_) => true,
        });
    }

    pub(super) fn elements_mut(&mut self) -> impl Iterator<Item = (&PathElement, &mut FieldSet)> {
        self.children.iter_mut()
    }

    /// Drops nodes without any path.
    pub(super) fn compact(&mut self) {
        self.children.values_mut().for_each(FieldSet::compact);
        self.children.retain(|_, child| child.member || !child.children.is_empty());
    }

    /// Every path in the set in the format of messages: `.spec.ports[port=80,protocol="TCP"].name`.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut paths = vec![];
        self.collect_paths("", &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &str, paths: &mut Vec<String>) {
        let at = |element: &PathElement| format!("{prefix}{}", element.readable());
        // A member precedes the paths inside its siblings.
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

    /// Reads a `fieldsV1` document; entries of an unknown form are ignored.
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

    /// The element in the format of messages: `.name`, `[name="a"]`, `[="a"]`.
    pub(super) fn readable(&self) -> String {
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
