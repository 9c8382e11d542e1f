//! Validation of the command line: each problem with flag, value and remedy.

use cloud_config::keys::nearest;
use command_line::Problem;
use controllers::leader_election;

use super::{CONTROLLERS, CommandLine};
use crate::configuration::Sources;

/// The usual path of azure.json.
const USUAL_FILE: &str = "--cloud-config=/etc/kubernetes/azure.json";

fn known_controllers() -> impl Iterator<Item = &'static str> {
    CONTROLLERS.iter().flat_map(|(canonical, alias)| [*canonical, *alias])
}

/// The controller with the most similar name: other programs append `-controller` to names that lack it here, or omit
/// it; otherwise the nearest spelling, or the only name with this prefix.
fn nearest_controller(name: &str) -> Option<&'static str> {
    fn stem(name: &str) -> &str {
        name.strip_suffix("-controller").unwrap_or(name)
    }
    let same = known_controllers().find(|known| stem(known).eq_ignore_ascii_case(stem(name)));
    let near = || nearest(name, known_controllers());
    let begun = || {
        let mut begun = CONTROLLERS.iter().filter(|(canonical, _)| canonical.starts_with(name));
        begun.next().filter(|_| begun.next().is_none()).map(|(canonical, _)| *canonical)
    };
    same.or_else(near).or_else(begun)
}

impl CommandLine {
    /// All invalid values, each with its remedy; empty if there are none.
    pub fn problems(&self) -> Vec<Problem> {
        let mut problems = self.misread.clone();
        self.judge_cluster(&mut problems);
        self.judge_controllers(&mut problems);
        self.judge_election(&mut problems);
        self.judge_serving(&mut problems);
        problems
    }

    fn judge_cluster(&self, problems: &mut Vec<Problem>) {
        let flags = &self.flags;
        let provider = &flags.cloud_provider;
        if provider.is_empty() {
            let reason = "--cloud-provider cannot be empty";
            problems.push(Problem::new("cloud-provider", provider, reason, &["--cloud-provider=azure"]));
        } else if !provider.eq_ignore_ascii_case("azure") {
            let reason = "this program knows no cloud but azure";
            problems.push(Problem::new("cloud-provider", provider, reason, &["--cloud-provider=azure"]));
        }
        let sources = Sources::of(flags);
        if sources == Sources::default() {
            let reason = "--cloud-config cannot be empty when --enable-dynamic-reloading is not set to true and no Secret \
                          is named";
            let note = ", or wherever azure.json is; --cloud-config-secret-name names a Secret";
            problems.push(Problem::new("cloud-config", "", reason, &[USUAL_FILE]).note(note));
        }
        for (flag, value, usual) in [
            ("cloud-config-secret-namespace", &flags.cloud_config_secret_namespace, "kube-system"),
            ("cloud-config-key", &flags.cloud_config_key, "cloud-config"),
        ] {
            if sources.secret.is_some() && value.is_empty() {
                let remedy = format!("--{flag}={usual}");
                problems.push(Problem::new(
                    flag,
                    "",
                    "it is needed to find the Secret's document",
                    &[&remedy],
                ));
            }
        }
        if flags.cluster_name.is_empty() {
            let reason = "names in Azure are made of it";
            let note = ", or whatever the cluster has been called so far";
            problems
                .push(Problem::new("cluster-name", "", reason, &["--cluster-name=kubernetes"]).note(note));
        }
        problems.extend(self.ranges().err().unwrap_or_default());
    }

    fn judge_controllers(&self, problems: &mut Vec<Problem>) {
        let flags = &self.flags;
        if flags.concurrent_service_syncs != 1 {
            let (flag, value) = ("concurrent-service-syncs", flags.concurrent_service_syncs);
            let reason = "--concurrent-service-syncs is limited to 1 only";
            let note = "; Services that wait share one write anyway";
            problems.push(Problem::new(flag, value, reason, &["--concurrent-service-syncs=1"]).note(note));
        }
        let is_known = |name: &str| name == "*" || known_controllers().any(|known| known == name);
        let (mut unknown, mut meant) = (Vec::new(), Vec::new());
        for entry in &flags.controllers {
            let (sign, name) = entry.strip_prefix('-').map_or(("", entry.as_str()), |name| ("-", name));
            if is_known(name) {
                meant.push(entry.clone());
            } else {
                unknown.push(format!("{name:?}"));
                meant.extend(nearest_controller(name).map(|name| format!("{sign}{name}")));
            }
        }
        if !unknown.is_empty() {
            let both = |(canonical, alias): &(&str, &str)| format!("{canonical} or {alias}");
            let names: Vec<String> = CONTROLLERS.iter().map(both).collect();
            let unknown = unknown.join(", ");
            let reason = format!("{unknown} is not in the list of known controllers: {}", names.join(", "));
            let meant = if meant.is_empty() { "*".to_owned() } else { meant.join(",") };
            let remedy = format!("--controllers={meant}");
            problems.push(Problem::new("controllers", flags.controllers.join(","), reason, &[&remedy]));
        }
        let periods = [
            ("node-monitor-period", flags.node_monitor_period, "--node-monitor-period=5s"),
            (
                "route-reconciliation-period",
                flags.route_reconciliation_period,
                "--route-reconciliation-period=10s",
            ),
            (
                "node-status-update-frequency",
                flags.node_status_update_frequency,
                "--node-status-update-frequency=5m",
            ),
        ];
        for (flag, period, remedy) in periods {
            if period.is_zero() {
                problems.push(Problem::new(flag, "0", "would never rest", &[remedy]));
            }
        }
    }

    fn judge_election(&self, problems: &mut Vec<Problem>) {
        let flags = &self.flags;
        if !flags.leader_elect {
            return;
        }
        let lock = &flags.leader_elect_resource_lock;
        if lock != "leases" {
            let reason = "resourceLock value must be \"leases\"";
            let remedy = ["--leader-elect-resource-lock=leases"];
            problems.push(Problem::new("leader-elect-resource-lock", lock, reason, &remedy));
        }
        if let Err(leader_election::Error::Config(reason)) = self.election("judged".to_owned()).validate() {
            problems.push(Problem::with_election(flags.leader_elect_lease_duration, reason));
        }
    }

    fn judge_serving(&self, problems: &mut Vec<Problem>) {
        let flags = &self.flags;
        let (certificate, key) = (&flags.tls_cert_file, &flags.tls_private_key_file);
        if certificate.is_empty() != key.is_empty() {
            let (flag, value) =
                if key.is_empty() { ("tls-cert-file", certificate) } else { ("tls-private-key-file", key) };
            let reason = "--tls-cert-file and --tls-private-key-file must be given together";
            let remedy = ["--tls-cert-file=", "--tls-private-key-file="];
            let note = " for a certificate that is made at start, or name both files";
            problems.push(Problem::new(flag, value, reason, &remedy).note(note));
        }
        problems.extend(Problem::with_tls_version(&flags.tls_min_version));
        let format = &flags.log_format;
        if !["text", "json"].contains(&format.as_str()) {
            let reason = "is neither text nor json";
            problems.push(Problem::new("log-format", format, reason, &["--log-format=text"]));
        }
    }
}
