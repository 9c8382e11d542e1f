//! Label and field selectors (Kubernetes: "Labels and Selectors", "Field Selectors").

use serde_json::Value;

use crate::object::{Object, list_at, string_at, value_at};
use crate::registry::Kind;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Requirement {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// A label selector; without requirements it matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    /// Parses `a=b,c!=d,e in (x,y),f notin (z),g,!h`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut requirements = Vec::new();
        for part in split_outside_parentheses(text) {
            let part = part.trim();
            if part.is_empty() {
                if text.trim().is_empty() {
                    continue;
                }
                return Err(format!(
                    "unable to parse requirement: found '', expected: identifier in {text:?}"
                ));
            }
            requirements.push(requirement(part)?);
        }
        Ok(Self(requirements))
    }

    /// Parses a selector of an object, with `matchLabels` and `matchExpressions`.
    pub(crate) fn of_object(selector: &Value) -> Self {
        let labels = value_at(selector, &["matchLabels"]).and_then(Value::as_object);
        let labels = labels
            .into_iter()
            .flatten()
            .filter_map(|(key, value)| Some(Requirement::In(key.clone(), vec![value.as_str()?.to_owned()])));
        let expressions = list_at(selector, &["matchExpressions"]).iter().filter_map(|expression| {
            let key = string_at(expression, &["key"])?.to_owned();
            let values = list_at(expression, &["values"]).iter();
            let values = values.filter_map(|value| value.as_str().map(str::to_owned)).collect();
            match string_at(expression, &["operator"])? {
                "In" => Some(Requirement::In(key, values)),
                "NotIn" => Some(Requirement::NotIn(key, values)),
                "Exists" => Some(Requirement::Exists(key)),
                "DoesNotExist" => Some(Requirement::Absent(key)),
                _ => None,
            }
        });
        Self(labels.chain(expressions).collect())
    }

    /// Whether the object's labels meet every requirement.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let labels = value_at(object, &["metadata", "labels"]);
        let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
        self.0.iter().all(|requirement| match requirement {
            Requirement::In(key, values) => label(key).is_some_and(|found| values.iter().any(|v| v == found)),
            Requirement::NotIn(key, values) => {
                label(key).is_none_or(|found| values.iter().all(|v| v != found))
            }
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::Absent(key) => label(key).is_none(),
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn split_outside_parentheses(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_usize, 0_usize);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

fn requirement(part: &str) -> Result<Requirement, String> {
    if let Some(key) = part.strip_prefix('!') {
        return Ok(Requirement::Absent(label_key(key)?));
    }
    if let Some((key, value)) = part.split_once("!=") {
        return Ok(Requirement::NotIn(label_key(key)?, vec![label_value(value)?]));
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        if value.trim_start().starts_with('=') {
            return Err("unable to parse requirement: found '=', expected: identifier".to_owned());
        }
        return Ok(Requirement::In(label_key(key)?, vec![label_value(value)?]));
    }
    if let Some((head, rest)) = part.split_once('(') {
        let Some(list) = rest.trim_end().strip_suffix(')') else {
            return Err(format!("unable to parse requirement: found {part:?}, expected: ')'"));
        };
        let values = list.split(',').map(label_value).collect::<Result<Vec<_>, _>>()?;
        let mut words = head.split_whitespace();
        return match (words.next(), words.next(), words.next()) {
            (Some(key), Some("in"), None) => Ok(Requirement::In(label_key(key)?, values)),
            (Some(key), Some("notin"), None) => Ok(Requirement::NotIn(label_key(key)?, values)),
            _ => Err(format!("unable to parse requirement: found {head:?}, expected: in, notin, =, ==, !=")),
        };
    }
    Ok(Requirement::Exists(label_key(part)?))
}

fn label_key(text: &str) -> Result<String, String> {
    let key = text.trim();
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let prefix_ok = prefix.is_none_or(|prefix| {
        !prefix.is_empty()
            && prefix.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c))
    });
    if prefix_ok && !name.is_empty() && name.len() <= 63 && is_label_text(name) {
        Ok(key.to_owned())
    } else {
        Err(format!("unable to parse requirement: invalid label key {key:?}"))
    }
}

fn label_value(text: &str) -> Result<String, String> {
    let value = text.trim();
    if value.len() <= 63 && (value.is_empty() || is_label_text(value)) {
        Ok(value.to_owned())
    } else {
        Err(format!("unable to parse requirement: invalid label value: {value:?}"))
    }
}

/// Letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_label_text(text: &str) -> bool {
    let end_ok = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    end_ok(text.chars().next())
        && end_ok(text.chars().next_back())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// One requirement on a member.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldTerm {
    field: String,
    equal: bool,
    value: String,
    /// Whether the member is one of a custom kind: then its value is compared as it is.
    custom: bool,
}

/// A field selector; without terms it matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<FieldTerm>);

impl FieldSelector {
    /// Parses `a=b,c!=d` and refuses fields that the kind does not support.
    pub(crate) fn parse(text: &str, kind: &Kind) -> Result<Self, String> {
        let mut terms = Vec::new();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (field, equal, value) = if let Some((field, value)) = part.split_once("!=") {
                (field, false, value)
            } else if let Some((field, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (field, true, value)
            } else {
                return Err(format!("invalid selector: '{part}'; can't understand '{part}'"));
            };
            let common = field == "metadata.name" || (field == "metadata.namespace" && kind.namespaced);
            if !common && !kind.fields.iter().any(|known| known == field) {
                return Err(if kind.fields.is_empty() && !kind.is_custom() {
                    format!(
                        "{field:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                    )
                } else {
                    format!("field label not supported: {field}")
                });
            }
            let (field, value, custom) = (field.to_owned(), value.to_owned(), kind.is_custom());
            terms.push(FieldTerm { field, equal, value, custom });
        }
        Ok(Self(terms))
    }

    /// Whether the object's members meet every term; missing members count as an empty text.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.0.iter().all(|term| (field_text(object, &term.field, term.custom) == term.value) == term.equal)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn field_text(object: &Object, field: &str, custom: bool) -> String {
    // These fields are known without parsing the object.
    match field {
        "metadata.name" => return object.name().to_owned(),
        "metadata.namespace" => return object.namespace().to_owned(),
        _ => {}
    }
    // The only field whose label differs from its path: a core Event's source is its component.
    let value = if field == "source" && !custom {
        value_at(object, &["source", "component"])
            .filter(|component| component.as_str() != Some(""))
            .or_else(|| value_at(object, &["reportingComponent"]))
    } else {
        let path: Vec<&str> = field.split('.').collect();
        value_at(object, &path)
    };
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(truth)) => truth.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        // Missing booleans are false to the API server.
        None if custom => String::new(),
        None if field == "spec.unschedulable" || field == "spec.hostNetwork" => "false".to_owned(),
        _ => String::new(),
    }
}

/// The selection of a list or watch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    /// Empty for all namespaces.
    pub(crate) namespace: String,
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    /// Whether the object is selected.
    pub(crate) fn matches(&self, object: &Object) -> bool {
        (self.namespace.is_empty() || object.namespace() == self.namespace)
            && self.fields.matches(object)
            && (self.labels.is_empty() || self.labels.matches(object))
    }

    /// Whether a selector narrows the selection beyond the namespace.
    pub(crate) fn is_narrowed(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(text: &str) -> LabelSelector {
        LabelSelector::parse(text).unwrap()
    }

    #[test]
    fn label_selectors_match_by_every_operator() {
        let object =
            json!({ "metadata": { "labels": { "app": "web", "tier": "front", "example.com/x": "" } } });
        for matching in [
            "",
            "app",
            "app=web",
            "app==web",
            "app!=db",
            "missing!=x",
            "app in (web, db),tier in (front)",
            "app notin (db)",
            "missing notin (a,b)",
            "!missing",
            "example.com/x=",
            " app = web , tier ",
        ] {
            assert!(labels(matching).matches(&object), "{matching}");
        }
        for other in
            ["app=db", "!app", "missing", "app in (db)", "app notin (web,db)", "app!=web", "app=web,!tier"]
        {
            assert!(!labels(other).matches(&object), "{other}");
        }
    }

    #[test]
    fn malformed_label_selectors_are_refused() {
        for text in ["=a", "a in", "a in (b", "a b", "a=b c", ",a", "a,,b", "a=*", "-a=b", "a like (b)"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn field_selectors_know_only_offered_fields() {
        let registry = crate::registry::Registry::default();
        let pods = registry.by_name("pods").unwrap();
        let pod = Object::new(json!({ "metadata": { "name": "a" }, "spec": { "nodeName": "n1" } }), 1);
        assert!(FieldSelector::parse("spec.nodeName=n1,metadata.name!=b", &pods).unwrap().matches(&pod));
        assert!(!FieldSelector::parse("spec.nodeName!=n1", &pods).unwrap().matches(&pod));
        assert!(FieldSelector::parse("status.phase=", &pods).unwrap().matches(&pod));
        let error = FieldSelector::parse("spec.color=red", &pods).unwrap_err();
        assert_eq!(error, "field label not supported: spec.color");
    }
}
