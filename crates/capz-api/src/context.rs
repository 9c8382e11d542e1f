//! The inputs of defaulting and validation besides the object: gates, look-ups, and random values. The caller makes the
//! look-ups before, so that both remain functions of values.

/// Feature gates that decide which members may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gates {
    /// `EdgeZone`: zones at the edge of the network.
    pub edge_zone: bool,
    /// `APIServerILB`: an internal load balancer beside the public one of the API server.
    pub api_server_ilb: bool,
    /// `ASOAPI`: the kinds with whole resources of Azure Service Operator. It is on by default.
    pub aso_api: bool,
}

impl Default for Gates {
    fn default() -> Self {
        Self { edge_zone: false, api_server_ilb: false, aso_api: true }
    }
}

/// The System pools of a cluster that Azure manages, seen from one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemPools {
    /// Whether the cluster is being deleted or does not exist any more: then it needs none of them.
    pub cluster_goes: bool,
    /// The number of its other System pools that are not being deleted.
    pub others: usize,
}

/// The result of looking up another object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Lookup<T> {
    /// Not looked up, because it is not needed.
    #[default]
    NotNeeded,
    /// The value.
    Found(T),
    /// The look-up failed for this reason.
    Failed(String),
}

/// The ranges of a Cluster of Cluster API.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterNetwork {
    /// The ranges of services.
    pub services: Vec<String>,
    /// The ranges of pods.
    pub pods: Vec<String>,
}

/// A source of random values, which tests replace.
pub trait Random {
    /// A new GUID, in lower case.
    fn guid(&mut self) -> String;
    /// The public half of a new RSA key of 2048 bits, as a line of `authorized_keys` in base64. The private half is
    /// discarded: the key is not used to sign in.
    fn ssh_public_key(&mut self) -> String;
}

/// The inputs of defaulting and validation besides the object.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Feature gates.
    pub gates: Gates,
    /// The subscription of the cluster that a machine belongs to.
    pub subscription: Lookup<String>,
    /// The version of Kubernetes of the MachinePool that owns a pool.
    pub pool_version: Lookup<String>,
    /// The other System pools of a node pool's cluster.
    pub system_pools: Lookup<SystemPools>,
    /// The ranges of the Cluster that a managed control plane belongs to.
    pub cluster_network: Lookup<ClusterNetwork>,
    /// Whether a topology is only tried: a server-side apply as a dry run, of an object with the annotation
    /// `topology.cluster.x-k8s.io/dry-run`.
    pub topology_dry_run: bool,
}
