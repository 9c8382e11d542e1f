//! The keys whose value is one of a few words.
//!
//! Words are compared without regard to case. If the replaced program starts with any text, unknown words are kept in
//! `Other`, and [`refusals`](crate::CloudConfig::refusals) or [`warnings`](crate::CloudConfig::warnings) report them.

use std::fmt;

/// A value that is one of a few words.
pub(crate) trait Word: Copy + fmt::Display {
    /// The words of the key, as documented.
    const WORDS: &'static [&'static str];

    /// Parses a word without regard to case and surrounding spaces.
    fn parse(text: &str) -> Option<Self>;
}

macro_rules! words {
    (
        $(#[$doc:meta])*
        $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $word:literal ),+ $(,)? }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $( $(#[$variant_doc])* $variant ),+ }

        impl Word for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];

            fn parse(text: &str) -> Option<Self> {
                let text = text.trim();
                $( if text.eq_ignore_ascii_case($word) { return Some(Self::$variant); } )+
                None
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $( Self::$variant => $word ),+ })
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
    /// `cloudConfigType`: which documents count where a file and a Secret are given.
    ConfigType {
        /// The file with the Secret's keys over it (the default).
        Merge = "merge",
        /// The file alone.
        File = "file",
        /// The Secret alone.
        Secret = "secret",
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

/// An enumeration that keeps other words. An empty text means the first value.
macro_rules! open_words {
    (
        $(#[$doc:meta])*
        $name:ident {
            $(#[$first_doc:meta])* $first:ident = $first_word:literal,
            $( $(#[$variant_doc:meta])* $variant:ident = $word:literal, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name {
            $(#[$first_doc])* $first,
            $( $(#[$variant_doc])* $variant, )*
            /// Any other text.
            Other(String),
        }

        impl $name {
            pub(crate) fn parse(text: &str) -> Self {
                match text.trim() {
                    "" => Self::$first,
                    word if word.eq_ignore_ascii_case($first_word) => Self::$first,
                    $( word if word.eq_ignore_ascii_case($word) => Self::$variant, )*
                    _ => Self::Other(text.to_owned()),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    Self::$first => $first_word,
                    $( Self::$variant => $word, )*
                    Self::Other(text) => text,
                })
            }
        }
    };
}

open_words! {
    /// `loadBalancerSku`: the SKU of load balancers and public IPs. The replaced program treats other texts as not
    /// standard.
    LoadBalancerSku {
        /// Standard (the default).
        Standard = "standard",
        /// Basic, which Azure has retired.
        Basic = "basic",
        /// The service gateway's load balancers.
        Service = "service",
    }
}

open_words! {
    /// `vmType`: the kind of machines of the cluster's nodes. The replaced program treats other texts as `standard`.
    VmType {
        /// Scale sets, possibly mixed with others (the default).
        Vmss = "vmss",
        /// Only flexible scale sets.
        VmssFlex = "vmssflex",
        /// Availability sets and standalone machines.
        Standard = "standard",
    }
}

open_words! {
    /// `preConfiguredBackendPoolLoadBalancerTypes`: the load balancers whose pools are filled externally. The replaced
    /// program treats other texts as none.
    PreConfiguredBackendPools {
        /// None: this program fills all pools (the default).
        None = "",
        /// Those of internal load balancers.
        Internal = "internal",
        /// Those of external load balancers.
        External = "external",
        /// All.
        All = "all",
    }
}

impl PreConfiguredBackendPools {
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
