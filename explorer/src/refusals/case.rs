//! The Services, and why the bad ones are refused.

use serde::{Deserialize, Serialize};

use crate::service_option::ServiceOption;

/// Good and bad Services.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Refusals {
    /// The seed of everything random.
    pub seed: u64,
    /// Whether Azure has typical latencies.
    #[serde(default)]
    pub slow: bool,
    /// The intents of the good ones.
    pub good: Vec<Vec<ServiceOption>>,
    /// Why the bad ones are bad.
    pub bad: Vec<Bad>,
    /// Whether the bad ones are created first.
    #[serde(default)]
    pub bad_first: bool,
}

/// Why a Service is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Bad {
    /// Every write of its public IP is refused.
    Address(Refusal),
    /// Every write of the load balancer with its frontend is refused.
    Balancer {
        /// The refusal.
        refusal: Refusal,
        /// Whether the error text names it.
        named: bool,
    },
    /// Every write of the security group with its address is refused.
    Guard {
        /// The refusal.
        refusal: Refusal,
        /// Whether the error text names it.
        named: bool,
    },
    /// It asks for something impossible.
    Mistake(Mistake),
}

/// A refusal by Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Refusal {
    /// With this status.
    Status(u16),
    /// 403 that names the permission on a linked resource.
    Linked,
    /// Its operation fails later.
    Later,
}

/// Impossible requests of Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mistake {
    /// An unknown service tag.
    UnknownTag,
    /// A missing public IP.
    MissingAddress,
    /// A missing subnet.
    MissingSubnet,
    /// A private address outside of the subnet.
    OutsideOfSubnet,
    /// An invalid value.
    BadValue,
    /// A DNS label that Azure does not allow.
    BadLabel,
}
