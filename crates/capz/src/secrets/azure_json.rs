//! Secrets with the cloud provider's configuration (azure.json): for AzureMachineTemplates, for AzureMachines without a
//! template, and for AzureMachinePools. Bootstrap configurations refer to them, so they exist before any machine does.

use std::sync::Arc;

use arm::{ApiVersion, Class};
use azure_types::ResourceId;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use capz_api::machine::{UserAssignedIdentity, identity_kinds};
use capz_planner::azure_json::{
    Credentials, KEYS, carries_secret, contents, machine_has_own, owner_label, secret_name,
};
use controllers::Reference;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use tokio::time::Instant;

use crate::azure::clients::{has_client_secret, kind_of};
use crate::context::azure_context::AzureContext as _;
use crate::context::cluster_context::ClusterContext;
use crate::context::cluster_objects::ClusterObjects;
use crate::context::manager::{Ended, Manager};
use crate::kubernetes::core;
use crate::kubernetes::kinds::{API_VERSION, NO_ENTRIES, Object, ObjectKind};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::Key;
use crate::secrets::owned_secret::OwnedSecret;

/// The API version of Microsoft.ManagedIdentity.
const IDENTITIES: ApiVersion = ApiVersion::new("2023-01-31");

/// Machines that share one Secret with their configuration.
struct Machines<'a> {
    kind: &'static str,
    /// The reason of the event for a failure.
    failed: &'static str,
    object: &'a ObjectMeta,
    cluster: &'a str,
    identity: Option<&'a str>,
    identities: &'a [UserAssignedIdentity],
}

impl<'a> Machines<'a> {
    fn of<K: ObjectKind>(
        object: &'a Object<K>,
        failed: &'static str,
        cluster: &'a str,
        identity: Option<&'a str>,
        identities: Option<&'a [UserAssignedIdentity]>,
    ) -> Self {
        let identities = identities.unwrap_or_default();
        Self { kind: K::NAME, failed, object: &object.metadata, cluster, identity, identities }
    }
}

