//! What a public IP's document says: name, address, family and group.

use std::net::IpAddr;

use azure_types::{PublicIpAddress, ResourceId};

use crate::model::Family;

pub(crate) fn name_of(public_ip: &PublicIpAddress) -> &str {
    public_ip.name.as_deref().or_else(|| public_ip.id.as_ref().map(ResourceId::name)).unwrap_or_default()
}

/// The address that Azure has assigned to a public IP; `None` if none is assigned yet.
pub fn address_of(public_ip: &PublicIpAddress) -> Option<IpAddr> {
    public_ip.properties.as_ref()?.ip_address.as_deref()?.parse().ok()
}

/// The family of a public IP; `None` where its document does not say.
pub(super) fn version_of(public_ip: &PublicIpAddress) -> Option<Family> {
    let word = public_ip.properties.as_ref()?.public_ip_address_version.as_ref()?;
    Some(if word.is("IPv6") { Family::V6 } else { Family::V4 })
}

pub(super) fn is_in_group(public_ip: &PublicIpAddress, group: &str) -> bool {
    let of = public_ip.id.as_ref().and_then(ResourceId::group_name);
    of.is_some_and(|name| name.eq_ignore_ascii_case(group))
}
