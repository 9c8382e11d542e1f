//! Validates the rules of a schema (`x-kubernetes-validations`): they have the required members, and they compile.

use serde_json::Value;

use super::super::expression::{Type, check, compile};
use super::field_path::{Brackets, resolve};
use super::{Causes, Invalid, list_at, text_at};
use crate::schema::{Additional, Link, Schema};

pub(super) const RULES: &str = "x-kubernetes-validations";

/// Validates everything in the rules of one schema except their expressions.
pub(super) fn validate(schema: &Value, at: &str, causes: &mut Causes) {
    const REASONS: &[&str] =
        &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];
    let breaks = |text: &str| text.contains(['\n', '\r']);
    for (index, rule) in list_at(schema, &format!("/{RULES}")).iter().enumerate() {
        let at = |member: &str| format!("{at}.{RULES}[{index}].{member}");
        let (text, message) = (text_at(rule, "/rule").trim(), text_at(rule, "/message"));
        if text.is_empty() {
            causes.push(Invalid::required(at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            let why = "message must be non-empty if specified";
            causes.push(Invalid::text(at("message"), message, why));
        } else if breaks(message.trim()) {
            let why = "message must not contain line breaks";
            causes.push(Invalid::text(at("message"), message, why));
        } else if breaks(text) && message.trim().is_empty() {
            let why = "message must be specified if rule contains line breaks";
            causes.push(Invalid::required(at("message"), why));
        }
        let expression = text_at(rule, "/messageExpression");
        if !expression.is_empty() && expression.trim().is_empty() {
            let why = "messageExpression must be non-empty if specified";
            causes.push(Invalid::required(at("messageExpression"), why));
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            causes.push(Invalid::unsupported(at("reason"), reason, REASONS));
        }
        let path = text_at(rule, "/fieldPath");
        if path.is_empty() {
            continue;
        }
        for (wrong, why) in [
            (path.trim().is_empty(), "fieldPath must be non-empty if specified"),
            (breaks(path), "fieldPath must not contain line breaks"),
            (resolve(schema, path, Brackets::Allowed).is_err(), "fieldPath must be a valid path"),
        ] {
            if wrong {
                causes.push(Invalid::text(at("fieldPath"), path, why));
            }
        }
    }
}

/// Compiles the rules of a schema that is otherwise valid, and of all schemas in it.
pub(super) fn compile_all(document: &Value, at: &str, causes: &mut Causes) {
    compile_in(document, &Schema::custom(document), at, None, causes);
}

/// `unordered` is the list without keys that contains the schema: its items cannot be correlated, so they have no old
/// value.
fn compile_in(document: &Value, tree: &Schema, at: &str, unordered: Option<&str>, causes: &mut Causes) {
    if let (Some(items), Some(Link::Inline(tree))) = (document.get("items"), &tree.items) {
        let keyed = text_at(document, "/x-kubernetes-list-type") == "map";
        let unordered = if keyed { unordered } else { Some(unordered.unwrap_or(at)) };
        compile_in(items, tree, &format!("{at}.items"), unordered, causes);
    }
    if let (Some(values), Additional::Of(Link::Inline(tree))) =
        (document.get("additionalProperties"), &tree.additional)
    {
        compile_in(values, tree, &format!("{at}.additionalProperties"), unordered, causes);
    }
    let properties = document.get("properties").and_then(Value::as_object).into_iter().flatten();
    for (name, property) in properties {
        if let Some(Link::Inline(tree)) = tree.properties.get(name) {
            compile_in(property, tree, &format!("{at}.properties[{name}]"), unordered, causes);
        }
    }
    let rules = list_at(document, &format!("/{RULES}"));
    if rules.is_empty() {
        return;
    }
    let Some(this) = Type::of_self(tree) else {
        let why = "Internal error: internal error: failed to construct type information for x-kubernetes-validations \
                   rules: unable to convert structural schema to CEL declarations";
        causes.push(Invalid::new(format!("{at}.{RULES}"), why));
        return;
    };
    for (index, rule) in rules.iter().enumerate() {
        compile_rule(rule, &this, &format!("{at}.{RULES}[{index}]"), unordered, causes);
    }
}

fn compile_rule(rule: &Value, this: &Type<'_>, at: &str, unordered: Option<&str>, causes: &mut Causes) {
    let optional = rule.get("optionalOldSelf").and_then(Value::as_bool);
    let old = if optional == Some(true) { Type::optional(this.clone()) } else { this.clone() };
    let variables = [("self", this.clone()), ("oldSelf", old)];
    let compiled = |member: &str, wanted: &Type<'_>, failed: &str, other: &str| {
        let program = compile(text_at(rule, member)).map_err(|why| format!("{failed}: {why}"))?;
        let found = check(&program, &variables).map_err(|why| format!("{failed}: {why}"))?;
        if found == *wanted { Ok(program) } else { Err(other.to_owned()) }
    };
    let program = match compiled(
        "/rule",
        &Type::Bool,
        "compilation failed",
        "cel expression must evaluate to a bool",
    ) {
        Ok(program) => program,
        Err(why) => {
            causes.push(Invalid::value(format!("{at}.rule"), &printed(rule), &why));
            return;
        }
    };
    if !text_at(rule, "/messageExpression").is_empty()
        && let Err(why) = compiled(
            "/messageExpression",
            &Type::Text,
            "messageExpression compilation failed",
            "messageExpression must evaluate to a string",
        )
    {
        causes.push(Invalid::value(format!("{at}.messageExpression"), &printed(rule), &why));
    }
    match (program.names("oldSelf"), unordered, optional) {
        (true, Some(list), _) => {
            let why =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
            causes.push(Invalid::text(format!("{at}.rule"), text_at(rule, "/rule"), &why));
        }
        (false, _, Some(given)) => {
            let why = "may not be set if oldSelf is not used in rule";
            causes.push(Invalid::value(format!("{at}.optionalOldSelf"), &given.to_string(), why));
        }
        _ => {}
    }
}

/// A rule as the server prints it, with a pointer in place of each optional member.
fn printed(rule: &Value) -> String {
    let text = |member: &str| format!("{:?}", text_at(rule, member));
    let pointer = |member: &str, form: &str| {
        let address = if rule.get(member).is_some() { "0xc000000000" } else { "nil" };
        format!("(*{form})({address})")
    };
    format!(
        "apiextensions.ValidationRule{{Rule:{}, Message:{}, MessageExpression:{}, Reason:{}, FieldPath:{}, \
         OptionalOldSelf:{}}}",
        text("/rule"),
        text("/message"),
        text("/messageExpression"),
        pointer("reason", "apiextensions.FieldValueErrorReason"),
        text("/fieldPath"),
        pointer("optionalOldSelf", "bool"),
    )
}
