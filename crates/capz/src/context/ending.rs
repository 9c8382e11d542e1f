//! Deletion of a cluster: its resource groups are deleted as a whole if everything in them is the cluster's.

use arm::Class;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_planner::cluster::{End, Inventory, end, groups, resources_of};
use capz_planner::kind::Kind;
use capz_planner::{ClusterScope, Observation, ObservedResources};
use tokio::time::Instant;

use crate::azure::failure::Failure;
use crate::azure::reads;
use crate::context::azure_context::AzureContext;
use crate::context::cluster_context::ClusterContext;
use crate::context::manager::Manager;
use crate::kubernetes::core;
use crate::kubernetes::kinds::ObjectKind;

/// How a cluster is deleted.
pub(crate) struct Ending {
    /// By resource group, or resource by resource.
    pub end: End,
    /// The resources in the cluster's resource groups.
    pub inventory: Inventory,
}

impl Ending {
    /// The message about resources that stay, and with them the resource group; `None` if nothing stays.
    pub fn left(&self) -> Option<String> {
        let group = self.inventory.others().next()?.group_name().unwrap_or_default().to_owned();
        Some(format!(
            "resource group {group} stays, for these are not proven to be this cluster's, and stay in it: {}. Delete them, and then \
             the group, by hand if they are of no use",
            self.inventory.others_for_people()
        ))
    }
}

impl Manager {
    /// Whether the whole cluster is deleted by resource group, including the resources in them.
    pub(crate) async fn goes_with_its_group(
        &self,
        context: &ClusterContext,
        not_before: Instant,
    ) -> Result<bool, Failure> {
        if context.cluster.metadata.deletion_timestamp.is_none() {
            return Ok(false);
        }
        if core::is_managed_elsewhere(&context.azure_cluster.metadata) {
            return Ok(false);
        }
        let kind = AzureClusterSpec::NAME;
        Ok(self.ending(context, kind, context.scope(), true, not_before).await?.end == End::WholeGroups)
    }

    /// Decides how a cluster of this kind is deleted.
    pub(crate) async fn ending(
        &self,
        context: &impl AzureContext,
        kind: &'static str,
        scope: ClusterScope<'_>,
        cluster_is_deleted: bool,
        not_before: Instant,
    ) -> Result<Ending, Failure> {
        let mut ending = Ending { end: End::OneByOne, inventory: Inventory::default() };
        let reach = context.reach(self, not_before, (kind, scope.name));
        let mut observed = ObservedResources::default();
        let mut listed = Vec::new();
        for id in groups(scope) {
            let version = Kind::of(&id).api_version;
            let document = reads::get(&context.access().client, &id, version, Class::Refresh).await;
            observed.take(&id, document.map_err(|error| Failure::of(&error, reach.requeue))?);
            // The contents of a group that is being deleted already are not read.
            if let Observation::Present(held) = observed.get(&id)
                && scope.claimant().owns(held)
                && held["properties"]["provisioningState"] != "Deleting"
            {
                listed.extend(reach.list(&resources_of(&id)).await?);
            }
        }
        ending.end = end(scope, cluster_is_deleted, &observed);
        ending.inventory = Inventory::of(scope, &listed);
        let mut more = Vec::new();
        for (reading, _) in ending.inventory.unsettled() {
            more.extend(reach.list(&reading).await?);
        }
        ending.inventory.settle(scope, &more);
        if ending.end == End::WholeGroups && ending.inventory.others().next().is_some() {
            ending.end = End::OneByOne;
        }
        Ok(ending)
    }
}
