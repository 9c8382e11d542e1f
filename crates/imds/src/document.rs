//! Documents of the service, as far as somebody here reads them. All their values are texts.

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

/// What a machine is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Compute {
    /// What scheduled events call it.
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

/// An address within the network, and the one that the internet sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct IpPair {
    /// Within the network.
    #[serde(deserialize_with = "or_default")]
    pub private_ip_address: String,
    /// In the internet; empty if it has none.
    #[serde(deserialize_with = "or_default")]
    pub public_ip_address: String,
}

/// `/metadata/loadbalancer`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LoadBalancer {
    /// What is in it.
    #[serde(deserialize_with = "or_default")]
    pub loadbalancer: Frontends,
}

/// The addresses of balancers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Frontends {
    /// Those that stand for an address of the machine.
    #[serde(deserialize_with = "or_default")]
    pub public_ip_addresses: Vec<Frontend>,
}

/// An address of a balancer that stands for one of the machine. IPv6 addresses stand in brackets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Frontend {
    /// The balancer's.
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
    /// What will soon happen to this machine and to those beside it, or takes place.
    #[serde(deserialize_with = "or_default")]
    pub events: Vec<Event>,
}

/// One scheduled event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct Event {
    /// Its id, which is its own for ever.
    #[serde(deserialize_with = "or_default")]
    pub event_id: String,
    /// What happens.
    #[serde(deserialize_with = "or_default")]
    pub event_type: String,
    /// To which machines.
    #[serde(deserialize_with = "or_default")]
    pub resources: Vec<String>,
    /// `Scheduled` or `Started`.
    #[serde(deserialize_with = "or_default")]
    pub event_status: String,
    /// When it may start at the earliest, as mail headers write times; empty once it has started.
    #[serde(deserialize_with = "or_default")]
    pub not_before: String,
    /// Why.
    #[serde(deserialize_with = "or_default")]
    pub description: String,
    /// How long the machine is away, in seconds; -1 where nobody knows.
    #[serde(deserialize_with = "or_default")]
    pub duration_in_seconds: i64,
}

/// `null` is what is missing.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

impl Instance {
    /// Whether the document names no public address of the first interface, so that a balancer may have one for it.
    pub(crate) fn has_no_public_address(&self) -> bool {
        let first = self.network.as_ref().and_then(|network| network.interface.first());
        first.is_some_and(|interface| {
            let mut pairs =
                [&interface.ipv4, &interface.ipv6].into_iter().filter_map(|all| all.ip_address.first());
            pairs.all(|pair| pair.public_ip_address.is_empty())
        })
    }
}
