//! The command line: the flags of the program that this one replaces, and the endpoint of instance metadata.

use std::time::Duration;

use imds::Endpoint;
use program::go_values;

/// The handling of scheduled events of the machine (`--scheduled-events`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduledEvents {
    /// They are not read.
    None,
    /// The node reports them.
    Report,
    /// In addition, a node whose machine goes away is drained.
    Drain,
}

/// A parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags {
    /// The node; empty for the name of the host.
    pub node_name: String,
    /// The address of the Kubernetes API, in place of the kubeconfig's.
    pub master: String,
    /// The kubeconfig; empty inside of a pod.
    pub kubeconfig: String,
    /// The interval between reads of the machine's addresses.
    pub node_status_update_frequency: Duration,
    /// Whether a new node reports no network until its routes exist.
    pub wait_routes: bool,
    /// Whether labels are written in their older forms, too.
    pub older_labels: bool,
    /// Whether instance metadata is used, and not Resource Manager.
    pub use_instance_metadata: bool,
    /// azure.json, for Resource Manager.
    pub cloud_config: String,
    /// The endpoint of instance metadata.
    pub endpoint: Endpoint,
    /// The handling of scheduled events of the machine.
    pub scheduled_events: ScheduledEvents,
    /// The interval between reads of scheduled events.
    pub scheduled_events_interval: Duration,
    /// Whether events that affect only this machine are approved, so that they begin before their time.
    pub approves_scheduled_events: bool,
    /// The log level.
    pub verbosity: u8,
    /// Flags that were given and change nothing.
    pub without_effect: Vec<&'static str>,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            node_name: String::new(),
            master: String::new(),
            kubeconfig: String::new(),
            node_status_update_frequency: Duration::from_secs(300),
            wait_routes: false,
            older_labels: false,
            use_instance_metadata: true,
            cloud_config: String::new(),
            endpoint: Endpoint::default(),
            scheduled_events: ScheduledEvents::None,
            scheduled_events_interval: Duration::from_secs(1),
            approves_scheduled_events: false,
            verbosity: 0,
            without_effect: Vec::new(),
        }
    }
}

/// The alternative to running.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Instead {
    /// A text for standard output.
    #[error("{0}")]
    Print(String),
    /// An invalid command line, with the remedy.
    #[error("{0}")]
    Refuse(String),
}

/// A flag and its description.
struct Flag {
    name: &'static str,
    /// The name of its value; empty for a flag that may stand alone.
    value: &'static str,
    help: &'static str,
}

const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, help }
}

const FLAGS: &[Flag] = &[
    flag("cloud-config", "string", "azure.json, only read with --use-instance-metadata=false"),
    flag("enable-deprecated-beta-topology-labels", "", "write labels in their older forms, too"),
    flag("help", "", "print this"),
    flag("instance-metadata-endpoint", "URL", "where instance metadata is (default http://169.254.169.254)"),
    flag("kubeconfig", "string", "the kubeconfig; without it, the service account of the pod"),
    flag("master", "string", "address of the Kubernetes API, in place of the kubeconfig's"),
    flag("node-name", "string", "the node that this machine is (default: the name of the host)"),
    flag(
        "node-status-update-frequency",
        "duration",
        "interval between reads of the machine's addresses (default 5m)",
    ),
    flag(
        "scheduled-events",
        "string",
        "none; report: report in a condition and in Events what Azure will do to the machine; drain: also taint a node \
         whose machine goes away (default none)",
    ),
    flag(
        "scheduled-events-acknowledge",
        "string",
        "none; all: let events of only this machine begin before their time (default none)",
    ),
    flag("scheduled-events-interval", "duration", "interval between reads of scheduled events (default 1s)"),
    flag("secure-port", "int", "0: the program serves nothing, and takes no other value"),
    flag(
        "use-instance-metadata",
        "",
        "describe the node by instance metadata; false: by Resource Manager, as --cloud-config says (default true)",
    ),
    flag("v", "level", "log level: debugging from 4 on"),
    flag("version", "", "print the version"),
    flag("wait-routes", "", "report that a new node has no network, until its routes are written"),
];

