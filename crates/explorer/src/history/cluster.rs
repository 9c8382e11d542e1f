//! The clusters that histories happen in.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Value, json};
use testkit::types::LOAD_BALANCERS;
use testkit::{NodePool, StandaloneMachine, World, WorldBuilder};

use crate::rule;

/// What a cluster is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Cluster {
    /// A uniform scale set, whose interfaces are members of the pools.
    #[default]
    OneSet,
    /// The same with pools of addresses.
    OneSetByAddress,
    /// Uniform and flexible scale sets, an availability set and a machine of its own.
    AllMachines,
    /// The same with pools of addresses.
    AllMachinesByAddress,
    /// Several load balancers of a kind, which Services and nodes choose by names and labels.
    Several,
}

pub(super) const CLUSTERS: [Cluster; 5] = [
    Cluster::OneSet,
    Cluster::OneSetByAddress,
    Cluster::AllMachines,
    Cluster::AllMachinesByAddress,
    Cluster::Several,
];

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneSet => "one scale set",
            Self::OneSetByAddress => "one scale set, by address",
            Self::AllMachines => "machines of every kind",
            Self::AllMachinesByAddress => "machines of every kind, by address",
            Self::Several => "several load balancers",
        })
    }
}

/// What Services of [`Cluster::Several`] name in their annotation; nothing stands for no annotation.
pub(super) const ASKED: [&str; 7] =
    ["any", "kubernetes", "second", "third", "Kubernetes,second", "closed", "nobody"];

impl Cluster {
    pub(super) fn set_up(self, builder: WorldBuilder) -> WorldBuilder {
        let by_address = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"});
        match self {
            Self::OneSet => builder,
            Self::OneSetByAddress => builder.config(&by_address),
            Self::AllMachines => machines_of_every_kind(builder),
            Self::AllMachinesByAddress => machines_of_every_kind(builder.config(&by_address)),
            Self::Several => {
                let selected = |key: &str, value: &str| json!({"matchLabels": {key: value}});
                let entries = json!([
                    {"name": "kubernetes", "primaryVMSet": "workers"},
                    {"name": "second", "primaryVMSet": "second", "serviceLabelSelector": selected("team", "a"),
                        "nodeSelector": selected("pool", "gpu")},
                    {"name": "third", "primaryVMSet": "third",
                        "serviceNamespaceSelector": selected("tier", "front")},
                    {"name": "closed", "primaryVMSet": "nowhere", "allowServicePlacement": false},
                ]);
                let several = json!({"multipleStandardLoadBalancerConfigurations": entries});
                let sets = [("second", 1), ("third", 1), ("spare", 2)];
                let builder = builder.nodes(2).config(&by_address).config(&several);
                sets.into_iter()
                    .fold(builder, |builder, (name, nodes)| builder.pool(NodePool::new(name, name, nodes)))
            }
        }
    }
}

fn machines_of_every_kind(builder: WorldBuilder) -> WorldBuilder {
    builder
        .nodes(2)
        .pool(NodePool::new("flexible", "flex", 1).flexible())
        .machine(StandaloneMachine::new("alone").with_second_interface())
        .machine(StandaloneMachine::new("placed").in_availability_set("placed").in_group("machines"))
}

/// A machine that comes and goes.
pub(super) fn machine(number: u64) -> StandaloneMachine {
    let machine = StandaloneMachine::new(&format!("extra-{number}"));
    if number.is_multiple_of(2) { machine.in_availability_set("extra") } else { machine }
}

/// The load balancers of [`Cluster::Several`] that a Service may have, as the published page on them says: what it
/// names, if it names any; then those whose selector fits, and otherwise those without one.
pub(super) fn eligible(asked: &str, of_team: bool, in_front: bool) -> Vec<&'static str> {
    let names: Vec<String> = asked.split(',').map(|name| name.trim().to_lowercase()).collect();
    let is_named = |name: &&'static str| asked == "any" || names.iter().any(|one| one == name);
    let selected: Vec<&'static str> = [("second", of_team), ("third", in_front)]
        .into_iter()
        .filter(|(_, fits)| *fits)
        .map(|(name, _)| name)
        .collect();
    let selected: Vec<&'static str> = selected.into_iter().filter(is_named).collect();
    if selected.is_empty() { ["kubernetes"].into_iter().filter(is_named).collect() } else { selected }
}

/// The load balancers, of either kind, that hold rules of a Service.
pub(super) fn places(world: &World, service: &Value) -> BTreeSet<String> {
    let base = rule::base_name(service);
    let documents = world.azure.documents_of_type(LOAD_BALANCERS);
    let holds = |document: &&Value| {
        rule::parts(document, "loadBalancingRules")
            .iter()
            .any(|rule| rule["name"].as_str().is_some_and(|name| name.starts_with(&base)))
    };
    let names = documents.iter().filter(holds).filter_map(|document| document["name"].as_str());
    names.map(|name| name.trim_end_matches("-internal").to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_selectors_choose_load_balancers() {
        for (asked, of_team, in_front, expected) in [
            ("any", false, false, &["kubernetes"][..]),
            ("any", true, false, &["second"]),
            ("any", true, true, &["second", "third"]),
            ("Kubernetes,second", true, true, &["second"]),
            ("second", false, false, &[]),
            ("closed", true, true, &[]),
        ] {
            assert_eq!(eligible(asked, of_team, in_front), expected, "{asked}");
        }
    }
}
