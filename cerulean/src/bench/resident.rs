//! The memory of a process, and its processor time.

use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;

/// A process's memory at one point in time, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// All that is resident.
    pub resident: u64,
    /// The part of it that is not backed by files, and so belongs to this process alone.
    pub private: u64,
    /// The rest: pages of files, which the kernel can share between processes.
    pub shared: u64,
    /// The peak of resident memory so far.
    pub peak: u64,
}

impl Memory {
    /// The memory of a process.
    ///
    /// # Errors
    /// As [`resident`].
    pub fn of(process: u32) -> anyhow::Result<Self> {
        let (resident, private) = (resident(process)?, anonymous(process)?);
        Ok(Self { resident, private, shared: resident.saturating_sub(private), peak: peak(process)? })
    }
}

/// Resident memory of a process in bytes, as the kernel counts it.
///
/// # Errors
/// The process has ended, or this system has no `/proc`.
pub fn resident(process: u32) -> anyhow::Result<u64> {
    figure(process, "VmRSS:")
}

/// The part of resident memory that is not backed by files.
///
/// # Errors
/// As [`resident`].
pub fn anonymous(process: u32) -> anyhow::Result<u64> {
    figure(process, "RssAnon:")
}

/// The peak of resident memory so far, in bytes.
///
/// # Errors
/// As [`resident`].
pub fn peak(process: u32) -> anyhow::Result<u64> {
    figure(process, "VmHWM:")
}

fn figure(process: u32, name: &str) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))
        .context("resident memory is read from /proc, which is not there")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Ok(kilobytes.context("the process has ended")? * 1024)
}

/// The processor time of a process so far, in steps of ten milliseconds.
///
/// # Errors
/// The process has ended, or this system has no `/proc`.
pub fn processor_time(process: u32) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))
        .context("processor time is read from /proc, which is not there")?;
    // The name in parentheses may contain anything; user and system time are the 12th and 13th field after it, in
    // hundredths of a second (USER_HZ).
    let fields = stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().skip(11).take(2));
    let ticks: Option<u64> = fields.map(|fields| fields.filter_map(|field| field.parse::<u64>().ok()).sum());
    Ok(Duration::from_millis(ticks.context("the process has ended")? * 10))
}

/// Formats bytes.
pub fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}
