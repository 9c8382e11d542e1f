//! The `scale` subresource: current and desired numbers of replicas, as a kind of its own.

use serde_json::{Map, Value, json};

use crate::registry::Kind;
use crate::status::ApiError;

/// The Scale of an object.
pub(crate) fn of(kind: &Kind, object: &Value) -> Value {
    let paths = kind.scale_paths();
    let at = |path: &[String]| path.iter().try_fold(object, |value, name| value.get(name));
    let number = |path: &[String]| at(path).and_then(Value::as_u64).unwrap_or(0);
    let mut metadata = Map::new();
    for member in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.pointer(&format!("/metadata/{member}")) {
            metadata.insert(member.to_owned(), value.clone());
        }
    }
    let selector = match &paths.selector {
        Some(path) => at(path).and_then(Value::as_str).unwrap_or_default().to_owned(),
        None => {
            let labels = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
            let pair = |(k, v): (&String, &Value)| format!("{k}={}", v.as_str().unwrap_or_default());
            labels.into_iter().flatten().map(pair).collect::<Vec<_>>().join(",")
        }
    };
    let mut status = json!({ "replicas": number(&paths.actual) });
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": { "replicas": number(&paths.replicas) },
        "status": status,
    })
}

/// The desired number of replicas.
pub(crate) fn replicas(scale: &Value) -> i64 {
    scale.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(0)
}

/// Refuses a Scale with a negative number of replicas. Custom resources are validated by their schema.
pub(crate) fn validate(kind: &Kind, name: &str, scale: &Value) -> Result<(), ApiError> {
    let wanted = replicas(scale);
    if wanted >= 0 || kind.is_custom() {
        return Ok(());
    }
    let message = format!("Invalid value: {wanted}: must be greater than or equal to 0");
    Err(ApiError::invalid_request(("autoscaling", "Scale"), name, "spec.replicas", &message))
}

/// Sets the desired number of replicas of an object.
pub(crate) fn put(kind: &Kind, object: &mut Value, replicas: i64) {
    let mut place = object;
    for name in &kind.scale_paths().replicas {
        let Some(members) = place.as_object_mut() else { return };
        place = members.entry(name.as_str()).or_insert_with(|| Value::Object(Map::new()));
    }
    *place = Value::from(replicas);
}
