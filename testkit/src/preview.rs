//! What a controller manager would do, before it does it.

use std::sync::Arc;

use azure_simulator::Azure;
use planner::ClusterPlan;
use serde_json::Value;

use crate::kill_switch::KillSwitch;
use crate::world::World;

impl World {
    /// The output of `cerulean plan` now: the plan of a new provider, for the current Services and Nodes.
    ///
    /// # Errors
    /// Azure could not be read.
    pub async fn preview(&self) -> Result<ClusterPlan, String> {
        self.preview_at(&self.copy_of_azure()).await
    }

    /// The same against another Azure.
    pub(crate) async fn preview_at(&self, azure: &Azure) -> Result<ClusterPlan, String> {
        let provider = self.provider_at(azure, &KillSwitch::never());
        let state = provider.state();
        for service in self.kubernetes.list("Service") {
            state.apply_service(typed(service.value()));
        }
        for node in self.kubernetes.list("Node") {
            state.apply_node(typed(node.value()));
        }
        for namespace in self.kubernetes.list("Namespace") {
            let labels = &namespace.value()["metadata"]["labels"];
            let labels = serde_json::from_value(labels.clone()).unwrap_or_default();
            state.apply_namespace(namespace.name(), labels);
        }
        for slice in self.kubernetes.list("EndpointSlice") {
            state.apply_endpoint_slice(&typed(slice.value()));
        }
        state.endpoints_are_synced();
        state.services_are_synced();
        state.nodes_are_synced();
        let plan = provider.dry_run().await.map_err(|error| error.to_string())?;
        if !self.has_routes() {
            return Ok(plan);
        }
        let due = controllers::routes_due(&provider, &provider, state, provider.cluster_ranges()).await;
        let due = due.map_err(|error| error.to_string())?;
        let routes = provider.preview_routes(&due.wanted, &due.unwanted).await;
        Ok(plan.with_routes(routes.map_err(|error| error.to_string())?, due.refused, due.problems))
    }
}

fn typed<T: serde::de::DeserializeOwned>(object: &Value) -> Arc<T> {
    Arc::new(serde_json::from_value(object.clone()).expect("the API stores what it knows"))
}
