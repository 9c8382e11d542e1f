//! The caller that created a resource and the one that changed it last, and when: the member `systemData` ("Resource
//! provider contract").

use serde_json::{Value, json};

use crate::operation::execution::Execution;

/// The member of documents, and of what the service keeps.
pub(crate) const MEMBER: &str = "systemData";

/// The caller it names where tokens are not verified: a person at a reserved domain.
const ANYBODY: &str = "somebody@example.com";

/// What it says after a write.
pub(crate) fn written(old: Option<&Value>, execution: &Execution, time: &str) -> Value {
    let application = execution.caller.as_ref().or(execution.by.as_ref());
    let (by, kind) = application.map_or((ANYBODY, "User"), |caller| (caller.as_str(), "Application"));
    let created = |member: &str, otherwise: &str| {
        old.and_then(|old| old.get(member)).cloned().unwrap_or_else(|| otherwise.into())
    };
    json!({
        "createdBy": created("createdBy", by),
        "createdByType": created("createdByType", kind),
        "createdAt": created("createdAt", time),
        "lastModifiedBy": by,
        "lastModifiedByType": kind,
        "lastModifiedAt": time,
    })
}

#[cfg(test)]
mod tests {
    use super::{Execution, written};

    #[test]
    fn who_made_it_stays_and_who_changed_it_changes() {
        let by = |caller: &str| Execution { caller: Some(caller.into()), ..Execution::default() };
        let made = written(None, &by("a"), "one");
        let changed = written(Some(&made), &by("b"), "two");
        assert_eq!((&changed["createdBy"], &changed["createdAt"]), (&made["createdBy"], &made["createdAt"]));
        assert_eq!((&changed["lastModifiedBy"], &changed["lastModifiedAt"]), (&"b".into(), &"two".into()));
        let unknown = written(None, &Execution::default(), "one");
        assert_eq!(unknown["createdByType"], "User");
    }
}
