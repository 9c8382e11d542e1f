//! What defaulting and validation need beside the object: gates, what was looked up, and what is drawn at random. Whoever
//! calls has looked it up before, so that both stay functions of values.

/// Feature gates that decide which members may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gates {
    /// `EdgeZone`: zones at the edge of the network.
    pub edge_zone: bool,
    /// `APIServerILB`: an internal load balancer beside the public one of the API server.
    pub api_server_ilb: bool,
}

/// What was found out about another object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Lookup<T> {
    /// Nobody looked: it is not needed.
    #[default]
    NotNeeded,
    /// It is this.
    Found(T),
    /// It could not be found out, for this reason.
    Failed(String),
}

/// What is drawn at random, by a seam that tests own.
pub trait Random {
    /// A new GUID, in lower case.
    fn guid(&mut self) -> String;
    /// The public half of a new RSA key of 2048 bits, as a line of `authorized_keys` in base64. The other half is thrown
    /// away: nobody signs in with it.
    fn ssh_public_key(&mut self) -> String;
}

/// What defaulting and validation need beside the object.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// Feature gates.
    pub gates: Gates,
    /// The subscription of the cluster that a machine belongs to.
    pub subscription: Lookup<String>,
    /// The version of Kubernetes of the MachinePool that owns a pool.
    pub pool_version: Lookup<String>,
    /// Whether a topology is only tried: a server-side apply that is a dry run, of an object with the annotation
    /// `topology.cluster.x-k8s.io/dry-run`.
    pub topology_dry_run: bool,
}
