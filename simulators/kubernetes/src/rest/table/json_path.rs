//! The simple paths of printer columns (Kubernetes: "JSONPath Support"): members, indices, `[*]`, and filters that
//! compare one member with a text.

use serde_json::Value;

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Member(String),
    Index(i64),
    All,
    /// Members of the path to a value, which must be equal or not equal to this one.
    Filter {
        path: Vec<String>,
        equal: bool,
        value: Value,
    },
}

/// All values at a path. An invalid path has no values.
pub(super) fn find<'a>(path: &str, object: &'a Value) -> Vec<&'a Value> {
    let Some(steps) = parse(path) else { return Vec::new() };
    let mut found = vec![object];
    for step in &steps {
        found = found.into_iter().flat_map(|value| take(step, value)).collect();
    }
    found
}

fn take<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match step {
        Step::Member(name) => value.get(name).into_iter().collect(),
        Step::Index(index) => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let at = if *index < 0 { index + items.len() as i64 } else { *index };
            usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
        }
        Step::All => match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            _ => Vec::new(),
        },
        Step::Filter { path, equal, value: wanted } => {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            let given = |item: &'a Value| path.iter().try_fold(item, |value, name| value.get(name));
            items.iter().filter(|item| given(item).is_some_and(|given| (given == wanted) == *equal)).collect()
        }
    }
}

fn parse(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let end = end_of_bracket(after)?;
            steps.push(bracket(after.get(..end)?)?);
            rest = after.get(end + 1..)?;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let (name, after) = member(name);
            match name.as_str() {
                "" => {}
                "*" => steps.push(Step::All),
                _ => steps.push(Step::Member(name)),
            }
            if after.len() == rest.len() {
                return None;
            }
            rest = after;
        }
    }
    Some(steps)
}

/// A member's name up to the next step; a backslash escapes the next character.
fn member(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '.' | '[' => return (name, text.get(at..).unwrap_or_default()),
            '\\' => name.extend(characters.next().map(|(_, c)| c)),
            c => name.push(c),
        }
    }
    (name, "")
}

/// The position of the closing bracket, outside of texts and parentheses.
fn end_of_bracket(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ']') => return Some(at),
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    let inner = inner.trim();
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(filter) = inner.strip_prefix("?(").and_then(|inner| inner.strip_suffix(')')) {
        let (left, equal, right) = match filter.split_once("==") {
            Some((left, right)) => (left, true, right),
            None => filter.split_once("!=").map(|(left, right)| (left, false, right))?,
        };
        let path = left.trim().strip_prefix("@")?;
        let path = path.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        return Some(Step::Filter { path, equal, value: literal(right.trim())? });
    }
    if let Some(name) = quoted(inner) {
        return Some(Step::Member(name.replace("\\.", ".")));
    }
    inner.parse().ok().map(Step::Index)
}

fn quoted(text: &str) -> Option<&str> {
    let inside = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    inside('\'').or_else(|| inside('"'))
}

fn literal(text: &str) -> Option<Value> {
    quoted(text).map(Value::from).or_else(|| serde_json::from_str(text).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_where_they_say() {
        let object =
            json!({ "a": { "b.c": 1, "list": [{ "t": "x", "v": 1 }, { "t": "y]", "v": 2 }] }, "n": null });
        let cases = [
            (".a['b.c']", json!([1])),
            (".a.b\\.c", json!([1])),
            (".a.list[0].v", json!([1])),
            (".a.list[-1].v", json!([2])),
            (".a.list[*].v", json!([1, 2])),
            (".a.list[?(@.t==\"y]\")].v", json!([2])),
            (".a.list[?(@.t!='x')].v", json!([2])),
            (".a.list[?(@.v == 1)].t", json!(["x"])),
            ("{.n}", json!([null])),
            (".absent.x", json!([])),
            (".a[", json!([])),
        ];
        for (path, found) in cases {
            assert_eq!(json!(find(path, &object)), found, "{path}");
        }
    }
}
