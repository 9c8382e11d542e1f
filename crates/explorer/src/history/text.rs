//! Histories as text: a line for the seed, and a line for each act.

use std::fmt;
use std::str::FromStr;

use super::{Act, History, KINDS, METHODS, TROUBLES};
use crate::features;

/// The line of a history in which Azure takes its time.
const TYPICAL_LATENCY: &str = "Azure takes its time";

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}", self.seed)?;
        if self.typical_latency {
            writeln!(f, "{TYPICAL_LATENCY}")?;
        }
        self.acts.iter().try_for_each(|act| writeln!(f, "{act}"))
    }
}

impl FromStr for History {
    type Err = String;

    /// Empty lines and those that begin with `#` say nothing.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut history = Self { seed: 1, typical_latency: false, acts: Vec::new() };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        for (number, line) in lines {
            let seed = line.strip_prefix("seed ").and_then(|seed| seed.parse().ok());
            match (seed, read_act(line)) {
                (Some(seed), _) => history.seed = seed,
                (None, Some(act)) => history.acts.push(act),
                (None, None) if line == TYPICAL_LATENCY => history.typical_latency = true,
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
            Self::ForeignTag { balancer, value } => {
                let target = if *balancer { "load balancer" } else { "security group" };
                write!(f, "somebody tags the {target} with {value}")
            }
            Self::ForeignPart { balancer, number } => {
                let part =
                    if *balancer { "a pool to the load balancer" } else { "a rule to the security group" };
                write!(f, "somebody adds {part}: {number}")
            }
            Self::Spoil { balancer } => {
                let target = if *balancer { "load balancer" } else { "security group" };
                write!(
                    f,
                    "somebody takes a rule of ours from the {target}, and the controllers are restarted"
                )
            }
            Self::Kill => f.write_str("kill the controllers"),
            Self::Wait(seconds) => write!(f, "wait {seconds} s"),
        }
    }
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
        ["somebody", "tags", "the", "load", "balancer", "with", value] => {
            Act::ForeignTag { balancer: true, value: value.parse().ok()? }
        }
        ["somebody", "tags", "the", "security", "group", "with", value] => {
            Act::ForeignTag { balancer: false, value: value.parse().ok()? }
        }
        ["somebody", "adds", "a", "pool", "to", "the", "load", "balancer:", number] => {
            Act::ForeignPart { balancer: true, number: number.parse().ok()? }
        }
        ["somebody", "adds", "a", "rule", "to", "the", "security", "group:", number] => {
            Act::ForeignPart { balancer: false, number: number.parse().ok()? }
        }
        ["somebody", "takes", "a", "rule", "of", "ours", "from", "the", "load", ..] => {
            Act::Spoil { balancer: true }
        }
        ["somebody", "takes", "a", "rule", "of", "ours", "from", "the", "security", ..] => {
            Act::Spoil { balancer: false }
        }
        ["kill", "the", "controllers"] => Act::Kill,
        ["wait", seconds, "s"] => Act::Wait(seconds.parse().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_read_back_from_what_is_printed() {
        for seed in 0..300 {
            let history = History::of(seed);
            let read: History = history.to_string().parse().unwrap();
            assert_eq!(read.to_string(), history.to_string());
            assert_eq!(read.acts, history.acts);
            assert_eq!((read.seed, read.typical_latency), (seed, history.typical_latency));
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
