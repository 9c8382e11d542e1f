//! HorizontalPodAutoscalers in two versions. The first one supports one metric, CPU, in a member of its own; objects are
//! stored in the second.

use k8s_openapi::api::autoscaling::{v1, v2};

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["hpa"],
    categories: &["all"],
    status: StatusRule::Subresource,
    columns: COLUMNS,
    defaults: DEFAULTS,
    derive: |object| {
        let Some(spec) = member(object, "spec") else { return };
        if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("metrics".into(), json!([cpu_metric(json!(DEFAULT_UTILIZATION))]));
        }
    },
    validate,
    example: r#"{"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}}"#,
    ..BuiltinKind::namespaced::<v2::HorizontalPodAutoscaler>()
};

/// The first version.
pub(crate) static KIND_V1: BuiltinKind = BuiltinKind {
    short_names: &["hpa"],
    categories: &["all"],
    status: StatusRule::Subresource,
    stored_form: Some(StoredForm {
        shelf: "horizontalpodautoscalers.autoscaling",
        api_version: "autoscaling/v2",
        read: read_from_v2,
        write: write_as_v2,
    }),
    columns: COLUMNS,
    defaults: DEFAULTS,
    derive: |object| {
        if object.pointer("/metadata/annotations/autoscaling.alpha.kubernetes.io~1metrics").is_none()
            && let Some(spec) = member(object, "spec")
        {
            spec.entry("targetCPUUtilizationPercentage").or_insert_with(|| json!(DEFAULT_UTILIZATION));
        }
    },
    validate,
    example: r#"{"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "maxReplicas": 3}}"#,
    ..BuiltinKind::namespaced::<v1::HorizontalPodAutoscaler>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::derived("Reference", |object| {
        let at = |member: &str| text_at(object, &format!("/spec/scaleTargetRef/{member}"));
        format!("{}/{}", at("kind"), at("name"))
    }),
    Column::derived("Targets", targets),
    Column::derived("MinPods", |object| match object.pointer("/spec/minReplicas") {
        Some(Value::Number(number)) => number.to_string(),
        _ => UNSET.to_owned(),
    }),
    Column::number("MaxPods", "/spec/maxReplicas"),
    Column::number("Replicas", "/status/currentReplicas"),
    AGE,
];

