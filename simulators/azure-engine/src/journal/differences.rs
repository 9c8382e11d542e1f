//! The names of members that a write changed.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::document::{members, name, text};

/// Most changes named in one entry: a first write of a load balancer would otherwise fill a page by itself.
const MAX_NAMED_CHANGES: usize = 40;

/// Names the members in which two documents differ. `None` stands for an absent document.
pub fn differences(before: Option<&Value>, after: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    match (before, after) {
        (None, Some(after)) => {
            found.push("+".to_owned());
            for (member, value) in after.get("properties").into_iter().flat_map(members) {
                for item in value.as_array().into_iter().flatten().filter(|item| item.get("name").is_some()) {
                    found.push(format!("+{member}/{}", name(item)));
                }
            }
        }
        (Some(_), None) => found.push("-".to_owned()),
        (Some(before), Some(after)) => compare(before, after, "", &mut found),
        (None, None) => {}
    }
    if found.len() > MAX_NAMED_CHANGES {
        let more = found.len() - MAX_NAMED_CHANGES;
        found.truncate(MAX_NAMED_CHANGES);
        found.push(format!("and {more} more"));
    }
    found
}

fn compare(before: &Value, after: &Value, path: &str, found: &mut Vec<String>) {
    if before == after {
        return;
    }
    let join = |member: &str| {
        if path.is_empty() || path == "properties" { member.to_owned() } else { format!("{path}/{member}") }
    };
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for member in names {
                match (old.get(member), new.get(member)) {
                    (Some(old), Some(new)) => compare(old, new, &join(member), found),
                    (None, Some(_)) => found.push(format!("+{}", join(member))),
                    (_, None) => found.push(format!("-{}", join(member))),
                }
            }
        }
        (Value::Array(old), Value::Array(new))
            if old.iter().chain(new).all(|item| text(item, "name").is_some()) =>
        {
            for item in new {
                match old.iter().find(|other| name(other).eq_ignore_ascii_case(name(item))) {
                    None => found.push(format!("+{}", join(name(item)))),
                    Some(other) if other != item => found.push(format!("~{}", join(name(item)))),
                    Some(_) => {}
                }
            }
            for item in old {
                if !new.iter().any(|other| name(other).eq_ignore_ascii_case(name(item))) {
                    found.push(format!("-{}", join(name(item))));
                }
            }
        }
        _ => found.push(format!("~{path}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::differences;

    #[test]
    fn differences_name_members_but_not_their_values() {
        let before = json!({"tags": {"a": "1"}, "properties": {"rules": [{"name": "x", "p": 1}, {"name": "y"}], "n": 1}});
        let after = json!({"tags": {"a": "2"}, "properties": {"rules": [{"name": "X", "p": 2}, {"name": "z"}], "n": 1}});
        assert_eq!(differences(Some(&before), Some(&after)), ["~rules/X", "+rules/z", "-rules/y", "~tags/a"]);
        assert_eq!(differences(None, Some(&after)), ["+", "+rules/X", "+rules/z"]);
        assert!(differences(Some(&after), Some(&after)).is_empty());
    }
}
