//! Validates the rules of a schema (`x-kubernetes-validations`): they have the required members, and they compile.

use super::field_path::{Brackets, resolve};
use crate::expression::compile;
use crate::kinds::prelude::*;

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
        if let Some(reason) = rule.get("reason").and_then(Value::as_str) {
            causes.check_one_of(at("reason"), reason, REASONS);
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
    compile_in(document, at, None, causes);
}

/// `unordered` is the list without keys that contains the schema: its items cannot be correlated, so they have no old
/// value.
fn compile_in(document: &Value, at: &str, unordered: Option<&str>, causes: &mut Causes) {
    if let Some(items) = document.get("items") {
        let keyed = text_at(document, "/x-kubernetes-list-type") == "map";
        let unordered = if keyed { unordered } else { Some(unordered.unwrap_or(at)) };
        compile_in(items, &format!("{at}.items"), unordered, causes);
    }
    if let Some(values) = document.get("additionalProperties") {
        compile_in(values, &format!("{at}.additionalProperties"), unordered, causes);
    }
    for (name, property) in members(document, "/properties") {
        compile_in(property, &format!("{at}.properties[{name}]"), unordered, causes);
    }
    for (index, rule) in list_at(document, &format!("/{RULES}")).iter().enumerate() {
        compile_rule(rule, &format!("{at}.{RULES}[{index}]"), unordered, causes);
    }
}

fn compile_rule(rule: &Value, at: &str, unordered: Option<&str>, causes: &mut Causes) {
    let program = match compile(text_at(rule, "/rule")) {
        Ok(program) => program,
        Err(why) => {
            let why = format!("compilation failed: {why}");
            causes.push(Invalid::value(format!("{at}.rule"), printed(rule), &why));
            return;
        }
    };
    let message = text_at(rule, "/messageExpression");
    if !message.is_empty()
        && let Err(why) = compile(message)
    {
        let why = format!("messageExpression compilation failed: {why}");
        causes.push(Invalid::value(format!("{at}.messageExpression"), printed(rule), &why));
    }
    let optional = rule.get("optionalOldSelf").and_then(Value::as_bool);
    match (program.names("oldSelf"), unordered, optional) {
        (true, Some(list), _) => {
            let why =
                format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {list}");
            causes.push(Invalid::text(format!("{at}.rule"), text_at(rule, "/rule"), &why));
        }
        (false, _, Some(given)) => {
            let why = "may not be set if oldSelf is not used in rule";
            causes.push(Invalid::value(format!("{at}.optionalOldSelf"), given, why));
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
