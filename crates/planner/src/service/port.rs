//! Ports of a Service and their protocols.

use super::probe::PortProbe;

/// The transport protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP, which Azure supports only as "any protocol".
    Sctp,
}

impl Transport {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "TCP" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            "SCTP" => Some(Self::Sctp),
            _ => None,
        }
    }

    /// The name in Kubernetes, which is part of rule names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }

    /// The name in load-balancing rules.
    pub fn in_rule(self) -> &'static str {
        match self {
            Self::Tcp => "Tcp",
            Self::Udp => "Udp",
            Self::Sctp => "All",
        }
    }

    /// The name in security rules.
    pub fn in_security_rule(self) -> &'static str {
        match self {
            Self::Tcp => "Tcp",
            Self::Udp => "Udp",
            Self::Sctp => "*",
        }
    }
}

/// One port of a Service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortIntent {
    /// The port that clients use.
    pub port: i32,
    /// The port on every node; 0 where none is allocated and none is needed.
    pub node_port: i32,
    /// The protocol.
    pub protocol: Transport,
    /// Whether the load balancer has a rule for it.
    pub has_rule: bool,
    pub(crate) probe: PortProbe,
}
