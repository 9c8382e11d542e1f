//! The chart of the manager of clusters beside the manifest of clusterctl.

use regex::Regex;
use serde_json::{Value, json};

use super::{Helm, Objects, objects, rendered};
use crate::program::root;

const CHART: &str = "capz-controller-manager";

/// What clusterctl installs if no variable is set.
fn manifest() -> Objects {
    let text = std::fs::read_to_string(root().join("deploy/capz/infrastructure-components.yaml")).unwrap();
    let variable = Regex::new(r"\$\{\w+:=([^}]*)\}").unwrap();
    objects(&variable.replace_all(&text, "$1"))
}

/// An object without helm's own annotation.
fn without_policy(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    if let Some(annotations) = metadata.get_mut("annotations") {
        annotations.as_object_mut().unwrap().remove("helm.sh/resource-policy");
        if annotations.as_object().unwrap().is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

#[test]
fn the_chart_makes_the_objects_of_the_manifest() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let (mut manifest, chart) = (manifest(), rendered(&helm, CHART, &json!({})));
    assert!(manifest.len() > 20);
    for (name, object) in &chart {
        let expected = manifest.remove(name).unwrap_or_else(|| panic!("the manifest has no {name:?}"));
        assert_eq!(without_policy(object), expected, "{name:?}");
    }
    assert!(manifest.is_empty(), "the chart lacks {:?}", manifest.keys());
}

/// An uninstalled release leaves clusters and their machines alone.
#[test]
fn definitions_and_the_namespace_outlive_the_release() {
    let Some(helm) = Helm::find().unwrap() else { return };
    for ((kind, _, name), object) in rendered(&helm, CHART, &json!({})) {
        let kept = object["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep";
        assert_eq!(kept, ["CustomResourceDefinition", "Namespace"].contains(&kind.as_str()), "{kind} {name}");
    }
}

#[test]
fn without_cert_manager_the_webhooks_have_the_given_authority() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let values = json!({"certificate": {"certManager": false, "caBundle": "Y2E="}});
    let all = rendered(&helm, CHART, &values);
    assert!(!all.keys().any(|(kind, ..)| kind == "Issuer" || kind == "Certificate"));
    let webhooks: Vec<&Value> = all
        .iter()
        .filter(|((kind, ..), _)| kind.ends_with("WebhookConfiguration"))
        .flat_map(|(_, object)| object["webhooks"].as_array().unwrap())
        .collect();
    assert!(webhooks.len() > 5);
    assert!(webhooks.iter().all(|webhook| webhook["clientConfig"]["caBundle"] == "Y2E="));
    let refused = helm.template(&super::folder(CHART), &json!({"certificate": {"certManager": false}}));
    assert!(refused.unwrap_err().to_string().contains("certificate.caBundle"));
}
