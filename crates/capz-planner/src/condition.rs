//! Conditions: the status of an object, derived from the states of its goals.

use capz_api::Condition;

use crate::plan::{Action, Plan, State};
use crate::service::Service;

/// The severity of a condition that is False.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is expected to become True.
    Info,
    /// It needs attention.
    Warning,
    /// It does not become True without a change by the user.
    Error,
}

impl Severity {
    /// The spelling in conditions.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "Info",
            Self::Warning => "Warning",
            Self::Error => "Error",
        }
    }

    fn of(text: Option<&str>) -> Self {
        match text {
            Some("Error") => Self::Error,
            Some("Warning") => Self::Warning,
            _ => Self::Info,
        }
    }
}

/// A condition that is True.
pub fn holds(condition: &str) -> Condition {
    Condition { condition: Some(condition.to_owned()), status: Some("True".into()), ..Condition::default() }
}

/// A condition that is False.
pub fn fails(condition: &str, reason: &str, severity: Severity, message: impl Into<String>) -> Condition {
    let message = message.into();
    Condition {
        condition: Some(condition.to_owned()),
        status: Some("False".into()),
        reason: Some(reason.to_owned()),
        severity: Some(severity.as_str().to_owned()),
        message: Some(message).filter(|message| !message.is_empty()),
        ..Condition::default()
    }
}

/// The conditions of the services in a plan. A service without any begun goal has no condition.
pub fn project(services: &[&'static Service], plan: &Plan) -> Vec<Condition> {
    services.iter().filter_map(|service| of_service(service, plan)).collect()
}

fn of_service(service: &'static Service, plan: &Plan) -> Option<Condition> {
    let condition = service.condition?;
    let name = service.name;
    let states: Vec<(bool, &State)> = plan
        .items
        .iter()
        .filter(|(goal, _)| goal.service == service)
        .map(|(goal, state)| (goal.wanted, state))
        .collect();
    if states.is_empty() {
        return service.true_without_goals.then(|| holds(condition));
    }
    let failed = states.iter().find_map(|(_, state)| match state {
        State::Refused(action, words) => Some((*action, words.clone())),
        State::Disputed(rival) => Some((Action::Create, format!("it belongs to {rival}"))),
        State::Missing => Some((Action::Create, "a resource that is not ours does not exist".to_owned())),
        _ => None,
    });
    let failing =
        |reason, severity, words: &str| Some(fails(condition, reason, severity, format!("{name} {words}")));
    match failed {
        Some((Action::Delete, words)) => {
            return failing("DeletionFailed", Severity::Error, &format!("failed to delete. err: {words}"));
        }
        Some((_, words)) => {
            return failing("Failed", Severity::Error, &format!("failed to create or update. err: {words}"));
        }
        None => {}
    }
    if states.iter().all(|(_, state)| state.is_there()) {
        // An object that is being deleted has no desired resources any more.
        return match plan.items.iter().any(|(goal, _)| goal.wanted) {
            true => Some(holds(condition)),
            false => failing("Deleted", Severity::Info, "successfully deleted"),
        };
    }
    let begun = |state: &State| matches!(state, State::Running(_) | State::Now(_));
    if states.iter().any(|(wanted, state)| *wanted && begun(state)) {
        return failing("Creating", Severity::Info, "creating or updating");
    }
    let deleting = states.iter().any(|(wanted, state)| !wanted && begun(state));
    deleting.then(|| failing("Deleting", Severity::Info, "deleting")).flatten()
}

/// The longest message that the definitions permit, in characters.
const LONGEST_MESSAGE: usize = 10_240;

/// A text of at most this many characters; an ellipsis marks what is left out.
fn shortened(text: String, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text,
        Some(_) => text.chars().take(longest - 1).chain(['…']).collect(),
    }
}

/// Sets a condition; `now` is its transition time if it differs from before.
///
/// Azure's messages may be of any length. A message that is too long would make every write of the status fail, so it
/// is cut.
pub fn set(conditions: &mut Vec<Condition>, mut new: Condition, now: &str) {
    new.message = new.message.map(|message| shortened(message, LONGEST_MESSAGE));
    let same = |a: &Condition, b: &Condition| {
        (&a.status, &a.reason, &a.severity, &a.message) == (&b.status, &b.reason, &b.severity, &b.message)
    };
    match conditions.iter_mut().find(|known| known.condition == new.condition) {
        Some(known) if same(known, &new) => {}
        Some(known) => {
            new.last_transition_time = Some(now.to_owned());
            *known = new;
        }
        None => {
            new.last_transition_time = Some(now.to_owned());
            conditions.push(new);
        }
    }
    // Ready comes first, the others by name.
    conditions.sort_by_key(|condition| {
        let name = condition.condition.clone().unwrap_or_default();
        (name != READY, name)
    });
}

/// Sets conditions, and the summary of all.
pub fn set_all(conditions: &mut Vec<Condition>, new: impl IntoIterator<Item = Condition>, now: &str) {
    for condition in new {
        set(conditions, condition, now);
    }
    if let Some(ready) = summary(conditions) {
        set(conditions, ready, now);
    }
}

/// Whether a condition has this reason.
pub fn has_reason(conditions: Option<&Vec<Condition>>, condition: &str, reason: &str) -> bool {
    conditions
        .into_iter()
        .flatten()
        .any(|known| known.condition.as_deref() == Some(condition) && known.reason.as_deref() == Some(reason))
}

/// A failure as a condition, unless another condition has the same message already: that one also names the resource.
pub fn untold(
    conditions: Option<&Vec<Condition>>,
    condition: &'static str,
    reason: &'static str,
    words: &str,
) -> Option<Condition> {
    // A message may have been cut, so its beginning is compared.
    let words_begin: String = words.chars().take(LONGEST_MESSAGE / 2).collect();
    let says =
        |known: &Condition| known.message.as_deref().is_some_and(|message| message.contains(&words_begin));
    let is_told = conditions.into_iter().flatten().any(says);
    (!is_told).then(|| fails(condition, reason, Severity::Error, words))
}

/// The condition that sums up all others.
pub const READY: &str = "Ready";

/// The summary of an object's conditions: the worst that is False, or True if all are True. `None` without conditions.
pub fn summary(conditions: &[Condition]) -> Option<Condition> {
    let others = || conditions.iter().filter(|condition| condition.condition.as_deref() != Some(READY));
    let failing = others().filter(|condition| condition.status.as_deref() != Some("True"));
    let mut worst: Option<&Condition> = None;
    for condition in failing {
        let severity = Severity::of(condition.severity.as_deref());
        if worst.is_none_or(|worst| severity > Severity::of(worst.severity.as_deref())) {
            worst = Some(condition);
        }
    }
    match worst {
        Some(worst) => {
            Some(Condition { condition: Some(READY.into()), last_transition_time: None, ..worst.clone() })
        }
        None => others().next().map(|_| holds(READY)),
    }
}
