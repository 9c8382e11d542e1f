//! The variables of a topology: those of the user with the defaults of the ClusterClass, and `builtin`.

use serde_json::{Map, Value};

/// The variables of a Cluster: the values that its topology gives, and the defaults of the class.
///
/// # Errors
/// A required variable has no value, in words.
pub fn of_cluster(class: &Value, topology: &Value) -> Result<Map<String, Value>, String> {
    let mut all = given(&topology["variables"]);
    for declared in class["spec"]["variables"].as_array().into_iter().flatten() {
        let name = declared["name"].as_str().unwrap_or_default();
        let schema = &declared["schema"]["openAPIV3Schema"];
        match all.get_mut(name) {
            Some(value) => fill(value, schema),
            None => {
                if let Some(default) = schema.get("default") {
                    let mut value = default.clone();
                    fill(&mut value, schema);
                    all.insert(name.to_owned(), value);
                } else if declared["required"] == true {
                    return Err(format!(
                        "variable {name} of its ClusterClass is required: set it in spec.topology.variables"
                    ));
                }
            }
        }
    }
    Ok(all)
}

/// The same with what a part of the topology overrides (`variables.overrides`).
pub fn overridden(all: &Map<String, Value>, class: &Value, part: &Value) -> Map<String, Value> {
    let mut all = all.clone();
    for (name, mut value) in given(&part["variables"]["overrides"]) {
        let declared = class["spec"]["variables"].as_array().into_iter().flatten();
        if let Some(declared) = declared.into_iter().find(|it| it["name"] == name) {
            fill(&mut value, &declared["schema"]["openAPIV3Schema"]);
        }
        all.insert(name, value);
    }
    all
}

/// Named values.
fn given(list: &Value) -> Map<String, Value> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| Some((item["name"].as_str()?.to_owned(), item.get("value")?.clone()))).collect()
}

/// Fills in the defaults of members, as an API server does.
fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(members) => {
            for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
                if !members.contains_key(name)
                    && let Some(default) = schema.get("default")
                {
                    members.insert(name.clone(), default.clone());
                }
                if let Some(value) = members.get_mut(name) {
                    fill(value, schema);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, &schema["items"])),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The value of a variable by its path, such as `builtin.cluster.network.pods[0]`; `None` if there is none.
pub fn find<'a>(variables: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(variables, |value, part| {
        let mut pieces = part.split('[');
        let value = value.get(pieces.next()?)?;
        pieces.try_fold(value, |value, index| value.get(index.strip_suffix(']')?.parse::<usize>().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class() -> Value {
        let schema = |schema: Value| json!({ "openAPIV3Schema": schema });
        json!({ "spec": { "variables": [
            { "name": "location", "required": true, "schema": schema(json!({ "type": "string" })) },
            { "name": "size", "schema": schema(json!({ "type": "string", "default": "small" })) },
            { "name": "group", "schema": schema(json!({ "type": "string" })) },
            { "name": "disk", "schema": schema(json!({ "type": "object", "properties": {
                "gb": { "default": 30 }, "cache": { "type": "string" } } })) },
            { "name": "list", "schema": schema(json!({ "type": "array", "default": [{}], "items": { "properties": { "a": { "default": 1 } } } })) },
        ] } })
    }

    #[test]
    fn values_count_before_defaults_and_required_ones_must_be_there() {
        let topology = |variables: Value| json!({ "variables": variables });
        for (given, expected) in [
            (json!([]), Err("variable location of its ClusterClass is required")),
            (
                json!([{ "name": "location", "value": "west" }]),
                Ok(json!({ "location": "west", "size": "small", "list": [{ "a": 1 }] })),
            ),
            (
                json!([{ "name": "location", "value": "west" }, { "name": "size", "value": "" }, { "name": "disk", "value": {} }]),
                Ok(json!({ "location": "west", "size": "", "disk": { "gb": 30 }, "list": [{ "a": 1 }] })),
            ),
            (
                json!([{ "name": "location", "value": "west" }, { "name": "disk", "value": { "gb": 5, "cache": "None" } }]),
                Ok(
                    json!({ "location": "west", "size": "small", "disk": { "gb": 5, "cache": "None" }, "list": [{ "a": 1 }] }),
                ),
            ),
        ] {
            match (of_cluster(&class(), &topology(given.clone())), expected) {
                (Ok(all), Ok(expected)) => assert_eq!(Value::Object(all), expected, "{given}"),
                (Err(said), Err(words)) => assert!(said.starts_with(words), "{said}"),
                (found, expected) => panic!("{given}: {found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn a_part_overrides_variables_whole() {
        let topology = json!({ "variables": [{ "name": "location", "value": "west" }, { "name": "disk", "value": { "cache": "x" } }] });
        let all = of_cluster(&class(), &topology).unwrap();
        let part = json!({ "variables": { "overrides": [{ "name": "disk", "value": { "gb": 9 } }] } });
        let overridden = overridden(&all, &class(), &part);
        assert_eq!(overridden["disk"], json!({ "gb": 9 }));
        assert_eq!(overridden["location"], "west");
    }

    #[test]
    fn values_are_found_by_their_paths() {
        let all = json!({ "a": { "b": [1, { "c": 2 }], "d": [[3]] } });
        for (path, expected) in [
            ("a.b[0]", Some(json!(1))),
            ("a.b[1].c", Some(json!(2))),
            ("a.d[0][0]", Some(json!(3))),
            ("a.b[2]", None),
            ("a.x", None),
            ("a.b[x]", None),
        ] {
            assert_eq!(find(&all, path).cloned(), expected, "{path}");
        }
    }
}
