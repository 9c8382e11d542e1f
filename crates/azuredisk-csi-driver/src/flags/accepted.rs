//! Flags that are accepted for the sake of manifests and have no effect, grouped by the reason, which the log and
//! `--help` show.

use command_line::FlagValue::{Boolean, Text};
use command_line::FlagsWithoutEffect;

/// The flags by reason.
pub(super) const ACCEPTED: FlagsWithoutEffect = FlagsWithoutEffect(&[
    (
        "a disk of another size is never changed by a request to create it",
        &[("enable-disk-capacity-check", Boolean)],
    ),
    (
        "machines are read when they are written, and a full machine refuses the newest requests",
        &[
            ("check-disk-count-for-batching", Boolean),
            ("vmss-cache-ttl-seconds", Text),
            ("list-vmss-with-instance-view", Boolean),
            ("vm-type", Text),
            ("disable-avset-nodes", Boolean),
        ],
    ),
    (
        "a detach is answered when Azure's list does not have the disk any more, however long this takes",
        &[
            ("detach-operation-min-timeout-seconds", Text),
            ("wait-for-detach", Boolean),
            ("wait-for-detach-disk-complete", Boolean),
        ],
    ),
    (
        "one budget, learned from Azure's answers, paces all calls; calls to Kubernetes are few",
        &[
            ("enable-minimum-retry-after", Boolean),
            ("enable-traffic-manager", Boolean),
            ("traffic-manager-port", Text),
            ("kube-api-qps", Text),
            ("kube-api-burst", Text),
        ],
    ),
    ("statistics of a volume cost one call of the kernel", &[("vol-stats-cache-expire-in-minutes", Text)]),
    (
        "Azure's own progress is in the disk, and a change that is under way refuses the next",
        &[("enable-migration-monitor", Boolean)],
    ),
    (
        "the program runs on Linux",
        &[
            ("use-csiproxy-ga-interface", Boolean),
            ("enable-windows-host-process", Boolean),
            ("use-win-cim-api", Boolean),
        ],
    ),
    ("the program has one thread", &[("max-procs", Text)]),
    ("one verbosity holds for the whole program", &[("vmodule", Text), ("log_backtrace_at", Text)]),
    (
        "log lines have one form and go to standard error",
        &[
            ("add_dir_header", Boolean),
            ("alsologtostderr", Boolean),
            ("legacy_stderr_threshold_behavior", Boolean),
            ("log_dir", Text),
            ("log_file", Text),
            ("log_file_max_size", Text),
            ("logtostderr", Boolean),
            ("one_output", Boolean),
            ("skip_headers", Boolean),
            ("skip_log_headers", Boolean),
            ("stderrthreshold", Text),
        ],
    ),
]);
