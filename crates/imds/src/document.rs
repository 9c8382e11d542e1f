//! Documents of the service, with the members that are used. All their values are texts.

use serde::{Deserialize, Deserializer};

/// `/metadata/instance`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Instance {
    /// The machine.
    pub compute: Option<Compute>,
    /// Its interfaces.
    pub network: Option<Network>,
}

/// The facts about a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Compute {
    /// Its name in scheduled events.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// The region.
    #[serde(deserialize_with = "or_default")]
    pub location: String,
    /// The number of its availability zone; empty outside of zones.
    #[serde(deserialize_with = "or_default")]
    pub zone: String,
    /// The number of its fault domain.
    #[serde(deserialize_with = "or_default")]
    pub platform_fault_domain: String,
    /// A part of the fault domain.
    #[serde(deserialize_with = "or_default")]
    pub platform_sub_fault_domain: String,
    /// Its size, such as `Standard_D2s_v5`.
    #[serde(deserialize_with = "or_default")]
    pub vm_size: String,
    /// Its resource id.
    #[serde(deserialize_with = "or_default")]
    pub resource_id: String,
    /// The resource group.
    #[serde(deserialize_with = "or_default")]
    pub resource_group_name: String,
    /// The subscription.
    #[serde(deserialize_with = "or_default")]
    pub subscription_id: String,
    /// Its tags.
    #[serde(deserialize_with = "or_default")]
    pub tags_list: Vec<Tag>,
}

/// A tag.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Tag {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Its value.
    #[serde(deserialize_with = "or_default")]
    pub value: String,
}

/// A machine's interfaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Network {
    /// The interfaces, the primary one first.
    #[serde(deserialize_with = "or_default")]
    pub interface: Vec<Interface>,
}

/// One interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its IPv4 addresses.
    #[serde(deserialize_with = "or_default")]
    pub ipv4: Family,
    /// Its IPv6 addresses.
    #[serde(deserialize_with = "or_default")]
    pub ipv6: Family,
}

/// The addresses of one family.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Family {
    /// The addresses, the primary one first.
    #[serde(deserialize_with = "or_default")]
    pub ip_address: Vec<IpPair>,
}

/// A private address, and the public one in front of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IpPair {
    /// The private address.
    #[serde(deserialize_with = "or_default")]
    pub private_ip_address: String,
    /// The public address; empty if it has none.
    #[serde(deserialize_with = "or_default")]
    pub public_ip_address: String,
}

/// `/metadata/loadbalancer`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LoadBalancer {
    /// Its content.
    #[serde(deserialize_with = "or_default")]
    pub loadbalancer: Frontends,
}

/// The addresses of load balancers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Frontends {
    /// Those in front of an address of the machine.
    #[serde(deserialize_with = "or_default")]
    pub public_ip_addresses: Vec<Frontend>,
}

/// An address of a load balancer in front of one of the machine's. IPv6 addresses are in brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Frontend {
    /// The load balancer's.
    #[serde(deserialize_with = "or_default")]
    pub frontend_ip_address: String,
    /// The machine's.
    #[serde(deserialize_with = "or_default")]
    pub private_ip_address: String,
}

/// `/metadata/scheduledevents`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct EventList {
    /// Scheduled and running events of this machine and its neighbours.
    #[serde(deserialize_with = "or_default")]
    pub events: Vec<Event>,
}

/// One scheduled event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Event {
    /// Its unique ID.
    #[serde(deserialize_with = "or_default")]
    pub event_id: String,
    /// The type.
    #[serde(deserialize_with = "or_default")]
    pub event_type: String,
    /// The machines.
    #[serde(deserialize_with = "or_default")]
    pub resources: Vec<String>,
    /// `Scheduled` or `Started`.
    #[serde(deserialize_with = "or_default")]
    pub event_status: String,
    /// Its earliest start, in the time format of mail headers; empty once it has started.
    #[serde(deserialize_with = "or_default")]
    pub not_before: String,
    /// The reason.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// How long the machine is away, in seconds; -1 if that is unknown.
    #[serde(deserialize_with = "or_default")]
    pub duration_in_seconds: i64,
}

/// `null` counts as missing.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

impl Instance {
    /// Whether the document contains no public address of the first interface, so that a load balancer may have one for
    /// it.
    pub(crate) fn has_no_public_address(&self) -> bool {
        let first = self.network.as_ref().and_then(|network| network.interface.first());
        first.is_some_and(|interface| {
            let mut pairs =
                [&interface.ipv4, &interface.ipv6].into_iter().filter_map(|all| all.ip_address.first());
            pairs.all(|pair| pair.public_ip_address.is_empty())
        })
    }
}
