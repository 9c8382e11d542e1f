//! Why a Service cannot have the private link service that it asks for.

use k8s::ObjectKey;

use crate::model::annotation_keys::{self as keys, full_key};
use crate::model::limits::{MAX_ADDRESSES, MIN_ADDRESSES};

/// Why a Service cannot have the private link service that it asks for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrivateLinkRefusal {
    /// The frontend is internal, or packets arrive at the nodes' own addresses.
    #[error(
        "annotation {}: true: service requiring private link service must be internal or disable floating ip; set \
         annotation {} or {} to true, or remove it",
        full_key(keys::PLS_CREATE),
        full_key(keys::INTERNAL),
        full_key(keys::DISABLE_FLOATING_IP)
    )]
    FloatsOutside,
    /// Azure offers only IPv4 frontends.
    #[error(
        "annotation {}: true: IPv6 is not supported for private link service; add IPv4 to spec.ipFamilies, or remove it",
        full_key(keys::PLS_CREATE)
    )]
    NoIpv4,
    /// A private link service has one to eight addresses.
    #[error(
        "annotation {}: {} number of private link service ipConfig is {}, {count} provided; write a number from \
         {MIN_ADDRESSES} to {MAX_ADDRESSES}, or remove it",
        full_key(keys::PLS_ADDRESS_COUNT),
        if *.count < MIN_ADDRESSES { "minimum" } else { "maximum" },
        if *.count < MIN_ADDRESSES { MIN_ADDRESSES } else { MAX_ADDRESSES }
    )]
    CountOutOfRange {
        /// The annotation's value.
        count: i32,
    },
    /// A static address is a valid address.
    #[error(
        "annotation {}: {value} is not a valid IP address; separate IPv4 addresses by spaces, or remove it",
        full_key(keys::PLS_ADDRESSES)
    )]
    InvalidAddress {
        /// The invalid item.
        value: String,
    },
    /// The addresses of a private link service are IPv4 addresses.
    #[error(
        "annotation {}: private link service ip config only supports IPv4, {value} provided; correct or remove it",
        full_key(keys::PLS_ADDRESSES)
    )]
    AddressOfIpv6 {
        /// The item.
        value: String,
    },
    /// Names are separated by spaces and contain no comma.
    #[error(
        "annotation {key}: {item} is not a single name; separate names by spaces, or remove the annotation"
    )]
    ListInAnItem {
        /// The annotation.
        key: String,
        /// The item with a comma.
        item: String,
    },
    /// There are at most as many static addresses as addresses.
    #[error(
        "annotation {}: ipConfigCount({count}) must be no smaller than number of static IPs specified({addresses}); \
         raise it, or name fewer in annotation {}",
        full_key(keys::PLS_ADDRESS_COUNT),
        full_key(keys::PLS_ADDRESSES)
    )]
    TooManyAddresses {
        /// The number of addresses.
        count: usize,
        /// The number of static addresses.
        addresses: usize,
    },
    /// The subnet of its addresses exists.
    #[error(
        "failed to get private link service subnet({subnet}) for service({service}): virtual network {network} has no \
         such subnet; create it, or name another by annotation {}",
        full_key(keys::PLS_SUBNET)
    )]
    SubnetNotFound {
        /// The virtual network.
        network: String,
        /// The subnet.
        subnet: String,
        /// The Service.
        service: ObjectKey,
    },
    /// A frontend that an unmanaged private link service offers is left unchanged.
    #[error(
        "LB frontend({frontend}) already has unmanaged private link service({private_link}), which lacks this cluster's \
         tag {tag}; delete that private link service, or remove annotation {}",
        full_key(keys::PLS_CREATE)
    )]
    Unmanaged {
        /// The frontend.
        frontend: String,
        /// The private link service's id.
        private_link: String,
        /// The missing tag.
        tag: &'static str,
    },
    /// Only the Service that created a private link service may have settings for it.
    #[error(
        "annotation {key}: LB frontend({frontend}) already has existing private link service({private_link}) owned by \
         service({owner}), which alone can set that; remove it here, and set it there"
    )]
    OwnedByOther {
        /// The frontend.
        frontend: String,
        /// The private link service's name.
        private_link: String,
        /// The Service that created it.
        owner: String,
        /// The annotation with the setting.
        key: String,
    },
    /// A resource keeps its name.
    #[error(
        "annotation {}: cannot change existing private link service name ({existing}) to ({wanted}); write {existing}, \
         or remove annotation {} until the private link service is gone",
        full_key(keys::PLS_NAME),
        full_key(keys::PLS_CREATE)
    )]
    NameFixed {
        /// Its name.
        existing: String,
        /// The requested name.
        wanted: String,
    },
    /// A name belongs to one private link service of a resource group.
    #[error(
        "annotation {}: {name}: resource group {group} has a private link service of this name, which does not offer \
         this service's frontend; write another name, or delete that private link service",
        full_key(keys::PLS_NAME)
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The resource group.
        group: String,
    },
    /// The resource group that a Service names can be read.
    #[error(
        "annotation {}: resource group {group} cannot be read, so its private link services are \
         unknown ({problem}); give the identity the right to read it, or name another group",
        full_key(keys::PLS_GROUP)
    )]
    GroupUnreadable {
        /// The resource group.
        group: String,
        /// What Azure said.
        problem: String,
    },
}

impl PrivateLinkRefusal {
    /// Whether only a change of the Service can resolve it.
    pub(crate) fn is_terminal(&self) -> bool {
        match self {
            Self::FloatsOutside
            | Self::NoIpv4
            | Self::CountOutOfRange { .. }
            | Self::InvalidAddress { .. }
            | Self::AddressOfIpv6 { .. }
            | Self::TooManyAddresses { .. }
            | Self::ListInAnItem { .. } => true,
            Self::SubnetNotFound { .. }
            | Self::Unmanaged { .. }
            | Self::OwnedByOther { .. }
            | Self::NameFixed { .. }
            | Self::NameTaken { .. }
            | Self::GroupUnreadable { .. } => false,
        }
    }
}
