//! Flags that are accepted for the sake of manifests and have no effect, grouped by the reason, which the log and
//! `--help` show.

use command_line::FlagValue::{Boolean, Text};
use command_line::FlagsWithoutEffect;

/// The flags by reason.
pub(super) const ACCEPTED: FlagsWithoutEffect = FlagsWithoutEffect(&[
    ("calls to Kubernetes are few", &[("kube-api-qps", Text), ("kube-api-burst", Text)]),
    (
        "the program runs on Linux",
        &[
            ("enable-windows-host-process", Boolean),
            ("remove-smb-mount-on-windows", Boolean),
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
