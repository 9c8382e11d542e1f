//! Labels, annotations and taints that several parts of the system read.
//! Source: Kubernetes, "Well-Known Labels, Annotations and Taints".

/// The finalizer that keeps a Service until its load balancer is gone.
pub const LOAD_BALANCER_FINALIZER: &str = "service.kubernetes.io/load-balancer-cleanup";
/// Prefix of every Azure annotation of a Service.
pub const SERVICE_ANNOTATION_PREFIX: &str = "service.beta.kubernetes.io/";
/// The taint that a kubelet sets until a cloud controller has initialised its node.
pub const TAINT_UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";
/// The taint of a node whose machine is shut down.
pub const TAINT_SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
/// The taint that an operator (or this program) puts on a node that is out of service.
pub const TAINT_OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
/// The taint of a node that is about to lose its machine, with the reason as its value.
pub const TAINT_DRAINING: &str = "cloudprovider.azure.microsoft.com/draining";
/// The value of [`TAINT_DRAINING`] where Azure takes a spot machine back.
pub const DRAINING_SPOT_EVICTION: &str = "spot-eviction";
/// The value of [`TAINT_DRAINING`] where a machine is deleted soon.
pub const DRAINING_TERMINATION: &str = "termination";
/// The taint of a node that the cluster autoscaler is about to remove.
pub const TAINT_TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";
/// The label that keeps a node out of load balancers.
pub const LABEL_EXCLUDE_FROM_LOAD_BALANCERS: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// The label of a node that Azure does not manage (value `false`).
pub const LABEL_MANAGED: &str = "kubernetes.azure.com/managed";
/// The label of a node whose machine lives in another resource group.
pub const LABEL_RESOURCE_GROUP: &str = "kubernetes.azure.com/resource-group";
/// The label of a control-plane node.
pub const LABEL_CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
/// The older label of a control-plane node.
pub const LABEL_MASTER: &str = "node-role.kubernetes.io/master";
/// The oldest label of a control-plane node (value `master`).
pub const LABEL_ROLE: &str = "kubernetes.io/role";
/// The value of [`LABEL_ROLE`] for a control-plane node.
pub const ROLE_MASTER: &str = "master";
/// The label by which an EndpointSlice names its Service.
pub const LABEL_SERVICE_NAME: &str = "kubernetes.io/service-name";
/// The zone of a node.
pub const LABEL_ZONE: &str = "topology.kubernetes.io/zone";
/// The region of a node.
pub const LABEL_REGION: &str = "topology.kubernetes.io/region";
/// The machine size of a node.
pub const LABEL_INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
/// The older label of the zone.
pub const LABEL_ZONE_BETA: &str = "failure-domain.beta.kubernetes.io/zone";
/// The older label of the region.
pub const LABEL_REGION_BETA: &str = "failure-domain.beta.kubernetes.io/region";
/// The older label of the machine size.
pub const LABEL_INSTANCE_TYPE_BETA: &str = "beta.kubernetes.io/instance-type";
/// Older labels and their successors.
pub const LABEL_PAIRS: [(&str, &str); 3] = [
    (LABEL_ZONE_BETA, LABEL_ZONE),
    (LABEL_REGION_BETA, LABEL_REGION),
    (LABEL_INSTANCE_TYPE_BETA, LABEL_INSTANCE_TYPE),
];
/// A part of the fault domain of a node.
pub const LABEL_SUB_FAULT_DOMAIN: &str = "topology.kubernetes.azure.com/sub-fault-domain";
/// The group of machines with a fast network between them that a node is in.
pub const LABEL_INTERCONNECT_GROUP: &str = "topology.kubernetes.azure.com/interconnect-group";
/// The condition that a node is ready for pods.
pub const CONDITION_READY: &str = "Ready";
/// The condition that pods of a node have no network.
pub const CONDITION_NETWORK_UNAVAILABLE: &str = "NetworkUnavailable";
/// The condition that an event of a node's machine is scheduled or takes place.
pub const CONDITION_VM_EVENT_SCHEDULED: &str = "VMEventScheduled";
/// The annotation by which a kubelet puts its own address first.
pub const ANNOTATION_PROVIDED_NODE_IP: &str = "alpha.kubernetes.io/provided-node-ip";
