//! Long-running operations as values ("Track asynchronous Azure operations").

use azure_types::{ResourceId, Word};
use http::{HeaderMap, Method};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Class;

/// Where the status of an operation is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OperationStyle {
    /// A status document (`Azure-AsyncOperation` or `Operation-Location`).
    Status,
    /// A URL that answers 202 while it runs (`Location`).
    Location,
    /// The resource itself, by its `provisioningState`.
    Resource,
}

/// An accepted change that Azure is still applying.
///
/// It is data: stored as JSON, another process can wait for it ([`crate::Client::wait`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The URL to poll; sent back as Azure gave it.
    pub url: String,
    /// How to parse the answer.
    pub style: OperationStyle,
    /// The resource.
    pub resource: ResourceId,
    /// The method of the request.
    pub method: String,
    /// When it began, in milliseconds since 1970.
    pub started: u64,
    /// How long Azure asked to wait before the first poll, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_look: Option<u64>,
    /// The class in which its polls queue.
    pub class: Class,
}

/// What the first answer says about the rest of the work.
#[derive(Debug, PartialEq)]
pub(crate) enum Start {
    /// Done.
    Done,
    /// Still running.
    Running(OperationStyle, String),
    /// Already failed; the body contains the cause, if any.
    Failed(String),
    /// The answer promises further work and does not say where to poll.
    NoWhere,
}

/// Evaluates a first answer; `state` is the `provisioningState` in its body. `own_url` is the resource's own URL, for
/// reading its state there.
pub(crate) fn start(
    method: &Method,
    status: u16,
    headers: &HeaderMap,
    state: Option<&str>,
    own_url: &str,
) -> Start {
    let link = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let whole = method == Method::PUT || method == Method::PATCH;
    if whole && status != 202 {
        // A resource in a final state needs no poll, whatever the headers say.
        match state.map(Progress::of) {
            Some(Progress::Succeeded) => return Start::Done,
            Some(Progress::Failed) => return Start::Failed(state.unwrap_or_default().to_owned()),
            _ => {}
        }
    }
    if let Some(url) = link("azure-asyncoperation").or_else(|| link("operation-location")) {
        return Start::Running(OperationStyle::Status, url);
    }
    // On 200 a Location is no operation: the answer is final.
    if status != 200
        && let Some(url) = link("location")
    {
        return Start::Running(OperationStyle::Location, url);
    }
    match (whole, status, state.map(Progress::of)) {
        (true, 200 | 201, Some(Progress::Running)) | (true, 202, _) => {
            Start::Running(OperationStyle::Resource, own_url.to_owned())
        }
        (false, 202, _) => Start::NoWhere,
        _ => Start::Done,
    }
}

/// The progress of an operation or a resource, by Azure's word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// It runs.
    Running,
    /// It has ended well.
    Succeeded,
    /// It has failed, or was cancelled.
    Failed,
}

impl Progress {
    /// Only three words are final, in any case; every other one means that it still runs.
    pub(crate) fn of(word: &str) -> Self {
        if word.eq_ignore_ascii_case("Succeeded") {
            Self::Succeeded
        } else if word.eq_ignore_ascii_case("Failed")
            || word.eq_ignore_ascii_case("Canceled")
            || word.eq_ignore_ascii_case("Cancelled")
        {
            Self::Failed
        } else {
            Self::Running
        }
    }

    /// The progress of the operation that ran last on a resource, by the `provisioningState` of its document. One
    /// without a state has succeeded.
    pub fn of_document(state: Option<&Word>) -> Self {
        state.map_or(Self::Succeeded, |word| Self::of(word.as_str()))
    }
}

fn provisioning_state(body: &Value) -> Option<&str> {
    body.pointer("/properties/provisioningState")?.as_str()
}

