//! The specification of Jobs, in Jobs and in the templates of CronJobs.

use crate::kinds::prelude::*;

/// Validates the specification of a Job at a pointer, in a Job or in the template of a CronJob.
pub(crate) fn validate(object: &Value, at: &str, field: &str, causes: &mut Causes) {
    let spec = object.pointer(at).unwrap_or(&Value::Null);
    for member in
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"]
    {
        not_negative(object, &format!("{at}/{member}"), causes);
    }
    if let Some(mode) = spec.get("completionMode").and_then(Value::as_str) {
        causes.check_one_of(format!("{field}.completionMode"), mode, &["Indexed", "NonIndexed"]);
    }
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    if selector.is_none() && at == "/spec" {
        causes.push(Invalid::required(format!("{field}.selector"), ""));
    }
    let labels = spec.pointer("/template/metadata/labels").unwrap_or(&Value::Null);
    // A missing selector selects nothing; a CronJob's Jobs get theirs later.
    if selector.map_or(at == "/spec", |selector| !selects(selector, labels)) {
        let why = "`selector` does not match template `labels`";
        causes.push(Invalid::value(format!("{field}.template.metadata.labels"), labels, why));
    }
    template(spec, field, Restarts::AtMostOnFailure, causes);
}
