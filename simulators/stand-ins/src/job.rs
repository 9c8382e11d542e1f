//! Jobs: runs pods until enough of them have succeeded. Left out: indexed completion, failure policies and the backoff
//! after a failure. CronJobs start no Jobs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::objects::{Action, Kind, Round, condition_of, is_deleting, is_ready, key, list, time};
use crate::pod::{from_template, is_active};

/// Reconciles the pods of all Jobs.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for job in round.objects.of(Kind::Job).filter(|one| !is_deleting(one)) {
        keep(round, job);
    }
}

fn keep(round: &mut Round<'_>, job: &Value) {
    let holds = |kind: &str| condition_of(job, kind).is_some_and(|one| one["status"] == "True");
    if holds("Complete") || holds("Failed") {
        return forget(round, job);
    }
    let pods: Vec<&Value> = round.objects.controlled_by(Kind::Pod, job).collect();
    let ended = |phase: &str| pods.iter().filter(|pod| pod["status"]["phase"] == phase).count();
    let (succeeded, failed) = (ended("Succeeded"), ended("Failed"));
    let active: Vec<&Value> = pods.iter().filter(|pod| is_active(pod)).copied().collect();
    let size = |member: &str| job["spec"][member].as_u64().and_then(|size| usize::try_from(size).ok());
    let parallelism = size("parallelism").unwrap_or(1);
    // Without `completions` the first success is enough, and no pod is started after it.
    let complete = match size("completions") {
        Some(completions) => succeeded >= completions,
        None => succeeded > 0 && active.is_empty(),
    };
    let suspended = job["spec"]["suspend"] == true;
    let exhausted = failed > size("backoffLimit").unwrap_or(6);
    let goal = match size("completions") {
        _ if suspended || exhausted || complete => 0,
        Some(completions) => parallelism.min(completions.saturating_sub(succeeded)),
        None if succeeded > 0 => active.len(),
        None => parallelism,
    };
    for _ in active.len()..goal {
        round.act(Action::Create(Kind::Pod, from_template(Kind::Job, job, &job["spec"]["template"])));
    }
    for pod in active.iter().skip(goal) {
        round.act(Action::Delete(Kind::Pod, key(pod)));
    }
    let now = round.seconds();
    let mut conditions = list(&job["status"]["conditions"]).to_vec();
    let mut set = |condition: Value| {
        conditions.retain(|one| one["type"] != condition["type"]);
        conditions.push(condition);
    };
    if complete {
        let message = "Reached expected number of succeeded pods";
        // Current API servers accept the end of a Job only after its reason.
        set(round.condition(job, "SuccessCriteriaMet", "True", "CompletionsReached", message));
        set(round.condition(job, "Complete", "True", "CompletionsReached", message));
    } else if exhausted {
        let message = "Job has reached the specified backoff limit";
        set(round.condition(job, "FailureTarget", "True", "BackoffLimitExceeded", message));
        set(round.condition(job, "Failed", "True", "BackoffLimitExceeded", message));
    } else if suspended {
        set(round.condition(job, "Suspended", "True", "JobSuspended", "Job suspended"));
    } else if condition_of(job, "Suspended").is_some() {
        set(round.condition(job, "Suspended", "False", "JobResumed", "Job resumed"));
    }
    let mut status = json!({
        "active": if complete || exhausted { 0 } else { active.len() },
        "ready": if complete || exhausted { 0 } else { active.iter().filter(|pod| is_ready(pod)).count() },
        "succeeded": succeeded,
        "failed": failed,
        "conditions": conditions,
    });
    if job["status"]["startTime"].is_null() && !suspended {
        status["startTime"] = now.as_str().into();
    }
    if complete {
        status["completionTime"] = now.into();
    }
    round.write_status(Kind::Job, job, status);
}

/// Deletes a finished Job once its time is over (`ttlSecondsAfterFinished`).
fn forget(round: &mut Round<'_>, job: &Value) {
    let Some(pause) = job["spec"]["ttlSecondsAfterFinished"].as_u64() else { return };
    let ended = ["Complete", "Failed"].into_iter().find_map(|kind| condition_of(job, kind));
    let Some(ended) = ended.and_then(|one| time(&one["lastTransitionTime"])) else { return };
    if round.has_come(ended + Duration::from_secs(pause)) {
        round.act(Action::Delete(Kind::Job, key(job)));
    }
}
