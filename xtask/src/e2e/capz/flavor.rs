//! Flavors as a user gets them: by the real clusterctl where there is one, by this repository's own reading of variables elsewhere.

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::clusterctl;
use super::place::Place;
use super::stage::{SECRET, Stage};
use crate::program::root;
use crate::record::flavor::{filled_in, variables};

/// The objects of a flavor, for a cluster of this name. Its identity has a service principal's secret.
///
/// # Errors
/// There is no such flavor, or a variable without a default is not known.
pub fn rendered(stage: &Stage<'_>, flavor: &str, cluster: &str) -> anyhow::Result<Vec<Value>> {
    let end = if flavor.is_empty() { String::new() } else { format!("-{flavor}") };
    let template = root().join(format!("deploy/capz/templates/cluster-template{end}.yaml"));
    let variables = variables(cluster, &stage.place.shape);
    let mut objects: Vec<Value> = match &stage.programs.clusterctl {
        Some(program) => clusterctl::generated(program, stage.directory, &template, &variables)?,
        None => serde_saphyr::from_multiple(&filled_in(&std::fs::read_to_string(template)?, &variables)?)?,
    };
    for identity in objects.iter_mut().filter(|it| it["kind"] == "AzureClusterIdentity") {
        identity["spec"]["type"] = "ServicePrincipal".into();
        identity["spec"]["clientSecret"] = json!({ "name": SECRET, "namespace": "default" });
    }
    Ok(objects)
}

/// Makes what the flavors' machines take for granted in Azure.
///
/// # Errors
/// Azure refuses it.
pub fn identity_for_machines(place: &Place) -> anyhow::Result<()> {
    let group = ResourceId::group(&place.shape.subscription, "capz-ci");
    let identity =
        group.resource("Microsoft.ManagedIdentity", "userAssignedIdentities", "cloud-provider-user-identity");
    for id in [&group, &identity] {
        let made = place.azure.azure.put(id, json!({ "location": place.shape.region }));
        made.map_err(|refusal| anyhow::anyhow!("{id}: {refusal:?}"))?;
    }
    Ok(())
}
