//! Validates changes of a Job's status: a Job ends in the order of its controller's steps. Only parts that an update
//! changes are validated, so that older errors do not block it.

use crate::kinds::prelude::*;

const CONDITIONS: &str = "status.conditions";

/// A Job's status.
#[derive(Debug, Clone, Copy)]
struct JobStatus<'a>(&'a Value);

impl<'a> JobStatus<'a> {
    fn at(self, member: &str) -> &'a Value {
        &self.0["status"][member]
    }

    fn number(self, member: &str) -> i64 {
        self.at(member).as_i64().unwrap_or(0)
    }

    fn is(self, condition: &str) -> bool {
        let conditions = list_at(self.0, "/status/conditions");
        conditions.iter().any(|one| one["type"] == condition && one["status"] == "True")
    }

    fn is_finished(self) -> bool {
        self.is("Complete") || self.is("Failed")
    }
}

/// Validates the status of `new`, which will replace `old`.
pub(crate) fn validate(old: &Value, new: &Value, causes: &mut Causes) {
    let (old, new) = (JobStatus(old), JobStatus(new));
    let changed = |member: &str| old.at(member) != new.at(member);
    let turned = |condition: &str| old.is(condition) != new.is(condition);
    let ends = old.is_finished() != new.is_finished();
    let (complete, failed) = (new.is("Complete"), new.is("Failed"));
    let field = |member: &str| format!("status.{member}");
    let condition = |why: &str| Invalid::new(CONDITIONS, format!("Invalid value: {why}"));
    for member in ["active", "succeeded", "failed", "ready", "terminating"] {
        let number = new.number(member);
        if number < 0 {
            let why = "must be greater than or equal to 0";
            causes.push(Invalid::value(field(member), number, why));
        }
    }
    if complete && failed && (turned("Complete") || turned("Failed")) {
        causes.push(condition("cannot set Complete=True and Failed=true conditions"));
    }
    if complete && new.is("FailureTarget") && (turned("Complete") || turned("FailureTarget")) {
        causes.push(condition("cannot set Complete=True and FailureTarget=true conditions"));
    }
    let completion = new.at("completionTime");
    if turned("Complete") || changed("completionTime") {
        if !completion.is_null() && !complete {
            let why = "cannot set completionTime when there is no Complete=True condition";
            causes.push(Invalid::value(field("completionTime"), completion, why));
        }
        if completion.is_null() && complete {
            let why = "completionTime is required for Complete jobs";
            causes.push(Invalid::required(field("completionTime"), why));
        }
    }
    // Times have one notation that sorts in their order.
    let times = (new.at("startTime").as_str(), completion.as_str());
    if let (Some(start), Some(end)) = times
        && end < start
        && (changed("startTime") || changed("completionTime"))
    {
        let why = "must be equal to or after `startTime`";
        causes.push(Invalid::value(field("completionTime"), completion, why));
    }
    if failed && !new.is("FailureTarget") && turned("Failed") {
        causes.push(condition("cannot set Failed=True condition without the FailureTarget=true condition"));
    }
    if complete && !new.is("SuccessCriteriaMet") && (turned("Complete") || turned("SuccessCriteriaMet")) {
        causes.push(condition(
            "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        ));
    }
    for member in ["active", "terminating"] {
        let number = new.number(member);
        if number > 0 && new.is_finished() && (ends || changed(member)) {
            let why = format!("{member}>0 is invalid for finished job");
            causes.push(Invalid::value(field(member), number, &why));
        }
    }
    if new.at("startTime").is_null() && new.is_finished() && (ends || changed("startTime")) {
        causes.push(Invalid::required(field("startTime"), "startTime is required for finished job"));
    }
    if new.number("ready") > new.number("active") && (changed("ready") || changed("active")) {
        let why = "cannot set more ready pods than active";
        causes.push(Invalid::value(field("ready"), new.number("ready"), why));
    }
    if new.is("SuccessCriteriaMet") && failed {
        causes.push(condition("cannot set SuccessCriteriaMet=True and Failed=true conditions"));
    }
    if new.is("SuccessCriteriaMet") && new.is("FailureTarget") {
        causes.push(condition("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"));
    }
    for name in ["Failed", "Complete", "FailureTarget"] {
        if old.is(name) && !new.is(name) {
            causes.push(condition(&format!("cannot disable the terminal {name}=True condition")));
        }
    }
    for member in ["failed", "succeeded"] {
        if new.number(member) < old.number(member) {
            let why = format!("cannot decrease the {member} counter");
            causes.push(Invalid::value(field(member), new.number(member), &why));
        }
    }
    if old.is("SuccessCriteriaMet") && !new.is("SuccessCriteriaMet") {
        causes.push(condition("cannot disable the SuccessCriteriaMet=True condition"));
    }
}
