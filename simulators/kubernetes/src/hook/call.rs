//! One call of a hook, and the meaning of its response.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::condition;
use super::function::{AdmissionRequest, Decision, Function};
use super::hooks::{Hook, HookTarget, Phase};
use super::matching::AdmissionSubject;
use crate::object::string_at;
use crate::registry::Kind;
use crate::server::handle::Kubernetes;
use crate::status::ApiError;
use crate::webhook::ClientConfig;

const API_VERSION: &str = "admission.k8s.io/v1";

/// The data that all calls for one request share.
pub(super) struct HookCall<'a> {
    pub(super) kubernetes: &'a Kubernetes,
    pub(super) subject: &'a AdmissionSubject<'a>,
    /// The kind in whose form the hook sees the object.
    pub(super) form: &'a Arc<Kind>,
    /// The new object in that form.
    pub(super) object: Option<Value>,
    /// The old object in that form.
    pub(super) old_object: Option<Value>,
    pub(super) user: &'a Value,
    pub(super) options: &'a Value,
    pub(super) dry_run: bool,
    /// A unique number of the call.
    pub(super) uid: String,
}

/// Group, version and kind of an object.
struct ObjectType {
    group: String,
    version: String,
    kind: String,
}

impl ObjectType {
    fn to_value(&self) -> Value {
        json!({ "group": self.group, "version": self.version, "kind": self.kind })
    }
}

/// The response of a hook.
#[derive(Debug, Default)]
pub(super) struct HookResponse {
    /// The object that replaces the one, in the form that it was sent.
    pub(super) object: Option<Value>,
    pub(super) warnings: Vec<String>,
}

/// Why a request is not allowed.
pub(super) enum CallFailure {
    /// The hook refused it, or must not be called for it at all.
    Refused(ApiError),
    /// The hook could not be called: the request is allowed if the hook is optional.
    Failed(String),
}

