//! The schemas of built-in kinds as OpenAPI documents, from the types of this workspace's Kubernetes version.

use std::sync::LazyLock;

use k8s_openapi::api::{
    authentication::v1 as authentication, autoscaling::v1 as autoscaling, core::v1 as core,
    policy::v1 as policy,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value};

use crate::kinds::table::KINDS;

/// All schemas of the built-in kinds, by name.
static DOCUMENTS: LazyLock<Map<String, Value>> = LazyLock::new(|| {
    let mut generator = SchemaGenerator::new(SchemaSettings::openapi3());
    KINDS.iter().for_each(|kind| (kind.schema)(&mut generator));
    // Types that subresources and options take.
    generator.subschema_for::<core::Binding>();
    generator.subschema_for::<autoscaling::Scale>();
    generator.subschema_for::<policy::Eviction>();
    generator.subschema_for::<authentication::TokenRequest>();
    generator.subschema_for::<meta::DeleteOptions>();
    let mut schemas = generator.take_definitions(true);
    // The types require metadata; the API requires a name, from any source. Names in references may be empty.
    for (name, schema) in &mut schemas {
        let refers = REFERENCES.iter().any(|reference| name.strip_prefix(CORE) == Some(*reference));
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|member| member != "metadata" && !(refers && member == "name"));
        }
    }
    if let Some(any) = schemas.get_mut(JSON).and_then(Value::as_object_mut) {
        any.remove("type");
    }
    schemas
});

const CORE: &str = "io.k8s.api.core.v1.";

/// Types that refer to another object by a name that defaults to an empty text.
const REFERENCES: &[&str] = &[
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "LocalObjectReference",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
];

/// Any value: defaults and the like in schemas of definitions.
const JSON: &str = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON";

/// All schemas of the built-in kinds and of the types that they refer to, by name.
pub(crate) fn documents() -> &'static Map<String, Value> {
    &DOCUMENTS
}
