//! Flags that are accepted for the sake of charts and managed clusters and have no effect, grouped by the reason, which
//! the log and `--help` show.

use command_line::Accepted;
use command_line::Takes::{Boolean, Value};

/// The flags by reason.
pub(super) const ACCEPTED: Accepted = Accepted(&[
    (
        "the program speaks JSON to the Kubernetes API, watches, and paces itself",
        &[
            ("kube-api-content-type", Value),
            ("kube-api-qps", Value),
            ("kube-api-burst", Value),
            ("min-resync-period", Value),
            ("controller-start-interval", Value),
        ],
    ),
    (
        "one client does everything, as the kubeconfig or the pod's service account allows",
        &[("use-service-account-credentials", Boolean)],
    ),
    (
        "the port offers only cipher suites and curves with forward secrecy and authenticated encryption",
        &[("tls-cipher-suites", Value), ("tls-curve-preferences", Value)],
    ),
    (
        "the port has one certificate: that of --tls-cert-file, or one that is made at start and kept in memory",
        &[("cert-dir", Value), ("tls-sni-cert-key", Value)],
    ),
    (
        "a connection takes as many streams as the HTTP/2 library allows",
        &[("http2-max-streams-per-connection", Value)],
    ),
    (
        "the port is not shared with other programs",
        &[("permit-port-sharing", Boolean), ("permit-address-sharing", Boolean)],
    ),
    (
        "who may read metrics is asked of the Kubernetes API each time, with the client of --kubeconfig",
        &[
            ("authentication-kubeconfig", Value),
            ("authentication-token-webhook-cache-ttl", Value),
            ("authentication-tolerate-lookup-failure", Boolean),
            ("authorization-kubeconfig", Value),
            ("authorization-webhook-cache-authorized-ttl", Value),
            ("authorization-webhook-cache-unauthorized-ttl", Value),
        ],
    ),
    (
        "callers are known by a bearer token alone: client certificates and front proxies are not looked at",
        &[
            ("authentication-skip-lookup", Boolean),
            ("client-ca-file", Value),
            ("requestheader-allowed-names", Value),
            ("requestheader-client-ca-file", Value),
            ("requestheader-extra-headers-prefix", Value),
            ("requestheader-group-headers", Value),
            ("requestheader-uid-headers", Value),
            ("requestheader-username-headers", Value),
        ],
    ),
    (
        "/healthz and /readyz need no authorization, and everything else does",
        &[("authorization-always-allow-paths", Value)],
    ),
    ("there is no profiling endpoint", &[("profiling", Boolean), ("contention-profiling", Boolean)]),
    (
        "one verbosity holds for the whole program, and lines are written at once",
        &[("vmodule", Value), ("log-flush-frequency", Value)],
    ),
    ("the program has no feature gates", &[("feature-gates", Value)]),
    (
        "the program that this one replaces does nothing with it either",
        &[
            ("external-cloud-volume-plugin", Value),
            ("allow-untagged-cloud", Boolean),
            ("enable-leader-migration", Boolean),
            ("leader-migration-config", Value),
            ("node-sync-period", Value),
            ("node-cidr-mask-size", Value),
        ],
    ),
    (
        "it belongs to dynamic reloading, which this release does not have",
        &[
            ("cloud-config-secret-name", Value),
            ("cloud-config-secret-namespace", Value),
            ("cloud-config-key", Value),
        ],
    ),
]);
