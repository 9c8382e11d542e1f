//! The kinds that the controllers watch and change.

use std::collections::BTreeMap;

use capz_api::azure_cluster::{AzureClusterSpec, AzureClusterStatus};
use capz_api::azure_cluster_identity::{AzureClusterIdentitySpec, AzureClusterIdentityStatus};
use capz_api::azure_machine::{
    AzureMachineSpec, AzureMachineStatus, AzureMachineTemplateSpec, AzureMachineTemplateStatus,
};
use capz_api::azure_machine_pool::{
    AzureMachinePoolMachineSpec, AzureMachinePoolMachineStatus, AzureMachinePoolSpec, AzureMachinePoolStatus,
};
use k8s::api::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::core::{ApiResource, GroupVersionKind};

/// An object with a typed spec and status.
pub type Object<S, T> = kube::core::Object<S, T>;
/// The network of a cluster.
pub type AzureCluster = Object<AzureClusterSpec, AzureClusterStatus>;
/// One virtual machine.
pub type AzureMachine = Object<AzureMachineSpec, AzureMachineStatus>;
/// A template of virtual machines.
pub type AzureMachineTemplate = Object<AzureMachineTemplateSpec, AzureMachineTemplateStatus>;
/// One scale set.
pub type AzureMachinePool = Object<AzureMachinePoolSpec, AzureMachinePoolStatus>;
/// One instance of a scale set.
pub type AzureMachinePoolMachine = Object<AzureMachinePoolMachineSpec, AzureMachinePoolMachineStatus>;
/// Credentials.
pub type AzureClusterIdentity = Object<AzureClusterIdentitySpec, AzureClusterIdentityStatus>;

/// The kind of the objects that represent instances of scale sets.
pub const POOL_MACHINE: &str = "AzureMachinePoolMachine";
/// The group of all kinds here.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// Their version.
pub const VERSION: &str = "v1beta1";
/// Group and version, as in `apiVersion`.
pub const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// The labels or annotations of an object that has none.
pub static NO_ENTRIES: BTreeMap<String, String> = BTreeMap::new();

/// The name of the owner of this kind in our group.
pub fn owner<'a>(owners: Option<&'a [OwnerReference]>, kind: &str) -> Option<&'a str> {
    owners
        .into_iter()
        .flatten()
        .find(|owner| owner.kind == kind && owner.api_version.split('/').next() == Some(GROUP))
        .map(|owner| owner.name.as_str())
}

/// The API resource of a kind of ours.
pub fn resource(kind: &str) -> ApiResource {
    let plural = capz_api::crd::KINDS
        .iter()
        .find(|known| known.name == kind)
        .map_or_else(|| format!("{}s", kind.to_lowercase()), capz_api::crd::Kind::plural);
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, kind), &plural)
}
