//! Flavors as a user generates them: with the real clusterctl if it is configured, otherwise with this repository's own
//! replacement of variables.

use serde_json::{Value, json};

use super::clusterctl;
use super::stage::{SECRET, Stage};
use crate::program::root;
use crate::record::flavor::{filled_in, variables};

/// The objects of a flavor, for a cluster of this name. Its identity has a service principal's secret.
///
/// # Errors
/// There is no such flavor, or an unknown variable has no default.
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
