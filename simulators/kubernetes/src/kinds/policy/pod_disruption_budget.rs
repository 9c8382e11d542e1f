//! PodDisruptionBudgets. Evictions ask them ([`crate::verbs::pod`]).

use k8s_openapi::api::policy::v1::PodDisruptionBudget;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["pdb"],
    status: StatusRule::Subresource,
    generation: Generation::Specification,
    unconditional_update: false,
    columns: &[
        NAME,
        Column::derived("Min Available", |budget| plain(budget, "/spec/minAvailable")),
        Column::derived("Max Unavailable", |budget| plain(budget, "/spec/maxUnavailable")),
        Column::number("Allowed Disruptions", "/status/disruptionsAllowed"),
        AGE,
    ],
    validate,
    example: r#"{"spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}}"#,
    ..BuiltinKind::namespaced::<PodDisruptionBudget>()
};

/// A number or text; `N/A` if it is missing.
fn plain(object: &Value, pointer: &str) -> String {
    match object.pointer(pointer) {
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::String(text)) => text.clone(),
        _ => "N/A".to_owned(),
    }
}

fn validate(object: &Value, causes: &mut Causes) {
    let at = |member: &str| object.pointer(&format!("/spec/{member}"));
    if let (Some(_), Some(_)) = (at("minAvailable"), at("maxUnavailable")) {
        let why = "minAvailable and maxUnavailable cannot be both set";
        causes.push(Invalid::value("spec", "policy.PodDisruptionBudgetSpec", why));
    }
    for member in ["minAvailable", "maxUnavailable"] {
        not_negative(object, &format!("/spec/{member}"), causes);
        if let Some(text) = at(member).and_then(Value::as_str)
            && text.strip_suffix('%').is_none_or(|share| share.parse::<u32>().is_err())
        {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                       regex used for validation is '[0-9]+%')";
            causes.push(Invalid::text(format!("spec.{member}"), text, why));
        }
    }
    if let Some(selector) = at("selector") {
        selector_is_sound(selector, "spec.selector", causes);
    }
}
