//! How a simulated Azure is set up.

use std::collections::BTreeMap;
use std::net::IpAddr;

use azure_types::ResourceId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fault::Fault;
use crate::operation::RetryAfterStyle;
use crate::settings::actors::Actor;
use crate::settings::budget::Budgets;
use crate::settings::consistency::Consistency;
use crate::settings::latency::LatencyProfile;

/// Everything that can be chosen about one simulated Azure. `Default` gives a deterministic Azure in
/// one region with three zones that answers at once and checks no tokens.
#[derive(Debug, Clone)]
pub struct Options {
    /// Source of every id, etag, address and request id.
    pub seed: u64,
    /// The subscription's id (a GUID).
    pub subscription: String,
    /// Further subscriptions that the same caller may use.
    pub more_subscriptions: Vec<String>,
    /// The tenant's id (a GUID), named in challenges.
    pub tenant: String,
    /// The tenants of subscriptions that belong to another one than `tenant`, by subscription.
    pub subscription_tenants: BTreeMap<String, String>,
    /// Whether subscriptions accept tokens of any tenant of the directory, as if each belonged to all of them.
    pub any_tenant: bool,
    /// The machine behind each source address of the metadata service.
    pub metadata_addresses: MetadataAddresses,
    /// The normalised name of the region that answers subscription-level requests, such as `eastus`.
    /// Resources may be created in any region.
    pub region: String,
    /// The region's name as portals show it, such as `East US`.
    pub region_display_name: String,
    /// The region's availability zones; empty for a region without zones.
    pub zones: Vec<String>,
    /// How long operations and answers take.
    pub latency: LatencyProfile,
    /// The form in which answers give the time of the next poll.
    pub retry_after: RetryAfterStyle,
    /// The lag of reads behind writes.
    pub consistency: Consistency,
    /// Faults that are in force from the start.
    pub faults: Vec<Fault>,
    /// Actors that exist from the start.
    pub actors: Vec<Actor>,
    /// Request budgets of ARM and of the providers. `None` turns throttling
    /// off; the headers are then sent with the buckets' capacities.
    pub budgets: Option<Budgets>,
    /// Machine sizes that are not available in the region: in these zones, or in none where the list is empty. The
    /// catalogue shows it, and a request for such a size gets Azure's `SkuNotAvailable`.
    pub restricted_sizes: BTreeMap<String, Vec<String>>,
    /// Limits that differ from Azure's published ones, by name, such as `network.routesPerTable`.
    pub limits: BTreeMap<String, u64>,
    /// Most items of one page of a list of machines or scale set instances. Other lists are one page.
    pub page_size: usize,
    /// Wall-clock time at which the simulation starts; it goes on with tokio's time.
    pub start: Timestamp,
    /// Whether ARM requests need an `Authorization` header. Tokens are verified by the verifier of
    /// `Azure::set_verifier`; without one any non-empty bearer token is accepted.
    pub require_auth: bool,
    /// Whether requests need rights: roles assigned to the caller.
    pub enforce_authorization: bool,
    /// Object ids of the owners of all subscriptions.
    pub owners: Vec<String>,
    /// Refuse api-versions that the simulated types do not list. Otherwise any well-formed one is
    /// accepted, and written to the journal.
    pub strict_api_versions: bool,
    /// Give a load balancer, subnet's network, public IP or security group a new etag when only a
    /// back-reference changed.
    pub etag_follows_back_references: bool,
    /// Refuse to create load balancers and public IPs with sku Basic, which was retired on 2025-09-30.
    pub basic_sku_retired: bool,
    /// A virtual network write that leaves out `subnets` keeps them instead of deleting the unused.
    pub keep_omitted_subnets: bool,
    /// Base URL for `nextLink`, `Location` and `Azure-AsyncOperation`, such as
    /// `https://127.0.0.1:8443`. `None` derives it from each request's own scheme and host.
    pub external_url: Option<String>,
    /// The authority named in challenges and cloud metadata, such as `https://127.0.0.1:8444`.
    pub authority: String,
    /// The network from which public IPv4 addresses come. The default is set aside for benchmarks, so that no simulated
    /// address is in real use.
    pub public_ipv4: ipnet::Ipv4Net,
    /// The network from which public IPv6 addresses come; the default is set aside for documentation.
    pub public_ipv6: ipnet::Ipv6Net,
    /// How many requests the journal remembers; the counts go on beyond.
    pub journal_capacity: usize,
}

/// The machines behind addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MetadataAddresses {
    /// Machines by the address that their requests come from.
    pub addresses: BTreeMap<IpAddr, ResourceId>,
    /// The machine of all other addresses.
    pub default: Option<ResourceId>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            subscription: "00000000-0000-0000-0000-000000000000".into(),
            more_subscriptions: Vec::new(),
            tenant: "11111111-1111-1111-1111-111111111111".into(),
            subscription_tenants: BTreeMap::new(),
            any_tenant: false,
            metadata_addresses: MetadataAddresses::default(),
            region: "eastus".into(),
            region_display_name: "East US".into(),
            zones: vec!["1".into(), "2".into(), "3".into()],
            latency: LatencyProfile::instant(),
            retry_after: RetryAfterStyle::Seconds,
            consistency: Consistency::default(),
            faults: Vec::new(),
            actors: Vec::new(),
            budgets: Some(Budgets::default()),
            restricted_sizes: BTreeMap::new(),
            limits: BTreeMap::new(),
            page_size: 100,
            start: Timestamp::from_second(1_767_225_600).unwrap_or(Timestamp::UNIX_EPOCH),
            require_auth: false,
            enforce_authorization: false,
            owners: Vec::new(),
            strict_api_versions: false,
            etag_follows_back_references: true,
            basic_sku_retired: false,
            keep_omitted_subnets: true,
            external_url: None,
            authority: "https://login.microsoftonline.com".into(),
            public_ipv4: ipnet::Ipv4Net::new_assert(std::net::Ipv4Addr::new(198, 18, 0, 0), 15),
            public_ipv6: ipnet::Ipv6Net::new_assert(
                std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0),
                32,
            ),
            journal_capacity: 200_000,
        }
    }
}
