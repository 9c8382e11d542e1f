//! PriorityLevelConfigurations.

use k8s_openapi::api::flowcontrol::v1::PriorityLevelConfiguration;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    status: StatusRule::Subresource,
    generation: Generation::Specification,
    unconditional_update: false,
    columns: COLUMNS,
    defaults: &[("spec.limited.nominalConcurrencyShares", "30"), ("spec.limited.lendablePercent", "0")],
    example: r#"{"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}"#,
    ..BuiltinKind::cluster::<PriorityLevelConfiguration>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::text("Type", "/spec/type"),
    Column::timed("NominalConcurrencyShares", "integer", |level, _| {
        number_or_none(level, "/spec/limited/nominalConcurrencyShares")
    }),
    Column::timed("Queues", "integer", |level, _| {
        number_or_none(level, "/spec/limited/limitResponse/queuing/queues")
    }),
    Column::timed("HandSize", "integer", |level, _| {
        number_or_none(level, "/spec/limited/limitResponse/queuing/handSize")
    }),
    Column::timed("QueueLengthLimit", "integer", |level, _| {
        number_or_none(level, "/spec/limited/limitResponse/queuing/queueLengthLimit")
    }),
    AGE,
];

fn number_or_none(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).cloned().unwrap_or_else(|| NONE.into())
}
