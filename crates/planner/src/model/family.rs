//! Address families.

use std::net::IpAddr;

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both families.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// The family's name in Kubernetes and Azure.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

impl std::fmt::Display for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether Azure can assign this address as a public IP.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            let shared = a == 100 && (b & 0xc0) == 64;
            let platform = v4.octets() == [168, 63, 129, 16];
            !(v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_broadcast()
                || v4.is_unspecified()
                || shared
                || platform)
        }
        IpAddr::V6(v6) => {
            !(v6.is_loopback()
                || v6.is_multicast()
                || v6.is_unspecified()
                || v6.is_unicast_link_local()
                || v6.is_unique_local())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_azure_assigns_as_public_ips() {
        for (address, expected) in [
            ("20.0.0.1", true),
            ("9.255.255.255", true),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("192.168.0.1", false),
            ("127.0.0.1", false),
            ("169.254.169.254", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("0.0.0.0", false),
            // Shared address space (RFC 6598), and its neighbours.
            ("100.63.255.255", true),
            ("100.64.0.0", false),
            ("100.127.255.255", false),
            ("100.128.0.0", true),
            ("101.64.0.1", true),
            // Azure's platform, and its neighbours.
            ("168.63.129.16", false),
            ("168.63.129.17", true),
            ("2001:db8::1", true),
            ("2603:1030::1", true),
            ("::", false),
            ("::1", false),
            ("ff02::1", false),
            ("fe80::1", false),
            ("fd00::1", false),
        ] {
            assert_eq!(is_public(address.parse().unwrap()), expected, "{address}");
        }
    }
}
