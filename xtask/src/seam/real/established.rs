//! The components of the established provider, made from facts about its releases: the names, labels, references and rights of its
//! objects. Where its image would run, a program of this repository does.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use crate::e2e::capz::objects::read;
use crate::program::root;
use crate::record::flavor::filled_in;

/// The image of its manager.
const IMAGE: &str = "registry.k8s.io/cluster-api-azure/cluster-api-azure-controller:v1.26.0";
/// Writes the components, and the metadata of a release of the series 1.26.
///
/// # Errors
/// A file cannot be read or written.
pub fn write(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    let texts: Vec<String> = components()?.iter().map(|object| format!("{object:#}\n")).collect();
    std::fs::write(folder.join("infrastructure-components.yaml"), texts.join("---\n"))?;
    let metadata = read(&root().join("deploy/capz/metadata.yaml"))?;
    let mut metadata = metadata.into_iter().next().context("deploy/capz/metadata.yaml is empty")?;
    if let Some(series) = metadata["releaseSeries"].as_array_mut() {
        series.retain(|one| one["minor"].as_u64() < Some(27));
    }
    std::fs::write(folder.join("metadata.yaml"), metadata.to_string())?;
    Ok(())
}

fn components() -> anyhow::Result<Vec<Value>> {
    let ours = std::fs::read_to_string(root().join("deploy/capz/infrastructure-components.yaml"))?;
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&filled_in(&ours, &BTreeMap::new())?)?;
    let other: Vec<Value> = serde_saphyr::from_multiple(include_str!("established.yaml"))?;
    let key = |object: &Value| (object["kind"].clone(), object["metadata"]["name"].clone());
    objects.retain(|object| !other.iter().any(|one| key(one) == key(object)));
    objects.extend(other);
    for object in objects.iter_mut().filter(|it| it["metadata"]["name"] == "capz-controller-manager") {
        object["spec"]["template"]["spec"]["containers"][0]["image"] = IMAGE.into();
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    /// Names and labels of the established provider's manifests, apart from its definitions.
    #[test]
    fn the_objects_have_the_established_names_and_labels() {
        let objects = components().unwrap();
        let expected = [
            ("Namespace", "capz-system"),
            ("ServiceAccount", "capz-manager"),
            ("ClusterRole", "capz-manager-role"),
            ("ClusterRole", "capz-base-manager-role"),
            ("ClusterRole", "capz-kubeadm-bootstrap-managed-control-plane-reader-role"),
            ("ClusterRoleBinding", "capz-manager-rolebinding"),
            ("Role", "capz-leader-election-role"),
            ("RoleBinding", "capz-leader-election-rolebinding"),
            ("Secret", "capz-manager-bootstrap-credentials"),
            ("Secret", "aso-controller-settings"),
            ("Service", "capz-webhook-service"),
            ("Service", "azureserviceoperator-webhook-service"),
            ("Deployment", "capz-controller-manager"),
            ("Deployment", "azureserviceoperator-controller-manager"),
            ("Issuer", "capz-selfsigned-issuer"),
            ("Certificate", "capz-serving-cert"),
            ("MutatingWebhookConfiguration", "capz-mutating-webhook-configuration"),
            ("ValidatingWebhookConfiguration", "capz-validating-webhook-configuration"),
        ];
        for (kind, name) in expected {
            let found: Vec<&Value> = objects
                .iter()
                .filter(|object| object["kind"] == kind && object["metadata"]["name"] == name)
                .collect();
            assert_eq!(found.len(), 1, "{kind} {name}");
        }
        let deployment = objects
            .iter()
            .find(|it| it["kind"] == "Deployment" && it["metadata"]["name"] == "capz-controller-manager");
        let deployment = deployment.unwrap();
        assert_eq!(
            deployment["spec"]["selector"]["matchLabels"],
            json!({ "cluster.x-k8s.io/provider": "infrastructure-azure", "control-plane": "capz-controller-manager" })
        );
        assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], IMAGE);
        let definitions = objects.iter().filter(|it| it["kind"] == "CustomResourceDefinition").count();
        assert_eq!(definitions, 19);
    }
}
