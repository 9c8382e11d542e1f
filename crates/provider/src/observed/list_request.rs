//! The request for one list of Azure.

use arm::{ApiVersion, Class, Listing};
use azure_types::{
    AvailabilitySet, LoadBalancer, NetworkInterface, PrivateLinkService, PublicIpAddress, ResourceId,
    RouteTable, ScaleSet, SecurityGroup, Subnet, VirtualMachine, Word,
};
use freshness::Fetch;
use serde::de::DeserializeOwned;

use super::ResourceList;
use crate::azure::Azure;
use crate::failure::Failure;

const NETWORK: &str = "Microsoft.Network";
pub(super) const COMPUTE: &str = "Microsoft.Compute";
/// The class of reads that a writer plans by. One request serves all waiting owners, which may include a deletion, so
/// it goes before reads that only refresh machines.
pub(super) const PLANNED_BY: Class = Class::Delete;

pub(super) fn named(name: Option<&String>, id: Option<&ResourceId>) -> String {
    name.cloned().or_else(|| id.map(|id| id.name().to_owned())).unwrap_or_default()
}

/// Resource types with a namespace of their own.
pub(super) trait ResourceType: DeserializeOwned + Send + Sync + 'static {
    const NAMESPACE: &'static str;
    const KIND: &'static str;
    const VERSION: ApiVersion;

    fn name(&self) -> String;
}

macro_rules! resource_types {
    ($($document:ty: $namespace:ident, $kind:literal, $version:ident;)*) => {$(
        impl ResourceType for $document {
            const NAMESPACE: &'static str = $namespace;
            const KIND: &'static str = $kind;
            const VERSION: ApiVersion = ApiVersion::$version;

            fn name(&self) -> String {
                named(self.name.as_ref(), self.id.as_ref())
            }
        }
    )*};
}

resource_types! {
    AvailabilitySet: COMPUTE, "availabilitySets", COMPUTE;
    LoadBalancer: NETWORK, "loadBalancers", NETWORK;
    NetworkInterface: NETWORK, "networkInterfaces", NETWORK;
    PrivateLinkService: NETWORK, "privateLinkServices", NETWORK;
    PublicIpAddress: NETWORK, "publicIPAddresses", NETWORK;
    RouteTable: NETWORK, "routeTables", NETWORK;
    ScaleSet: COMPUTE, "virtualMachineScaleSets", COMPUTE;
    SecurityGroup: NETWORK, "networkSecurityGroups", NETWORK;
    Subnet: NETWORK, "virtualNetworks/subnets", NETWORK;
    VirtualMachine: COMPUTE, "virtualMachines", COMPUTE;
}

/// Types that writers of shared resources plan by.
pub(super) trait WrittenType: ResourceType {
    /// Whether an operation runs on the resource, in Azure's words.
    fn provisioning_state(&self) -> Option<&Word>;
}

macro_rules! written_types {
    ($($document:ty),*) => {$(
        impl WrittenType for $document {
            fn provisioning_state(&self) -> Option<&Word> {
                self.properties.as_ref()?.provisioning_state.as_ref()
            }
        }
    )*};
}

written_types!(LoadBalancer, RouteTable, SecurityGroup);

/// What is requested, and how urgently.
#[derive(Clone)]
pub(super) struct ListRequest {
    pub(super) listing: Listing,
    pub(super) version: ApiVersion,
    pub(super) query: Vec<(&'static str, String)>,
    pub(super) class: Class,
    /// The failures that mean an empty list, such as that of a missing resource group.
    pub(super) is_empty: fn(&Failure) -> bool,
}

impl ListRequest {
    /// The resources of a type in a group or a subscription, which is empty if it does not exist.
    pub(super) fn within<T: ResourceType>(scope: &ResourceId) -> Self {
        Self {
            listing: Listing::of(scope, T::NAMESPACE, T::KIND),
            version: T::VERSION,
            query: Vec::new(),
            class: PLANNED_BY,
            is_empty: Failure::is_not_found,
        }
    }

    /// What belongs to a scale set. If that does not exist, it is a failure.
    pub(super) fn below(scale_set: &ResourceId, kind: &str, version: ApiVersion) -> Self {
        Self {
            listing: Listing::children(scale_set, kind),
            version,
            query: Vec::new(),
            class: Class::Refresh,
            is_empty: |_| false,
        }
    }

    /// Reads the list whenever it is called, and keeps of each document only what `keep` returns.
    pub(super) fn fetch<T, K>(
        self,
        azure: &Azure,
        keep: impl Fn(T) -> K + Clone + Send + Sync + 'static,
    ) -> Fetch<K, Failure>
    where
        T: DeserializeOwned + Send + Sync + 'static,
        K: Send + Sync + 'static,
    {
        let azure = azure.clone();
        Box::new(move || {
            let (azure, request, keep) = (azure.clone(), self.clone(), keep.clone());
            Box::pin(async move {
                let Self { listing, version, query, class, is_empty } = request;
                let query: Vec<_> = query.iter().map(|(key, value)| (*key, value.as_str())).collect();
                match azure.list(&listing, version, &query, class, keep).await {
                    Err(failure) if is_empty(&failure) => Ok(Vec::new()),
                    other => other,
                }
            })
        })
    }

    /// The list, with whole documents under the names that `name_of` returns.
    pub(super) fn list<T>(self, azure: &Azure, name_of: fn(&T) -> String) -> ResourceList<T>
    where
        T: DeserializeOwned + Send + Sync + 'static,
    {
        ResourceList::new(name_of, self.fetch(azure, |document: T| document))
    }
}

/// The resources of a type in a group; a missing group is empty.
pub(super) fn group_list<T: ResourceType>(azure: &Azure, group: &ResourceId) -> ResourceList<T> {
    ListRequest::within::<T>(group).list(azure, T::name)
}

/// One resource, as a list of at most one.
pub(super) fn single<T: ResourceType>(azure: &Azure, id: ResourceId) -> ResourceList<T> {
    let azure = azure.clone();
    let fetch: Fetch<T, Failure> = Box::new(move || {
        let (azure, id) = (azure.clone(), id.clone());
        Box::pin(async move { Ok(azure.get(&id, T::VERSION, PLANNED_BY).await?.into_iter().collect()) })
    });
    ResourceList::new(T::name, fetch)
}