impl HookCall<'_> {
    /// Whether the hook's conditions hold.
    ///
    /// # Errors
    /// One cannot be evaluated.
    pub(super) fn is_needed(&self, hook: &Hook) -> Result<bool, String> {
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let request = &self.review()["request"];
        let variables =
            [("object", &request["object"]), ("oldObject", &request["oldObject"]), ("request", request)];
        condition::all_hold(&hook.conditions, &variables)
    }

    pub(super) async fn send(&self, hook: &Hook) -> Result<HookResponse, CallFailure> {
        if self.dry_run && !hook.dry_run {
            let message = format!("admission webhook {:?} does not support dry run", hook.name);
            return Err(CallFailure::Refused(ApiError::bad_request(message)));
        }
        match &hook.call {
            HookTarget::Function(function) => self.call_function(hook, function).await,
            HookTarget::Webhook(Ok(config)) => self.call_webhook(hook, config).await,
            HookTarget::Webhook(Err(error)) => {
                Err(CallFailure::Failed(format!("could not get REST client: {error}")))
            }
        }
    }

    async fn call_function(&self, hook: &Hook, function: &Function) -> Result<HookResponse, CallFailure> {
        let subject = self.subject;
        let Decision { object, refusal, warnings } = function(AdmissionRequest {
            operation: subject.operation.as_str().to_owned(),
            kind: self.object_type(self.form).kind,
            subresource: subject.subresource.to_owned(),
            namespace: subject.namespace.to_owned(),
            name: subject.name.to_owned(),
            object: self.object.clone(),
            old_object: self.old_object.clone(),
            dry_run: self.dry_run,
            user: self.user.clone(),
        })
        .await;
        match refusal {
            Some((code, message)) => {
                let result = json!({ "code": code, "message": message });
                Err(CallFailure::Refused(ApiError::denied(&hook.name, &result)))
            }
            None => Ok(HookResponse { object: object.filter(|_| hook.phase == Phase::Mutating), warnings }),
        }
    }

    async fn call_webhook(&self, hook: &Hook, config: &ClientConfig) -> Result<HookResponse, CallFailure> {
        let answer = self.kubernetes.call_webhook(config, &self.review(), hook.timeout).await;
        let answer =
            answer.map_err(|error| CallFailure::Failed(format!("failed to call webhook: {error}")))?;
        let response = response(&answer, &self.uid, hook.phase)
            .map_err(|why| CallFailure::Failed(format!("received invalid webhook response: {why}")))?;
        let warnings = response["warnings"].as_array().into_iter().flatten();
        let warnings = warnings.filter_map(|text| text.as_str().map(str::to_owned)).collect();
        if response["allowed"] != true {
            return Err(CallFailure::Refused(ApiError::denied(&hook.name, &response["status"])));
        }
        Ok(HookResponse { object: self.patched(hook, response)?, warnings })
    }

    /// The type of the object: the kind, or the type that the subresource takes.
    fn object_type(&self, kind: &Kind) -> ObjectType {
        let carried =
            self.object.as_ref().or(self.old_object.as_ref()).filter(|_| self.subject.is_of_its_own());
        let Some(carried) = carried else {
            return ObjectType {
                group: kind.group.clone(),
                version: kind.version.clone(),
                kind: kind.kind.clone(),
            };
        };
        let text = |member: &str| string_at(carried, &[member]).unwrap_or_default();
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        ObjectType { group: group.to_owned(), version: version.to_owned(), kind: text("kind").to_owned() }
    }

    /// The AdmissionReview.
    fn review(&self) -> Value {
        let subject = self.subject;
        let kind = |kind: &Kind| self.object_type(kind).to_value();
        let resource =
            |kind: &Kind| json!({ "group": kind.group, "version": kind.version, "resource": kind.plural });
        let mut request = json!({
            "uid": self.uid,
            "kind": kind(self.form),
            "resource": resource(self.form),
            "requestKind": kind(subject.kind),
            "requestResource": resource(subject.kind),
            "operation": subject.operation.as_str(),
            "userInfo": self.user,
            "object": self.object,
            "oldObject": self.old_object,
            "dryRun": self.dry_run,
            "options": self.options,
        });
        // Empty members are left out, as Go does.
        for (member, text) in [
            ("subResource", subject.subresource),
            ("requestSubResource", subject.subresource),
            ("name", subject.name),
            ("namespace", subject.namespace),
        ] {
            if !text.is_empty() {
                request[member] = Value::from(text);
            }
        }
        json!({ "kind": "AdmissionReview", "apiVersion": API_VERSION, "request": request })
    }

    /// Applies the response's patch to the object.
    fn patched(&self, hook: &Hook, response: &Value) -> Result<Option<Value>, CallFailure> {
        let Some(patch) = response["patch"].as_str().filter(|patch| !patch.is_empty()) else {
            return Ok(None);
        };
        let undecodable = |error: String| {
            CallFailure::Failed(format!("received undecodable patch in webhook response: {error}"))
        };
        let patch = BASE64_STANDARD.decode(patch).map_err(|error| undecodable(error.to_string()))?;
        let patch: json_patch::Patch =
            serde_json::from_slice(&patch).map_err(|error| undecodable(error.to_string()))?;
        if patch.is_empty() {
            return Ok(None);
        }
        let internal = |message: String| CallFailure::Refused(ApiError::internal(&message));
        let Some(mut object) = self.object.clone() else {
            return Err(internal(format!(
                "admission webhook {:?} attempted to modify the object, which is not supported for this operation",
                hook.name
            )));
        };
        if response["patchType"] != "JSONPatch" {
            let kind = &response["patchType"];
            return Err(CallFailure::Failed(format!("unsupported patch type {kind}")));
        }
        json_patch::patch(&mut object, &patch).map_err(|error| internal(error.to_string()))?;
        Ok(Some(object))
    }
}

/// The `response` of an AdmissionReview.
fn response<'a>(answer: &'a Value, uid: &str, phase: Phase) -> Result<&'a Value, String> {
    let response = &answer["response"];
    if !response.is_object() {
        return Err("webhook response was absent".to_owned());
    }
    let echoed = response["uid"].as_str().unwrap_or_default();
    if echoed != uid {
        return Err(format!("expected response.uid={uid:?}, got {echoed:?}"));
    }
    let text = |member: &str| string_at(answer, &[member]).unwrap_or_default();
    if (text("apiVersion"), text("kind")) != (API_VERSION, "AdmissionReview") {
        return Err(format!(
            "expected webhook response of {API_VERSION}, Kind=AdmissionReview, got {}, Kind={}",
            text("apiVersion"),
            text("kind")
        ));
    }
    let patched = response["patch"].as_str().is_some_and(|patch| !patch.is_empty());
    let typed = response.get("patchType").is_some_and(|kind| !kind.is_null());
    let problem = match phase {
        Phase::Mutating if patched && !typed => "webhook returned response.patch but not response.patchType",
        Phase::Mutating if typed && !patched => "webhook returned response.patchType but not response.patch",
        Phase::Validating if patched => "validating webhook may not return response.patch",
        Phase::Validating if typed => "validating webhook may not return response.patchType",
        _ => return Ok(response),
    };
    Err(problem.to_owned())
}
