//! Templates of values in patches: the part of Go's templates that ClusterClasses for Azure use.
//!
//! Text, `{{ .variable.member }}`, `{{ if … }} … {{ else }} … {{ end }}`, strings, numbers, `true` and `false`,
//! parentheses, pipes, and the functions of [`FUNCTIONS`]. Anything else is named and not evaluated.

use serde_json::{Value, json};

/// The functions, each with its smallest and largest number of arguments.
const FUNCTIONS: [(&str, usize, usize, Function); 9] = [
    ("and", 1, usize::MAX, |all| all.iter().find(|it| !is_true(it)).or(all.last()).cloned()),
    ("default", 2, 2, |all| all.iter().rev().find(|it| is_true(it)).or(all.first()).cloned()),
    ("eq", 2, 2, |all| Some(json!(all.first() == all.get(1)))),
    ("ne", 2, 2, |all| Some(json!(all.first() != all.get(1)))),
    ("not", 1, 1, |all| Some(json!(!all.first().is_some_and(is_true)))),
    ("or", 1, usize::MAX, |all| all.iter().find(|it| is_true(it)).or(all.last()).cloned()),
    ("quote", 1, 1, |all| Some(json!(json!(printed(all.first()?)?).to_string()))),
    ("trimPrefix", 2, 2, |all| {
        let (prefix, text) = (all.first()?.as_str()?, all.get(1)?.as_str()?);
        Some(json!(text.strip_prefix(prefix).unwrap_or(text)))
    }),
    ("trimSuffix", 2, 2, |all| {
        let (suffix, text) = (all.first()?.as_str()?, all.get(1)?.as_str()?);
        Some(json!(text.strip_suffix(suffix).unwrap_or(text)))
    }),
];

type Function = fn(&[Value]) -> Option<Value>;

/// The text of a template with these variables.
///
/// # Errors
/// A part of the template is not evaluated here, in words.
pub fn render(template: &str, variables: &Value) -> Result<String, String> {
    let pieces = pieces(template)?;
    let mut rest = pieces.as_slice();
    let mut text = String::new();
    let ended = block(&mut rest, variables, true, &mut text)?;
    match ended {
        None => Ok(text),
        Some(word) => Err(format!("{{{{ {word} }}}} without {{{{ if }}}}")),
    }
}

/// A piece of a template.
#[derive(Debug, PartialEq)]
enum Piece<'a> {
    Text(&'a str),
    Action(&'a str),
}

/// Splits a template; white space is cut where an action asks for it (`{{-`, `-}}`).
fn pieces(template: &str) -> Result<Vec<Piece<'_>>, String> {
    let (mut pieces, mut rest, mut cuts) = (Vec::new(), template, false);
    loop {
        let (text, action) = rest.split_once("{{").map_or((rest, None), |(text, rest)| (text, Some(rest)));
        let text = if cuts { text.trim_start() } else { text };
        let Some(action) = action else {
            pieces.push(Piece::Text(text));
            return Ok(pieces);
        };
        let begins = action.strip_prefix('-').filter(|rest| rest.starts_with(char::is_whitespace));
        pieces.push(Piece::Text(if begins.is_some() { text.trim_end() } else { text }));
        let action = begins.unwrap_or(action);
        let end = end_of(action).ok_or_else(|| format!("{{{{{action} has no end"))?;
        let (inner, after) = action.split_at(end);
        let ends = inner.strip_suffix('-').filter(|inner| inner.ends_with(char::is_whitespace));
        cuts = ends.is_some();
        pieces.push(Piece::Action(ends.unwrap_or(inner).trim()));
        rest = after.strip_prefix("}}").unwrap_or(after);
    }
}

/// Where an action ends: `}}` outside of its strings.
fn end_of(action: &str) -> Option<usize> {
    let (mut quote, mut is_escaped) = (None, false);
    for (index, letter) in action.char_indices() {
        match quote {
            Some('"') if is_escaped => is_escaped = false,
            Some('"') if letter == '\\' => is_escaped = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '"' || letter == '`' => quote = Some(letter),
            None if action.get(index..).is_some_and(|rest| rest.starts_with("}}")) => return Some(index),
            None => {}
        }
    }
    None
}

