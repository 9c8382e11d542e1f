//! Histories as text: a line for the seed, and a line for each act.

use std::fmt;
use std::str::FromStr;

use super::History;
use super::act::{AFFLICTIONS, Act, KINDS, METHODS, MISTAKES, NODE_LABELS, SHARED, Shared, TROUBLES};
use super::cluster::{ASKED, CLUSTERS, Cluster, ENTRIES};
use crate::features;
use crate::property::CaseText;

/// The line of a history with typical latencies of Azure.
const TYPICAL_LATENCY: &str = "Azure takes its time";

/// The line of a history in which replicas elect a leader.
const REPLICAS: &str = "replicas elect a leader";

/// The prefix of the line with the cluster.
const CLUSTER: &str = "cluster: ";

impl CaseText for History {
    fn write(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        if self.typical_latency {
            writeln!(f, "{TYPICAL_LATENCY}")?;
        }
        if self.replicas {
            writeln!(f, "{REPLICAS}")?;
        }
        if self.cluster != Cluster::default() {
            writeln!(f, "{CLUSTER}{}", self.cluster)?;
        }
        self.acts.iter().try_for_each(|act| writeln!(f, "{act}"))
    }
}

impl FromStr for History {
    type Err = String;

    /// Empty lines and lines that begin with `#` are ignored.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut history = Self::default();
        let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        for (number, line) in lines {
            let seed = line.strip_prefix("seed ").and_then(|seed| seed.parse().ok());
            let cluster = line.strip_prefix(CLUSTER);
            let cluster = CLUSTERS.into_iter().find(|known| cluster == Some(&known.to_string()));
            if let Some(cluster) = cluster {
                history.cluster = cluster;
                continue;
            }
            match (seed, read_act(line)) {
                (Some(seed), _) => history.seed = seed,
                (None, Some(act)) => history.acts.push(act),
                (None, None) if line == TYPICAL_LATENCY => history.typical_latency = true,
                (None, None) if line == REPLICAS => history.replicas = true,
                (None, None) => return Err(format!("line {}: `{line}` is no act", number + 1)),
            }
        }
        Ok(history)
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Apply { service, row } => {
                let features = features::features(row);
                let features =
                    if features.is_empty() { "nothing unusual".to_owned() } else { features.join(" ") };
                write!(f, "apply s{service:03}: {features}")
            }
            Self::Delete { service } => write!(f, "delete s{service:03}"),
            Self::Scale(nodes) => write!(f, "scale to {nodes} machines"),
            Self::Trouble { kind, method, what, times } => write!(f, "{times} x {method} {kind}: {what:?}"),
            Self::ForeignTag { shared, value } => write!(f, "somebody tags the {shared} with {value}"),
            Self::ForeignAddressTag(value) => write!(f, "somebody tags the public IPs with {value}"),
            Self::ForeignPart { shared: Shared::SecurityGroup, number } => {
                write!(f, "somebody adds a rule to the security group: {number}")
            }
            Self::ForeignPart { shared, number } => {
                write!(f, "somebody adds a pool to the {shared}: {number}")
            }
            Self::ForeignInterfaceTag { number, value } => {
                write!(f, "somebody tags interface {number} with {value}")
            }
            Self::ForeignMember { number, pool } => {
                write!(f, "somebody takes member {number} into a pool of theirs: {pool}")
            }
            Self::ForeignFrontend { shared, number } => {
                write!(f, "somebody adds a frontend to the {shared}: {number}")
            }
            Self::Spoil { shared } => {
                write!(
                    f,
                    "somebody takes a rule of ours from the {shared}, and the controllers are restarted"
                )
            }
            Self::Kill => f.write_str("kill the controllers"),
            Self::CutOff => f.write_str("cut off the leader"),
            Self::Ask { service, names } => write!(f, "ask s{service:03}: {names}"),
            Self::Label { service, on: true } => write!(f, "label s{service:03}"),
            Self::Label { service, on: false } => write!(f, "unlabel s{service:03}"),
            Self::LabelNamespace(true) => f.write_str("label the namespace"),
            Self::LabelNamespace(false) => f.write_str("unlabel the namespace"),
            Self::Node { number, label } => write!(f, "node {number}: {label:?}"),
            Self::Machine { number, comes: true } => write!(f, "machine {number} comes"),
            Self::Machine { number, comes: false } => write!(f, "machine {number} goes"),
            Self::Pods { service, nodes } => write!(f, "pods of s{service:03} on {nodes} nodes"),
            Self::Afflict { service, what } => write!(f, "all for s{service:03}: {what:?}"),
            Self::Mistake { service, what } => write!(f, "mistake of s{service:03}: {what:?}"),
            Self::Configure(entries) => write!(f, "load balancers {entries}"),
            Self::Wait(seconds) => write!(f, "wait {seconds} s"),
        }
    }
}

impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LoadBalancer => "load balancer",
            Self::InternalLoadBalancer => "internal load balancer",
            Self::SecurityGroup => "security group",
            Self::Second => "second load balancer",
            Self::SecondInternal => "second internal load balancer",
        })
    }
}

