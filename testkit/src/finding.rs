//! The findings of the checker.

use std::fmt;
use std::net::IpAddr;

use azure_simulator::packet::Protocol;
use azure_types::ResourceId;
use serde_json::Value;

/// A problem of a world at rest. The doc line of each variant is the rule that is broken, its fields are the evidence.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// A frontend belongs to a Service that wants a load balancer.
    FrontendWithoutService {
        /// The load balancer.
        load_balancer: ResourceId,
        /// The frontend's name.
        frontend: String,
    },
    /// A load-balancing rule belongs to a Service that wants a load balancer, and its frontend exists.
    RuleWithoutService {
        /// The load balancer.
        load_balancer: ResourceId,
        /// The rule's name.
        rule: String,
    },
    /// A probe of ours is used by a rule.
    ProbeWithoutRule {
        /// The load balancer.
        load_balancer: ResourceId,
        /// The probe's name.
        probe: String,
    },
    /// Every member of a pool is an existing machine.
    MemberWithoutMachine {
        /// The pool.
        pool: ResourceId,
        /// The member's address, or its interface.
        member: String,
    },
    /// A public IP that is tagged with a Service is used by that Service.
    PublicIpWithoutService {
        /// The public IP.
        public_ip: ResourceId,
        /// The Service, as in the tag.
        service: String,
    },
    /// The destinations of our security rules are addresses in use.
    SecurityRuleWithoutDestination {
        /// The rule's name.
        rule: String,
        /// The destination that is not in use.
        destination: String,
    },
    /// What others have put into Azure stays unchanged.
    ForeignChanged {
        /// The resource.
        id: ResourceId,
        /// The path of the member inside its document; items of lists are identified by name.
        member: String,
        /// The previous value; null if the member is new.
        was: Value,
        /// The current value; null if it was removed.
        is: Value,
    },
    /// A Service has an address, or an event says why it has none.
    Unserved {
        /// The Service.
        service: String,
    },
    /// A published address answers an allowed client.
    Unreachable {
        /// The Service.
        service: String,
        /// The client.
        from: IpAddr,
        /// The published address.
        to: IpAddr,
        /// The port.
        port: u16,
        /// TCP or UDP.
        protocol: Protocol,
        /// The oracle's explanation.
        why: String,
    },
    /// A published address answers neither a client that is not allowed, nor on a port that no Service asks for.
    Open {
        /// The Service.
        service: String,
        /// The client.
        from: IpAddr,
        /// The published address.
        to: IpAddr,
        /// The port.
        port: u16,
        /// TCP or UDP.
        protocol: Protocol,
    },
    /// No write is pending, except for refused Services.
    PlanNotEmpty {
        /// The step, as in a plan.
        step: String,
    },
    /// A Service that the plan refuses has an event with the refusal.
    RefusedInSilence {
        /// The Service.
        service: String,
        /// Why it is refused.
        refusal: String,
    },
    /// A plan can be made.
    NoPlan {
        /// Why not.
        why: String,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FrontendWithoutService { load_balancer, frontend } => {
                write!(f, "{load_balancer}: no Service wants the frontend {frontend}")
            }
            Self::RuleWithoutService { load_balancer, rule } => {
                write!(f, "{load_balancer}: no Service wants the rule {rule}, or its frontend is not there")
            }
            Self::ProbeWithoutRule { load_balancer, probe } => {
                write!(f, "{load_balancer}: no rule uses the probe {probe}")
            }
            Self::MemberWithoutMachine { pool, member } => {
                write!(f, "{pool}: there is no machine behind the member {member}")
            }
            Self::PublicIpWithoutService { public_ip, service } => {
                write!(f, "{public_ip} is tagged with {service}, which does not use it")
            }
            Self::SecurityRuleWithoutDestination { rule, destination } => {
                write!(f, "security rule {rule}: the address {destination} is not in use")
            }
            Self::ForeignChanged { id, member, was, is } => {
                write!(f, "{id} is not ours, and {member} was changed from {was} to {is}")
            }
            Self::Unserved { service } => write!(f, "{service} has no address, and no event says why"),
            Self::Unreachable { service, from, to, port, protocol, why } => {
                write!(f, "{service}: {protocol} from {from} to {to}:{port} does not arrive: {why}")
            }
            Self::Open { service, from, to, port, protocol } => {
                write!(f, "{service}: {protocol} from {from} to {to}:{port} arrives and must not")
            }
            Self::PlanNotEmpty { step } => write!(f, "something is left to be written: {step}"),
            Self::RefusedInSilence { service, refusal } => {
                write!(f, "{service} is refused and no event says so: {refusal}")
            }
            Self::NoPlan { why } => write!(f, "no plan can be made: {why}"),
        }
    }
}
