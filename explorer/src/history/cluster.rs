//! The clusters of histories.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use testkit::types::LOAD_BALANCERS;
use testkit::{NodePool, StandaloneMachine, World, WorldBuilder};

use crate::rule;

/// The composition of a cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cluster {
    /// A uniform scale set, whose interfaces are members of the pools.
    #[default]
    OneSet,
    /// The same with pools of addresses.
    OneSetByAddress,
    /// Uniform and flexible scale sets, an availability set and a standalone machine.
    AllMachines,
    /// The same with pools of addresses.
    AllMachinesByAddress,
    /// Several load balancers of a flavor, which Services and nodes select by names and labels.
    Several,
}

pub(super) const CLUSTERS: [Cluster; 5] = [
    Cluster::OneSet,
    Cluster::OneSetByAddress,
    Cluster::AllMachines,
    Cluster::AllMachinesByAddress,
    Cluster::Several,
];

/// The values of the annotation of Services of [`Cluster::Several`]; `any` stands for no annotation.
pub(super) const ASKED: [&str; 8] =
    ["any", "kubernetes", "second", "third", "Kubernetes,second", "fourth", "closed", "nobody"];

/// The configured list of load balancers of [`Cluster::Several`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Entries {
    /// The initial list.
    #[default]
    Usual,
    /// `second` is removed.
    WithoutSecond,
    /// `third` is removed.
    WithoutThird,
    /// One more, which selects nothing.
    WithFourth,
    /// `second` selects Services with another label.
    SecondForOthers,
    /// `second` takes no new Services.
    SecondClosed,
    /// `third` selects nothing any more.
    ThirdForAll,
    /// Only the cluster's own.
    One,
    /// No list.
    NoList,
}

pub(super) const ENTRIES: [Entries; 9] = [
    Entries::Usual,
    Entries::WithoutSecond,
    Entries::WithoutThird,
    Entries::WithFourth,
    Entries::SecondForOthers,
    Entries::SecondClosed,
    Entries::ThirdForAll,
    Entries::One,
    Entries::NoList,
];

/// The Services that an entry selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Selects {
    Nothing,
    Team(&'static str),
    InFront,
}

/// An entry of the list.
#[derive(Debug, Clone, Copy)]
struct Entry {
    name: &'static str,
    set: &'static str,
    selects: Selects,
    nodes: bool,
    is_open: bool,
}

impl Entries {
    fn list(self) -> Vec<Entry> {
        let entry = |name, set, selects| Entry { name, set, selects, nodes: name == "second", is_open: true };
        let (team, front) = (
            if self == Self::SecondForOthers { "b" } else { "a" },
            if self == Self::ThirdForAll { Selects::Nothing } else { Selects::InFront },
        );
        let mut list = vec![
            entry("kubernetes", "workers", Selects::Nothing),
            Entry { is_open: self != Self::SecondClosed, ..entry("second", "second", Selects::Team(team)) },
            entry("third", "third", front),
            Entry { is_open: false, ..entry("closed", "nowhere", Selects::Nothing) },
        ];
        match self {
            Self::WithoutSecond => drop(list.remove(1)),
            Self::WithoutThird => drop(list.remove(2)),
            Self::WithFourth => list.push(entry("fourth", "spare", Selects::Nothing)),
            Self::One => list.truncate(1),
            Self::NoList => list.clear(),
            _ => {}
        }
        list
    }

    /// The patch of `azure.json`.
    pub(super) fn config(self) -> Value {
        let selected = |key: &str, value: &str| json!({"matchLabels": {key: value}});
        let entries = self.list().into_iter().map(|entry| {
            let mut written = json!({"name": entry.name, "primaryVMSet": entry.set});
            match entry.selects {
                Selects::Nothing => {}
                Selects::Team(team) => written["serviceLabelSelector"] = selected("team", team),
                Selects::InFront => written["serviceNamespaceSelector"] = selected("tier", "front"),
            }
            if entry.nodes {
                written["nodeSelector"] = selected("pool", "gpu");
            }
            if !entry.is_open {
                written["allowServicePlacement"] = false.into();
            }
            written
        });
        json!({"multipleStandardLoadBalancerConfigurations": entries.collect::<Vec<_>>()})
    }

