//! The table of rules: what the controllers and programs call.

use super::naming::USUAL;
use super::rule::{Reach, Rule};
use crate::Feature::{
    AccountKeys, AdminState, Attacher, Base, ConfidentialContainers, ConfigurationSecret, Election,
    InlineSecretReviews, LocalPools, Metrics, NamespaceSelectors, NodeAgent, NodeLifecycle, Nodes,
    NotReadyTaint, PodRanges, Provisioner, Resizer, Routes, ScheduledEvents, Services, SideCarElections,
    Snapshots, Snapshotter, Volumes,
};
use crate::{Feature, Program};

const fn core(
    feature: Feature,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    purpose: &'static str,
) -> Rule {
    let (programs, reach): (&[Program], _) = (&[Program::ControllerManager], Reach::Cluster);
    Rule { programs, feature, reach, group: "", resources, names: &[], verbs, purpose }
}

const fn in_group(group: &'static str, rule: Rule) -> Rule {
    Rule { group, ..rule }
}

/// Rules about one Lease: `create` cannot be limited to a name.
const fn lease(
    feature: Feature,
    reach: Reach,
    names: &'static [&'static str],
    verbs: &'static [&'static str],
) -> Rule {
    let rule = in_group("coordination.k8s.io", core(feature, &["leases"], verbs, ""));
    Rule { reach, names, ..rule }
}

const fn of_node_manager(rule: Rule) -> Rule {
    Rule { programs: &[Program::NodeManager], ..rule }
}

const fn of_disks(rule: Rule) -> Rule {
    Rule { programs: &[Program::DiskController], ..rule }
}

const fn of_disk_nodes(rule: Rule) -> Rule {
    Rule { programs: &[Program::DiskNode], ..rule }
}

const fn of_files(rule: Rule) -> Rule {
    Rule { programs: &[Program::FileController], ..rule }
}

const fn of_file_nodes(rule: Rule) -> Rule {
    Rule { programs: &[Program::FileNode], ..rule }
}

/// One of a side-car that both drivers have.
const fn of_side_cars(rule: Rule) -> Rule {
    Rule { programs: &[Program::DiskController, Program::FileController], ..rule }
}

const fn of_snapshots(rule: Rule) -> Rule {
    Rule { programs: &[Program::SnapshotController], ..rule }
}

/// One of the one Secret with azure.json.
const fn secret(verbs: &'static [&'static str], purpose: &'static str) -> Rule {
    let rule = core(ConfigurationSecret, &["secrets"], verbs, purpose);
    Rule { reach: Reach::SecretNamespace, names: &[USUAL.secret.name], ..rule }
}

/// The groups of volumes and of snapshots.
const STORAGE: &str = "storage.k8s.io";
const SNAPSHOT: &str = "snapshot.storage.k8s.io";

/// The Leases of the side-cars of the driver for file shares.
const FILE_SIDE_CARS: &[&str] = &[
    "file-csi-azure-com",
    "external-resizer-file-csi-azure-com",
    "external-snapshotter-leader-file-csi-azure-com",
];

/// The Leases of the side-cars, which are named after the driver.
const SIDE_CARS: &[&str] = &[
    "disk-csi-azure-com",
    "external-attacher-leader-disk-csi-azure-com",
    "external-resizer-disk-csi-azure-com",
    "external-snapshotter-leader-disk-csi-azure-com",
];

/// The Lease under which AKS and the controllers take turns.
const LOCKER: &str = "aks-managed-resource-locker";

