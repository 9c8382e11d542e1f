//! Defaults of missing members, as tables (Kubernetes API reference; `SetDefaults_…` of each group).
//!
//! A row holds a path and a value as JSON. The value is set if the last member of the path is missing and all members
//! before it exist; `list[]` applies to each item, and `member{name=value}` continues only if the member has that
//! value. Rows are applied in order, so that a row can fill in an object that an earlier one created.

use serde_json::Value;

/// A path, and the default of its last member as JSON.
pub(crate) type Row = (&'static str, &'static str);

/// Applies a table.
pub(crate) fn fill(object: &mut Value, rows: &[Row]) {
    for (path, value) in rows {
        set(object, path, value);
    }
}

fn set(at: &mut Value, path: &str, value: &str) {
    let Some(members) = at.as_object_mut() else { return };
    let Some((step, rest)) = path.split_once('.') else {
        let member = members.entry(path).or_insert(Value::Null);
        if member.is_null() {
            *member = serde_json::from_str(value).unwrap_or_default();
        }
        return;
    };
    if let Some(list) = step.strip_suffix("[]") {
        for item in members.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            set(item, rest, value);
        }
    } else if let Some((member, condition)) = step.split_once('{') {
        let (name, wanted) = condition.trim_end_matches('}').split_once('=').unwrap_or_default();
        if let Some(member) = members.get_mut(member).filter(|member| member[name] == wanted) {
            set(member, rest, value);
        }
    } else if let Some(member) = members.get_mut(step) {
        set(member, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_fill_in_what_is_missing_and_nothing_else() {
        let mut object = json!({ "strategy": { "type": "Recreate" }, "list": [{ "a": 1 }, {}] });
        fill(
            &mut object,
            &[
                ("strategy{type=RollingUpdate}.rollingUpdate", "{}"),
                ("strategy.rollingUpdate.maxSurge", "1"),
                ("list[].a", "2"),
                ("absent.member", "3"),
            ],
        );
        assert_eq!(object, json!({ "strategy": { "type": "Recreate" }, "list": [{ "a": 1 }, { "a": 2 }] }));
    }
}
