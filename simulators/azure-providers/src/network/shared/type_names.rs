//! Names of types that other types use.

pub(crate) const PUBLIC_IP_ADDRESSES: &str = "Microsoft.Network/publicIPAddresses";

pub(crate) const PUBLIC_IP_PREFIXES: &str = "Microsoft.Network/publicIPPrefixes";

pub(crate) const PRIVATE_LINK_SERVICES: &str = "Microsoft.Network/privateLinkServices";