/// All rules, in the order of pages and files.
pub static RULES: &[Rule] = &[
    core(Base, &["nodes"], &["list", "watch"], "which nodes there are"),
    core(Base, &["events"], &["create", "patch"], "Events on Services and Nodes"),
    Rule {
        purpose: "to become the leader for the first time",
        ..lease(Election, Reach::ElectionNamespace, &[], &["create"])
    },
    Rule {
        purpose: "to stay the leader, or to become it after another replica",
        ..lease(Election, Reach::ElectionNamespace, &[USUAL.lease.name], &["get", "update"])
    },
    secret(&["get"], "the Secret with azure.json, and no other one"),
    core(Services, &["services"], &["list", "watch"], "which Services there are"),
    core(Services, &["services/status"], &["patch"], "addresses, and the finalizer"),
    Rule {
        purpose: "to take turns with AKS, which works on the same resources",
        ..lease(Services, Reach::KubeSystem, &[], &["create"])
    },
    Rule {
        purpose: "to take turns with AKS, which works on the same resources",
        ..lease(Services, Reach::KubeSystem, &[LOCKER], &["get", "update"])
    },
    core(
        Nodes,
        &["nodes"],
        &["get", "patch"],
        "provider ids, labels and taints; a node is read again if another client wrote it at the same time",
    ),
    core(Nodes, &["nodes/status"], &["patch"], "addresses"),
    core(
        NodeLifecycle,
        &["nodes"],
        &["get", "patch", "delete"],
        "taints of stopped machines, and nodes whose machine does not exist",
    ),
    in_group(
        "discovery.k8s.io",
        core(
            LocalPools,
            &["endpointslices"],
            &["list", "watch"],
            "on which nodes the pods of Services with policy Local are",
        ),
    ),
    core(NamespaceSelectors, &["namespaces"], &["list", "watch"], "the labels of namespaces"),
    core(AdminState, &["events"], &["list", "watch"], "Events PreemptScheduled of others"),
    core(AdminState, &["nodes"], &["get", "patch"], "the taint of a node whose machine is evicted"),
    core(Routes, &["nodes"], &["get"], "a node is read before its route is removed"),
    core(Routes, &["nodes/status"], &["patch"], "the condition NetworkUnavailable"),
    core(PodRanges, &["nodes"], &["patch"], "ranges of pods"),
    in_group(
        "authentication.k8s.io",
        core(Metrics, &["tokenreviews"], &["create"], "whose token the caller of /metrics sends"),
    ),
    in_group(
        "authorization.k8s.io",
        core(Metrics, &["subjectaccessreviews"], &["create"], "whether this user may read /metrics"),
    ),
    of_node_manager(core(
        NodeAgent,
        &["nodes"],
        &["get", "list", "watch", "patch"],
        "its node: provider id, labels and taints",
    )),
    of_node_manager(core(NodeAgent, &["nodes/status"], &["patch"], "its node: addresses and conditions")),
    of_node_manager(core(
        ScheduledEvents,
        &["events"],
        &["create", "patch"],
        "an Event for each announcement. Without it the log warns instead",
    )),
    of_disks(core(Volumes, &["nodes"], &["list", "watch"], "sizes of machines, and which nodes are Ready")),
    of_disks(core(
        Volumes,
        &["nodes"],
        &["patch"],
        "the annotation `<driver>/max-data-disks`: how many data disks the machine takes",
    )),
    of_disks(core(
        Volumes,
        &["persistentvolumes"],
        &["list", "watch"],
        "the driver's volumes, and their owners",
    )),
    of_disks(core(Volumes, &["events"], &["create", "patch"], "Events on volumes and nodes")),
    of_disks(in_group(
        STORAGE,
        core(
            Volumes,
            &["volumeattachments"],
            &["get", "list", "watch"],
            "which disks are attached where, and at which LUN",
        ),
    )),
    of_disks(secret(
        &["get"],
        "the Secret with azure.json, and no other one; a change is used without a restart",
    )),
    of_side_cars(core(
        Provisioner,
        &["persistentvolumes"],
        &["get", "list", "watch", "create", "patch", "delete"],
        "volumes are made, protected and deleted",
    )),
    of_side_cars(core(
        Provisioner,
        &["persistentvolumeclaims"],
        &["get", "list", "watch", "update"],
        "claims that wait for a volume",
    )),
    of_side_cars(core(Provisioner, &["nodes"], &["get", "list", "watch"], "where a volume may be used")),
    of_side_cars(core(Provisioner, &["events"], &["create", "update", "patch"], "Events on claims")),
    of_disks(in_group(
        STORAGE,
        core(
            Provisioner,
            &["storageclasses", "csinodes", "volumeattachments", "volumeattributesclasses"],
            &["get", "list", "watch"],
            "parameters of volumes, zones of nodes, and whether a volume is attached",
        ),
    )),
    of_side_cars(in_group(
        SNAPSHOT,
        core(
            Provisioner,
            &["volumesnapshots"],
            &["get", "list", "watch", "update"],
            "volumes from snapshots, which are not deleted meanwhile",
        ),
    )),
    of_disks(in_group(
        SNAPSHOT,
        core(Provisioner, &["volumesnapshotcontents"], &["get", "list"], "which disks snapshots are"),
    )),
    of_disks(core(
        Attacher,
        &["persistentvolumes"],
        &["get", "list", "watch", "patch"],
        "a volume is not deleted while it is attached",
    )),
    of_disks(in_group(STORAGE, core(Attacher, &["csinodes"], &["get", "list", "watch"], "the ids of nodes"))),
    of_disks(in_group(
        STORAGE,
        core(
            Attacher,
            &["volumeattachments"],
            &["get", "list", "watch", "patch"],
            "what is to be attached and detached",
        ),
    )),
    of_disks(in_group(STORAGE, core(Attacher, &["volumeattachments/status"], &["patch"], "what came of it"))),
    of_disks(in_group(
        STORAGE,
        core(Attacher, &["volumeattributesclasses"], &["get"], "parameters that have changed"),
    )),
    of_side_cars(core(
        Resizer,
        &["persistentvolumes"],
        &["get", "list", "watch", "patch"],
        "sizes and classes of volumes",
    )),
    of_side_cars(core(
        Resizer,
        &["persistentvolumeclaims"],
        &["get", "list", "watch"],
        "the sizes and classes that claims ask for",
    )),
    of_side_cars(core(Resizer, &["persistentvolumeclaims/status"], &["patch"], "what came of it")),
    of_side_cars(core(Resizer, &["events"], &["create", "update", "patch"], "Events on claims")),
    of_side_cars(in_group(
        STORAGE,
        core(Resizer, &["volumeattributesclasses"], &["get", "list", "watch"], "parameters that can change"),
    )),
    of_side_cars(core(Snapshotter, &["events"], &["create", "update", "patch"], "Events on snapshots")),
    of_side_cars(in_group(
        SNAPSHOT,
        core(Snapshotter, &["volumesnapshotclasses"], &["get", "list", "watch"], "parameters of snapshots"),
    )),
    of_side_cars(in_group(
        SNAPSHOT,
        core(
            Snapshotter,
            &["volumesnapshotcontents"],
            &["get", "list", "watch", "update", "patch"],
            "snapshots that are to be made and deleted",
        ),
    )),
    of_side_cars(in_group(
        SNAPSHOT,
        core(Snapshotter, &["volumesnapshotcontents/status"], &["update", "patch"], "what came of it"),
    )),
    of_side_cars(Rule {
        purpose: "each side-car becomes the leader for the first time",
        ..lease(SideCarElections, Reach::KubeSystem, &[], &["create"])
    }),
    of_disks(Rule {
        purpose: "each side-car stays the leader, or becomes it after another replica",
        ..lease(SideCarElections, Reach::KubeSystem, SIDE_CARS, &["get", "update"])
    }),
    of_files(in_group(
        STORAGE,
        core(
            Provisioner,
            &["storageclasses", "csinodes", "volumeattributesclasses"],
            &["get", "list", "watch"],
            "parameters of volumes",
        ),
    )),
    of_files(Rule {
        purpose: "each side-car stays the leader, or becomes it after another replica",
        ..lease(SideCarElections, Reach::KubeSystem, FILE_SIDE_CARS, &["get", "update"])
    }),
    of_files(secret(&["get"], "the Secret with azure.json; a change is used without a restart")),
    of_files(Rule {
        reach: Reach::AccountKeyNamespaces,
        ..core(
            AccountKeys,
            &["secrets"],
            &["get", "create", "update"],
            "account keys, in Secrets that are called after accounts, so that no rule can name them; the side-cars read Secrets \
             that classes name",
        )
    }),
    of_file_nodes(secret(&["get"], "the Secret with azure.json")),
    of_file_nodes(Rule {
        reach: Reach::AccountKeyNamespaces,
        ..core(AccountKeys, &["secrets"], &["get"], "account keys of shares that are mounted")
    }),
    of_file_nodes(core(InlineSecretReviews, &["pods"], &["get"], "the service account of a pod")),
    of_file_nodes(in_group(
        "authorization.k8s.io",
        core(
            InlineSecretReviews,
            &["subjectaccessreviews"],
            &["create"],
            "whether a pod's service account may read the Secret that its inline volume names",
        ),
    )),
    of_file_nodes(core(
        ConfidentialContainers,
        &["pods", "nodes"],
        &["get"],
        "whether a pod runs in a confidential container, and where",
    )),
    of_file_nodes(in_group(
        "node.k8s.io",
        core(ConfidentialContainers, &["runtimeclasses"], &["get"], "the handler of such pods"),
    )),
    of_disk_nodes(core(NodeAgent, &["nodes"], &["get"], "its node: size, zone and taints")),
    of_disk_nodes(core(NodeAgent, &["events"], &["create", "patch"], "Events on its node")),
    of_disk_nodes(in_group(
        STORAGE,
        core(NodeAgent, &["csinodes"], &["get"], "whether its driver is registered"),
    )),
    of_disk_nodes(in_group(
        STORAGE,
        core(
            NodeAgent,
            &["volumeattachments"],
            &["list", "watch"],
            "before the pod ends on a node that is drained, its volumes are detached",
        ),
    )),
    of_disk_nodes(core(
        NotReadyTaint,
        &["nodes"],
        &["patch"],
        "the taint `disk.csi.azure.com/agent-not-ready` goes once the driver is registered",
    )),
    of_disk_nodes(secret(&["get"], "the Secret with azure.json, and no other one")),
    of_snapshots(core(Snapshots, &["persistentvolumes"], &["get", "list", "watch"], "the volume of a claim")),
    of_snapshots(core(
        Snapshots,
        &["persistentvolumeclaims"],
        &["get", "list", "watch", "update"],
        "a claim stays while its snapshot is made",
    )),
    of_snapshots(core(Snapshots, &["events"], &["create", "update", "patch"], "Events on snapshots")),
    of_snapshots(in_group(
        STORAGE,
        core(Snapshots, &["storageclasses"], &["get", "list", "watch"], "the driver of a claim"),
    )),
    of_snapshots(in_group(
        SNAPSHOT,
        core(
            Snapshots,
            &["volumesnapshotclasses"],
            &["get", "list", "watch"],
            "parameters of snapshots, and the default class",
        ),
    )),
    of_snapshots(in_group(
        SNAPSHOT,
        core(
            Snapshots,
            &["volumesnapshotcontents"],
            &["get", "list", "watch", "create", "update", "patch", "delete"],
            "contents are made for snapshots, and deleted with them",
        ),
    )),
    of_snapshots(in_group(
        SNAPSHOT,
        core(Snapshots, &["volumesnapshotcontents/status"], &["patch"], "what came of it"),
    )),
    of_snapshots(in_group(
        SNAPSHOT,
        core(
            Snapshots,
            &["volumesnapshots"],
            &["get", "list", "watch", "update", "patch"],
            "snapshots that are asked for",
        ),
    )),
    of_snapshots(in_group(
        SNAPSHOT,
        core(Snapshots, &["volumesnapshots/status"], &["update", "patch"], "whether they are ready"),
    )),
    of_snapshots(Rule {
        purpose: "to become the leader for the first time",
        ..lease(SideCarElections, Reach::KubeSystem, &[], &["create"])
    }),
    of_snapshots(Rule {
        purpose: "to stay the leader, or to become it after another replica",
        ..lease(SideCarElections, Reach::KubeSystem, &["snapshot-controller-leader"], &["get", "update"])
    }),
];