/// Renders pieces until the end of their block. Returns the action that ends it; `None` at the end of the template.
fn block<'a>(
    pieces: &mut &[Piece<'a>],
    variables: &Value,
    is_shown: bool,
    text: &mut String,
) -> Result<Option<&'a str>, String> {
    while let Some((piece, rest)) = pieces.split_first() {
        *pieces = rest;
        let action = match piece {
            Piece::Text(own) => {
                if is_shown {
                    text.push_str(own);
                }
                continue;
            }
            Piece::Action(action) => *action,
        };
        if action == "end" || action == "else" || action.starts_with("else ") {
            return Ok(Some(action));
        }
        if action.starts_with("/*") {
            continue;
        }
        match action.strip_prefix("if ") {
            Some(condition) => branches(pieces, variables, is_shown, condition, text)?,
            None if is_shown => {
                let value = evaluate(action, variables)?;
                text.push_str(
                    &printed(&value).ok_or_else(|| format!("{{{{ {action} }}}} is no single value"))?,
                );
            }
            None => {}
        }
    }
    Ok(None)
}

fn branches(
    pieces: &mut &[Piece<'_>],
    variables: &Value,
    is_shown: bool,
    condition: &str,
    text: &mut String,
) -> Result<(), String> {
    let mut is_open = is_shown;
    let mut condition = Some(condition);
    loop {
        let holds = match condition {
            Some(condition) if is_open => is_true(&evaluate(condition, variables)?),
            Some(_) => false,
            None => true,
        };
        let ended = block(pieces, variables, is_open && holds, text)?;
        is_open &= !holds;
        match ended {
            Some("end") => return Ok(()),
            Some("else") => condition = None,
            Some(other) => {
                let other = other.trim_start_matches("else").trim();
                condition = Some(other.strip_prefix("if ").ok_or_else(|| not_evaluated(other))?);
            }
            None => return Err("{{ if }} without {{ end }}".to_owned()),
        }
    }
}

fn not_evaluated(what: &str) -> String {
    format!("{{{{ {what} }}}} is not evaluated here")
}

/// A value as templates print it; `None` for lists, objects and absent values.
fn printed(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Whether a value counts as true: absent and empty ones do not.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
    }
}

fn evaluate(action: &str, variables: &Value) -> Result<Value, String> {
    let words = words(action).ok_or_else(|| not_evaluated(action))?;
    let mut rest = words.as_slice();
    let value = pipeline(&mut rest, variables).ok_or_else(|| not_evaluated(action))?;
    if rest.is_empty() { Ok(value) } else { Err(not_evaluated(action)) }
}

/// The words of an action: paths, literals, names, parentheses and pipes.
fn words(action: &str) -> Option<Vec<&str>> {
    let (mut words, mut rest) = (Vec::new(), action.trim_start());
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '(' | ')' | '|' => 1,
            '"' | '`' => {
                let inner = rest.get(1..)?;
                let mut is_escaped = false;
                let end = inner.char_indices().find(|(_, letter)| {
                    let ends = *letter == first && !is_escaped;
                    is_escaped = first == '"' && *letter == '\\' && !is_escaped;
                    ends
                });
                end?.0 + 2
            }
            _ => rest.find(|it: char| it.is_whitespace() || "()|\"`".contains(it)).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at_checked(length)?;
        words.push(word);
        rest = after.trim_start();
    }
    Some(words)
}

/// `command | command`: each gets the value of the one before as its last argument.
fn pipeline(words: &mut &[&str], variables: &Value) -> Option<Value> {
    let mut value = command(words, variables, None)?;
    while words.first() == Some(&"|") {
        *words = words.get(1..)?;
        value = command(words, variables, Some(value))?;
    }
    Some(value)
}

fn command(words: &mut &[&str], variables: &Value, piped: Option<Value>) -> Option<Value> {
    let name = *words.first()?;
    let function = FUNCTIONS.iter().find(|(known, ..)| *known == name);
    let Some((_, least, most, function)) = function else {
        let value = operand(words, variables)?;
        return if piped.is_none() { Some(value) } else { None };
    };
    *words = words.get(1..)?;
    let mut arguments = Vec::new();
    while words.first().is_some_and(|word| *word != "|" && *word != ")") {
        arguments.push(operand(words, variables)?);
    }
    arguments.extend(piped);
    if (*least..=*most).contains(&arguments.len()) { function(&arguments) } else { None }
}

