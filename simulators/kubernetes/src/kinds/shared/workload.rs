//! What the controllers of pods have in common: a selector that matches their template, and an update strategy.

use serde_json::Value;

use crate::kinds::shared::label_selector::{is_empty, selector_is_sound, selector_text, selects};
use crate::kinds::shared::pod_spec::Restarts;
use crate::kinds::shared::pod_template::template;
use crate::kinds::shared::rules::not_negative;
use crate::object::invalid::{Causes, Invalid};

/// Validates the numbers of a workload, and its selector against its template. Returns whether the selector is valid
/// enough to validate the template.
pub(crate) fn validate_selection(kind: &str, object: &Value, causes: &mut Causes) -> bool {
    selected_template(kind, object.get("spec").unwrap_or(&Value::Null), causes)
}

/// Validates the numbers of a workload.
pub(crate) fn validate_numbers(object: &Value, causes: &mut Causes) {
    for member in ["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        not_negative(object, &format!("/spec/{member}"), causes);
    }
}

/// Validates the template of a workload whose pods run for ever.
pub(crate) fn validate_template(object: &Value, causes: &mut Causes) {
    template(object.get("spec").unwrap_or(&Value::Null), "spec", Restarts::Always, causes);
}

/// Refuses the type of a strategy; messages show the whole structure.
pub(crate) fn unsupported_strategy(field: &str, given: &str, supported: &str, causes: &mut Causes) {
    let value = format!("{{\"Type\":{given:?},\"RollingUpdate\":null}}");
    causes.push(Invalid::new(field, format!("Unsupported value: {value}: supported values: {supported}")));
}

/// The selector must exist, must not be empty, and must match the template. Returns whether it is valid enough to
/// validate the template.
fn selected_template(kind: &str, spec: &Value, causes: &mut Causes) -> bool {
    const FIELD: &str = "spec.selector";
    const WHY: &str = "`selector` does not match template `labels`";
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    let differ = || Invalid::value("spec.template.metadata.labels", labels, WHY);
    let Some(selector) = spec.get("selector").filter(|selector| !selector.is_null()) else {
        if kind != "DaemonSet" {
            causes.push(Invalid::required(FIELD, ""));
        }
        // A missing selector selects nothing.
        causes.push(differ());
        return true;
    };
    let before = causes.count();
    selector_is_sound(selector, FIELD, causes);
    if causes.count() > before {
        causes.push(Invalid::value(FIELD, selector_text(selector), "invalid label selector"));
        return false;
    }
    if is_empty(selector) {
        let why = format!("empty selector is invalid for {}", kind.to_lowercase());
        causes.push(Invalid::value(FIELD, selector_text(selector), &why));
    } else if !selects(selector, labels) {
        causes.push(differ());
    }
    true
}
