//! CronJobs.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::CronJob;

use super::job_spec;
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["cj"],
    categories: &["all"],
    status: StatusRule::Subresource,
    generation: Generation::Specification,
    columns: COLUMNS,
    pod_spec: Some(POD_SPEC),
    defaults: &[
        ("spec.concurrencyPolicy", r#""Allow""#),
        ("spec.suspend", "false"),
        ("spec.successfulJobsHistoryLimit", "3"),
        ("spec.failedJobsHistoryLimit", "1"),
    ],
    validate,
    example: r#"{"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}}}}}"#,
    ..BuiltinKind::namespaced::<CronJob>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::text("Schedule", "/spec/schedule"),
    Column::text_or("Timezone", "/spec/timeZone", NONE),
    Column::timed("Suspend", "boolean", |job, _| {
        match job.pointer("/spec/suspend") {
            Some(Value::Bool(true)) => "True",
            Some(Value::Bool(false)) => "False",
            _ => UNSET,
        }
        .into()
    }),
    Column::length("Active", "/status/active"),
    Column::timed("Last Schedule", "string", |job, now| last_schedule(job, now).into()),
    AGE,
    Column::derived("Containers", |job| container_cell(job, POD_SPEC, "/name")).wide(),
    Column::derived("Images", |job| container_cell(job, POD_SPEC, "/image")).wide(),
    Column::derived("Selector", |job| selector_cell(job, "/spec/jobTemplate/spec/selector")).wide(),
];

const POD_SPEC: &str = "/spec/jobTemplate/spec/template/spec";

fn last_schedule(object: &Value, now: Timestamp) -> String {
    match object.pointer("/status/lastScheduleTime").filter(|time| !time.is_null()) {
        Some(time) => age(Some(time), now),
        None => NONE.to_owned(),
    }
}

fn validate(object: &Value, causes: &mut Causes) {
    let schedule = text_at(object, "/spec/schedule");
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if schedule.is_empty() {
        causes.push(Invalid::required("spec.schedule", ""));
    } else if schedule.contains("TZ") {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        causes.push(Invalid::text("spec.schedule", schedule, why));
    } else if !schedule.starts_with('@') && fields.len() != 5 {
        let why = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
        causes.push(Invalid::text("spec.schedule", schedule, &why));
    }
    one_of(object, "/spec/concurrencyPolicy", &["Allow", "Forbid", "Replace"], causes);
    for member in ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(object, &format!("/spec/{member}"), causes);
    }
    job_spec::validate(object, "/spec/jobTemplate/spec", "spec.jobTemplate.spec", causes);
}