fn operand(words: &mut &[&str], variables: &Value) -> Option<Value> {
    let (word, rest) = words.split_first()?;
    *words = rest;
    match *word {
        "(" => {
            let value = pipeline(words, variables)?;
            let (close, rest) = words.split_first()?;
            *words = rest;
            (*close == ")").then_some(value)
        }
        "true" => Some(json!(true)),
        "false" => Some(json!(false)),
        word if word.starts_with('`') => Some(json!(word.trim_matches('`'))),
        word if word.starts_with('"') || word.starts_with(|it: char| it.is_ascii_digit() || it == '-') => {
            serde_json::from_str(word).ok()
        }
        word => {
            let path = word.strip_prefix('.').filter(|path| !path.is_empty())?;
            let is_name =
                |part: &str| !part.is_empty() && part.chars().all(|it| it.is_alphanumeric() || it == '_');
            if !path.split('.').all(is_name) {
                return None;
            }
            let found = path.split('.').try_fold(variables, |value, member| value.get(member));
            Some(found.cloned().unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Value {
        json!({
            "builtin": { "cluster": { "name": "quay", "topology": { "version": "v1.33.1+rke2r1" } } },
            "empty": "", "no": false, "count": 3, "ratio": 2.5, "keys": ["a"], "size": "large",
        })
    }

    #[test]
    fn templates_are_rendered_as_cluster_api_renders_them() {
        for (template, expected) in [
            ("plain", "plain"),
            ("name: {{ .builtin.cluster.name }}-x", "name: quay-x"),
            ("{{.count}} {{ .ratio }} {{ .no }}", "3 2.5 false"),
            ("a \n {{- .size -}} \n b", "alargeb"),
            ("{{ if .resourceGroup }}true{{end}}", ""),
            ("{{ if .size }}true{{end}}", "true"),
            ("{{ if .empty }}a{{ else }}b{{ end }}", "b"),
            ("{{ if .no }}a{{ else if eq .size \"large\" }}b{{ else }}c{{ end }}", "b"),
            ("{{ if .size }}{{ if .no }}a{{ else }}b{{ end }}{{ else }}{{ .keys }}{{ end }}", "b"),
            ("{{ if and .size (not .no) }}yes{{ end }}", "yes"),
            ("{{ if or .no (ne .size \"small\") }}yes{{ end }}", "yes"),
            ("{{ trimPrefix \"v\" (trimSuffix \"+rke2r1\" .builtin.cluster.topology.version) }}", "1.33.1"),
            ("{{ .builtin.cluster.topology.version | trimSuffix \"+rke2r1\" | quote }}", "\"v1.33.1\""),
            ("{{ .missing | default \"other\" }}", "other"),
            ("'{{ \"{{ ds.meta_data.name }}\" }}' {{ `{{ raw }}` }}", "'{{ ds.meta_data.name }}' {{ raw }}"),
            ("{{ .size | quote }}{{/* a remark */}}", "\"large\""),
        ] {
            assert_eq!(render(template, &variables()).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn what_is_not_evaluated_is_named() {
        for (template, words) in [
            ("{{ range .keys }}x{{ end }}", "{{ range .keys }} is not evaluated here"),
            ("{{ .size | upper }}", "{{ .size | upper }} is not evaluated here"),
            ("{{ $x := 1 }}", "{{ $x := 1 }} is not evaluated here"),
            ("{{ .keys }}", "{{ .keys }} is no single value"),
            ("{{ .missing }}", "{{ .missing }} is no single value"),
            ("{{ if .size }}x", "{{ if }} without {{ end }}"),
            ("{{ end }}", "{{ end }} without {{ if }}"),
            ("{{ .size", "has no end"),
            ("{{ if .size }}a{{ else with .x }}b{{ end }}", "{{ with .x }} is not evaluated here"),
            ("{{ eq .size }}", "{{ eq .size }} is not evaluated here"),
        ] {
            let said = render(template, &variables()).unwrap_err();
            assert!(said.contains(words), "{template}: {said}");
        }
    }
}
