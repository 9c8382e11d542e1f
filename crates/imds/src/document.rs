//! Documents of the service, with the members that are used. All their values are texts.

use serde::{Deserialize, Deserializer};

/// Declares a document: a member that is missing or `null` has its default.
macro_rules! document {
    ($(#[$doc:meta])* $name:ident: $case:literal { $($(#[$member:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
        #[serde(default, rename_all = $case)]
        pub struct $name {
            $($(#[$member])* #[serde(deserialize_with = "or_default")] pub $field: $type,)*
        }
    };
}

/// `null` counts as missing.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(value: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(value)?.unwrap_or_default())
}

document! {
    /// `/metadata/instance`.
    Instance: "camelCase" {
        /// The machine.
        compute: Option<Compute>,
        /// Its interfaces.
        network: Option<Network>,
    }
}

document! {
    /// The facts about a machine.
    Compute: "camelCase" {
        /// Its name in scheduled events.
        name: String,
        /// The region.
        location: String,
        /// The number of its availability zone; empty outside of zones.
        zone: String,
        /// The number of its fault domain.
        platform_fault_domain: String,
        /// A part of the fault domain.
        platform_sub_fault_domain: String,
        /// Its size, such as `Standard_D2s_v5`.
        vm_size: String,
        /// Its resource id.
        resource_id: String,
        /// Its tags.
        tags_list: Vec<Tag>,
        /// Its disks.
        storage_profile: StorageProfile,
    }
}

document! {
    /// A machine's disks.
    StorageProfile: "camelCase" {
        /// Those beside the disk of the operating system.
        data_disks: Vec<DataDisk>,
    }
}

document! {
    /// A data disk.
    DataDisk: "camelCase" {
        /// Its LUN.
        lun: String,
        /// The disk.
        managed_disk: ManagedDisk,
    }
}

document! {
    /// A disk as a resource.
    ManagedDisk: "camelCase" {
        /// Its resource id.
        id: String,
    }
}

document! {
    /// A tag.
    Tag: "camelCase" {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    }
}

document! {
    /// A machine's interfaces.
    Network: "camelCase" {
        /// The interfaces, the primary one first.
        interface: Vec<Interface>,
    }
}

document! {
    /// One interface.
    Interface: "camelCase" {
        /// Its IPv4 addresses.
        ipv4: FamilyAddresses,
        /// Its IPv6 addresses.
        ipv6: FamilyAddresses,
    }
}

document! {
    /// The addresses of one family.
    FamilyAddresses: "camelCase" {
        /// The addresses, the primary one first.
        ip_address: Vec<IpPair>,
    }
}

document! {
    /// A private address, and the public one in front of it.
    IpPair: "camelCase" {
        /// The private address.
        private_ip_address: String,
        /// The public address; empty if it has none.
        public_ip_address: String,
    }
}

document! {
    /// `/metadata/loadbalancer`.
    LoadBalancer: "camelCase" {
        /// Its content.
        loadbalancer: Frontends,
    }
}

document! {
    /// The addresses of load balancers.
    Frontends: "camelCase" {
        /// Those in front of an address of the machine.
        public_ip_addresses: Vec<Frontend>,
    }
}

document! {
    /// An address of a load balancer in front of one of the machine's. IPv6 addresses are in brackets.
    Frontend: "camelCase" {
        /// The load balancer's.
        frontend_ip_address: String,
        /// The machine's.
        private_ip_address: String,
    }
}

document! {
    /// `/metadata/scheduledevents`.
    EventList: "PascalCase" {
        /// Scheduled and running events of this machine and its neighbours.
        events: Vec<Event>,
    }
}

document! {
    /// One scheduled event.
    Event: "PascalCase" {
        /// Its unique ID.
        event_id: String,
        /// The type.
        event_type: String,
        /// The machines.
        resources: Vec<String>,
        /// `Scheduled` or `Started`.
        event_status: String,
        /// Its earliest start, in the time format of mail headers; empty once it has started.
        not_before: String,
        /// The reason.
        description: String,
        /// How long the machine is away, in seconds; -1 if that is unknown.
        duration_in_seconds: i64,
    }
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
