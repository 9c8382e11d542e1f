//! The instance view of a machine: whether it runs, and why an operation failed. The list that is read anyway shows it.

use serde_json::Value;

/// The cause of a failure for which Azure gives none.
pub const NO_CAUSE: &str = "its provisioning state is";

fn statuses(document: &Value) -> impl Iterator<Item = &Value> {
    document["properties"]["instanceView"]["statuses"].as_array().into_iter().flatten()
}

/// Codes of statuses below a head, such as `running` of `PowerState/running`.
fn codes<'a>(document: &'a Value, head: &'a str) -> impl Iterator<Item = (&'a str, &'a Value)> {
    statuses(document).filter_map(move |status| {
        let (first, rest) = status["code"].as_str()?.split_once('/')?;
        first.eq_ignore_ascii_case(head).then_some((rest, status))
    })
}

/// The state of a machine that does not run and is not starting: stopped or deallocated. `None` if it runs, and if its
/// state is unknown.
pub fn stopped(document: &Value) -> Option<&'static str> {
    let (state, _) = codes(document, "PowerState").next()?;
    [
        ("stopping", "Stopping"),
        ("stopped", "Stopped"),
        ("deallocating", "Deallocating"),
        ("deallocated", "Deallocated"),
    ]
    .into_iter()
    .find(|(word, _)| word.eq_ignore_ascii_case(state))
    .map(|(_, word)| word)
}

/// Why an operation on a resource failed, in Azure's words: code and message. `state` is its provisioning state.
pub(crate) fn cause(document: &Value, state: &str) -> String {
    let cause = codes(document, "ProvisioningState").find_map(|(state, status)| {
        let (_, code) = state.split_once('/')?;
        let message = status["message"].as_str().unwrap_or_default();
        Some(if message.is_empty() { code.to_owned() } else { format!("{code}: {message}") })
    });
    cause.unwrap_or_else(|| format!("{NO_CAUSE} {state}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(statuses: Value) -> Value {
        json!({ "properties": { "instanceView": { "statuses": statuses } } })
    }

    #[test]
    fn what_does_not_run_is_named_and_what_is_unknown_is_not() {
        for (code, expected) in [
            ("PowerState/running", None),
            ("PowerState/starting", None),
            ("PowerState/unknown", None),
            ("ProvisioningState/succeeded", None),
            ("PowerState/stopped", Some("Stopped")),
            ("powerstate/Deallocated", Some("Deallocated")),
            ("PowerState/deallocating", Some("Deallocating")),
        ] {
            assert_eq!(stopped(&machine(json!([{ "code": code }]))), expected, "{code}");
        }
        assert_eq!(stopped(&json!({ "properties": {} })), None);
    }

    #[test]
    fn the_cause_of_a_failure_is_given_in_azures_words() {
        let failed = json!([{ "code": "ProvisioningState/failed/AllocationFailed", "message": "no room" },
            { "code": "PowerState/stopped" }]);
        assert_eq!(cause(&machine(failed), "Failed"), "AllocationFailed: no room");
        let silent = json!([{ "code": "ProvisioningState/failed/OSProvisioningTimedOut" }]);
        assert_eq!(cause(&machine(silent), "Failed"), "OSProvisioningTimedOut");
        for unknown in [machine(json!([{ "code": "ProvisioningState/failed" }])), json!({})] {
            assert_eq!(cause(&unknown, "Failed"), "its provisioning state is Failed");
        }
    }
}
