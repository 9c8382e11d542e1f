//! Tables of custom kinds: the columns of their definitions, or the age.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kinds::shared::cells;
use crate::object::pointer::text_at;
use crate::registry::{Kind, PrinterColumn};
use crate::rest::table::json_path;

const CREATED: &str = ".metadata.creationTimestamp";

fn of(kind: &Kind) -> Vec<PrinterColumn> {
    if !kind.columns.is_empty() {
        return kind.columns.clone();
    }
    let text = str::to_owned;
    vec![PrinterColumn {
        name: text("Age"),
        form: text("date"),
        format: String::new(),
        description: String::new(),
        priority: 0,
        path: text(CREATED),
    }]
}

pub(super) fn columns(kind: &Kind) -> Value {
    let name = json!({ "name": "Name", "type": "string", "format": "name", "priority": 0,
        "description": "Name must be unique within a namespace." });
    let own = of(kind).into_iter().map(|column| {
        // A column without a description is described by its path.
        let description = match column.description.as_str() {
            "" => format!("Custom resource definition column (in JSONPath format): {}", column.path),
            text => text.to_owned(),
        };
        json!({ "name": column.name, "type": column.form, "format": column.format, "description": description,
            "priority": column.priority })
    });
    std::iter::once(name).chain(own).collect()
}

pub(super) fn row(kind: &Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    let name = text_at(object, "/metadata/name").into();
    std::iter::once(name).chain(of(kind).iter().map(|column| cell(column, object, now))).collect()
}

/// The first value at a column's path. A value of another type than the column's is shown as empty.
fn cell(column: &PrinterColumn, object: &Value, now: Timestamp) -> Value {
    let found = json_path::find(&column.path, object);
    let Some(value) = found.first().copied() else { return Value::Null };
    match (column.form.as_str(), value) {
        ("integer", Value::Number(number)) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|number| number as i64))
            .map_or(Value::Null, Value::from),
        ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, Value::from),
        ("boolean", Value::Bool(truth)) => Value::Bool(*truth),
        ("string", Value::String(text)) => Value::from(text.as_str()),
        ("string", Value::Null) => Value::from("<nil>"),
        ("string", other) => Value::from(other.to_string()),
        ("date", Value::String(text)) if text.parse::<Timestamp>().is_err() => "<invalid>".into(),
        ("date", Value::String(_)) => cells::age(Some(value), now).into(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn cells_have_the_types_of_their_columns() {
        let mut registry = Registry::default();
        let column =
            |name: &str, form: &str, path: &str| json!({ "name": name, "type": form, "jsonPath": path });
        registry.register_definition(&json!({ "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "additionalPrinterColumns": [
                column("Size", "integer", ".spec.size"), column("On", "boolean", ".spec.on"),
                column("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
                column("Since", "date", ".status.since"), column("What", "string", ".spec.what"),
                column("Wrong", "integer", ".spec.on"), column("Absent", "string", ".spec.absent"),
            ] }] } }));
        let kind = registry.by_name("Widget").unwrap();
        let object = json!({ "metadata": { "name": "w" }, "spec": { "size": 3, "on": true, "what": { "a": 1 } },
            "status": { "conditions": [{ "type": "A", "status": "x" }, { "type": "Ready", "status": "True" }],
                "since": "2026-01-01T00:00:00Z" } });
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(
            row(&kind, &object, now),
            [
                json!("w"),
                json!(3),
                json!(true),
                json!("True"),
                json!("10m"),
                json!("{\"a\":1}"),
                Value::Null,
                Value::Null
            ]
        );
        assert_eq!(columns(&kind)[3]["name"], "Ready");
    }
}
