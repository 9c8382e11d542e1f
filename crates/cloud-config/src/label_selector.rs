//! Label selectors (Kubernetes, "Labels and Selectors"): required labels, and requirements.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{Problem, Remedy};

/// Selects objects by their labels. A selector without any requirement counts as not set (`LabelSelector::read`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// A requirement on one label.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Operator {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            _ => None,
        }
    }

    fn takes_values(self) -> bool {
        matches!(self, Self::In | Self::NotIn)
    }
}

impl Requirement {
    fn holds(&self, labels: &BTreeMap<String, String>) -> bool {
        let value = labels.get(&self.key);
        match self.operator {
            Operator::In => value.is_some_and(|value| self.values.contains(value)),
            Operator::NotIn => value.is_none_or(|value| !self.values.contains(value)),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

impl LabelSelector {
    /// Whether these labels meet all requirements.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.requirements.iter().all(|requirement| requirement.holds(labels))
    }

    /// Parses `matchLabels` and `matchExpressions`; `None` for a selector without any requirement.
    pub(crate) fn read(object: Map<String, Value>, path: &str, problems: &mut Vec<Problem>) -> Option<Self> {
        let mut requirements = Vec::new();
        let mut wrong = |what: &str, value: &Value, reason: &str| {
            let remedy = Remedy::remove("multipleStandardLoadBalancerConfigurations")
                .note(", or write the selector as Kubernetes does: matchLabels and matchExpressions");
            problems.push(Problem::new(format!("{path}.{what}"), value.to_string(), reason, remedy));
        };
        for (key, value) in object {
            match (key.as_str(), value) {
                (_, Value::Null) => {}
                ("matchLabels", Value::Object(labels)) => {
                    for (key, value) in labels {
                        match value {
                            Value::String(value) => requirements.push(Requirement {
                                key,
                                operator: Operator::In,
                                values: vec![value],
                            }),
                            other => wrong(&format!("matchLabels.{key}"), &other, "must be a text"),
                        }
                    }
                }
                ("matchExpressions", Value::Array(expressions)) => {
                    for expression in expressions {
                        match read_expression(&expression) {
                            Ok(requirement) => requirements.push(requirement),
                            Err(reason) => wrong("matchExpressions", &expression, reason),
                        }
                    }
                }
                ("matchLabels", other) => wrong("matchLabels", &other, "must be a mapping"),
                ("matchExpressions", other) => wrong("matchExpressions", &other, "must be a list"),
                (other, value) => wrong(other, &value, "is neither matchLabels nor matchExpressions"),
            }
        }
        (!requirements.is_empty()).then_some(Self { requirements })
    }
}

fn read_expression(expression: &Value) -> Result<Requirement, &'static str> {
    let text = |member: &str| expression.get(member).and_then(Value::as_str);
    let key = text("key").filter(|key| !key.is_empty()).ok_or("must have a key")?;
    let operator = text("operator").and_then(Operator::parse);
    let operator = operator.ok_or("its operator must be In, NotIn, Exists or DoesNotExist")?;
    let values = match expression.get("values") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => {
            let texts: Option<Vec<String>> =
                values.iter().map(|value| value.as_str().map(str::to_owned)).collect();
            texts.ok_or("its values must be texts")?
        }
        Some(_) => return Err("its values must be a list"),
    };
    match (operator.takes_values(), values.is_empty()) {
        (true, true) => Err("In and NotIn need values"),
        (false, false) => Err("Exists and DoesNotExist take no values"),
        _ => Ok(Requirement { key: key.to_owned(), operator, values }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(selector: Value) -> (Option<LabelSelector>, Vec<Problem>) {
        let mut problems = Vec::new();
        let Value::Object(object) = selector else { unreachable!() };
        let selector = LabelSelector::read(object, "x", &mut problems);
        (selector, problems)
    }

    #[test]
    fn labels_fulfil_requirements_as_in_kubernetes() {
        let expression = |operator: &str, values: Value| json!({"matchExpressions": [{"key": "team", "operator": operator, "values": values}]});
        let rows = [
            (json!({"matchLabels": {"team": "a"}}), [true, false, false]),
            (json!({"matchLabels": {"team": "a", "tier": "web"}}), [false, false, false]),
            (expression("In", json!(["a", "b"])), [true, true, false]),
            (expression("NotIn", json!(["a"])), [false, true, true]),
            (expression("Exists", json!(null)), [true, true, false]),
            (expression("DoesNotExist", json!([])), [false, false, true]),
        ];
        for (selector, expected) in rows {
            let (read, problems) = read(selector.clone());
            assert_eq!(problems, [], "{selector}");
            let labels = [Some("a"), Some("b"), None]
                .map(|value| value.into_iter().map(|value| ("team".to_owned(), value.to_owned())).collect());
            let found =
                labels.map(|labels: BTreeMap<String, String>| read.as_ref().unwrap().matches(&labels));
            assert_eq!(found, expected, "{selector}");
        }
    }

    #[test]
    fn what_is_no_selector_is_refused_and_an_empty_one_is_none() {
        for empty in [json!({}), json!({"matchLabels": {}}), json!({"matchExpressions": null})] {
            assert_eq!(read(empty), (None, vec![]));
        }
        for wrong in [
            json!({"matchLabels": ["a"]}),
            json!({"matchLabels": {"a": 1}}),
            json!({"team": "a"}),
            json!({"matchExpressions": [{"key": "a", "operator": "Equals", "values": ["b"]}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}),
            json!({"matchExpressions": [{"operator": "Exists"}]}),
            json!({"matchExpressions": {"key": "a"}}),
        ] {
            assert_eq!(read(wrong.clone()).1.len(), 1, "{wrong}");
        }
    }
}
