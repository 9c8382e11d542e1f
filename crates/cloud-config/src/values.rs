//! The keys whose value is one of a few words.
//!
//! Words are compared without regard to case. Where upstream starts with any text, the unknown word is kept in `Other`,
//! and [`crate::CloudConfig::unsupported`] reports it.

use std::fmt;

macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $word:literal ),+ $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[$variant_doc])* $variant ),+ }

        impl $name {
            /// The words of the key, as documented.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Parses a word without regard to case and surrounding spaces.
            pub fn parse(text: &str) -> Option<Self> {
                let text = text.trim();
                $( if text.eq_ignore_ascii_case($word) { return Some(Self::$variant); } )+
                None
            }

            /// The word as documented.
            pub fn as_str(&self) -> &'static str {
                match self { $( Self::$variant => $word ),+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// `loadBalancerBackendPoolConfigurationType`: how machines become members of a pool.
    BackendPoolType {
        /// Through the IP configurations of their network interfaces (the default).
        NodeIpConfiguration = "nodeIPConfiguration",
        /// By the machines' addresses.
        NodeIp = "nodeIP",
        /// By the pods' addresses; only with the service gateway.
        PodIp = "podIP",
    }
}

words! {
    /// `clusterServiceLoadBalancerHealthProbeMode`: the target of the probe of a Service with `externalTrafficPolicy:
    /// Cluster`.
    HealthProbeMode {
        /// The Service's own node port (the default).
        ServiceNodePort = "servicenodeport",
        /// One shared path on every node.
        Shared = "shared",
    }
}

/// `loadBalancerSku`: the SKU of load balancers and public IPs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoadBalancerSku {
    /// Standard (the default).
    Standard,
    /// Basic, which Azure has retired.
    Basic,
    /// The service gateway's load balancers.
    Service,
    /// Any other text; upstream treats it as not standard.
    Other(String),
}

impl LoadBalancerSku {
    pub(crate) fn parse(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "standard" => Self::Standard,
            "basic" => Self::Basic,
            "service" => Self::Service,
            _ => Self::Other(text.to_owned()),
        }
    }
}

impl fmt::Display for LoadBalancerSku {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::Basic => "basic",
            Self::Service => "service",
            Self::Other(text) => text,
        })
    }
}

/// `vmType`: the kind of machines of the cluster's nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VmType {
    /// Scale sets, possibly mixed with others (the default).
    Vmss,
    /// Only flexible scale sets.
    VmssFlex,
    /// Availability sets and standalone machines.
    Standard,
    /// Any other text; upstream treats it as `standard`.
    Other(String),
}

impl VmType {
    pub(crate) fn parse(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "" | "vmss" => Self::Vmss,
            "vmssflex" => Self::VmssFlex,
            "standard" => Self::Standard,
            _ => Self::Other(text.to_owned()),
        }
    }
}

impl fmt::Display for VmType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vmss => "vmss",
            Self::VmssFlex => "vmssflex",
            Self::Standard => "standard",
            Self::Other(text) => text,
        })
    }
}

/// `preConfiguredBackendPoolLoadBalancerTypes`: the load balancers whose pools are filled externally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PreConfiguredBackendPools {
    /// None: this program fills all pools (the default).
    None,
    /// Those of internal load balancers.
    Internal,
    /// Those of external load balancers.
    External,
    /// All.
    All,
    /// Any other text; upstream treats it as none.
    Other(String),
}

impl fmt::Display for PreConfiguredBackendPools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "",
            Self::Internal => "internal",
            Self::External => "external",
            Self::All => "all",
            Self::Other(text) => text,
        })
    }
}

impl PreConfiguredBackendPools {
    pub(crate) fn parse(text: &str) -> Self {
        match text.trim().to_ascii_lowercase().as_str() {
            "" => Self::None,
            "internal" => Self::Internal,
            "external" => Self::External,
            "all" => Self::All,
            _ => Self::Other(text.to_owned()),
        }
    }

    /// Whether the pools of internal (`true`) or external load balancers are left alone.
    pub fn covers(&self, internal: bool) -> bool {
        match self {
            Self::All => true,
            Self::Internal => internal,
            Self::External => !internal,
            Self::None | Self::Other(_) => false,
        }
    }
}
