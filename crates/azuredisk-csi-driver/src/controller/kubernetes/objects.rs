//! The objects that matter, by their names: small, because a cluster has thousands of each.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azure_types::ResourceId;
use controllers::Reference;
use k8s::names::{CONDITION_READY, LABEL_INSTANCE_TYPE, LABEL_INSTANCE_TYPE_BETA};
use k8s::{Node, ObjectMeta, PersistentVolume, VolumeAttachment};
use kube::runtime::watcher::Event;
use machine::parse_provider_id;
use volume_planner::Code;
use volume_planner::disk::publish_context::LUN;
use volume_planner::id::DiskId;

use crate::annotations;

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeFacts {
    /// Its machine, once the node names it.
    pub machine: Option<ResourceId>,
    /// Whether it is ready; absent if it does not say.
    pub is_ready: Option<bool>,
    /// The size of its machine.
    size: Option<Box<str>>,
    /// How many data disks its annotation says that its machine takes.
    max_data_disks: Option<u32>,
}

impl NodeFacts {
    fn of(node: &Node, driver: &str) -> Self {
        let ready = node.status.conditions.iter().find(|condition| condition.kind == CONDITION_READY);
        let published = node.metadata.annotations.as_ref();
        let published = published.and_then(|all| all.get(&annotations::max_data_disks(driver)));
        Self {
            machine: parse_provider_id(&node.spec.provider_id).machine().map(|name| name.id()),
            is_ready: ready.map(|condition| condition.status == "True"),
            size: node.label(LABEL_INSTANCE_TYPE).or(node.label(LABEL_INSTANCE_TYPE_BETA)).map(Into::into),
            max_data_disks: published.and_then(|number| number.parse().ok()),
        }
    }
}

/// A PersistentVolume.
#[derive(Debug, Clone, PartialEq, Eq)]
struct KnownVolume {
    disk: DiskId,
    /// The object's UID, for events.
    uid: Box<str>,
    /// Whether its owner permits that it is detached by force.
    permits_force: bool,
}

impl KnownVolume {
    fn of(volume: &PersistentVolume, driver: &str) -> Option<Self> {
        let disk = volume.disk(driver).and_then(|id| DiskId::parse(id, Code::Internal).ok())?;
        let says = volume.metadata.annotations.as_ref();
        let says = says.and_then(|all| all.get(&annotations::force_detach(driver)));
        Some(Self {
            disk,
            uid: volume.metadata.uid.as_deref().unwrap_or_default().into(),
            permits_force: says.is_none_or(|says| says == "true"),
        })
    }
}

/// A disk that is attached, or is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Attachment {
    node: Box<str>,
    volume: Box<str>,
    /// The LUN, once the disk is attached.
    lun: Option<u32>,
}

impl Attachment {
    fn of(attachment: &VolumeAttachment) -> Self {
        let status = &attachment.status;
        let lun = status.attachment_metadata.get(LUN).filter(|_| status.attached);
        Self {
            node: attachment.spec.node_name.as_str().into(),
            volume: attachment.spec.source.persistent_volume_name.as_str().into(),
            lun: lun.and_then(|lun| lun.parse().ok()),
        }
    }
}

/// Objects of a kind by their names, as a watch shows them.
#[derive(Debug)]
struct Watched<T> {
    all: HashMap<Box<str>, T>,
    /// What a list has shown so far: it takes the place of the former objects when it is complete.
    listing: HashMap<Box<str>, T>,
    has_listed: bool,
    /// How often objects may have gone.
    departures: u64,
}

impl<T> Default for Watched<T> {
    fn default() -> Self {
        Self { all: HashMap::new(), listing: HashMap::new(), has_listed: false, departures: 0 }
    }
}

impl<T> Watched<T> {
    /// Takes an event. `read` gives an object's name, and what is kept of it.
    fn take<K>(&mut self, event: Event<K>, read: impl Fn(&K) -> (&str, Option<T>)) {
        let put = |into: &mut HashMap<Box<str>, T>, object: &K| {
            let (name, kept) = read(object);
            match kept {
                Some(kept) => drop(into.insert(name.into(), kept)),
                None => drop(into.remove(name)),
            }
        };
        match event {
            Event::Init => self.listing = HashMap::new(),
            Event::InitApply(object) => put(&mut self.listing, &object),
            Event::InitDone => {
                self.all = std::mem::take(&mut self.listing);
                self.all.shrink_to_fit();
                self.has_listed = true;
                self.departures += 1;
            }
            Event::Apply(object) => put(&mut self.all, &object),
            Event::Delete(object) => {
                self.all.remove(read(&object).0);
                self.departures += 1;
            }
        }
    }
}

