//! The finalizer that keeps a Service until its load balancer is gone (Kubernetes, "Create an External Load Balancer").

use k8s::{Service, names};
use kube::api::Patch;
use kube::{Api, Client};
use serde_json::json;

use crate::api::{ApiError, call, patch_params};

/// Adds the finalizer if it is missing.
///
/// A strategic merge adds to the list, so that other finalizers stay; the UID prevents a write to another Service of
/// the same name. As upstream, the patch goes to the status sub-resource, for which the established roles give
/// permission.
pub(crate) async fn add(client: &Client, service: &Service) -> Result<(), ApiError> {
    if service.has_finalizer() {
        return Ok(());
    }
    let patch = json!({
        "metadata": {"uid": service.uid(), "finalizers": [names::LOAD_BALANCER_FINALIZER]},
    });
    patch_status(client, service, patch, "add the finalizer of").await
}

/// Removes the finalizer and, with the same write, outdated addresses. A deleted Service needs neither.
pub(crate) async fn remove_with_status(client: &Client, service: &Service) -> Result<(), ApiError> {
    let addressed = !service.status.load_balancer.ingress.is_empty();
    if !service.has_finalizer() && !addressed {
        return Ok(());
    }
    let mut patch = json!({"metadata": {"uid": service.uid()}});
    if service.has_finalizer() {
        patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!([names::LOAD_BALANCER_FINALIZER]);
    }
    if addressed {
        patch["status"] = json!({"loadBalancer": {"ingress": null}});
    }
    match patch_status(client, service, patch, "remove the finalizer of").await {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}

/// Patches the status sub-resource of a Service.
pub(crate) async fn patch_status(
    client: &Client,
    service: &Service,
    patch: serde_json::Value,
    what: &str,
) -> Result<(), ApiError> {
    let key = service.key();
    let api: Api<Service> = Api::namespaced(client.clone(), &key.namespace);
    let (params, patch) = (patch_params(), Patch::Strategic(patch));
    call(|| format!("{what} service {key}"), api.patch_status(&key.name, &params, &patch)).await?;
    Ok(())
}
