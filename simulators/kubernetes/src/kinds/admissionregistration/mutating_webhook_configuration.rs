//! MutatingWebhookConfigurations. Their webhooks are called in [`crate::hook`].

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;

use super::webhooks::{COLUMNS, DEFAULTS, validate};
use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    categories: &["api-extensions"],
    generation: Generation::Specification,
    unconditional_update: false,
    columns: COLUMNS,
    defaults: &[("webhooks[].reinvocationPolicy", r#""Never""#)],
    shared_defaults: &[("", DEFAULTS)],
    validate,
    example: r#"{"webhooks": [{"name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": {"service": {"namespace": "n", "name": "s"}}, "rules": [{"operations": ["CREATE"], "apiGroups": ["none.example.com"], "apiVersions": ["v1"], "resources": ["nothing"]}]}]}"#,
    ..BuiltinKind::cluster::<MutatingWebhookConfiguration>()
};
