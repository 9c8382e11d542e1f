//! Load balancers of a cluster: for the API server, and for outbound traffic.

use super::PublicIp;
use crate::field_error::Field;
use crate::object::object;

/// The type of a load balancer with public addresses.
pub const PUBLIC: &str = "Public";
/// The type of a load balancer with addresses of the network.
pub const INTERNAL: &str = "Internal";
/// The only SKU.
pub const STANDARD: &str = "Standard";
/// How many public addresses a load balancer for outbound traffic may have (a limit of Azure's).
pub const MAX_OUTBOUND_IPS: i32 = 16;

object! {
    /// A load balancer.
    LoadBalancer {
        /// The availability zones of the load balancer; all zones of the region if there are none. With a public address
        /// they are the zones of that address.
        #[schemars(
            length(max = 3),
            extend("x-kubernetes-list-type" = "set", "items" = { "type": "string", "enum": ["1", "2", "3"] })
        )]
        availability_zones: Vec<String>,
        /// The backend pool.
        backend_pool: BackendPool,
        /// The frontends.
        #[serde(rename = "frontendIPs")]
        frontend_ips: Vec<FrontendIp>,
        /// The number of frontends with public addresses. Their names are derived from the load balancer's.
        #[serde(rename = "frontendIPsCount")]
        frontend_ips_count: i32,
        /// The id of the load balancer in Azure. Set by the controller.
        id: String,
        /// The idle timeout of TCP connections in minutes, from 4 to 30.
        idle_timeout_in_minutes: i32,
        /// The name of the load balancer.
        name: String,
        /// The SKU. Only Standard is supported.
        sku: String,
        /// Public or Internal.
        #[serde(rename = "type")]
        kind: String,
    }

    /// A load balancer in a template.
    LoadBalancerClass {
        /// The idle timeout of TCP connections in minutes, from 4 to 30.
        idle_timeout_in_minutes: i32,
        /// The SKU. Only Standard is supported.
        sku: String,
        /// Public or Internal.
        #[serde(rename = "type")]
        kind: String,
    }

    /// A frontend of a load balancer.
    FrontendIp {
        /// The name of the frontend.
        #[schemars(required, length(min = 1))]
        name: String,
        /// The private address of the frontend.
        #[serde(rename = "privateIP")]
        private_ip: String,
        /// The public address of the frontend.
        #[serde(rename = "publicIP")]
        public_ip: PublicIp,
    }

    /// The backend pool of a load balancer.
    BackendPool {
        /// The name of the pool.
        name: String,
    }
}

impl LoadBalancer {
    /// Whether its addresses are the network's.
    pub fn is_internal(&self) -> bool {
        self.kind.as_deref() == Some(INTERNAL)
    }

    /// Whether its addresses are public.
    pub fn is_public(&self) -> bool {
        self.kind.as_deref() == Some(PUBLIC)
    }
}

/// Validates the idle timeout against Azure's limits.
pub(crate) fn check_idle_timeout(minutes: Option<i32>, balancer: &Field<'_>) {
    if let Some(minutes) = minutes {
        let words = "Node outbound idle timeout should be between 4 and 30 minutes";
        balancer.child("idleTimeoutInMinutes").invalid_if(!(4..=30).contains(&minutes), minutes, words);
    }
}