/// Evaluates the answer to a poll: the progress, and Azure's word for it.
pub(crate) fn poll(style: OperationStyle, status: u16, body: &Value) -> Option<(Progress, String)> {
    match style {
        OperationStyle::Status => {
            if status == 204 {
                return Some((Progress::Succeeded, String::new()));
            }
            let word = body.get("status").and_then(Value::as_str).or_else(|| provisioning_state(body));
            match word {
                Some(word) => Some((Progress::of(word), word.to_owned())),
                // 202 without a word means that it still runs.
                None => (status == 202).then(|| (Progress::Running, String::new())),
            }
        }
        OperationStyle::Location => {
            let progress = if status == 202 { Progress::Running } else { Progress::Succeeded };
            Some((progress, String::new()))
        }
        OperationStyle::Resource => {
            let word =
                provisioning_state(body).unwrap_or(if status == 202 { "InProgress" } else { "Succeeded" });
            Some((Progress::of(word), word.to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    /// Which of the answer's URLs is polled.
    #[test]
    fn where_to_look_is_chosen_by_the_first_answer() {
        use OperationStyle::{Location, Resource, Status};
        let asynchronous = ("azure-asyncoperation", "https://a/1");
        let location = ("location", "https://a/2");
        let running = |style, url: &str| Start::Running(style, url.to_owned());
        let updating = json!({"properties": {"provisioningState": "Updating"}});
        let succeeded = json!({"properties": {"provisioningState": "succeeded"}});
        let failed = json!({"properties": {"provisioningState": "Failed"}});
        let nothing = Value::Null;
        for (method, status, head, body, expected) in [
            (Method::PUT, 201, vec![asynchronous, location], &updating, running(Status, "https://a/1")),
            (Method::PUT, 201, vec![asynchronous], &succeeded, Start::Done),
            (Method::PUT, 200, vec![asynchronous], &failed, Start::Failed("Failed".into())),
            (Method::PUT, 202, vec![asynchronous], &succeeded, running(Status, "https://a/1")),
            (
                Method::PUT,
                201,
                vec![("operation-location", "https://a/3"), location],
                &updating,
                running(Status, "https://a/3"),
            ),
            (Method::PUT, 202, vec![location], &nothing, running(Location, "https://a/2")),
            (Method::PUT, 200, vec![], &updating, running(Resource, "own")),
            (Method::PUT, 202, vec![], &nothing, running(Resource, "own")),
            (Method::PUT, 200, vec![], &json!({"properties": {}}), Start::Done),
            (Method::PUT, 200, vec![location], &json!({}), Start::Done),
            (Method::PATCH, 200, vec![], &updating, running(Resource, "own")),
            (Method::DELETE, 202, vec![asynchronous, location], &nothing, running(Status, "https://a/1")),
            (Method::DELETE, 202, vec![location], &nothing, running(Location, "https://a/2")),
            (Method::DELETE, 200, vec![asynchronous, location], &nothing, running(Status, "https://a/1")),
            (Method::DELETE, 202, vec![], &nothing, Start::NoWhere),
            (Method::DELETE, 204, vec![], &nothing, Start::Done),
            (Method::DELETE, 200, vec![], &updating, Start::Done),
            (Method::POST, 202, vec![], &nothing, Start::NoWhere),
            (Method::POST, 200, vec![], &succeeded, Start::Done),
        ] {
            assert_eq!(
                start(&method, status, &headers(&head), provisioning_state(body), "own"),
                expected,
                "{method} {status} {head:?}"
            );
        }
    }

    #[test]
    fn polls_are_read_by_their_style() {
        use OperationStyle::{Location, Resource, Status};
        let word = |style, status, body: Value| poll(style, status, &body).map(|(progress, _)| progress);
        assert_eq!(word(Status, 200, json!({"status": "InProgress"})), Some(Progress::Running));
        assert_eq!(word(Status, 200, json!({"status": "Provisioning1"})), Some(Progress::Running));
        assert_eq!(word(Status, 200, json!({"status": "SUCCEEDED"})), Some(Progress::Succeeded));
        assert_eq!(word(Status, 200, json!({"status": "Canceled"})), Some(Progress::Failed));
        assert_eq!(word(Status, 200, json!({})), None);
        assert_eq!(word(Status, 202, Value::Null), Some(Progress::Running));
        assert_eq!(word(Status, 204, Value::Null), Some(Progress::Succeeded));
        assert_eq!(word(Location, 202, Value::Null), Some(Progress::Running));
        assert_eq!(word(Location, 200, json!({"status": "anything"})), Some(Progress::Succeeded));
        assert_eq!(word(Location, 204, Value::Null), Some(Progress::Succeeded));
        assert_eq!(
            word(Resource, 200, json!({"properties": {"provisioningState": "Creating"}})),
            Some(Progress::Running)
        );
        assert_eq!(
            word(Resource, 200, json!({"properties": {"provisioningState": "Failed"}})),
            Some(Progress::Failed)
        );
        assert_eq!(word(Resource, 200, json!({})), Some(Progress::Succeeded));
    }
}
