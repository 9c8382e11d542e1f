//! Flags that are accepted for the sake of manifests and have no effect, grouped by the reason, which the log and
//! `--help` show.

use command_line::FlagValue::{Boolean, Text};
use command_line::FlagsWithoutEffect;

/// The flags by reason.
pub(super) const ACCEPTED: FlagsWithoutEffect = FlagsWithoutEffect(&[
    (
        "deprecated and no longer needed: the kind of a bootstrap configuration is read from its owner",
        &[("bootstrap-config-gvk", Text)],
    ),
    (
        "resources that do not depend on each other are worked on side by side, so that none waits for another one",
        &[("service-reconcile-timeout", Text)],
    ),
    (
        "every operation stands in the object's status from its beginning, however fast it may be",
        &[("api-call-timeout", Text)],
    ),
    ("there is no profiling endpoint", &[("profiler-address", Text)]),
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
