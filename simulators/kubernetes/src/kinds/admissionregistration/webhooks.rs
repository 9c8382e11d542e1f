//! What both configurations of webhooks have in common.

use std::collections::BTreeSet;

use crate::kinds::prelude::*;

pub(crate) const DEFAULTS: &[Row] = &[
    ("webhooks[].failurePolicy", r#""Fail""#),
    ("webhooks[].matchPolicy", r#""Equivalent""#),
    ("webhooks[].namespaceSelector", "{}"),
    ("webhooks[].objectSelector", "{}"),
    ("webhooks[].timeoutSeconds", "10"),
    ("webhooks[].rules[].scope", r#""*""#),
    ("webhooks[].clientConfig.service.port", "443"),
];

pub(crate) const COLUMNS: &[Column] = &[NAME, Column::length("Webhooks", "/webhooks"), AGE];

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Validates the webhooks of a configuration.
pub(crate) fn validate(object: &Value, causes: &mut Causes) {
    let mut names = BTreeSet::new();
    for (index, webhook) in list_at(object, "/webhooks").iter().enumerate() {
        let at = |member: &str| format!("webhooks[{index}].{member}");
        let name = text_at(webhook, "/name");
        if name.is_empty() {
            causes.push(Invalid::required(at("name"), ""));
        } else if name.split('.').count() < 3 {
            let why = "should be a domain with at least three segments separated by dots";
            causes.push(Invalid::text(at("name"), name, why));
        } else if !names.insert(name) {
            causes.push(Invalid::duplicate(at("name"), format!("{name:?}")));
        }
        for (place, rule) in list_at(webhook, "/rules").iter().enumerate() {
            validate_rule(rule, &at(&format!("rules[{place}]")), causes);
        }
        optional_one_of(webhook, "failurePolicy", &["Fail", "Ignore"], &at, causes);
        optional_one_of(webhook, "matchPolicy", &["Equivalent", "Exact"], &at, causes);
        match text_at(webhook, "/sideEffects") {
            "" => {
                let why = "must specify one of None, NoneOnDryRun";
                causes.push(Invalid::required(at("sideEffects"), why));
            }
            other => causes.check_one_of(at("sideEffects"), other, &["None", "NoneOnDryRun"]),
        }
        let seconds = webhook.get("timeoutSeconds").and_then(Value::as_i64).unwrap_or(10);
        if !(1..=30).contains(&seconds) {
            let why = "the timeout value must be between 1 and 30 seconds";
            causes.push(Invalid::value(at("timeoutSeconds"), seconds, why));
        }
        let client = |member: &str| webhook.pointer(&format!("/clientConfig/{member}")).is_some();
        if client("url") == client("service") {
            let why = "exactly one of url or service is required";
            causes.push(Invalid::required(at("clientConfig"), why));
        }
        if list_at(webhook, "/admissionReviewVersions").is_empty() {
            let why = "must specify one of v1, v1beta1";
            causes.push(Invalid::required(at("admissionReviewVersions"), why));
        }
    }
}

fn optional_one_of(
    webhook: &Value,
    member: &str,
    supported: &[&str],
    at: &impl Fn(&str) -> String,
    causes: &mut Causes,
) {
    let value = text_at(webhook, &format!("/{member}"));
    if !value.is_empty() {
        causes.check_one_of(at(member), value, supported);
    }
}

fn validate_rule(rule: &Value, field: &str, causes: &mut Causes) {
    let none = |member: &str| list_at(rule, &format!("/{member}")).is_empty();
    if none("operations") {
        causes.push(Invalid::required(format!("{field}.operations"), ""));
    }
    for (index, operation) in list_at(rule, "/operations").iter().filter_map(Value::as_str).enumerate() {
        causes.check_one_of(format!("{field}.operations[{index}]"), operation, OPERATIONS);
    }
    for member in ["apiGroups", "apiVersions", "resources"].into_iter().filter(|member| none(member)) {
        causes.push(Invalid::required(format!("{field}.{member}"), ""));
    }
}