/// Flags that charts pass and that have no effect: the program paces itself, serves nothing and buffers no lines.
const ACCEPTED: &[(&str, bool)] = &[
    ("authentication-kubeconfig", true),
    ("authentication-skip-lookup", false),
    ("authentication-token-webhook-cache-ttl", true),
    ("authentication-tolerate-lookup-failure", false),
    ("authorization-always-allow-paths", true),
    ("authorization-kubeconfig", true),
    ("authorization-webhook-cache-authorized-ttl", true),
    ("authorization-webhook-cache-unauthorized-ttl", true),
    ("bind-address", true),
    ("cert-dir", true),
    ("client-ca-file", true),
    ("disable-http2-serving", false),
    ("http2-max-streams-per-connection", true),
    ("kube-api-burst", true),
    ("kube-api-content-type", true),
    ("kube-api-qps", true),
    ("log-flush-frequency", true),
    ("min-resync-period", true),
    ("permit-address-sharing", false),
    ("permit-port-sharing", false),
    ("requestheader-allowed-names", true),
    ("requestheader-client-ca-file", true),
    ("requestheader-extra-headers-prefix", true),
    ("requestheader-group-headers", true),
    ("requestheader-uid-headers", true),
    ("requestheader-username-headers", true),
    ("tls-cert-file", true),
    ("tls-cipher-suites", true),
    ("tls-curve-preferences", true),
    ("tls-min-version", true),
    ("tls-private-key-file", true),
    ("tls-sni-cert-key", true),
    ("vmodule", true),
];

fn help() -> String {
    let mut text = String::from(
        "Describes the node that it runs on: labels, addresses and provider id, from Azure's instance metadata.\n\n\
         Usage:\n  azure-cloud-node-manager [flags]\n\nFlags:\n",
    );
    for flag in FLAGS {
        let dashes = if flag.name.len() == 1 { "-" } else { "--" };
        let name = format!("{dashes}{} {}", flag.name, flag.value);
        text.push_str(&format!("  {name:<42} {}\n", flag.help));
    }
    let accepted: Vec<String> = ACCEPTED.iter().map(|(name, _)| format!("--{name}")).collect();
    text.push_str(&format!("\nAccepted, without effect:\n  {}\n", accepted.join(" ")));
    text
}

/// Parses the arguments after the program's name.
///
/// # Errors
/// The text to print, or the refusal.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Flags, Instead> {
    let mut flags = Flags::default();
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let Some((name, value)) = split(&argument) else {
            return Err(Instead::Refuse(format!(
                "unexpected argument {argument:?}: the program takes only flags"
            )));
        };
        let spelled = if name.len() == 1 { format!("-{name}") } else { format!("--{name}") };
        let known = FLAGS.iter().find(|flag| flag.name == name);
        let accepted = ACCEPTED.iter().find(|(accepted, _)| *accepted == name);
        let takes_value = match (known, accepted) {
            (Some(flag), _) => !flag.value.is_empty(),
            (None, Some((_, takes_value))) => *takes_value,
            (None, None) => {
                return Err(Instead::Refuse(format!(
                    "unknown flag: {spelled}: --help lists those that there are"
                )));
            }
        };
        let value = match value {
            Some(value) => value,
            None if takes_value => arguments.next().ok_or_else(|| {
                Instead::Refuse(format!("flag needs an argument: {spelled}: add its value"))
            })?,
            None => "true".to_owned(),
        };
        match accepted {
            Some((name, _)) => flags.without_effect.push(name),
            None => flags.take(name, value)?,
        }
    }
    if flags.use_instance_metadata && !flags.cloud_config.is_empty() {
        flags.without_effect.push("cloud-config");
    }
    if !flags.use_instance_metadata && flags.cloud_config.is_empty() {
        let text = "--use-instance-metadata=false: Resource Manager is asked as azure.json says: give --cloud-config, too";
        return Err(Instead::Refuse(text.to_owned()));
    }
    if flags.approves_scheduled_events && flags.scheduled_events == ScheduledEvents::None {
        let text = "--scheduled-events-acknowledge=all: scheduled events are not read: give --scheduled-events=report or \
                    drain, too";
        return Err(Instead::Refuse(text.to_owned()));
    }
    Ok(flags)
}

