//! Label selectors in the specifications of kinds: their rules, what they select, and how messages show them.

use serde_json::Value;

use crate::kinds::shared::metadata::labels;
use crate::kinds::shared::names::qualified_name;
use crate::object::invalid::{Causes, Invalid};
use crate::object::pointer::{list_at, members, text_at};

pub(crate) fn is_empty(selector: &Value) -> bool {
    members(selector, "/matchLabels").next().is_none() && list_at(selector, "/matchExpressions").is_empty()
}

/// Validates keys, values and operators of a label selector.
pub(crate) fn selector_is_sound(selector: &Value, field: &str, causes: &mut Causes) {
    labels(selector, "/matchLabels", &format!("{field}.matchLabels"), causes);
    for (index, expression) in list_at(selector, "/matchExpressions").iter().enumerate() {
        let at = |member: &str| format!("{field}.matchExpressions[{index}].{member}");
        let (operator, values) = (text_at(expression, "/operator"), list_at(expression, "/values"));
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(Invalid::required(at("values"), why));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Invalid::forbidden(at("values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => causes.push(Invalid::text(at("operator"), other, "not a valid selector operator")),
        }
        let key = text_at(expression, "/key");
        causes.check(at("key"), key, qualified_name);
    }
}

/// Whether a selector matches labels.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    members(selector, "/matchLabels").all(|(key, value)| labels.get(key) == Some(value))
        && list_at(selector, "/matchExpressions").iter().all(|expression| {
            let label = labels.get(text_at(expression, "/key"));
            let named = label.is_some_and(|label| list_at(expression, "/values").contains(label));
            match text_at(expression, "/operator") {
                "In" => named,
                "NotIn" => !named,
                "Exists" => label.is_some(),
                _ => label.is_none(),
            }
        })
}

/// A label selector as messages show it: JSON in the order of its type's fields.
pub(crate) fn selector_text(selector: &Value) -> String {
    let member = |of: &Value, name: &str| {
        of.get(name).filter(|value| !value.is_null()).map(|value| format!("{name:?}:{value}"))
    };
    let joined = |members: Vec<Option<String>>| {
        let members: Vec<String> = members.into_iter().flatten().collect();
        format!("{{{}}}", members.join(","))
    };
    if selector.is_null() {
        return "null".to_owned();
    }
    let expressions: Vec<String> = list_at(selector, "/matchExpressions")
        .iter()
        .map(|one| joined(["key", "operator", "values"].map(|name| member(one, name)).into()))
        .collect();
    let expressions =
        (!expressions.is_empty()).then(|| format!("\"matchExpressions\":[{}]", expressions.join(",")));
    joined(vec![member(selector, "matchLabels"), expressions])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn selectors_are_shown_in_the_order_of_their_type() {
        let selector = json!({ "matchExpressions": [{ "values": ["b"], "operator": "In", "key": "a" }],
            "matchLabels": { "a": "b" } });
        assert_eq!(
            selector_text(&selector),
            r#"{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"a","operator":"In","values":["b"]}]}"#
        );
        assert_eq!((selector_text(&json!({})), selector_text(&Value::Null)), ("{}".into(), "null".into()));
    }

    #[test]
    fn selectors_select() {
        let labels = json!({ "a": "1", "b": "2" });
        let expression = |operator, values: Value| {
            json!({ "matchExpressions": [{ "key": "a", "operator": operator,
            "values": values }] })
        };
        assert!(selects(&json!({ "matchLabels": { "a": "1" } }), &labels));
        assert!(!selects(&json!({ "matchLabels": { "a": "2" } }), &labels));
        assert!(selects(&expression("In", json!(["1", "3"])), &labels));
        assert!(!selects(&expression("NotIn", json!(["1"])), &labels));
        assert!(selects(&expression("Exists", json!([])), &labels));
        assert!(!selects(&expression("DoesNotExist", json!([])), &labels));
    }
}
