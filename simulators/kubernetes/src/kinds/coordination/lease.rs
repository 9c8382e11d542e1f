//! Leases.

use k8s_openapi::api::coordination::v1::Lease;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    unconditional_update: false,
    create_on_update: true,
    columns: &[NAME, Column::text("Holder", "/spec/holderIdentity"), AGE],
    validate,
    example: r#"{"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}"#,
    ..BuiltinKind::namespaced::<Lease>()
};

/// Validates a Lease: its times are positive.
fn validate(object: &Value, causes: &mut Causes) {
    if let Some(seconds) = object.pointer("/spec/leaseDurationSeconds").and_then(Value::as_i64)
        && seconds <= 0
    {
        let why = "must be greater than 0";
        causes.push(Invalid::value("spec.leaseDurationSeconds", seconds, why));
    }
    not_negative(object, "/spec/leaseTransitions", causes);
}