/// The name and the value of a flag in one argument.
fn split(argument: &str) -> Option<(&str, Option<String>)> {
    if let Some(long) = argument.strip_prefix("--").filter(|long| !long.is_empty()) {
        return Some(match long.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (long, None),
        });
    }
    let short = argument.strip_prefix('-')?;
    let letter = short.chars().next().filter(|letter| *letter != '-')?;
    let (name, rest) = short.split_at(letter.len_utf8());
    let name = if name == "h" { "help" } else { name };
    let value = rest.strip_prefix('=').unwrap_or(rest);
    Some((name, (!rest.is_empty()).then(|| value.to_owned())))
}

impl Flags {
    fn take(&mut self, name: &str, value: String) -> Result<(), Instead> {
        let wrong = |why: &str| Instead::Refuse(format!("--{name}={value}: {why}"));
        let truth = || go_values::truth(&value).map_err(|why| wrong(&why));
        let rest = || match go_values::duration(&value) {
            Ok(period) if period.is_zero() => Err(wrong("it would never rest: give a longer time")),
            Ok(period) => Ok(period),
            Err(why) => Err(wrong(&why)),
        };
        match name {
            "cloud-config" => self.cloud_config = value,
            "enable-deprecated-beta-topology-labels" => self.older_labels = truth()?,
            "help" if truth()? => return Err(Instead::Print(help())),
            "instance-metadata-endpoint" => {
                self.endpoint = value.parse().map_err(|why: imds::EndpointError| wrong(&why.to_string()))?;
            }
            "kubeconfig" => self.kubeconfig = value,
            "master" => self.master = value,
            "node-name" => self.node_name = value,
            "node-status-update-frequency" => self.node_status_update_frequency = rest()?,
            "scheduled-events" => {
                self.scheduled_events = match value.as_str() {
                    "none" => ScheduledEvents::None,
                    "report" => ScheduledEvents::Report,
                    "drain" => ScheduledEvents::Drain,
                    _ => return Err(wrong("write none, report or drain")),
                }
            }
            "scheduled-events-acknowledge" => {
                self.approves_scheduled_events = match value.as_str() {
                    "none" => false,
                    "all" => true,
                    _ => return Err(wrong("write none or all")),
                }
            }
            "scheduled-events-interval" => self.scheduled_events_interval = rest()?,
            "secure-port" if value != "0" => {
                return Err(wrong("the program serves nothing: leave the flag out, or give 0"));
            }
            "use-instance-metadata" => self.use_instance_metadata = truth()?,
            "v" => self.verbosity = value.parse().map_err(|_| wrong("give a number such as 2"))?,
            "version" if value != "false" => {
                return Err(Instead::Print(format!("Cloud Provider Azure v{}\n", version::Version)));
            }
            "wait-routes" => self.wait_routes = truth()?,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Flags, Instead> {
        parse(words.split_whitespace().map(str::to_owned))
    }

    /// NODE-217
    #[test]
    fn node_217_flags_are_read_as_charts_write_them() {
        assert_eq!(read(""), Ok(Flags::default()));
        // The chart's arguments, on Linux and on Windows.
        let linux = "--node-name=n1 --wait-routes=false --v=2";
        assert_eq!(read(linux), Ok(Flags { node_name: "n1".into(), verbosity: 2, ..Flags::default() }));
        let windows = "--node-name=n1 --use-instance-metadata=true --wait-routes=true --v=2 --kube-api-qps=20 \
                       --kube-api-burst 30 --kubeconfig c --master= --node-status-update-frequency=5m0s";
        assert_eq!(
            read(windows),
            Ok(Flags {
                node_name: "n1".into(),
                kubeconfig: "c".into(),
                wait_routes: true,
                verbosity: 2,
                without_effect: vec!["kube-api-qps", "kube-api-burst"],
                ..Flags::default()
            })
        );
        let ours = "--instance-metadata-endpoint http://127.0.0.1:1/instances/n1 -v4 --secure-port 0 \
                    --enable-deprecated-beta-topology-labels --node-status-update-frequency 90s --cloud-config x \
                    --authentication-skip-lookup --client-ca-file y";
        assert_eq!(
            read(ours),
            Ok(Flags {
                endpoint: "http://127.0.0.1:1/instances/n1".parse().unwrap(),
                verbosity: 4,
                older_labels: true,
                node_status_update_frequency: Duration::from_secs(90),
                cloud_config: "x".into(),
                without_effect: vec!["authentication-skip-lookup", "client-ca-file", "cloud-config"],
                ..Flags::default()
            })
        );
        assert_eq!(
            read("--use-instance-metadata=false --cloud-config=azure.json"),
            Ok(Flags { use_instance_metadata: false, cloud_config: "azure.json".into(), ..Flags::default() })
        );
    }

    /// NODE-224
    #[test]
    fn node_224_scheduled_events_are_for_those_who_ask() {
        let asked = read(
            "--scheduled-events=drain --scheduled-events-interval 5s --scheduled-events-acknowledge all",
        );
        assert_eq!(
            asked,
            Ok(Flags {
                scheduled_events: ScheduledEvents::Drain,
                scheduled_events_interval: Duration::from_secs(5),
                approves_scheduled_events: true,
                ..Flags::default()
            })
        );
        let reported = read("--scheduled-events report --scheduled-events-acknowledge none");
        assert_eq!(reported, Ok(Flags { scheduled_events: ScheduledEvents::Report, ..Flags::default() }));
    }

    /// NODE-217
    #[test]
    fn node_217_what_cannot_be_followed_is_refused_with_what_to_do() {
        for (words, text) in [
            ("--nonsense=1", "unknown flag: --nonsense"),
            ("-x", "unknown flag: -x"),
            ("--windows-service", "unknown flag: --windows-service"),
            ("run", "unexpected argument \"run\""),
            ("--node-name", "flag needs an argument: --node-name"),
            ("--wait-routes=perhaps", "--wait-routes=perhaps: `perhaps` is neither true nor false"),
            ("--node-status-update-frequency=5", "is no duration"),
            ("--node-status-update-frequency=0s", "it would never rest: give a longer time"),
            ("--use-instance-metadata=false", "give --cloud-config, too"),
            ("--use-instance-metadata=perhaps", "is neither true nor false"),
            ("--secure-port=10263", "leave the flag out, or give 0"),
            ("--instance-metadata-endpoint=https://a", "write one such as http://169.254.169.254"),
            ("-v=much", "give a number"),
            ("--scheduled-events=yes", "write none, report or drain"),
            ("--scheduled-events-interval=0", "it would never rest: give a longer time"),
            ("--scheduled-events=drain --scheduled-events-acknowledge=some", "write none or all"),
            ("--scheduled-events-acknowledge=all", "give --scheduled-events=report or drain, too"),
        ] {
            match read(words) {
                Err(Instead::Refuse(refusal)) => assert!(refusal.contains(text), "{words}: {refusal}"),
                other => panic!("{words}: {other:?}"),
            }
        }
        let Err(Instead::Print(help)) = read("--wait-routes -h") else { panic!("no help") };
        for flag in FLAGS {
            assert!(help.contains(flag.name), "{}", flag.name);
        }
        assert!(
            matches!(read("--version"), Err(Instead::Print(version)) if version.starts_with("Cloud Provider Azure v"))
        );
        assert_eq!(read("--version=false"), Ok(Flags::default()));
    }
}
