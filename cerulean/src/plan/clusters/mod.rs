//! `cerulean plan` for clusters on Azure: what `capz-controller-manager` would write for an AzureCluster with its
//! machines and pools, and for clusters that Azure manages.
//!
//! ```text
//!  manifests ──topology::expand──▶ objects ──schemas, finder (admission)──▶ clusters ──planner──▶ report
//! ```
//!
//! Objects are admitted first, as the webhooks would do. Then each object's goals are planned to the end
//! ([`capz_planner::preview`]), in the order of the controllers: the network, the control plane one machine after the
//! other, and everything else.

mod azure;
mod finder;
mod managed;
mod managed_objects;
mod objects;
mod own_pools;
mod planner;
mod raw;
mod references;
mod report;
mod schemas;
mod self_managed;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use anyhow::Context as _;
use capz_api::crd::GROUP;

use crate::plan::values::{is_of, text};
use azure::Regions;
pub use azure::Source;
use managed_objects::Generation;
pub use report::ClustersPlan;

use super::topology;
use crate::manifests::Manifest;

/// An empty Azure accepts any subscription.
const ANY_SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";

/// Whether manifests declare a cluster on Azure, or a topology of which one is made.
pub fn has_clusters(manifests: &[Manifest]) -> bool {
    manifests.iter().any(|manifest| {
        let kind = manifest.kind();
        let is_ours =
            kind == "AzureCluster" || kind.starts_with("AzureManaged") || kind.starts_with("AzureASOManaged");
        (is_ours && is_of(&manifest.object, GROUP)) || topology::class_of(&manifest.object).is_some()
    })
}

/// Plans the clusters of manifests. `namespace` is the default namespace of objects, `subscription` the default
/// subscription of clusters.
///
/// # Errors
/// Azure cannot be read.
pub async fn plan(
    source: &Source,
    manifests: &[Manifest],
    namespace: &str,
    subscription: Option<&str>,
) -> anyhow::Result<ClustersPlan> {
    let objects = objects::with_namespaces(manifests, namespace);
    let topology::Expansion { objects, refused, notes: of_topologies, is_incomplete } =
        topology::expand(objects);
    let mut regions = Regions::new();
    for location in objects::locations(&objects) {
        let own = objects.iter().map(|it| text(it, "/spec/subscriptionID")).find(|id| !id.is_empty());
        let skus = source.skus(own.or(subscription).unwrap_or(ANY_SUBSCRIPTION), &location).await?;
        regions.insert(location, skus);
    }
    let zones: BTreeMap<String, Vec<String>> =
        regions.iter().map(|(name, skus)| (name.clone(), skus.zones().into_iter().collect())).collect();
    let mut misshapen = refused;
    misshapen.extend(schemas::judge(&objects, subscription).await?);
    misshapen.extend(references::misshapen(&objects));
    let found = objects::find(&objects, misshapen, &zones, subscription);
    let mut plan =
        ClustersPlan { refused: found.refused, notes: found.notes, is_incomplete, ..ClustersPlan::default() };
    if matches!(source, Source::Empty) {
        plan.notes.push(
            "assuming an empty subscription, and the machine sizes of the simulated Azure; pass --cloud-config FILE to read \
             the real one"
                .to_owned(),
        );
    }
    plan.notes.extend(of_topologies);
    plan.notes.extend(references::leading_nowhere(&objects));
    for declared in &found.clusters {
        let skus =
            regions.get(text(&declared.azure, "/spec/location")).context("a region was not requested")?;
        self_managed::plan(source, declared, skus, subscription, &mut plan).await?;
    }
    for declared in &found.managed {
        match declared.generation {
            Generation::Members => {
                let skus = regions.get(text(&declared.control_plane, "/spec/location"));
                managed::plan(source, declared, skus, subscription, &mut plan).await?;
            }
            Generation::Resources => raw::plan(source, declared, &objects, subscription, &mut plan).await?,
        }
    }
    Ok(plan)
}
