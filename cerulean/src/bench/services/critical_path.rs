//! How long Azure alone takes for a Service.
//!
//! A public Service needs its address; then a load balancer that refers to it and, in parallel, a security group that
//! allows its traffic; then a scale set whose model names the backend pool; then instances that follow the model. Each
//! step is a write that begins when the previous one has ended. However many Services there are, and however well a
//! program batches their writes, the last of them waits for one write of each kind: that is the critical path.
//!
//! It comes from the journal of the run: for each kind the longest accepted write, from the request to the end of the
//! operation, as the simulated Azure drew it. So it is subject to the same jitter as the run, contains no kind that the
//! run did not write (a pool of addresses needs no scale set), and contains nothing that a program adds: reads, waits
//! between polls, a second write of the same load balancer.

use std::time::Duration;

use azure_simulator::{JournalEntry, RequestKind};
use serde::Serialize;

/// The steps in order; the writes of one step run in parallel.
const STEPS: [&[(&str, &str)]; 4] = [
    &[("address", "Microsoft.Network/publicIPAddresses")],
    &[
        ("load balancer", "Microsoft.Network/loadBalancers"),
        ("security group", "Microsoft.Network/networkSecurityGroups"),
    ],
    &[("set model", "Microsoft.Compute/virtualMachineScaleSets")],
    &[("instances", "Microsoft.Compute/virtualMachineScaleSets/virtualMachines")],
];

/// The longest chain of writes that cannot run in parallel.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CriticalPath {
    /// Its length.
    pub seconds: f64,
    /// Its steps, in order, with parallel writes.
    pub steps: Vec<Step>,
}

/// One step of the path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// The parallel writes, each with its seconds; the longest one counts.
    pub writes: Vec<(String, f64)>,
}

impl CriticalPath {
    /// The path through the written resources.
    pub fn of(entries: &[JournalEntry]) -> Self {
        let longest = |kind: &str| {
            let writes = entries.iter().filter(|entry| {
                entry.kind == RequestKind::Write
                    && entry.accepted()
                    && entry.resource_type.as_deref().is_some_and(|of| of.eq_ignore_ascii_case(kind))
            });
            writes.map(duration).max()
        };
        let mut path = Self::default();
        for step in STEPS {
            let found =
                |(name, kind): &(&str, &str)| Some(((*name).to_owned(), longest(kind)?.as_secs_f64()));
            let writes: Vec<(String, f64)> = step.iter().filter_map(found).collect();
            if !writes.is_empty() {
                path.seconds += writes.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
                path.steps.push(Step { writes });
            }
        }
        path
    }

    /// The excess of `reached` seconds over the path, as a share of it; `None` for an Azure that answers at once.
    pub fn excess(&self, reached: f64) -> Option<f64> {
        (self.seconds > 0.0).then(|| reached / self.seconds - 1.0)
    }
}

/// Its steps in words.
impl std::fmt::Display for CriticalPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, step) in self.steps.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            for (index, (name, seconds)) in step.writes.iter().enumerate() {
                write!(f, "{}{name} {seconds:.1} s", if index == 0 { "" } else { " beside " })?;
            }
        }
        Ok(())
    }
}

/// The time from a request to the end of the operation that it started.
pub fn duration(entry: &JournalEntry) -> Duration {
    Duration::from_millis(
        entry.answer_ms.unwrap_or_default().saturating_add(entry.operation_ms.unwrap_or_default()),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::calls::tests::journal;
    use super::*;

    #[test]
    fn the_path_holds_the_longest_write_of_each_kind_once() {
        let took = |answer: u64, operation: u64| json!({"answerMs": answer, "operationMs": operation});
        let journal = journal(&[
            ("PUT", "Microsoft.Network/publicIPAddresses", "a", took(100, 5_900)),
            ("PUT", "Microsoft.Network/publicIPAddresses", "b", took(100, 6_400)),
            ("PUT", "Microsoft.Network/loadBalancers", "l", took(0, 6_000)),
            ("PUT", "Microsoft.Network/loadBalancers", "l", took(0, 4_000)),
            ("PUT", "Microsoft.Network/networkSecurityGroups", "g", took(0, 7_000)),
            (
                "PUT",
                "Microsoft.Network/networkSecurityGroups",
                "g",
                json!({"status": 412, "operationMs": 90_000}),
            ),
            ("DELETE", "Microsoft.Network/publicIPAddresses", "c", took(0, 90_000)),
            ("PUT", "Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "0", took(0, 15_000)),
            ("PUT", "Microsoft.Compute/virtualMachineScaleSets/virtualMachines", "1", json!({})),
        ]);
        let path = CriticalPath::of(&journal.entries);
        assert!((path.seconds - 28.5).abs() < 1e-9, "{}", path.seconds);
        assert_eq!(
            path.to_string(),
            "address 6.5 s, load balancer 6.0 s beside security group 7.0 s, instances 15.0 s"
        );
        assert!((path.excess(57.0).unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn an_instant_azure_has_no_path() {
        let path =
            CriticalPath::of(&journal(&[("PUT", "Microsoft.Network/loadBalancers", "l", json!({}))]).entries);
        assert_eq!((path.seconds, path.excess(0.06)), (0.0, None));
    }
}
