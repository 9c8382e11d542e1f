//! Paths of members in a definition: `.spec.size`, `.labels['a.b']`.

use crate::kinds::prelude::*;

/// Whether members may be named in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Brackets {
    Allowed,
    Refused,
}

/// The members along a path, and the schema of the last one.
///
/// # Errors
/// Why the path is invalid.
pub(super) fn resolve<'a>(
    schema: &'a Value,
    path: &str,
    brackets: Brackets,
) -> Result<(Vec<String>, &'a Value), String> {
    let (mut schema, mut members) = (schema, Vec::new());
    let mut tokens = tokens(path).into_iter();
    while let Some(token) = tokens.next() {
        let mut next = || tokens.next().ok_or_else(|| "unexpected end of JSON path".to_owned());
        let name = match token {
            "." => next()?.to_owned(),
            "[" if brackets == Brackets::Refused => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let name = next()?;
                let name = name
                    .strip_prefix('\'')
                    .and_then(|name| name.strip_suffix('\''))
                    .ok_or_else(|| format!("expected single quoted string but got {name}"))?;
                match next()? {
                    "]" => name.replace("\\'", "'").replace("\\\\", "\\"),
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        let inner = match schema.get("properties") {
            Some(properties) => properties.get(&name),
            None => schema.get("additionalProperties").filter(|values| values.is_object()),
        };
        schema = inner.ok_or_else(|| "does not refer to a valid field".to_owned())?;
        members.push(name);
    }
    Ok((members, schema))
}

/// Splits a path into dots, brackets, and the text between them; a quoted text is one token.
fn tokens(path: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), path);
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let escaped = |at: usize| rest.get(..at).is_some_and(|before| before.ends_with('\\'));
                let close = rest.match_indices('\'').map(|(at, _)| at).find(|at| *at > 0 && !escaped(*at));
                close.map_or(rest.len(), |at| at + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(end);
        found.push(token);
        rest = after;
    }
    found
}

/// Validates one of `selectableFields`, given those before it. Returns its members.
///
/// # Errors
/// The server's message.
pub(super) fn selectable(schema: &Value, path: &str) -> Result<Vec<String>, String> {
    let (members, found) =
        resolve(schema, path, Brackets::Refused).map_err(|why| format!("is an invalid path: {why}"))?;
    if members.first().is_some_and(|first| first == "metadata") {
        return Err("must not point to fields in metadata".to_owned());
    }
    if !matches!(text_at(found, "/type"), "string" | "boolean" | "integer") {
        let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with \
                   formats are allowed.";
        return Err(why.to_owned());
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_members_that_the_schema_has() {
        let text = json!({ "type": "string" });
        let schema = json!({ "properties": {
            "spec": { "properties": { "size": text, "a.b": text } },
            "labels": { "additionalProperties": text },
        } });
        let cases = [
            (".spec.size", Ok("spec/size")),
            ("['spec']['a.b']", Ok("spec/a.b")),
            (".labels.x", Ok("labels/x")),
            (".labels['it\\'s']", Ok("labels/it's")),
            (".spec.color", Err("does not refer to a valid field")),
            (".spec.", Err("unexpected end of JSON path")),
            ("spec", Err("expected [ or . but got: spec")),
            (".spec[0]", Err("expected single quoted string but got 0")),
            (".spec['size'.", Err("expected ] but got .")),
        ];
        for (path, wanted) in cases {
            let found = resolve(&schema, path, Brackets::Allowed).map(|(members, _)| members.join("/"));
            assert_eq!(found, wanted.map(str::to_owned).map_err(str::to_owned), "{path}");
        }
        let refused = resolve(&schema, ".spec['size']", Brackets::Refused).map(|(members, _)| members);
        assert_eq!(refused, Err("array notation is not allowed".to_owned()));
    }
}
