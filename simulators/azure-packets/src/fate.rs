//! The fate of an established flow when something changes.
//!
//! The rules, by Azure's documents: a TCP flow stays where it is while its member stays in the pool and its machine
//! runs, also when the probe fails or an operator sets the member down; only when every probe of a basic load balancer
//! fails, or that of the only member, do TCP flows end. UDP flows move to a member that takes flows. Security groups
//! only apply to new flows.

use std::net::IpAddr;

use azure_types::ResourceId;
use serde::Serialize;

use super::health::{Health, MemberState};
use super::network::Network;
use super::protocol::Protocol;
use super::verdict::{Hop, Refusal, Verdict};

/// The fate of an established flow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "fate")]
pub enum Fate {
    /// It continues unchanged.
    Keeps,
    /// It continues with another node, which has no state of it.
    Moves {
        /// The node's name.
        to: String,
    },
    /// It ends.
    Breaks {
        /// Why.
        why: String,
    },
}

/// The part of a packet's way through a load balancer.
struct Balanced<'a> {
    load_balancer: &'a ResourceId,
    frontend: &'a ResourceId,
    rule: Option<(&'a ResourceId, u16, bool)>,
    members: Option<&'a [MemberState]>,
    chosen: Option<(&'a str, IpAddr)>,
}

fn balanced(verdict: &Verdict) -> Option<Balanced<'_>> {
    let mut found: Option<Balanced<'_>> = None;
    for hop in &verdict.hops {
        match (hop, found.as_mut()) {
            (Hop::Frontend { id, load_balancer, .. }, _) => {
                found =
                    Some(Balanced { load_balancer, frontend: id, rule: None, members: None, chosen: None });
            }
            (Hop::Rule { id, backend_port, floating_ip, .. }, Some(found)) => {
                found.rule = Some((id, *backend_port, *floating_ip));
            }
            (Hop::Pool { members, .. }, Some(found)) => found.members = Some(members),
            (Hop::Chosen { node, address, .. }, Some(found)) => found.chosen = Some((node, *address)),
            _ => {}
        }
    }
    found
}

/// The public source address of a packet to the outside.
fn outbound(verdict: &Verdict) -> Option<Option<IpAddr>> {
    verdict.hops.iter().find_map(|hop| match hop {
        Hop::OutboundAddress { address, .. } => Some(*address),
        _ => None,
    })
}

/// The fate of a flow whose first packet had the verdict `before`; a new one has `after`.
/// `None` for a flow that never came to be.
pub(super) fn fate(before: &Verdict, after: &Verdict, network: &Network) -> Option<Fate> {
    if !before.arrives {
        return None;
    }
    let breaks = |why: String| Fate::Breaks { why };
    let refused = |otherwise: &str| {
        breaks(after.refusal.as_ref().map_or_else(|| otherwise.to_owned(), ToString::to_string))
    };
    if outbound(before) != outbound(after) && outbound(after).is_some() {
        return Some(breaks("its public address changed on the way out".to_owned()));
    }
    let Some(was) = balanced(before) else {
        let same = after.arrives && after.member() == before.member();
        return Some(if same || judged_anew(after) {
            Fate::Keeps
        } else {
            refused("its address leads elsewhere")
        });
    };
    let moved = |why: String| match (before.packet.protocol, after.node()) {
        (Protocol::Udp, Some(to)) => Fate::Moves { to: to.to_owned() },
        _ => breaks(why),
    };
    let Some(now) = balanced(after).filter(|now| now.frontend == was.frontend) else {
        return Some(refused("its address leads elsewhere"));
    };
    let (Some((rule, port, floating)), Some((node, address))) = (was.rule, was.chosen) else {
        return Some(Fate::Keeps);
    };
    match now.rule {
        Some((same, ..)) if same != rule => {
            return Some(breaks(format!("rule {} took its place", same.name())));
        }
        Some((_, other, keeps)) if keeps != floating || (!floating && other != port) => {
            return Some(breaks(format!("rule {} now translates otherwise", rule.name())));
        }
        Some(_) => {}
        None => return Some(refused("its rule is gone")),
    }
    let Some(members) = now.members else {
        // An inbound NAT rule: one machine, or another.
        let same = now.chosen.is_some_and(|(_, now)| now == address);
        return Some(if same && (after.arrives || judged_anew(after)) {
            Fate::Keeps
        } else {
            refused("its rule leads to another machine")
        });
    };
    let Some(member) = members.iter().find(|member| member.address == Some(address)) else {
        return Some(moved(format!("{node} is no longer in the pool")));
    };
    let udp = before.packet.protocol == Protocol::Udp;
    Some(match &member.health {
        Health::Answers | Health::NotProbed | Health::AdminUp => Fate::Keeps,
        Health::AdminDown | Health::Silent | Health::ProbeDenied { .. } if udp => {
            moved(format!("{node} {}, and no other member takes flows", member.health.words()))
        }
        Health::AdminDown => Fate::Keeps,
        Health::Silent | Health::ProbeDenied { .. } => {
            let others = members.iter().any(|member| member.health.takes_flows());
            let standard =
                network.balancers.iter().any(|known| known.id == *now.load_balancer && known.standard);
            if others || (standard && members.len() > 1) {
                Fate::Keeps
            } else {
                breaks("no member of the pool answers its probe".to_owned())
            }
        }
        Health::Stopped | Health::Deallocated | Health::NoMachine => {
            moved(format!("{node}: {}", member.health.words()))
        }
    })
}

/// Whether only a security group stops it, which established flows do not pass again.
fn judged_anew(after: &Verdict) -> bool {
    matches!(after.refusal, Some(Refusal::Denied { .. } | Refusal::NoSecurityGroup { .. }))
}