const DEFAULTS: &[Row] = &[
    ("spec.minReplicas", "1"),
    ("spec.behavior.scaleUp", "{}"),
    ("spec.behavior.scaleUp.stabilizationWindowSeconds", "0"),
    ("spec.behavior.scaleUp.selectPolicy", r#""Max""#),
    (
        "spec.behavior.scaleUp.policies",
        r#"[{"type": "Pods", "value": 4, "periodSeconds": 15}, {"type": "Percent", "value": 100, "periodSeconds": 15}]"#,
    ),
    ("spec.behavior.scaleDown", "{}"),
    ("spec.behavior.scaleDown.selectPolicy", r#""Max""#),
    ("spec.behavior.scaleDown.policies", r#"[{"type": "Percent", "value": 100, "periodSeconds": 15}]"#),
];

/// The annotation in which `autoscaling/v1` keeps the metrics that it has no member for.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// The default target of an autoscaler: this share of the CPU that pods request, in percent.
const DEFAULT_UTILIZATION: u64 = 80;

/// Current and target values, of at most two metrics.
fn targets(object: &Value) -> String {
    let metrics = list_at(object, "/spec/metrics");
    let current = list_at(object, "/status/currentMetrics");
    let mut shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .map(|(index, metric)| target(metric, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    if shown.is_empty() {
        // The first version supports CPU alone.
        let wanted = number_at(object, "/spec/targetCPUUtilizationPercentage");
        if wanted == 0 {
            return NONE.to_owned();
        }
        return match object.pointer("/status/currentCPUUtilizationPercentage").and_then(Value::as_i64) {
            Some(measured) => format!("cpu: {measured}%/{wanted}%"),
            None => format!("cpu: {UNKNOWN}/{wanted}%"),
        };
    }
    let more = shown.len().saturating_sub(2);
    shown.truncate(2);
    let shown = shown.join(", ");
    if more > 0 { format!("{shown} + {more} more...") } else { shown }
}

fn target(metric: &Value, current: &Value) -> String {
    const MEMBERS: &[(&str, &str)] = &[
        ("Resource", "resource"),
        ("ContainerResource", "containerResource"),
        ("Pods", "pods"),
        ("Object", "object"),
        ("External", "external"),
    ];
    let kind = text_at(metric, "/type");
    let Some((_, member)) = MEMBERS.iter().find(|(name, _)| *name == kind) else {
        return "<unknown type>".to_owned();
    };
    let wanted = |at: &str| metric.pointer(&format!("/{member}/target/{at}"));
    let measured = |at: &str| current.pointer(&format!("/{member}/current/{at}"));
    let quantity = |value: Option<&Value>| match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => UNKNOWN.to_owned(),
    };
    let prefix = match kind {
        "Resource" | "ContainerResource" => format!("{}: ", text_at(metric, &format!("/{member}/name"))),
        _ => String::new(),
    };
    if let Some(percentage) = wanted("averageUtilization") {
        let now = measured("averageUtilization").map_or(UNKNOWN.to_owned(), |value| format!("{value}%"));
        return format!("{prefix}{now}/{percentage}%");
    }
    let (at, average) = match wanted("averageValue") {
        Some(_) => ("averageValue", kind != "Resource" && kind != "ContainerResource" && kind != "Pods"),
        None => ("value", false),
    };
    let average = if average { " (avg)" } else { "" };
    format!("{prefix}{}/{}{average}", quantity(measured(at)), quantity(wanted(at)))
}

fn validate(object: &Value, causes: &mut Causes) {
    let number = |at: &str| object.pointer(at).and_then(Value::as_i64);
    if let Some(least) = number("/spec/minReplicas")
        && least < 1
    {
        let why = "must be greater than or equal to 1";
        causes.push(Invalid::value("spec.minReplicas", least, why));
    }
    let most = number("/spec/maxReplicas").unwrap_or(0);
    match most {
        0 => causes.push(Invalid::required("spec.maxReplicas", "must be set and greater than 0")),
        ..0 => {
            let why = "must be greater than or equal to 1";
            causes.push(Invalid::value("spec.maxReplicas", most, why));
        }
        _ => {}
    }
    if number("/spec/minReplicas").is_some_and(|least| most < least) {
        let why = "must be greater than or equal to `minReplicas`";
        causes.push(Invalid::value("spec.maxReplicas", most, why));
    }
    required(object, "/spec/scaleTargetRef/kind", causes);
    required(object, "/spec/scaleTargetRef/name", causes);
    let version = text_at(object, "/spec/scaleTargetRef/apiVersion");
    // In the core group only replication controllers can be scaled.
    if !version.contains('/') && text_at(object, "/spec/scaleTargetRef/kind") != "ReplicationController" {
        let why = "apiVersion must specify API group";
        causes.push(Invalid::text("spec.scaleTargetRef.apiVersion", version, why));
    }
}

fn is_cpu(metric: &Value) -> bool {
    metric.pointer("/resource/name").is_some_and(|name| name == "cpu")
        && metric.pointer("/resource/target/averageUtilization").is_some()
}

fn read_from_v2(value: &mut Value) {
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

fn write_as_v2(value: &mut Value) {
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
fn cpu_metric(target: Value) -> Value {
    json!({ "type": "Resource", "resource": { "name": "cpu", "target": {
        "type": "Utilization", "averageUtilization": target } } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_autoscaler_of_the_first_version_loses_nothing() {
        let memory = json!({ "type": "Resource", "resource": { "name": "memory", "target": {
            "type": "AverageValue", "averageValue": "1Gi" } } });
        let stored = json!({
            "metadata": { "name": "a", "annotations": {} },
            "spec": { "maxReplicas": 3, "metrics": [cpu_metric(json!(70)), memory],
                "behavior": { "scaleDown": { "stabilizationWindowSeconds": 60 } } },
            "status": {},
        });
        let mut value = stored.clone();
        read_from_v2(&mut value);
        assert_eq!(value["spec"], json!({ "maxReplicas": 3, "targetCPUUtilizationPercentage": 70 }));
        write_as_v2(&mut value);
        assert_eq!(value, stored);
    }
}
