//! FlowSchemas.

use k8s_openapi::api::flowcontrol::v1::FlowSchema;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    status: StatusRule::Subresource,
    generation: Generation::Specification,
    unconditional_update: false,
    columns: &[
        NAME,
        Column::text("PriorityLevel", "/spec/priorityLevelConfiguration/name"),
        Column::number("MatchingPrecedence", "/spec/matchingPrecedence"),
        Column::text_or("DistinguisherMethod", "/spec/distinguisherMethod/type", NONE),
        AGE,
        Column::derived("MissingPL", |schema| condition(schema, "Dangling").unwrap_or("?").to_owned()),
    ],
    defaults: &[("spec.matchingPrecedence", "1000")],
    example: r#"{"spec": {"priorityLevelConfiguration": {"name": "p"}}}"#,
    ..BuiltinKind::cluster::<FlowSchema>()
};
