//! CertificateSigningRequests.

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["csr"],
    status: StatusRule::Subresource,
    fields: &["spec.signerName"],
    name: path_segment,
    columns: &[
        NAME,
        AGE,
        Column::text_or("SignerName", "/spec/signerName", NONE),
        Column::text("Requestor", "/spec/username"),
        Column::derived("RequestedDuration", requested_duration),
        Column::derived("Condition", signing_state),
    ],
    validate,
    example: r#"{"spec": {"signerName": "example.com/s", "request": "YQ==", "usages": ["client auth"]}}"#,
    ..BuiltinKind::cluster::<CertificateSigningRequest>()
};

fn requested_duration(object: &Value) -> String {
    let seconds = object.pointer("/spec/expirationSeconds").and_then(Value::as_i64);
    seconds.map_or(NONE.to_owned(), duration)
}

fn signing_state(object: &Value) -> String {
    let decided = ["Approved", "Denied", "Failed"].into_iter();
    let mut words: Vec<&str> = decided.filter(|kind| condition(object, kind).is_some()).collect();
    if words.is_empty() {
        words.push("Pending");
    }
    if !text_at(object, "/status/certificate").is_empty() {
        words.push("Issued");
    }
    words.join(",")
}

fn validate(object: &Value, causes: &mut Causes) {
    let signer = text_at(object, "/spec/signerName");
    if signer.is_empty() {
        causes.push(Invalid::required("spec.signerName", ""));
    } else if !signer.contains('/') {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        causes.push(Invalid::text("spec.signerName", signer, why));
    }
    if list_at(object, "/spec/usages").is_empty() {
        causes.push(Invalid::required("spec.usages", "usages must be provided"));
    }
}
