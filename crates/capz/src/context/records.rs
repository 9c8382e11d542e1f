//! Finds the owner of a resource in the records of objects: raw resources bear no marks of their owner in Azure.

use std::sync::Arc;

use azure_types::ResourceId;
use capz_planner::cluster::Memory;
use capz_planner::raw::Record;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::context::manager::Manager;
use crate::kubernetes::core;
use crate::kubernetes::kinds::{NO_ENTRIES, Object, ObjectKind};
use crate::kubernetes::store::{Key, Store};

/// The type of resources that objects of either generation of kinds create.
pub(crate) const MANAGED_CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";

/// When an object was created, its UID, and what it is.
type Rank = (i64, String, String);

impl Manager {
    /// Another object that owns a resource, because it has recorded it; `None` if this one owns it. If two have recorded it,
    /// the older one is the owner.
    pub(crate) fn rival_by_record(&self, id: &ResourceId, own: &ObjectMeta, has: bool) -> Option<String> {
        let stores = &self.stores;
        let uid = own.uid.as_deref();
        let raw = [
            recorded_by(&stores.raw_clusters, id, uid),
            recorded_by(&stores.raw_control_planes, id, uid),
            recorded_by(&stores.raw_pools, id, uid),
        ];
        let is_cluster = id.resource_type().eq_ignore_ascii_case(MANAGED_CLUSTERS);
        let remembers =
            |metadata: &ObjectMeta| Memory::of(metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES)).has(id);
        let managed = is_cluster.then(|| first(&stores.managed_control_planes, uid, remembers)).flatten();
        let (at, other, name) = raw.into_iter().flatten().chain(managed).min()?;
        let (own_at, own_uid, _) = rank("", own);
        (!has || (at, other) < (own_at, own_uid)).then_some(name)
    }
}

/// The first object that has recorded this resource.
fn recorded_by<K: ObjectKind>(store: &Store<K>, id: &ResourceId, except: Option<&str>) -> Option<Rank> {
    first(store, except, |metadata| {
        Record::with_inherited(metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES)).has(id)
    })
}

fn first<K: ObjectKind>(
    store: &Store<K>,
    except: Option<&str>,
    has: impl Fn(&ObjectMeta) -> bool,
) -> Option<Rank> {
    let others = store.all().into_iter().filter(|object| object.metadata.uid.as_deref() != except);
    others.filter(|object| has(&object.metadata)).map(|object| rank(K::NAME, &object.metadata)).min()
}

fn rank(kind: &str, metadata: &ObjectMeta) -> Rank {
    let at = metadata.creation_timestamp.as_ref().map_or(0, |at| at.0.as_second());
    (at, metadata.uid.clone().unwrap_or_default(), format!("{kind} {}", Key::of(metadata)))
}

fn record_of(metadata: &ObjectMeta) -> Record {
    Record::of(metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES))
}

/// Whether an object of this Cluster has recorded a resource, other than a group, in which this one lies.
pub(crate) fn recorded_around<K: ObjectKind>(store: &Store<K>, id: &ResourceId, cluster: &Key) -> bool {
    let is_of_cluster = |object: &Arc<Object<K>>| {
        object.metadata.namespace.as_deref() == Some(&cluster.namespace)
            && core::cluster_name(&object.metadata) == Some(&cluster.name)
    };
    store.all().iter().filter(|object| is_of_cluster(object)).any(|object| {
        record_of(&object.metadata).0.iter().any(|(around, recorded)| {
            recorded.is_managed && recorded.kind != "ResourceGroup" && id != around && id.is_within(around)
        })
    })
}
