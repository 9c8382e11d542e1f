//! Which members of a pool take new flows, and why.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use azure_types::ResourceId;
use serde::Serialize;

use super::balancer::{AdminState, LoadBalancer, Member, Pool, Probe, Rule};
use super::flow::Flow;
use super::machine::Power;
use super::network::Network;
use super::probe_answers::ProbeAnswers;
use super::protocol::Protocol;
use super::security_group::{Decision, PROBE_SOURCE, PROBE_SOURCE_V6};

/// Whether a member of a pool takes new flows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "because")]
pub enum Health {
    /// It answers the probe.
    Answers,
    /// The rule has no probe, so every member takes flows.
    NotProbed,
    /// The administrative state is up.
    AdminUp,
    /// The administrative state is down.
    AdminDown,
    /// It does not answer the probe.
    Silent,
    /// A security rule keeps the probe away.
    ProbeDenied {
        /// The decision.
        decision: Decision,
    },
    /// The machine is stopped.
    Stopped,
    /// The machine is off its host.
    Deallocated,
    /// No machine has the address.
    NoMachine,
}

impl Health {
    /// Whether new flows go there.
    pub fn takes_flows(&self) -> bool {
        matches!(self, Self::Answers | Self::NotProbed | Self::AdminUp)
    }

    /// A short description.
    pub fn words(&self) -> String {
        match self {
            Self::Answers => "answers the probe".to_owned(),
            Self::NotProbed => "no probe asked for".to_owned(),
            Self::AdminUp => "set up by an operator".to_owned(),
            Self::AdminDown => "set down by an operator".to_owned(),
            Self::Silent => "does not answer the probe".to_owned(),
            Self::ProbeDenied { decision } => {
                format!("probe kept away by security rule {}", decision.rule)
            }
            Self::Stopped => "machine is stopped".to_owned(),
            Self::Deallocated => "machine is deallocated".to_owned(),
            Self::NoMachine => "no machine has this address".to_owned(),
        }
    }
}

/// A member of a pool as one rule sees it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberState {
    /// The machine's name, or the bare address where no machine has it.
    pub node: String,
    /// The machine, if there is one.
    pub machine: Option<ResourceId>,
    /// The private address.
    pub address: Option<IpAddr>,
    /// The administrative state.
    pub admin_state: AdminState,
    /// Whether and why it takes new flows.
    pub health: Health,
    #[serde(skip)]
    pub(crate) interface: Option<usize>,
}

/// The members of a rule's pools, shared: there may be thousands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members(Arc<[MemberState]>);

impl Deref for Members {
    type Target = [MemberState];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Serialize for Members {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The results of rules' probes, kept while many packets are followed at one moment.
#[derive(Debug, Default)]
pub(super) struct Probed(RefCell<HashMap<ResourceId, Members>>);

impl Probed {
    /// The members behind a rule.
    pub(super) fn members(
        &self,
        network: &Network,
        balancer: &LoadBalancer,
        rule: &Rule,
        answers: &dyn ProbeAnswers,
    ) -> Members {
        let known = self.0.borrow().get(&rule.id).cloned();
        known.unwrap_or_else(|| {
            let members = network.members(balancer, &rule.pools, rule.probe.as_ref(), answers);
            let members = Members(members.into());
            self.0.borrow_mut().insert(rule.id.clone(), members.clone());
            members
        })
    }
}

impl Network {
    /// The states of a rule's pool members.
    pub(crate) fn members(
        &self,
        balancer: &LoadBalancer,
        pools: &[ResourceId],
        probe: Option<&ResourceId>,
        answers: &dyn ProbeAnswers,
    ) -> Vec<MemberState> {
        let probe = probe.and_then(|probe| balancer.probe(probe));
        let members =
            pools.iter().filter_map(|pool| balancer.pool(pool)).flat_map(|pool: &Pool| &pool.members);
        let mut states: Vec<MemberState> =
            members.map(|member| self.state(member, balancer.standard, probe, answers)).collect();
        if probe.is_some_and(|probe| probe.all_when_none)
            && !states.iter().any(|state| state.health.takes_flows())
        {
            for state in &mut states {
                if matches!(state.health, Health::Silent | Health::ProbeDenied { .. } | Health::Stopped) {
                    state.health = Health::NotProbed;
                }
            }
        }
        states
    }

    fn state(
        &self,
        member: &Member,
        standard: bool,
        probe: Option<&Probe>,
        answers: &dyn ProbeAnswers,
    ) -> MemberState {
        let interface = member.interface.and_then(|index| self.interfaces.get(index));
        MemberState {
            node: match (interface, member.address) {
                (Some(interface), _) => interface.node_name().to_owned(),
                (None, Some(address)) => address.to_string(),
                (None, None) => String::new(),
            },
            machine: interface.and_then(|interface| interface.machine.clone()),
            address: member.address,
            admin_state: member.admin_state,
            health: self.health(member, standard, probe, answers),
            interface: member.interface,
        }
    }

    fn health(
        &self,
        member: &Member,
        standard: bool,
        probe: Option<&Probe>,
        answers: &dyn ProbeAnswers,
    ) -> Health {
        let Some(interface) = member.interface.and_then(|index| self.interfaces.get(index)) else {
            return Health::NoMachine;
        };
        let (Some(machine), Some(address)) = (&interface.machine, interface.address) else {
            return Health::NoMachine;
        };
        let power = interface.power();
        if power == Power::Deallocated {
            return Health::Deallocated;
        }
        // Administrative states work on standard load balancers, for rules with a probe
        // (Azure Load Balancer, "Administrative state").
        let admin_state = if standard { member.admin_state } else { AdminState::None };
        match (admin_state, probe) {
            (_, None) => Health::NotProbed,
            (AdminState::Up, Some(_)) => Health::AdminUp,
            (AdminState::Down, Some(_)) => Health::AdminDown,
            (AdminState::None, Some(_)) if power == Power::Stopped => Health::Stopped,
            (AdminState::None, Some(probe)) => {
                let flow = Flow {
                    source: if address.is_ipv4() { PROBE_SOURCE } else { PROBE_SOURCE_V6 },
                    source_port: super::first_packet::default_source_port(),
                    source_interface: None,
                    destination: address,
                    port: probe.port,
                    destination_interface: Some(interface),
                    protocol: Protocol::Tcp,
                };
                let denied = self.denial(interface, &flow);
                if let Some(decision) = denied {
                    return Health::ProbeDenied { decision };
                }
                if answers.answers(machine, address, &probe.protocol, probe.port, probe.path.as_deref()) {
                    Health::Answers
                } else {
                    Health::Silent
                }
            }
        }
    }
}
