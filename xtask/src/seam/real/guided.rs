//! The guide to switching, docs/switching.md, followed by its reader: from an installation of the established provider that
//! clusterctl made to ours, and back.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, ensure};
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::clusterctl::{ESTABLISHED, OUR_IMAGE};
use super::management::Management;
use super::pods::NAMESPACE;
use super::stage::Stage;
use super::steps::{delete_with_our_image, established_runs, our_manifest_runs, rests_unchanged};
use crate::e2e::capz::objects::{api, create, define};
use crate::guide::Guide;
use crate::print;
use crate::record::operator::definitions_without_conversion;

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
const FINALIZER: &str = "serviceoperator.azure.com/finalizer";
/// Azure's types whose resources the established provider creates by the operator: type, kind and version.
const OPERATORS: [(&str, &str, &str); 6] = [
    ("", "ResourceGroup", "resources.azure.com/v1api20200601"),
    ("Microsoft.Network/virtualNetworks", "VirtualNetwork", "network.azure.com/v1api20201101"),
    ("Microsoft.Network/virtualNetworks/subnets", "VirtualNetworksSubnet", "network.azure.com/v1api20201101"),
    ("Microsoft.Network/natGateways", "NatGateway", "network.azure.com/v1api20220701"),
    ("Microsoft.Network/bastionHosts", "BastionHost", "network.azure.com/v1api20220701"),
    ("Microsoft.Network/privateEndpoints", "PrivateEndpoint", "network.azure.com/v1api20220701"),
];
/// The kinds of clusterctl's objects that are compared before and after.
const INSTALLED: [(&str, &str); 14] = [
    ("v1", "Namespace"),
    ("v1", "ServiceAccount"),
    ("v1", "Secret"),
    ("v1", "Service"),
    ("apps/v1", "Deployment"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("cert-manager.io/v1", "Issuer"),
    ("cert-manager.io/v1", "Certificate"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
];

/// Plays the story.
///
/// # Errors
/// The first failed step.
pub async fn play(stage: &mut Stage<'_>, directory: &Path) -> anyhow::Result<()> {
    let here = &stage.here;
    stage.clusterctl.init(here.kubeconfig(), ESTABLISHED).await?;
    established_runs(here).await?;
    stage.make_cluster().await?;
    if stage.plays_established() {
        leave_objects_of_operator(stage).await?;
    }
    let before = installed(here).await?;
    let azure = stage.watch_azure();
    let guide = reader(stage, directory)?;

    follow(&guide, "Prepare clusterctl").await?;
    let checked = follow(&guide, "Look at the clusters").await?;
    print::line(checked.trim_end());
    follow(&guide, "Change the image").await?;
    scale(here, 1).await?;
    here.until_runs("our image runs alone", |pod| pod["spec"]["containers"][0]["image"] == OUR_IMAGE).await?;
    here.until_none_left().await?;
    rests_unchanged(here, &azure).await?;
    // So far with the established role.
    has_all_rights(here)?;

    follow(&guide, "Upgrade").await?;
    our_manifest_runs(here).await?;
    let looked = follow(&guide, "Look again").await?;
    ensure!(looked.contains("v1.27.0"), "clusterctl's inventory after the upgrade:\n{looked}");
    rests_unchanged(here, &azure).await?;
    print::line("  the cluster is served by our manifest, and nothing was written to Azure");

    follow(&guide, "Stop the manager").await?;
    our_manifest_runs(here).await?;
    follow(&guide, "Hand the clusters back").await?;
    established_runs(here).await?;
    rests_unchanged(here, &azure).await?;
    let after = installed(here).await?;
    let differences: Vec<&String> = before.symmetric_difference(&after).collect();
    ensure!(differences.is_empty(), "objects before the switch or after the way back alone: {differences:?}");
    print::line(format_args!("  the same {} objects are installed as before the switch", after.len()));
    delete_with_our_image(stage).await?;
    has_all_rights(here)
}

/// Checks that no right was missing, apart from one that is not needed where no Service converts objects.
fn has_all_rights(management: &Management) -> anyhow::Result<()> {
    let mut missing = management.forbidden()?;
    missing.retain(|one| !one.ends_with("azureserviceoperator-webhook-service"));
    ensure!(missing.is_empty(), "rights that the role does not give: {missing:?}");
    Ok(())
}

/// What the established provider would leave: objects of the operator. Ours, which plays it, would remove them at once, and stops
/// before they exist.
async fn leave_objects_of_operator(stage: &Stage<'_>) -> anyhow::Result<()> {
    let client = &stage.here.client;
    scale(&stage.here, 0).await?;
    stage.here.until_stopped().await?;
    for definition in definitions_without_conversion() {
        define(client, &definition).await?;
    }
    let cluster = api(client, INFRASTRUCTURE, "AzureCluster", Some("default")).get(stage.flavor).await?;
    let owner = json!({ "apiVersion": INFRASTRUCTURE, "kind": "AzureCluster", "name": stage.flavor,
        "uid": cluster.metadata.uid, "controller": true, "blockOwnerDeletion": true });
    let mut count = 0;
    for id in stage.of_cluster() {
        let Some((of_type, name)) = type_and_name(&id) else { continue };
        let Some((_, kind, version)) = OPERATORS.iter().find(|one| one.0.eq_ignore_ascii_case(&of_type))
        else {
            continue;
        };
        let object = json!({ "apiVersion": version, "kind": kind, "metadata": { "namespace": "default", "name": name,
            "annotations": { "serviceoperator.azure.com/reconcile-policy": "manage" }, "finalizers": [FINALIZER],
            "ownerReferences": [owner] }, "spec": { "azureName": name.rsplit('.').next() } });
        create(client, &object).await?;
        count += 1;
    }
    ensure!(count > 3, "Azure has only {count} resources for which the operator has objects");
    print::line(format_args!("  {count} objects of the operator, as the established provider leaves them"));
    Ok(())
}

/// The type of an id, and a name for an object: those of all segments.
fn type_and_name(id: &str) -> Option<(String, String)> {
    let (_, rest) = id.split_once("/resourcegroups/")?;
    let Some((_, resource)) = rest.split_once("/providers/") else {
        return (!rest.contains('/')).then(|| (String::new(), rest.to_owned()));
    };
    let segments: Vec<&str> = resource.split('/').collect();
    let (namespace, pairs) = segments.split_first()?;
    let types: Vec<&str> = pairs.iter().step_by(2).copied().collect();
    let names: Vec<&str> = pairs.iter().skip(1).step_by(2).copied().collect();
    Some((format!("{namespace}/{}", types.join("/")), names.join(".")))
}

/// The names of the objects that are installed, apart from those in the namespace of the cluster.
async fn installed(management: &Management) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for (version, kind) in INSTALLED {
        let all = ListParams::default();
        for object in api(&management.client, version, kind, None).list_metadata(&all).await? {
            let name = object.metadata.name.unwrap_or_default();
            let namespace = object.metadata.namespace.unwrap_or_default();
            // A cluster's own Secrets are there: one of them where the operator is.
            if namespace != "default" {
                found.insert(format!("{kind} {namespace}/{name}"));
            }
        }
    }
    Ok(found)
}

async fn scale(management: &Management, replicas: u32) -> anyhow::Result<()> {
    let deployments = api(&management.client, "apps/v1", "Deployment", Some(NAMESPACE));
    let patch = json!({ "spec": { "replicas": replicas } });
    let scaled =
        deployments.patch("capz-controller-manager", &PatchParams::default(), &Patch::Merge(patch)).await;
    scaled.map(drop).context("capz-controller-manager")
}

/// A reader with the files that the guide mentions.
fn reader(stage: &Stage<'_>, directory: &Path) -> anyhow::Result<Guide> {
    let folder = directory.join("reader");
    std::fs::create_dir_all(&folder)?;
    stage.write_files_of_reader(&folder)?;
    let mut variables = stage.variables_of_reader();
    variables.extend([
        ("CAPZ_IMAGE".to_owned(), OUR_IMAGE.to_owned()),
        ("HOME".to_owned(), folder.display().to_string()),
        ("XDG_CONFIG_HOME".to_owned(), folder.display().to_string()),
        ("CLUSTERCTL_DISABLE_VERSIONCHECK".to_owned(), "true".to_owned()),
        ("NO_PROXY".to_owned(), "127.0.0.1".to_owned()),
    ]);
    Guide::read("docs/switching.md", &folder, variables)
}

/// Follows the commands below a heading, while pods run.
async fn follow(guide: &Guide, heading: &'static str) -> anyhow::Result<String> {
    let guide = guide.clone();
    let printed = tokio::task::spawn_blocking(move || guide.follow(heading)).await??;
    print::line(format_args!("  ok  {heading}"));
    Ok(printed.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_a_type_and_a_name() {
        let group = "/subscriptions/s/resourcegroups/g";
        let of = |id: &str| type_and_name(id).map(|(of_type, name)| format!("{of_type} {name}"));
        assert_eq!(of(group).as_deref(), Some(" g"));
        let subnet = format!("{group}/providers/microsoft.network/virtualnetworks/v/subnets/n");
        assert_eq!(of(&subnet).as_deref(), Some("microsoft.network/virtualnetworks/subnets v.n"));
        assert_eq!(of("/subscriptions/s"), None);
    }
}
