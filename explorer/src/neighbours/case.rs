//! The clusters, and the acts.

use serde::{Deserialize, Serialize};

use super::sharing::Sharing;
use crate::service_option::ServiceOption;

/// Clusters that share an Azure, and the acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Neighbours {
    /// The seed of everything random.
    pub seed: u64,
    /// The number of clusters.
    pub clusters: usize,
    /// The shared resources.
    pub sharing: Sharing,
    /// Whether Azure has typical latencies.
    #[serde(default)]
    pub slow: bool,
    /// The acts.
    pub acts: Vec<Act>,
}

/// An act.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Act {
    /// A Service is created, or changed.
    Apply {
        /// Its cluster.
        cluster: usize,
        /// The Service.
        service: usize,
        /// What it asks for.
        options: Vec<ServiceOption>,
    },
    /// A Service is deleted.
    Delete {
        /// Its cluster.
        cluster: usize,
        /// The Service.
        service: usize,
    },
    /// A scale set is scaled.
    Scale {
        /// Its cluster.
        cluster: usize,
        /// Its new number of machines.
        nodes: u64,
    },
    /// Controllers are killed and restarted.
    Kill {
        /// Their cluster.
        cluster: usize,
    },
    /// All Services of a cluster are deleted.
    TearDown {
        /// The cluster.
        cluster: usize,
    },
    /// A third party adds a resource or part of its own.
    Foreign {
        /// The addition.
        what: Foreign,
        /// The suffix of its name; also selects its position.
        number: u64,
    },
    /// Time passes.
    Wait {
        /// The duration.
        seconds: u64,
    },
    /// Nothing happens until everything has come to rest.
    Rest,
}

/// An addition by a third party.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Foreign {
    /// A rule of a security group.
    Rule,
    /// A rule whose name begins like those of the controllers.
    LikeOurs,
    /// A tag of a load balancer, a public IP or a security group.
    Tag,
    /// A pool of a load balancer.
    Pool,
}
