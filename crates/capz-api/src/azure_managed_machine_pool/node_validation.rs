//! Validation of the configuration of kubelets and Linux, as far as a schema cannot express it.

use super::node_config::{KubeletConfig, LinuxOsConfig};
use crate::field_error::Field;

/// The unsafe sysctls that AKS lets pods set: one by its name, or all that begin so.
const UNSAFE: [(&str, Match); 5] = [
    ("kernel.sem", Match::Whole),
    ("kernel.shm", Match::Prefix),
    ("kernel.msg", Match::Prefix),
    ("fs.mqueue.", Match::Prefix),
    ("net.", Match::Prefix),
];

/// How the name of a sysctl is compared.
#[derive(Clone, Copy, PartialEq)]
enum Match {
    Whole,
    /// Something must follow.
    Prefix,
}

/// Validates the configuration of kubelets.
pub(super) fn check_kubelet(config: Option<&KubeletConfig>, field: &Field<'_>) {
    let Some(config) = config else { return };
    if let Some(period) = &config.cpu_cfs_quota_period {
        field.child("cpuCfsQuotaPeriod").invalid_if(
            !period.ends_with("ms"),
            period,
            "must be a number of milliseconds with the unit, such as 100ms",
        );
    }
    if let (Some(low), Some(high)) = (config.image_gc_low_threshold, config.image_gc_high_threshold) {
        field.child("imageGcLowThreshold").invalid_if(
            low > high,
            low,
            format_args!("must not be above imageGcHighThreshold, which is {high}"),
        );
    }
    for (index, sysctl) in config.allowed_unsafe_sysctls.iter().flatten().enumerate() {
        field.child("allowedUnsafeSysctls").index(index).invalid_if(
            !UNSAFE.iter().any(|(name, how)| is_match(sysctl, name, *how)),
            sysctl,
            "AKS lets pods set kernel.sem, and sysctls that begin with kernel.shm, kernel.msg, fs.mqueue. or net.",
        );
    }
}

fn is_match(sysctl: &str, name: &str, how: Match) -> bool {
    match how {
        Match::Whole => sysctl == name,
        Match::Prefix => sysctl.strip_prefix(name).is_some_and(|rest| !rest.is_empty()),
    }
}

/// Validates the configuration of Linux; `kubelet` is the configuration of the kubelets beside it.
pub(super) fn check_linux(
    config: Option<&LinuxOsConfig>,
    kubelet: Option<&KubeletConfig>,
    field: &Field<'_>,
) {
    let Some(config) = config else { return };
    if let Some(size) = config.swap_file_size_mb {
        field.child("swapFileSizeMB").invalid_if(
            kubelet.and_then(|kubelet| kubelet.fail_swap_on) != Some(false),
            size,
            "a node with swap needs kubeletConfig.failSwapOn to be false: its kubelet does not start otherwise",
        );
    }
    let range = config.sysctls.as_ref().and_then(|sysctls| sysctls.net_ipv4_ip_local_port_range.as_deref());
    if let Some(range) = range {
        check_ports(range, &field.child("sysctls.netIpv4IPLocalPortRange"));
    }
}

fn check_ports(range: &str, field: &Field<'_>) {
    let port = |text: &str| {
        let is_number = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    let ports = range.split_once(' ').and_then(|(first, last)| Some((port(first)?, port(last)?)));
    let Some((first, last)) = ports else {
        return field.invalid(range, "must be two ports with a space between them, such as 32000 60000");
    };
    for (is_wrong, words) in [
        (!(1024..=60_999).contains(&first), "the first port must be from 1024 to 60999"),
        (!(32_768..=65_000).contains(&last), "the last port must be from 32768 to 65000"),
        (first > last, "the first port must not be above the last one"),
    ] {
        field.invalid_if(is_wrong, range, words);
    }
}
