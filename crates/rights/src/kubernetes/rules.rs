//! The table of rules: what the controllers and programs call.

use super::naming::USUAL;
use super::rule::{Reach, Rule};
use crate::Feature::{
    AdminState, Base, ConfigurationSecret, Election, LocalPools, Metrics, NamespaceSelectors, NodeAgent,
    NodeLifecycle, Nodes, PodRanges, Routes, ScheduledEvents, Services,
};
use crate::{Feature, Program};

const fn core(
    feature: Feature,
    resources: &'static [&'static str],
    verbs: &'static [&'static str],
    purpose: &'static str,
) -> Rule {
    let (program, reach) = (Program::ControllerManager, Reach::Cluster);
    Rule { program, feature, reach, group: "", resources, names: &[], verbs, purpose }
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
    Rule { program: Program::NodeManager, ..rule }
}

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
    Rule {
        reach: Reach::SecretNamespace,
        names: &[USUAL.secret.name],
        ..core(ConfigurationSecret, &["secrets"], &["get"], "the Secret with azure.json, and no other one")
    },
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
];
