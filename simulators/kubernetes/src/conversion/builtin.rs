//! Built-in kinds whose versions differ in shape.

use serde_json::{Map, Value, json};

use crate::registry::{Conversion, Kind};

/// Members of core Events, and their names in `events.k8s.io`.
const EVENT_MEMBERS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// The annotation in which `autoscaling/v1` keeps the metrics that it has no member for.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// The default target of an autoscaler: this share of the CPU that pods request, in percent.
pub(crate) const DEFAULT_UTILIZATION: u64 = 80;

/// Converts the stored shape into the one of `kind`.
pub(super) fn from_stored(kind: &Kind, value: &mut Value) {
    match kind.conversion {
        Conversion::None => {}
        Conversion::Events => {
            rename(value, EVENT_MEMBERS.iter().map(|(core, served)| (*core, *served)));
        }
        Conversion::Autoscaling => autoscaler_from_v2(value),
    }
}

/// Converts the shape of `kind` into the stored one. Returns the `apiVersion` of the stored shape; `None` if they are
/// the same.
pub(super) fn to_stored(kind: &Kind, value: &mut Value) -> Option<&'static str> {
    match kind.conversion {
        Conversion::None => None,
        Conversion::Events => {
            rename(value, EVENT_MEMBERS.iter().map(|(core, served)| (*served, *core)));
            Some("v1")
        }
        Conversion::Autoscaling => {
            autoscaler_to_v2(value);
            Some("autoscaling/v2")
        }
    }
}

fn rename<'a>(value: &mut Value, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(members) = value.as_object_mut() else { return };
    for (from, to) in pairs {
        if let Some(member) = members.remove(from) {
            members.insert(to.to_owned(), member);
        }
    }
}

fn member<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    value.as_object_mut()?.entry(name).or_insert_with(|| json!({})).as_object_mut()
}

fn is_cpu(metric: &Value) -> bool {
    metric.pointer("/resource/name").is_some_and(|name| name == "cpu")
        && metric.pointer("/resource/target/averageUtilization").is_some()
}

fn autoscaler_from_v2(value: &mut Value) {
    let mut annotations = Vec::new();
    if let Some(spec) = member(value, "spec") {
        let mut metrics = match spec.remove("metrics") {
            Some(Value::Array(metrics)) => metrics,
            _ => Vec::new(),
        };
        if let Some(at) = metrics.iter().position(is_cpu) {
            let target = metrics.remove(at).pointer("/resource/target/averageUtilization").cloned();
            spec.insert("targetCPUUtilizationPercentage".to_owned(), target.unwrap_or_default());
        }
        if !metrics.is_empty() {
            annotations.push((METRICS, Value::Array(metrics).to_string()));
        }
        if let Some(behavior) = spec.remove("behavior") {
            annotations.push((BEHAVIOR, behavior.to_string()));
        }
    }
    if let Some(status) = member(value, "status") {
        status.remove("conditions");
        if let Some(Value::Array(metrics)) = status.remove("currentMetrics") {
            let measured = metrics
                .iter()
                .filter(|metric| metric.pointer("/resource/name").is_some_and(|name| name == "cpu"))
                .find_map(|metric| metric.pointer("/resource/current/averageUtilization"));
            if let Some(measured) = measured {
                status.insert("currentCPUUtilizationPercentage".to_owned(), measured.clone());
            }
        }
    }
    for (name, text) in annotations {
        if let Some(all) = value.get_mut("metadata").and_then(|metadata| member(metadata, "annotations")) {
            all.insert(name.to_owned(), text.into());
        }
    }
}

fn autoscaler_to_v2(value: &mut Value) {
    let mut carried = |name: &str| -> Option<Value> {
        let annotations = value.pointer_mut("/metadata/annotations")?.as_object_mut()?;
        serde_json::from_str(annotations.remove(name)?.as_str()?).ok()
    };
    let (others, behavior) = (carried(METRICS), carried(BEHAVIOR));
    if let Some(spec) = member(value, "spec") {
        let mut metrics = Vec::new();
        if let Some(target) = spec.remove("targetCPUUtilizationPercentage") {
            metrics.push(cpu_metric(target));
        }
        if let Some(Value::Array(others)) = others {
            metrics.extend(others);
        }
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), metrics.into());
        }
        if let Some(behavior) = behavior {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(measured) =
        member(value, "status").and_then(|status| status.remove("currentCPUUtilizationPercentage"))
        && let Some(status) = member(value, "status")
    {
        let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "current": {
            "averageUtilization": measured } } });
        status.insert("currentMetrics".to_owned(), json!([metric]));
    }
}

/// The metric of a target CPU utilization.
pub(crate) fn cpu_metric(target: Value) -> Value {
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": target } } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn an_autoscaler_of_the_first_version_loses_nothing() {
        let kind = Registry::default().by_type("autoscaling/v1", "HorizontalPodAutoscaler").unwrap();
        let memory = json!({ "type": "Resource", "resource": { "name": "memory", "target": {
            "type": "AverageValue", "averageValue": "1Gi" } } });
        let stored = json!({
            "metadata": { "name": "a", "annotations": {} },
            "spec": { "maxReplicas": 3, "metrics": [cpu_metric(json!(70)), memory],
                "behavior": { "scaleDown": { "stabilizationWindowSeconds": 60 } } },
            "status": {},
        });
        let mut value = stored.clone();
        from_stored(&kind, &mut value);
        assert_eq!(value["spec"], json!({ "maxReplicas": 3, "targetCPUUtilizationPercentage": 70 }));
        assert_eq!(to_stored(&kind, &mut value), Some("autoscaling/v2"));
        assert_eq!(value, stored);
    }
}
