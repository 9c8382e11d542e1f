//! Names that Cluster API defines: groups, labels, annotations, finalizers, types.

/// The group of the core.
pub const CORE: &str = "cluster.x-k8s.io";
/// The group of bootstrap providers.
pub const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
/// The group of control plane providers.
pub const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
/// The version in which the kinds of these three groups are stored and read here.
pub const VERSION: &str = "v1beta2";

pub(crate) const CLUSTER_FINALIZER: &str = "cluster.cluster.x-k8s.io";
pub(crate) const MACHINE_FINALIZER: &str = "machine.cluster.x-k8s.io";
pub(crate) const CONTROL_PLANE_FINALIZER: &str = "kubeadm.controlplane.cluster.x-k8s.io";
pub(crate) const MACHINE_SET_FINALIZER: &str = "cluster.x-k8s.io/machineset";
pub(crate) const MACHINE_DEPLOYMENT_FINALIZER: &str = "cluster.x-k8s.io/machinedeployment";
pub(crate) const MACHINE_POOL_FINALIZER: &str = "machinepool.cluster.x-k8s.io";

pub(crate) const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
pub(crate) const CONTROL_PLANE_LABEL: &str = "cluster.x-k8s.io/control-plane";
pub(crate) const CONTROL_PLANE_NAME: &str = "cluster.x-k8s.io/control-plane-name";
pub(crate) const SET_NAME: &str = "cluster.x-k8s.io/set-name";
pub(crate) const DEPLOYMENT_NAME: &str = "cluster.x-k8s.io/deployment-name";
pub(crate) const POOL_NAME: &str = "cluster.x-k8s.io/pool-name";
pub(crate) const TEMPLATE_HASH: &str = "machine-template-hash";

pub(crate) const PAUSED: &str = "cluster.x-k8s.io/paused";
pub(crate) const CLONED_FROM_NAME: &str = "cluster.x-k8s.io/cloned-from-name";
pub(crate) const CLONED_FROM_KIND: &str = "cluster.x-k8s.io/cloned-from-groupkind";
pub(crate) const DELETE_MACHINE: &str = "cluster.x-k8s.io/delete-machine";
pub(crate) const EXCLUDE_DRAINING: &str = "machine.cluster.x-k8s.io/exclude-node-draining";
pub(crate) const PRE_DRAIN_HOOK: &str = "pre-drain.delete.hook.machine.cluster.x-k8s.io";
pub(crate) const PRE_TERMINATE_HOOK: &str = "pre-terminate.delete.hook.machine.cluster.x-k8s.io";
pub(crate) const REVISION: &str = "machinedeployment.clusters.x-k8s.io/revision";
pub(crate) const REPLICAS_MANAGED_BY: &str = "cluster.x-k8s.io/replicas-managed-by";

/// The annotations of a Node that identify its machine.
pub(crate) const NODE_CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
pub(crate) const NODE_CLUSTER_NAMESPACE: &str = "cluster.x-k8s.io/cluster-namespace";
pub(crate) const NODE_MACHINE: &str = "cluster.x-k8s.io/machine";
pub(crate) const NODE_OWNER_KIND: &str = "cluster.x-k8s.io/owner-kind";
pub(crate) const NODE_OWNER_NAME: &str = "cluster.x-k8s.io/owner-name";

/// The type of the Secrets that Cluster API makes.
pub(crate) const SECRET_TYPE: &str = "cluster.x-k8s.io/secret";
/// The key of bootstrap data and of kubeconfigs.
pub(crate) const SECRET_VALUE: &str = "value";