/// All that is known.
#[derive(Debug, Default)]
pub(super) struct Objects {
    nodes: Watched<NodeFacts>,
    volumes: Watched<KnownVolume>,
    attachments: Watched<Attachment>,
}

impl Objects {
    pub(super) fn take_node(&mut self, event: Event<Node>, driver: &str) {
        self.nodes.take(event, |node| (node.name(), Some(NodeFacts::of(node, driver))));
    }

    pub(super) fn take_volume(&mut self, event: Event<PersistentVolume>, driver: &str) {
        self.volumes.take(event, |volume| (volume.name(), KnownVolume::of(volume, driver)));
    }

    pub(super) fn take_attachment(&mut self, event: Event<VolumeAttachment>, driver: &str) {
        self.attachments.take(event, |attachment| {
            let is_ours = attachment.spec.attacher == driver;
            (attachment.name(), is_ours.then(|| Attachment::of(attachment)))
        });
    }

    /// Whether all three kinds have been listed.
    pub(super) fn is_complete(&self) -> bool {
        self.nodes.has_listed && self.volumes.has_listed && self.attachments.has_listed
    }

    pub(super) fn node(&self, name: &str) -> Option<NodeFacts> {
        self.nodes.all.get(name).cloned()
    }

    /// The nodes of Azure whose annotation is not the number of their machine's size, each with the number.
    pub(super) fn nodes_without(&self, number_of: impl Fn(&str) -> Option<u32>) -> Vec<(String, u32)> {
        let differing = self.nodes.all.iter().filter(|(_, node)| node.machine.is_some());
        differing
            .filter_map(|(name, node)| {
                let number = number_of(node.size.as_deref()?)?;
                (node.max_data_disks != Some(number)).then(|| (name.to_string(), number))
            })
            .collect()
    }

    /// How often nodes may have gone: it grows with each departure.
    pub(super) fn departures_of_nodes(&self) -> u64 {
        self.nodes.departures
    }

    /// The machines of all nodes.
    pub(super) fn machines(&self) -> BTreeSet<ResourceId> {
        self.nodes.all.values().filter_map(|node| node.machine.clone()).collect()
    }

    /// The names of the nodes on these machines.
    pub(super) fn nodes_on(&self, machines: &BTreeSet<ResourceId>) -> BTreeMap<ResourceId, String> {
        let named = self.nodes.all.iter().filter_map(|(name, facts)| {
            let machine = facts.machine.as_ref().filter(|machine| machines.contains(machine))?;
            Some((machine.clone(), name.to_string()))
        });
        named.collect()
    }

    /// The LUNs of a node that attachments name, each with its disk.
    pub(super) fn luns_of(&self, node: &str) -> BTreeMap<u32, DiskId> {
        let own = self.attachments.all.values().filter(|attachment| *attachment.node == *node);
        own.filter_map(|attachment| {
            Some((attachment.lun?, self.volumes.all.get(&attachment.volume)?.disk.clone()))
        })
        .collect()
    }

    /// The disks of the driver's volumes; absent until they were listed.
    pub(super) fn disks(&self) -> Option<BTreeSet<DiskId>> {
        self.volumes.has_listed.then(|| self.volumes.all.values().map(|volume| volume.disk.clone()).collect())
    }

    /// Whether all volumes of a disk permit that it is detached by force.
    pub(super) fn permits_force(&self, disk: &DiskId) -> bool {
        self.volumes.all.values().filter(|own| own.disk == *disk).all(|own| own.permits_force)
    }

