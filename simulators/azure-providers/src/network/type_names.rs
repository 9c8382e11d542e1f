//! Names of types that others than the type itself ask for.

pub(super) const PUBLIC_IP_ADDRESSES: &str = "Microsoft.Network/publicIPAddresses";

pub(super) const PUBLIC_IP_PREFIXES: &str = "Microsoft.Network/publicIPPrefixes";