/// Parses a shared resource, and the words after it.
fn read_shared(words: &[&str]) -> Option<Shared> {
    let words = words.join(" ");
    let words = words.trim_end_matches([':', ',']);
    SHARED.into_iter().find(|shared| shared.to_string() == words)
}

fn read_act(line: &str) -> Option<Act> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let service = |word: &str| word.strip_prefix('s')?.parse().ok();
    Some(match words[..] {
        ["apply", name, "nothing", "unusual"] => {
            Act::Apply { service: service(name.strip_suffix(':')?)?, row: features::usual() }
        }
        ["apply", name, ref features @ ..] => Act::Apply {
            service: service(name.strip_suffix(':')?)?,
            row: features::with_features(features.iter().copied()).ok()?,
        },
        ["delete", name] => Act::Delete { service: service(name)? },
        ["scale", "to", nodes, "machines"] => Act::Scale(nodes.parse().ok()?),
        [times, "x", method, kind, what] => Act::Trouble {
            kind: KINDS.into_iter().find(|known| kind.strip_suffix(':') == Some(known))?,
            method: METHODS.into_iter().find(|known| *known == method)?,
            what: TROUBLES.into_iter().find(|known| format!("{known:?}") == what)?,
            times: times.parse().ok()?,
        },
        ["somebody", "tags", "the", "public", "IPs", "with", value] => {
            Act::ForeignAddressTag(value.parse().ok()?)
        }
        ["somebody", "tags", "the", ref shared @ .., "with", value] => {
            Act::ForeignTag { shared: read_shared(shared)?, value: value.parse().ok()? }
        }
        ["somebody", "adds", "a", "pool" | "rule", "to", "the", ref shared @ .., number] => {
            Act::ForeignPart { shared: read_shared(shared)?, number: number.parse().ok()? }
        }
        ["somebody", "tags", "interface", number, "with", value] => {
            Act::ForeignInterfaceTag { number: number.parse().ok()?, value: value.parse().ok()? }
        }
        ["somebody", "takes", "member", number, "into", "a", "pool", "of", "theirs:", pool] => {
            Act::ForeignMember { number: number.parse().ok()?, pool: pool.parse().ok()? }
        }
        ["somebody", "adds", "a", "frontend", "to", "the", ref shared @ .., number] => {
            Act::ForeignFrontend { shared: read_shared(shared)?, number: number.parse().ok()? }
        }
        ["somebody", "takes", "a", "rule", "of", "ours", "from", "the", ref rest @ ..] => {
            let end = rest.iter().position(|word| word.ends_with(','))?;
            Act::Spoil { shared: read_shared(&rest[..=end])? }
        }
        ["kill", "the", "controllers"] => Act::Kill,
        ["cut", "off", "the", "leader"] => Act::CutOff,
        ["ask", name, names] => Act::Ask {
            service: service(name.strip_suffix(':')?)?,
            names: ASKED.into_iter().find(|known| *known == names)?,
        },
        [word @ ("label" | "unlabel"), "the", "namespace"] => Act::LabelNamespace(word == "label"),
        [word @ ("label" | "unlabel"), name] => Act::Label { service: service(name)?, on: word == "label" },
        ["node", number, label] => Act::Node {
            number: number.strip_suffix(':')?.parse().ok()?,
            label: NODE_LABELS.into_iter().find(|known| format!("{known:?}") == label)?,
        },
        ["machine", number, word @ ("comes" | "goes")] => {
            Act::Machine { number: number.parse().ok()?, comes: word == "comes" }
        }
        ["pods", "of", name, "on", nodes, "nodes"] => {
            Act::Pods { service: service(name)?, nodes: nodes.parse().ok()? }
        }
        ["all", "for", name, what] => Act::Afflict {
            service: service(name.strip_suffix(':')?)?,
            what: AFFLICTIONS.into_iter().find(|known| format!("{known:?}") == what)?,
        },
        ["mistake", "of", name, what] => Act::Mistake {
            service: service(name.strip_suffix(':')?)?,
            what: MISTAKES.into_iter().find(|known| format!("{known:?}") == what)?,
        },
        ["load", "balancers", ..] => {
            let entries = line.strip_prefix("load balancers ")?;
            Act::Configure(ENTRIES.into_iter().find(|known| known.to_string() == entries)?)
        }
        ["wait", seconds, "s"] => Act::Wait(seconds.parse().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::property::Trial as _;

    #[test]
    fn a_history_is_read_back_from_what_is_printed() {
        for seed in 0..300 {
            let history = History::of(seed);
            let read: History = history.to_string().parse().unwrap();
            assert_eq!(read.to_string(), history.to_string());
            assert_eq!(read.acts, history.acts);
            assert_eq!((read.seed, read.typical_latency), (seed, history.typical_latency));
            assert_eq!((read.cluster, read.replicas), (history.cluster, history.replicas));
        }
    }

    #[test]
    fn a_line_that_is_no_act_is_named() {
        let problem = "# about\nseed 7\n\nwait 3 s\ndance\n".parse::<History>().unwrap_err();
        assert_eq!(problem, "line 5: `dance` is no act");
        let problem = "apply s001: floating-ip=sideways\n".parse::<History>().unwrap_err();
        assert!(problem.contains("floating-ip=sideways"), "{problem}");
    }
}