    /// The volume of a disk, for an event.
    pub(super) fn volume_of(&self, disk: &DiskId) -> Option<Reference> {
        let (name, volume) = self.volumes.all.iter().find(|(_, own)| own.disk == *disk)?;
        let metadata = ObjectMeta {
            name: Some(name.to_string()),
            uid: Some(volume.uid.to_string()),
            ..ObjectMeta::default()
        };
        Some(Reference::of("v1", "PersistentVolume", &metadata))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const DRIVER: &str = "disk.csi.azure.com";

    fn disk(name: &str) -> DiskId {
        DiskId::new("s", "g", name)
    }

    fn volume(name: &str, driver: &str) -> PersistentVolume {
        let handle = disk(name).to_string();
        let csi = json!({ "driver": driver, "volumeHandle": handle });
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": { "csi": csi } })).unwrap()
    }

    fn attachment(name: &str, attacher: &str, lun: Option<&str>) -> VolumeAttachment {
        let spec =
            json!({ "attacher": attacher, "nodeName": "n", "source": { "persistentVolumeName": name } });
        let metadata = lun.map(|lun| json!({ "LUN": lun }));
        let status =
            json!({ "attached": lun.is_some(), "attachmentMetadata": metadata.unwrap_or_else(|| json!({})) });
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec, "status": status }))
            .unwrap()
    }

    /// Section 3.9: LUNs that attached VolumeAttachments of this driver name on this node. Other drivers' are none of ours.
    #[test]
    fn attachments_of_the_driver_name_the_luns_of_a_node() {
        let mut objects = Objects::default();
        assert!(!objects.is_complete() && objects.disks().is_none());
        objects.take_node(Event::InitDone, DRIVER);
        for name in ["a", "b", "c"] {
            objects.take_volume(Event::InitApply(volume(name, DRIVER)), DRIVER);
        }
        objects.take_volume(Event::InitApply(volume("x", "other")), DRIVER);
        assert!(objects.disks().is_none());
        objects.take_volume(Event::InitDone, DRIVER);
        for (name, attacher, lun) in [
            ("a", DRIVER, Some("3")),
            ("b", DRIVER, None),
            ("c", "other", Some("4")),
            ("gone", DRIVER, Some("5")),
        ] {
            objects.take_attachment(Event::Apply(attachment(name, attacher, lun)), DRIVER);
        }
        objects.take_attachment(Event::InitDone, DRIVER);
        assert!(objects.is_complete());
        assert_eq!(
            objects.luns_of("n"),
            BTreeMap::new(),
            "a complete list takes the place of earlier events"
        );
        objects.take_attachment(Event::Apply(attachment("a", DRIVER, Some("3"))), DRIVER);
        assert_eq!(objects.luns_of("n"), [(3, disk("a"))].into());
        assert_eq!(objects.luns_of("m"), BTreeMap::new());
        assert_eq!(objects.disks(), Some([disk("a"), disk("b"), disk("c")].into()));
        assert_eq!(objects.volume_of(&disk("b")).map(|volume| volume.name).as_deref(), Some("b"));
        objects.take_volume(Event::Delete(volume("b", DRIVER)), DRIVER);
        assert_eq!(objects.volume_of(&disk("b")), None);
    }

    /// A disk of the in-tree driver is one of this driver's.
    #[test]
    fn in_tree_volumes_are_the_drivers() {
        let uri = disk("old").to_string();
        let spec = json!({ "azureDisk": { "diskName": "old", "diskURI": uri } });
        let volume: PersistentVolume =
            serde_json::from_value(json!({ "metadata": { "name": "pv" }, "spec": spec })).unwrap();
        let mut objects = Objects::default();
        objects.take_volume(Event::InitApply(volume), DRIVER);
        objects.take_volume(Event::InitDone, DRIVER);
        assert_eq!(objects.disks(), Some([disk("old")].into()));
    }

    #[test]
    fn a_node_names_its_machine_and_its_readiness() {
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/m";
        let node = |provider: &str, status: Option<&str>| -> Node {
            let conditions: Vec<_> =
                status.into_iter().map(|status| json!({ "type": "Ready", "status": status })).collect();
            let spec = json!({ "providerID": provider });
            let status = json!({ "conditions": conditions });
            serde_json::from_value(json!({ "metadata": { "name": "n" }, "spec": spec, "status": status }))
                .unwrap()
        };
        let machine = ResourceId::parse(id).unwrap();
        for (provider, status, named, is_ready) in [
            (format!("azure://{id}"), Some("True"), Some(machine.clone()), Some(true)),
            (format!("azure://{id}"), Some("Unknown"), Some(machine.clone()), Some(false)),
            (String::new(), None, None, None),
            ("kind://docker/n".to_owned(), Some("False"), None, Some(false)),
        ] {
            let facts = NodeFacts::of(&node(&provider, status), DRIVER);
            assert_eq!((facts.machine, facts.is_ready), (named, is_ready), "{provider} {status:?}");
        }
        let mut objects = Objects::default();
        let named = || node(&format!("azure://{id}"), None);
        objects.take_node(Event::Apply(named()), DRIVER);
        assert_eq!(objects.nodes_on(&[machine.clone()].into()), [(machine.clone(), "n".to_owned())].into());
        assert_eq!((objects.machines(), objects.departures_of_nodes()), ([machine].into(), 0));
        objects.take_node(Event::Delete(named()), DRIVER);
        assert_eq!((objects.machines(), objects.departures_of_nodes()), (BTreeSet::new(), 1));
    }
}
