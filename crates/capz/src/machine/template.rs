//! The controller of AzureMachineTemplates: reports the capacity of a machine, for autoscalers that scale from zero.

use std::sync::Arc;

use capz_planner::sku::{VIRTUAL_MACHINES, template_status};
use controllers::Reference;

use crate::context::manager::Manager;
use crate::kubernetes::core;
use crate::kubernetes::kinds::{API_VERSION, AzureMachineTemplate};
use crate::kubernetes::patch::Edited;
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::Key;

const KIND: &str = "AzureMachineTemplate";

impl Manager {
    /// Writes the capacity of a machine into the status of an AzureMachineTemplate.
    pub(crate) async fn reconcile_template(self: Arc<Self>, key: &Key) -> Outcome {
        let object = match self.own(&self.stores.azure_machine_templates, key) {
            Ok(object) => object,
            Err(end) => return end,
        };
        let owners = object.metadata.owner_references.as_deref();
        let Some(cluster) = core::owner(owners, "Cluster") else { return Outcome::Idle };
        let Some(cluster) = self.working_cluster(key, cluster, &object.metadata) else {
            return Outcome::Idle;
        };
        let context = match self.cluster_context(cluster).await {
            Ok(context) => context,
            Err(error) => {
                tracing::info!(template = %key, %error, "its cluster has no access to Azure");
                return Outcome::Retry;
            }
        };
        let skus = match context.skus(&self).await {
            Ok(skus) => skus,
            Err(error) => {
                tracing::info!(template = %key, %error, "the sizes of the region cannot be read");
                return Outcome::Retry;
            }
        };
        let machine = object.spec.template.as_ref().and_then(|template| template.spec.as_ref());
        let size = machine.and_then(|machine| machine.vm_size.as_deref()).unwrap_or_default();
        let system = machine.and_then(|machine| machine.os_disk.as_ref()?.os_type.as_deref());
        let about = || Reference::of(API_VERSION, KIND, &object.metadata);
        let offered = match skus.get(size, VIRTUAL_MACHINES) {
            Ok(size) => template_status(size, system),
            Err(terminal) => {
                self.recorder.warning(about(), terminal.reason.event(), terminal.message);
                return Outcome::Retry;
            }
        };
        let offered = match offered {
            Ok(offered) => offered,
            Err(words) => {
                self.recorder.warning(about(), "NodeInfoError", words);
                return Outcome::Retry;
            }
        };
        self.say(key, &object, |status| {
            status.capacity = offered.capacity;
            status.node_info = offered.node_info;
        })
        .await
    }

    async fn say(
        &self,
        key: &Key,
        object: &AzureMachineTemplate,
        set: impl FnOnce(&mut capz_api::azure_machine::AzureMachineTemplateStatus),
    ) -> Outcome {
        let saved = async {
            let mut edited = Edited::of(&self.client, KIND, object)?;
            set(edited.object.status.get_or_insert_default());
            edited.save_in(&self.stores.azure_machine_templates).await
        };
        match saved.await {
            Ok(()) => Outcome::Rest,
            Err(error) => self.lost(key, &error),
        }
    }
}
