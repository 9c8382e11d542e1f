//! What the driver for disks needs.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use serde_json::Value;

use super::needs::{Needs, gather};
use super::scopes::Scopes;
use super::subject::{Run, Subject};
use super::{features, needs};
use crate::azure::Place;
use crate::{Feature, Program};

/// Features that every installation of the driver has.
const ALWAYS: [Feature; 7] = [
    Feature::Volumes,
    Feature::Provisioner,
    Feature::Attacher,
    Feature::Resizer,
    Feature::Snapshotter,
    Feature::SideCarElections,
    Feature::NodeAgent,
];
/// Nothing of the controller manager.
const NOTHING: Run = Run {
    election: None,
    secret: None,
    services: false,
    nodes: false,
    node_lifecycle: false,
    routes: false,
    pod_ranges: false,
    pod_ranges_by_tags: false,
    metrics: false,
};

/// What the driver for disks needs for these objects: StorageClasses, VolumeSnapshotClasses and PersistentVolumes, of which others
/// are passed over. Of the subject's run, the Secret alone counts.
pub fn disk_needs(subject: &Subject<'_>, objects: &[Value]) -> Needs {
    let cluster = subject.cluster;
    let machines = Subject { run: &NOTHING, services: &[], ..subject.clone() };
    let (of_machines, mut notes) = features::features(&machines);
    let named = Named::of(&cluster.config.subscription_id, &cluster.config.resource_group, objects);
    let mut found: BTreeMap<Feature, String> =
        ALWAYS.iter().map(|feature| (*feature, feature.condition().to_owned())).collect();
    for feature in [Feature::NotReadyTaint, Feature::ConfigurationSecret] {
        found.insert(feature, feature.condition().to_owned());
    }
    if let Some(reason) = of_machines.get(&Feature::VirtualMachines) {
        found.insert(Feature::VirtualMachines, reason.clone());
    }
    for (feature, resources) in
        [(Feature::DiskEncryptionSets, &named.encryption_sets), (Feature::DiskAccesses, &named.accesses)]
    {
        if let Some(first) = resources.iter().next() {
            found.insert(feature, first.name().to_owned());
        }
    }
    if objects.is_empty() {
        notes.push(
            "no StorageClass, VolumeSnapshotClass or PersistentVolume is known: disks and snapshots are assumed in resourceGroup. \
             Pass them by -f"
                .to_owned(),
        );
    }
    let places = Scopes::of(&machines, &mut notes);
    let scopes = |place: Place| -> Vec<ResourceId> {
        let of = |all: &BTreeSet<ResourceId>| all.iter().cloned().collect();
        match place {
            Place::MachineSubscription => vec![ResourceId::subscription(&cluster.config.subscription_id)],
            Place::Disks => of(&named.groups),
            Place::EncryptionSets => of(&named.encryption_sets),
            Place::DiskAccesses => of(&named.accesses),
            place => places.of_place(place),
        }
    };
    let azure = gather(Program::DiskController, &found, scopes);
    needs::Needs {
        program: Program::DiskController,
        cluster: cluster.name.clone(),
        known: [objects.len(), subject.nodes.len()],
        features: found,
        azure,
        named: [None, subject.run.secret.clone()],
        notes,
    }
}

/// What classes and volumes name in Azure.
#[derive(Default)]
struct Named {
    groups: BTreeSet<ResourceId>,
    encryption_sets: BTreeSet<ResourceId>,
    accesses: BTreeSet<ResourceId>,
}

impl Named {
    fn of(subscription: &str, group: &str, objects: &[Value]) -> Self {
        let mut named = Self { groups: [ResourceId::group(subscription, group)].into(), ..Self::default() };
        for object in objects {
            let parameters = parameters(object);
            let text = |key: &str| parameters.get(key).copied().filter(|text| !text.is_empty());
            if let Some(group) = text("resourcegroup") {
                let subscription = text("subscriptionid").unwrap_or(subscription);
                named.groups.insert(ResourceId::group(subscription, group));
            }
            let id = |key: &str| text(key).and_then(|id| ResourceId::parse(id).ok());
            named.encryption_sets.extend(id("diskencryptionsetid"));
            named.accesses.extend(id("diskaccessid"));
            let handle = object.pointer("/spec/csi/volumeHandle").and_then(Value::as_str);
            let disk = handle.and_then(|handle| ResourceId::parse(handle).ok());
            named.groups.extend(disk.and_then(|disk| {
                Some(ResourceId::group(disk.subscription_id(), &disk.group_name()?.to_lowercase()))
            }));
        }
        named
    }
}

/// The parameters of a class, by their names in lower case.
fn parameters(object: &Value) -> BTreeMap<String, &str> {
    let all = object.get("parameters").and_then(Value::as_object);
    all.into_iter().flatten().filter_map(|(key, value)| Some((key.to_lowercase(), value.as_str()?))).collect()
}
