//! How much memory a process holds.

use anyhow::Context as _;

/// Resident memory of a process in bytes, as the kernel counts it.
///
/// # Errors
/// The process has ended, or this system has no `/proc`.
pub fn resident(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))
        .context("resident memory is read from /proc, which is not there")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    Ok(kilobytes.context("the process has ended")? * 1024)
}

/// Bytes in words.
pub fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}
