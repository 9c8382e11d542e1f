//! AdmissionReview requests and responses, in `admission.k8s.io/v1` and `v1beta1`, which do not differ in the members
//! used here.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use capz_api::admission::Admitted;
use capz_api::webhooks::Task;
use serde::Deserialize;
use serde_json::{Value, json};

/// A request with its version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Review {
    api_version: String,
    pub(super) request: Request,
}

/// The request.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    uid: String,
    #[serde(default)]
    pub(super) name: String,
    pub(super) operation: Operation,
    #[serde(default)]
    pub(super) object: Value,
    #[serde(default)]
    pub(super) old_object: Value,
    #[serde(default)]
    pub(super) dry_run: Option<bool>,
}

/// The operation on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// The supported versions; the response has the version of the request.
const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

impl Review {
    /// Parses a request.
    ///
    /// # Errors
    /// It is not a supported AdmissionReview.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let review: Self =
            serde_json::from_slice(body).map_err(|error| format!("no AdmissionReview: {error}"))?;
        if VERSIONS.contains(&review.api_version.as_str()) {
            Ok(review)
        } else {
            Err(format!("no AdmissionReview of {}: {}", VERSIONS.join(" or "), review.api_version))
        }
    }

    /// The name in the request; it is missing if the API server generates it.
    pub(super) fn name(&self) -> String {
        match self.request.object["metadata"]["name"].as_str() {
            Some(name) if self.request.name.is_empty() => name.to_owned(),
            _ => self.request.name.clone(),
        }
    }

    /// The response of a webhook with this task.
    pub(super) fn answer(&self, task: Task, said: Result<Admitted, Value>) -> Value {
        match said {
            Ok(admitted) => {
                let mut response = json!({ "allowed": true, "status": { "metadata": {}, "code": 200 } });
                if task == Task::Default {
                    let patch = json_patch::diff(&self.request.object, &admitted.object);
                    if !patch.0.is_empty() {
                        response["patchType"] = json!("JSONPatch");
                        response["patch"] = json!(BASE64_STANDARD.encode(json!(patch).to_string()));
                    }
                }
                if !admitted.warnings.is_empty() {
                    response["warnings"] = json!(admitted.warnings);
                }
                self.wrap(response)
            }
            Err(status) => self.wrap(json!({ "allowed": false, "status": status })),
        }
    }

    /// The response that allows a request without a check: the object is deleted, or the operation does not matter
    /// here.
    pub(super) fn allow(&self) -> Value {
        self.wrap(json!({ "allowed": true, "status": { "metadata": {}, "code": 200 } }))
    }

    fn wrap(&self, mut response: Value) -> Value {
        response["uid"] = json!(self.request.uid);
        json!({ "apiVersion": self.api_version, "kind": "AdmissionReview", "response": response })
    }
}

/// The response to an invalid request.
pub(super) fn unreadable(why: &str) -> Value {
    let status =
        json!({ "metadata": {}, "status": "Failure", "message": why, "reason": "BadRequest", "code": 400 });
    let response = json!({ "uid": "", "allowed": false, "status": status });
    json!({ "apiVersion": VERSIONS[0], "kind": "AdmissionReview", "response": response })
}
