//! The kinds that the controllers watch and change.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Debug;

use capz_api::azure_aso_managed::{
    AzureAsoManagedClusterSpec, AzureAsoManagedClusterStatus, AzureAsoManagedControlPlaneSpec,
    AzureAsoManagedControlPlaneStatus, AzureAsoManagedMachinePoolSpec, AzureAsoManagedMachinePoolStatus,
};
use capz_api::azure_cluster::{AzureClusterSpec, AzureClusterStatus};
use capz_api::azure_cluster_identity::{AzureClusterIdentitySpec, AzureClusterIdentityStatus};
use capz_api::azure_machine::{
    AzureMachineSpec, AzureMachineStatus, AzureMachineTemplateSpec, AzureMachineTemplateStatus,
};
use capz_api::azure_machine_pool::{
    AzureMachinePoolMachineSpec, AzureMachinePoolMachineStatus, AzureMachinePoolSpec, AzureMachinePoolStatus,
};
use capz_api::azure_managed_cluster::{AzureManagedClusterSpec, AzureManagedClusterStatus};
use capz_api::azure_managed_control_plane::{AzureManagedControlPlaneSpec, AzureManagedControlPlaneStatus};
use capz_api::azure_managed_machine_pool::{AzureManagedMachinePoolSpec, AzureManagedMachinePoolStatus};
use controllers::Reference;
use k8s::api::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Resource;
use kube::core::{ApiResource, DynamicResourceScope, GroupVersionKind, TypeMeta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A kind, which its spec stands for.
pub trait ObjectKind:
    Clone + Default + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// Its name.
    const NAME: &'static str;
    /// The name of several of its objects, for logs.
    const PLURAL: &'static str;
    /// The status of its objects.
    type Status: Clone + Default + PartialEq + Debug + Serialize + DeserializeOwned + Send + Sync + 'static;
}

macro_rules! object_kinds {
    ($($spec:ty, $status:ty, $name:literal, $plural:literal;)*) => {
        $(impl $crate::kubernetes::kinds::ObjectKind for $spec {
            const NAME: &'static str = $name;
            const PLURAL: &'static str = $plural;
            type Status = $status;
        })*
    };
}
pub(crate) use object_kinds;

object_kinds! {
    AzureClusterSpec, AzureClusterStatus, "AzureCluster", "AzureClusters";
    AzureMachineSpec, AzureMachineStatus, "AzureMachine", "AzureMachines";
    AzureMachineTemplateSpec, AzureMachineTemplateStatus, "AzureMachineTemplate", "AzureMachineTemplates";
    AzureMachinePoolSpec, AzureMachinePoolStatus, "AzureMachinePool", "AzureMachinePools";
    AzureMachinePoolMachineSpec, AzureMachinePoolMachineStatus, "AzureMachinePoolMachine", "AzureMachinePoolMachines";
    AzureClusterIdentitySpec, AzureClusterIdentityStatus, "AzureClusterIdentity", "AzureClusterIdentities";
    AzureManagedClusterSpec, AzureManagedClusterStatus, "AzureManagedCluster", "AzureManagedClusters";
    AzureManagedControlPlaneSpec, AzureManagedControlPlaneStatus, "AzureManagedControlPlane",
        "AzureManagedControlPlanes";
    AzureManagedMachinePoolSpec, AzureManagedMachinePoolStatus, "AzureManagedMachinePool",
        "AzureManagedMachinePools";
    AzureAsoManagedClusterSpec, AzureAsoManagedClusterStatus, "AzureASOManagedCluster", "AzureASOManagedClusters";
    AzureAsoManagedControlPlaneSpec, AzureAsoManagedControlPlaneStatus, "AzureASOManagedControlPlane",
        "AzureASOManagedControlPlanes";
    AzureAsoManagedMachinePoolSpec, AzureAsoManagedMachinePoolStatus, "AzureASOManagedMachinePool",
        "AzureASOManagedMachinePools";
}

/// An object with a typed spec and status. An object of a kind whose spec has no required members may lack it: a list with
/// such an object must be readable.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Object<K: ObjectKind> {
    /// Its kind and version; an entry of a list may lack them.
    #[serde(flatten, default)]
    pub types: Option<TypeMeta>,
    /// Its metadata.
    pub metadata: ObjectMeta,
    /// What it declares.
    #[serde(default)]
    pub spec: K,
    /// What the controllers report.
    pub status: Option<K::Status>,
}

impl<K: ObjectKind> Object<K> {
    /// A new object of a kind in our group.
    pub fn new(metadata: ObjectMeta, spec: K) -> Self {
        Self {
            types: Some(TypeMeta { api_version: API_VERSION.to_owned(), kind: K::NAME.to_owned() }),
            metadata,
            spec,
            status: None,
        }
    }
}

impl<K: ObjectKind> Resource for Object<K> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// The network of a cluster.
pub type AzureCluster = Object<AzureClusterSpec>;
/// One virtual machine.
pub type AzureMachine = Object<AzureMachineSpec>;
/// One scale set.
pub type AzureMachinePool = Object<AzureMachinePoolSpec>;
/// One instance of a scale set.
pub type AzureMachinePoolMachine = Object<AzureMachinePoolMachineSpec>;
/// A managed cluster.
pub type AzureManagedControlPlane = Object<AzureManagedControlPlaneSpec>;
/// A node pool of a managed cluster.
pub type AzureManagedMachinePool = Object<AzureManagedMachinePoolSpec>;
/// Credentials.
pub type AzureClusterIdentity = Object<AzureClusterIdentitySpec>;

/// The kind of the objects that represent instances of scale sets.
pub const POOL_MACHINE: &str = AzureMachinePoolMachineSpec::NAME;
/// The group of all kinds here.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// Their version.
pub const VERSION: &str = "v1beta1";
/// Group and version, as in `apiVersion`.
pub const API_VERSION: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// The labels or annotations of an object that has none.
pub static NO_ENTRIES: BTreeMap<String, String> = BTreeMap::new();

/// An object of ours, for events.
pub fn reference<K: ObjectKind>(object: &Object<K>) -> Reference {
    Reference::of(API_VERSION, K::NAME, &object.metadata)
}

/// The name of the owner of this kind in our group.
pub fn owner<'a>(object: &'a ObjectMeta, kind: &str) -> Option<&'a str> {
    owner_in(GROUP, object, kind)
}

/// The name of the owner of this kind in a group.
pub fn owner_in<'a>(group: &str, object: &'a ObjectMeta, kind: &str) -> Option<&'a str> {
    let mut owners = object.owner_references.iter().flatten();
    let is_it =
        |owner: &&OwnerReference| owner.kind == kind && owner.api_version.split('/').next() == Some(group);
    owners.find(is_it).map(|owner| owner.name.as_str())
}

/// The API resource of a kind of ours.
pub fn resource(kind: &str) -> ApiResource {
    let plural = capz_api::crd::KINDS
        .iter()
        .find(|known| known.name == kind)
        .map_or_else(|| format!("{}s", kind.to_lowercase()), capz_api::crd::Kind::plural);
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(GROUP, VERSION, kind), &plural)
}
