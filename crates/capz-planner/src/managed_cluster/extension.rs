//! Extensions of a managed cluster.

use capz_api::azure_managed_control_plane::{AksExtension, ExtensionPlan, ExtensionScope};
use serde_json::{Value, json};

use super::scope::ManagedScope;
use crate::document::text;
use crate::goal::{Goal, OwnershipRule};
use crate::service;

pub(super) fn goals(scope: ManagedScope<'_>) -> Vec<Goal> {
    scope.spec.extensions.iter().flatten().filter_map(|extension| goal(scope, extension)).collect()
}

fn goal(scope: ManagedScope<'_>, extension: &AksExtension) -> Option<Goal> {
    let of_type = |kind: &Option<String>| text(kind).map(|kind| json!({ "type": kind }));
    let document = json!({
        "identity": of_type(&extension.identity),
        "plan": extension.plan.as_ref().map(plan),
        "properties": {
            "aksAssignedIdentity": of_type(&extension.aks_assigned_identity_type),
            "autoUpgradeMinorVersion": extension.auto_upgrade_minor_version,
            "configurationSettings": extension.configuration_settings,
            "extensionType": text(&extension.extension_type),
            "releaseTrain": text(&extension.release_train),
            "scope": extension.scope.as_ref().and_then(place),
            "version": text(&extension.version),
        },
    });
    let cluster = scope.managed_cluster();
    let id = cluster.resource("Microsoft.KubernetesConfiguration", "extensions", text(&extension.name)?);
    Some(Goal::new(id, &service::CLUSTER_EXTENSIONS, document).owned(OwnershipRule::Inside(cluster)))
}

fn plan(plan: &ExtensionPlan) -> Value {
    json!({
        "name": text(&plan.name),
        "product": text(&plan.product),
        "promotionCode": text(&plan.promotion_code),
        "publisher": text(&plan.publisher),
        "version": text(&plan.version),
    })
}

/// Where in the cluster it is installed.
fn place(scope: &ExtensionScope) -> Option<Value> {
    Some(match scope.scope_type.as_deref()? {
        "Cluster" => json!({ "cluster": { "releaseNamespace": text(&scope.release_namespace) } }),
        "Namespace" => json!({ "namespace": { "targetNamespace": text(&scope.target_namespace) } }),
        _ => return None,
    })
}
