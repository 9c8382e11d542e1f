//! The report of csi-sanity: which checks passed, failed, and were skipped although they must not be.

use anyhow::Context as _;
use serde_json::Value;

use crate::print;

/// Reasons for which a driver for disks may skip checks, in the words of csi-sanity, and why it may. Every other capability
/// is one that such a driver has to have.
const MAY_BE_SKIPPED: [(&str, &str); 9] = [
    ("ControllerPublishVolume.readonly field not supported", "volumes are read-only on the node alone"),
    ("GroupControllerService not supported", "Azure makes no snapshot of several disks at once"),
    ("GetCapacity not supported", "Azure does not say how many disks a region still takes"),
    ("GetSnapshot not supported", "optional: ListSnapshots finds one by its ID"),
    ("SNAPSHOT_ACCESSIBILITY_CONSTRAINTS not supported", "a snapshot is restored in any zone of its region"),
    ("ControllerGetVolumeHealth not supported", HEALTH),
    ("ControllerListVolumeHealth not supported", HEALTH),
    ("NodeGetVolumeHealth not supported", HEALTH),
    ("NodeGetStorageHealth not supported", HEALTH),
];
const HEALTH: &str = "calls about health are in an alpha state";

/// A check, with what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Check {
    name: String,
    state: State,
    /// Why it failed or was skipped, in the words of csi-sanity.
    reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Passed,
    Failed,
    Skipped,
}

/// What became of all checks.
#[derive(Debug)]
pub struct Report {
    checks: Vec<Check>,
    /// Whether only some checks were chosen, so that the others do not count.
    is_choice: bool,
}

impl Report {
    /// Reads Ginkgo's report in JSON.
    ///
    /// # Errors
    /// The text is something else, or has no checks.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let document: Value = serde_json::from_str(text).context("the report is not JSON")?;
        let suites = document.as_array().context("the report has no suites")?;
        let checks: Vec<Check> = suites
            .iter()
            .flat_map(|suite| suite["SpecReports"].as_array().map_or(&[] as &[Value], Vec::as_slice))
            .filter_map(check)
            .collect();
        anyhow::ensure!(!checks.is_empty(), "the report has no checks");
        Ok(Self { checks, is_choice: false })
    }

    /// The same, where only some checks were chosen.
    pub fn of_a_choice(self) -> Self {
        Self { is_choice: true, ..self }
    }

    /// Whether each check passed, or was skipped with a reason that this table knows.
    pub fn is_good(&self) -> bool {
        self.bad().next().is_none()
    }

    /// Failed checks, and those that must not be skipped.
    fn bad(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| match check.state {
            State::Passed => false,
            State::Failed => true,
            State::Skipped => !self.is_choice && may_be_skipped(&check.reason).is_none(),
        })
    }

    fn count(&self, state: State) -> usize {
        self.checks.iter().filter(|check| check.state == state).count()
    }

    /// The figures.
    pub fn sentence(&self) -> String {
        format!(
            "{} checks passed, {} failed, {} were skipped, of which {} must not be",
            self.count(State::Passed),
            self.count(State::Failed),
            self.count(State::Skipped),
            self.bad().filter(|check| check.state == State::Skipped).count()
        )
    }

    /// Prints the figures, and each check that did not pass.
    pub fn print(&self) {
        print::line(format_args!("  {}", self.sentence()));
        for check in self.checks.iter().filter(|check| check.state != State::Passed) {
            let Check { name, reason, state } = check;
            match state {
                State::Skipped if self.is_choice => {}
                State::Skipped => match may_be_skipped(reason) {
                    Some(why) => print::line(format_args!("  ok       skipped: {name}: {why}")),
                    None => print::line(format_args!("  WRONG    skipped: {name}: {reason}")),
                },
                _ => print::line(format_args!("  FAILED   {name}: {reason}")),
            }
        }
    }
}

fn may_be_skipped(reason: &str) -> Option<&'static str> {
    MAY_BE_SKIPPED.iter().find(|(words, _)| reason.ends_with(words)).map(|(_, why)| *why)
}

/// A check of the report; `None` for preparations that passed, and for what is no check of this version.
fn check(spec: &Value) -> Option<Check> {
    let text = |member: &Value| member.as_str().unwrap_or_default().to_owned();
    let state = match spec["State"].as_str()? {
        "passed" => State::Passed,
        "skipped" => State::Skipped,
        // csi-sanity itself has it switched off.
        "pending" => return None,
        _ => State::Failed,
    };
    let is_check = spec["LeafNodeType"] == "It";
    if !is_check && state != State::Failed {
        return None;
    }
    let containers = spec["ContainerHierarchyTexts"].as_array().into_iter().flatten().map(text);
    let words: Vec<String> =
        containers.chain([text(&spec["LeafNodeText"])]).filter(|w| !w.is_empty()).collect();
    let reason = text(&spec["Failure"]["Message"]);
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(Check { name: words.join(" "), state, reason })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Report;

    /// A report of checks, each with its state and the reason for it.
    fn report(checks: &[(&str, &str)]) -> Report {
        let specs: Vec<_> = checks
            .iter()
            .map(|(state, reason)| {
                json!({
                    "ContainerHierarchyTexts": ["Controller Service"], "LeafNodeText": "works", "LeafNodeType": "It",
                    "State": state, "Failure": { "Message": reason },
                })
            })
            .collect();
        Report::parse(&json!([{ "SpecReports": specs }]).to_string()).unwrap()
    }

    #[test]
    fn a_check_that_was_skipped_without_a_known_reason_is_wrong() {
        assert!(report(&[("passed", ""), ("skipped", "GetCapacity not supported")]).is_good());
        let wrong = report(&[("passed", ""), ("skipped", "ListVolumes not supported"), ("skipped", "")]);
        assert!(!wrong.is_good());
        assert_eq!(wrong.sentence(), "1 checks passed, 0 failed, 2 were skipped, of which 2 must not be");
        assert!(report(&[("passed", ""), ("skipped", "")]).of_a_choice().is_good());
    }

    #[test]
    fn whatever_is_no_success_is_a_failure() {
        for state in ["failed", "panicked", "timedout", "interrupted", "aborted", "of tomorrow"] {
            assert!(!report(&[("passed", ""), (state, "")]).of_a_choice().is_good(), "{state}");
        }
        assert!(Report::parse("[]").is_err() && Report::parse("{}").is_err());
    }

    #[test]
    fn a_failed_preparation_counts_and_one_that_passed_is_no_check() {
        let suite = |state: &str| {
            let specs = json!([
                { "LeafNodeType": "It", "LeafNodeText": "a", "State": "passed" },
                { "LeafNodeType": "BeforeSuite", "State": state },
            ]);
            Report::parse(&json!([{ "SpecReports": specs }]).to_string()).unwrap()
        };
        assert_eq!(suite("passed").checks.len(), 1);
        assert!(!suite("failed").is_good());
    }
}