    /// Whether there is a list, and so a choice.
    pub(super) fn is_list(self) -> bool {
        self != Self::NoList
    }

    /// The load balancers that a Service may use, according to the public documentation: the ones that it names, if
    /// any; then the ones whose selector matches, and otherwise the ones without a selector. A closed load balancer
    /// keeps the Services that are `at` it.
    pub(super) fn eligible(
        self,
        asked: &str,
        of_team: bool,
        in_front: bool,
        at: impl Fn(&str) -> bool,
    ) -> Vec<&'static str> {
        if !self.is_list() {
            return vec!["kubernetes"];
        }
        let names: Vec<String> = asked.split(',').map(|name| name.trim().to_lowercase()).collect();
        let fitting = |entry: &Entry| {
            (asked == "any" || names.iter().any(|one| one == entry.name))
                && (entry.is_open || at(entry.name))
                && match entry.selects {
                    Selects::Nothing => true,
                    Selects::Team(team) => of_team && team == "a",
                    Selects::InFront => in_front,
                }
        };
        let fitting: Vec<Entry> = self.list().into_iter().filter(fitting).collect();
        let is_choosy = |entry: &&Entry| entry.selects != Selects::Nothing;
        let is_selected = fitting.iter().any(|entry| is_choosy(&entry));
        let chosen = fitting.iter().filter(|entry| !is_selected || is_choosy(entry));
        chosen.map(|entry| entry.name).collect()
    }
}

impl Cluster {
    pub(super) fn set_up(self, builder: WorldBuilder) -> WorldBuilder {
        let by_address = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"});
        match self {
            Self::OneSet => builder,
            Self::OneSetByAddress => builder.config(&by_address),
            Self::AllMachines => machines_of_every_kind(builder),
            Self::AllMachinesByAddress => machines_of_every_kind(builder.config(&by_address)),
            Self::Several => {
                let sets = [("second", 1), ("third", 1), ("spare", 2)];
                let builder = builder.nodes(2).config(&by_address).config(&Entries::Usual.config());
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

/// A machine that is created and deleted.
pub(super) fn machine(number: u64) -> StandaloneMachine {
    let machine = StandaloneMachine::new(&format!("extra-{number}"));
    if number.is_multiple_of(2) { machine.in_availability_set("extra") } else { machine }
}

/// The load balancers, of either flavor, with rules of a Service.
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
        for (entries, asked, of_team, in_front, expected) in [
            (Entries::Usual, "any", false, false, &["kubernetes"][..]),
            (Entries::Usual, "any", true, false, &["second"]),
            (Entries::Usual, "any", true, true, &["second", "third"]),
            (Entries::Usual, "Kubernetes,second", true, true, &["second"]),
            (Entries::Usual, "second", false, false, &[]),
            (Entries::Usual, "closed", true, true, &[]),
            (Entries::WithoutSecond, "any", true, false, &["kubernetes"]),
            (Entries::WithFourth, "any", false, false, &["kubernetes", "fourth"]),
            (Entries::SecondForOthers, "any", true, false, &["kubernetes"]),
            (Entries::SecondClosed, "any", true, false, &["kubernetes"]),
            (Entries::SecondClosed, "second", true, false, &[]),
            (Entries::ThirdForAll, "any", false, false, &["kubernetes", "third"]),
            (Entries::One, "second", true, false, &[]),
            (Entries::NoList, "second", true, false, &["kubernetes"]),
        ] {
            assert_eq!(
                entries.eligible(asked, of_team, in_front, |_| false),
                expected,
                "{entries:?}: {asked}"
            );
        }
        let at_second = |name: &str| name == "second";
        assert_eq!(Entries::SecondClosed.eligible("any", true, false, at_second), ["second"]);
    }
}
