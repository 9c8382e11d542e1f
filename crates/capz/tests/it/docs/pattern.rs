//! Matches documents against the patterns of a page.

use serde_json::Value;

/// The first part of the pattern that the document lacks: its path and the value there; `None` if the document matches.
/// Members that the pattern does not name may have any value; an entry of a list matches any entry of the document's
/// list; `null` matches an absent member; a `*` in a text matches any characters.
pub fn missing(pattern: &Value, document: &Value) -> Option<String> {
    below(pattern, document, "")
}

fn below(pattern: &Value, document: &Value, path: &str) -> Option<String> {
    match (pattern, document) {
        // An absent object has no members.
        (Value::Object(members), Value::Object(_) | Value::Null) => {
            members.iter().find_map(|(name, pattern)| {
                below(pattern, document.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"))
            })
        }
        (Value::Array(entries), Value::Array(held)) if !entries.is_empty() || held.is_empty() => {
            entries.iter().enumerate().find_map(|(index, entry)| {
                let is_there = held.iter().any(|held| below(entry, held, "").is_none());
                (!is_there).then(|| format!("{path}[{index}]: {entry} is not in {}", document))
            })
        }
        (Value::String(text), Value::String(held)) if text.contains('*') => {
            (!fits(text, held)).then(|| format!("{path}: {held} is not {text}"))
        }
        (pattern, document) => (pattern != document).then(|| format!("{path}: {document} is not {pattern}")),
    }
}

/// Whether a text matches another one, in which each `*` matches any characters.
fn fits(text: &str, held: &str) -> bool {
    let Some((begin, rest)) = text.split_once('*') else { return text == held };
    let Some(held) = held.strip_prefix(begin) else { return false };
    held.char_indices().map(|(at, _)| at).chain([held.len()]).any(|at| fits(rest, &held[at..]))
}

#[test]
fn a_pattern_is_held_or_says_what_is_missing() {
    let held =
        serde_json::json!({ "a": { "b": "x/y/z" }, "list": [{ "n": 1, "m": 2 }, { "n": 2 }], "none": [] });
    for (pattern, lacks) in [
        ("{}", false),
        ("{a: {b: x/*/z}, list: [{n: 2}], c: null, none: []}", false),
        ("{a: {b: \"*y*\"}, q: {r: null}}", false),
        ("{a: {b: x/*/q}}", true),
        ("{a: {b: x/y/z*x/y/z}}", true),
        ("{a: {b: null}}", true),
        ("{list: [{n: 2, m: 2}]}", true),
        ("{list: []}", true),
        ("{c: {d: 1}}", true),
    ] {
        let parsed: Value = serde_saphyr::from_str(pattern).unwrap();
        assert_eq!(missing(&parsed, &held).is_some(), lacks, "{pattern}");
    }
}
