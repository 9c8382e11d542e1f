//! Validation of the command line: each problem with flag, value and remedy.

use capz::{GateError, Gates};
use command_line::{Problem, nearest};
use controllers::leader_election;
use telemetry::tls::Suites;

use super::{CommandLine, DISABLE_ASO_SECRETS, DISABLE_MACHINE_SECRETS};

impl CommandLine {
    /// All invalid values, each with its remedy; empty if there are none.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.misread.clone();
        problems.extend(self.judge_gates());
        problems.extend(self.judge_disabled());
        problems.extend(self.judge_election());
        problems.extend(Problem::with_tls_version(&self.flags.tls_min_version));
        problems.extend(self.judge_suites());
        problems.extend(self.judge_addresses());
        if self.flags.sync_period.is_zero() {
            problems.push(Problem::new("sync-period", "0", "would never rest", &["--sync-period=10m"]));
        }
        problems
    }

    fn judge_gates(&self) -> Option<Problem> {
        let error = self.gates().err()?;
        let gates = self.flags.feature_gates.join(",");
        let (wrong, instead) = match &error {
            GateError::Unknown(name) => {
                let meant = nearest(name, Gates::known().map(|gate| gate.name));
                (name.as_str(), meant.map(|meant| format!("{meant}=true")))
            }
            GateError::NoTruth { gate, .. } => (gate.as_str(), Some(format!("{gate}=true"))),
            GateError::Locked(name) => (*name, None),
        };
        let is_right = |entry: &&String| entry.split('=').next().is_some_and(|name| name.trim() != wrong);
        let mended: Vec<String> =
            self.flags.feature_gates.iter().filter(is_right).cloned().chain(instead).collect();
        let remedy = format!("--feature-gates={}", mended.join(","));
        let known: Vec<&str> = Gates::known().map(|gate| gate.name).collect();
        let problem = Problem::new("feature-gates", gates, error.to_string(), &[&remedy]);
        Some(match error {
            GateError::Unknown(_) => problem.note(format!("; there are {}", known.join(", "))),
            _ => problem,
        })
    }

    fn judge_disabled(&self) -> Option<Problem> {
        let known = [DISABLE_ASO_SECRETS, DISABLE_MACHINE_SECRETS];
        let disabled: Vec<&str> = self.disabled().collect();
        let wrong = disabled.iter().find(|entry| !known.contains(entry))?;
        let mended: Vec<&str> = disabled.iter().filter_map(|entry| nearest(entry, known)).collect();
        let remedy = format!("--disable-controllers-or-webhooks={}", mended.join(","));
        let reason = format!("{wrong:?} is not one of {}", known.join(", "));
        Some(Problem::new("disable-controllers-or-webhooks", disabled.join(","), reason, &[&remedy]))
    }

    fn judge_election(&self) -> Option<Problem> {
        let election = self.election("judged".to_owned(), "judged".to_owned());
        match election.validate() {
            Err(leader_election::Error::Config(reason)) if self.flags.leader_elect => {
                Some(Problem::with_election(self.flags.leader_elect_lease_duration, reason))
            }
            _ => None,
        }
    }

    fn judge_suites(&self) -> Option<Problem> {
        let unknown = self.suites().err()?;
        let names = Suites::names();
        let suites = &self.flags.tls_cipher_suites;
        let is_right = |name: &&String| **name != unknown;
        let meant = nearest(&unknown, names.iter().map(String::as_str)).map(str::to_owned);
        let mended: Vec<String> = suites.iter().filter(is_right).cloned().chain(meant).collect();
        let remedy = format!("--tls-cipher-suites={}", mended.join(","));
        let reason = format!("no cipher suite is called {unknown}");
        let note = format!("; there are {}", names.join(", "));
        Some(Problem::new("tls-cipher-suites", suites.join(","), reason, &[&remedy]).note(note))
    }

    fn judge_addresses(&self) -> impl Iterator<Item = Problem> {
        let problem = |flag, value: &str, found: Result<_, String>, instead| {
            found.err().map(|reason| Problem::new(flag, value, reason, &[instead]))
        };
        let flags = &self.flags;
        let health = problem("health-addr", &flags.health_addr, self.health_address(), "--health-addr=:9440");
        let diagnostics = problem(
            "diagnostics-address",
            &flags.diagnostics_address,
            self.diagnostics_address(),
            "--diagnostics-address=:8443",
        );
        health.into_iter().chain(diagnostics)
    }
}
