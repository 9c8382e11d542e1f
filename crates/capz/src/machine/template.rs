//! The controller of AzureMachineTemplates: reports the capacity of a machine, for autoscalers that scale from zero.

use std::sync::Arc;

use capz_planner::sku::{VIRTUAL_MACHINES, template_status};
use tokio::time::Instant;

use crate::context::manager::{Ended, Manager};
use crate::kubernetes::core;
use crate::kubernetes::kinds::reference;
use crate::kubernetes::patch::Edited;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::Key;

impl Manager {
    /// Writes the capacity of a machine into the status of an AzureMachineTemplate.
    pub(crate) async fn reconcile_template(self: Arc<Self>, key: Key, _: Instant) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.azure_machine_templates, &key)?;
        let cluster = core::owner(&object.metadata, "Cluster").ok_or(Outcome::Idle)?;
        let cluster = self.working_cluster(&key, cluster, &object.metadata).ok_or(Outcome::Idle)?;
        let context = self.cluster_context(cluster).await.map_err(|error| {
            tracing::info!(template = %key, %error, "its cluster has no access to Azure");
            Outcome::Retry
        })?;
        let skus = context.skus(&self).await.map_err(|error| {
            tracing::info!(template = %key, %error, "the sizes of the region cannot be read");
            Outcome::Retry
        })?;
        let machine = object.spec.template.as_ref().and_then(|template| template.spec.as_ref());
        let size = machine.and_then(|machine| machine.vm_size.as_deref()).unwrap_or_default();
        let system = machine.and_then(|machine| machine.os_disk.as_ref()?.os_type.as_deref());
        let size = skus.get(size, VIRTUAL_MACHINES).map_err(|terminal| {
            self.recorder.warning(reference(&object), terminal.reason.event(), terminal.message);
            Outcome::Retry
        })?;
        let offered = template_status(size, system).map_err(|words| {
            self.recorder.warning(reference(&object), "NodeInfoError", words);
            Outcome::Retry
        })?;
        let mut edited = Edited::of(&self.client, &object)?;
        let status = edited.object.status.get_or_insert_default();
        status.capacity = offered.capacity;
        status.node_info = offered.node_info;
        edited.save_in(&self.stores.azure_machine_templates).await?;
        Ok(Outcome::Rest)
    }
}