impl Manager {
    /// Reconciles the Secret of an AzureMachine without a template.
    pub(crate) async fn reconcile_machine_secret(
        self: Arc<Self>,
        key: Key,
        _: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.azure_machines, &key)?;
        if !machine_has_own(object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES)) {
            return Ok(Outcome::Idle);
        }
        let cluster = core::cluster_name(&object.metadata).ok_or(Outcome::Idle)?;
        let failed = "Error reconciling cloud provider secret for AzureMachine";
        let (identity, identities) = (&object.spec.identity, &object.spec.user_assigned_identities);
        let machines = Machines::of(&object, failed, cluster, identity.as_deref(), identities.as_deref());
        self.keep_azure_json(&key, &machines).await
    }

    /// Reconciles the Secret of an AzureMachineTemplate, for all machines that are made from it.
    pub(crate) async fn reconcile_template_secret(
        self: Arc<Self>,
        key: Key,
        _: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.azure_machine_templates, &key)?;
        let cluster = core::owner(&object.metadata, "Cluster").ok_or(Outcome::Idle)?;
        let machine = object.spec.template.as_ref().and_then(|template| template.spec.as_ref());
        let failed = "Error reconciling cloud provider secret for AzureMachineTemplate";
        let identity = machine.and_then(|it| it.identity.as_deref());
        let identities = machine.and_then(|it| it.user_assigned_identities.as_deref());
        let machines = Machines::of(&object, failed, cluster, identity, identities);
        self.keep_azure_json(&key, &machines).await
    }

    /// Reconciles the Secret of an AzureMachinePool.
    pub(crate) async fn reconcile_pool_secret(
        self: Arc<Self>,
        key: Key,
        _: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.azure_machine_pools, &key)?;
        let cluster = core::cluster_name(&object.metadata).ok_or(Outcome::Idle)?;
        let failed = "Error reconciling cloud provider secret for AzureMachinePool";
        let (identity, identities) = (&object.spec.identity, &object.spec.user_assigned_identities);
        let machines = Machines::of(&object, failed, cluster, identity.as_deref(), identities.as_deref());
        self.keep_azure_json(&key, &machines).await
    }

    async fn keep_azure_json(&self, key: &Key, machines: &Machines<'_>) -> Result<Outcome, Ended> {
        let cluster = self.working_cluster(key, machines.cluster, machines.object).ok_or(Outcome::Idle)?;
        let secret = self.azure_json(machines, cluster).await.map_err(|words| {
            let about = Reference::of(API_VERSION, machines.kind, machines.object);
            self.recorder.warning(about, machines.failed, words);
            Outcome::Retry
        })?;
        Ok(self.keep_or_report(&secret, machines.failed).await)
    }

    /// The Cluster of this name and its AzureCluster, or the managed cluster that machines join; `None` if there is nothing to do for their objects because one of
    /// them is missing, is paused, or is being deleted.
    pub(crate) fn working_cluster(
        &self,
        key: &Key,
        cluster: &str,
        object: &ObjectMeta,
    ) -> Option<ClusterObjects> {
        let cluster = self.stores.clusters.get(&key.beside(cluster))?;
        if core::is_paused(&cluster, object.annotations.as_ref()) || object.deletion_timestamp.is_some() {
            return None;
        }
        let control_plane = &cluster.spec.control_plane_ref;
        if control_plane.kind == AzureManagedControlPlaneSpec::NAME {
            let control_plane = self.stores.managed_control_planes.get(&key.beside(&control_plane.name))?;
            return Some(ClusterObjects::joining(cluster, control_plane));
        }
        let infrastructure = &cluster.spec.infrastructure_ref;
        if infrastructure.kind != AzureClusterSpec::NAME {
            return None;
        }
        let azure_cluster = self.stores.azure_clusters.get(&key.beside(&infrastructure.name))?;
        Some(ClusterObjects { cluster, azure_cluster, managed: None })
    }

    async fn azure_json<'a>(
        &self,
        machines: &'a Machines<'a>,
        cluster: ClusterObjects,
    ) -> Result<OwnedSecret<'a>, String> {
        let context = self.cluster_context(cluster).await.map_err(|error| error.to_string())?;
        context.check_rival().map_err(|failure| failure.to_string())?;
        let identity = &context.identity.spec;
        if carries_secret(machines.identity, kind_of(identity)) {
            self.recorder.warning(
                Reference::of(API_VERSION, machines.kind, machines.object),
                "VMIdentityNone",
                "the machines have no identity of their own: the client secret of the cluster's identity is written to \
                 the disk of each, where the cloud provider reads it. Give them an identity (spec.identity) to avoid that",
            );
        }
        let client = client_of_machines(machines, &context).await?;
        let secret = context.secret.secret_text().filter(|_| has_client_secret(identity));
        let trimmed = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().to_owned();
        let (tenant, client_id) = (trimmed(&identity.tenant_id), trimmed(&identity.client_id));
        let credentials =
            Credentials { tenant: &tenant, client_id: &client_id, client_secret: secret.as_ref() };
        let scope = context.scope_of(&context.azure_cluster.spec, &[]);
        let has_pools = self.settings.gates.machine_pool;
        let text = contents(scope, credentials, machines.identity, client.as_deref(), has_pools)
            .map_err(|error| error.to_string())?;
        Ok(OwnedSecret {
            name: secret_name(machines.object.name.as_deref().unwrap_or_default()),
            label: owner_label(machines.cluster),
            kind: machines.kind,
            owner: machines.object,
            data: KEYS.map(|key| (key.to_owned(), text.reveal().as_bytes().to_owned())).into(),
            is_shared: false,
            is_export: false,
        })
    }
}

/// The client ID of the machines' first user-assigned identity, if any. The identity's resource ID names its
/// subscription.
async fn client_of_machines(
    machines: &Machines<'_>,
    context: &ClusterContext,
) -> Result<Option<String>, String> {
    if machines.identity != Some(identity_kinds::USER_ASSIGNED) {
        return Ok(None);
    }
    let Some(first) = machines.identities.first() else { return Ok(None) };
    let id = first.provider_id.as_deref().unwrap_or_default();
    let id = ResourceId::parse(id.strip_prefix("azure://").unwrap_or(id))
        .map_err(|error| format!("userAssignedIdentities[0].providerID: {error}"))?;
    let document: Value = context
        .access
        .client
        .get(&id, IDENTITIES, Class::Refresh)
        .await
        .map_err(|error| format!("the identity {id} cannot be read: {error}"))?;
    Ok(document["properties"]["clientId"].as_str().map(str::to_owned))
}
