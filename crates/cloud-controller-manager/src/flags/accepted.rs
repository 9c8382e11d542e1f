//! Flags that are accepted for the sake of charts and managed clusters and have no effect, grouped by the reason, which
//! the log and `--help` show.

use command_line::FlagValue::{Boolean, Text};
use command_line::FlagsWithoutEffect;

/// The flags by reason.
pub(super) const ACCEPTED: FlagsWithoutEffect = FlagsWithoutEffect(&[
    (
        "the program speaks JSON to the Kubernetes API, watches, and paces itself",
        &[
            ("kube-api-content-type", Text),
            ("kube-api-qps", Text),
            ("kube-api-burst", Text),
            ("min-resync-period", Text),
            ("controller-start-interval", Text),
        ],
    ),
    (
        "one client does everything, as the kubeconfig or the pod's service account allows",
        &[("use-service-account-credentials", Boolean)],
    ),
    (
        "the port offers only cipher suites and curves with forward secrecy and authenticated encryption",
        &[("tls-cipher-suites", Text), ("tls-curve-preferences", Text)],
    ),
    (
        "the port has one certificate: that of --tls-cert-file, or one that is made at start and kept in memory",
        &[("cert-dir", Text), ("tls-sni-cert-key", Text)],
    ),
    (
        "a connection takes as many streams as the HTTP/2 library allows",
        &[("http2-max-streams-per-connection", Text)],
    ),
    (
        "the port is not shared with other programs",
        &[("permit-port-sharing", Boolean), ("permit-address-sharing", Boolean)],
    ),
    (
        "who may read metrics is asked of the Kubernetes API each time, with the client of --kubeconfig",
        &[
            ("authentication-kubeconfig", Text),
            ("authentication-token-webhook-cache-ttl", Text),
            ("authentication-tolerate-lookup-failure", Boolean),
            ("authorization-kubeconfig", Text),
            ("authorization-webhook-cache-authorized-ttl", Text),
            ("authorization-webhook-cache-unauthorized-ttl", Text),
        ],
    ),
    (
        "callers are known by a bearer token alone: client certificates and front proxies are not looked at",
        &[
            ("authentication-skip-lookup", Boolean),
            ("client-ca-file", Text),
            ("requestheader-allowed-names", Text),
            ("requestheader-client-ca-file", Text),
            ("requestheader-extra-headers-prefix", Text),
            ("requestheader-group-headers", Text),
            ("requestheader-uid-headers", Text),
            ("requestheader-username-headers", Text),
        ],
    ),
    (
        "/healthz and /readyz need no authorization, and everything else does",
        &[("authorization-always-allow-paths", Text)],
    ),
    ("there is no profiling endpoint", &[("profiling", Boolean), ("contention-profiling", Boolean)]),
    (
        "one verbosity holds for the whole program, and lines are written at once",
        &[("vmodule", Text), ("log-flush-frequency", Text)],
    ),
    ("the program has no feature gates", &[("feature-gates", Text)]),
    (
        "the program that this one replaces does nothing with it either",
        &[
            ("external-cloud-volume-plugin", Text),
            ("allow-untagged-cloud", Boolean),
            ("enable-leader-migration", Boolean),
            ("leader-migration-config", Text),
            ("node-sync-period", Text),
            ("node-cidr-mask-size", Text),
        ],
    ),
]);
