//! Flags that are accepted for the sake of manifests and have no effect, grouped by the reason, which the log and
//! `--help` show.

use command_line::Accepted;
use command_line::Takes::{Boolean, Value};

/// The flags by reason.
pub(super) const ACCEPTED: Accepted = Accepted(&[
    (
        "deprecated and no longer needed: the kind of a bootstrap configuration is read from its owner",
        &[("bootstrap-config-gvk", Value)],
    ),
    (
        "resources that do not depend on each other are worked on side by side, so that none waits for another one",
        &[("service-reconcile-timeout", Value)],
    ),
    (
        "every operation stands in the object's status from its beginning, however fast it may be",
        &[("api-call-timeout", Value)],
    ),
    ("there is no profiling endpoint", &[("profiler-address", Value)]),
    ("one verbosity holds for the whole program", &[("vmodule", Value), ("log_backtrace_at", Value)]),
    (
        "log lines have one form and go to standard error",
        &[
            ("add_dir_header", Boolean),
            ("alsologtostderr", Boolean),
            ("legacy_stderr_threshold_behavior", Boolean),
            ("log_dir", Value),
            ("log_file", Value),
            ("log_file_max_size", Value),
            ("logtostderr", Boolean),
            ("one_output", Boolean),
            ("skip_headers", Boolean),
            ("skip_log_headers", Boolean),
            ("stderrthreshold", Value),
        ],
    ),
]);
