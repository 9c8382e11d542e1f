//! Statistics of measured times, and how they are written.

use std::time::Duration;

/// The smallest of these sorted times that the given percentage of them do not exceed (the nearest rank).
pub fn percentile(sorted: &[Duration], hundredths: usize) -> Duration {
    let rank = (sorted.len() * hundredths).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// The median of sorted times, the earlier of two.
pub fn median(sorted: &[Duration]) -> Duration {
    percentile(sorted, 50)
}

/// The median of unsorted times.
pub fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// Formats a time in whole milliseconds.
pub fn milliseconds(time: Duration) -> String {
    format!("{:.0} ms", time.as_secs_f64() * 1_000.0)
}

/// Formats a time in tenths of milliseconds.
pub fn fine_milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

/// Formats a time in tenths of seconds.
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times: Vec<Duration> = (1..=20).map(Duration::from_secs).collect();
        assert_eq!(median(&times).as_secs(), 10);
        assert_eq!(percentile(&times, 95).as_secs(), 19);
        assert_eq!(percentile(&times, 100).as_secs(), 20);
        assert_eq!(median(&times[..1]).as_secs(), 1);
        assert_eq!(percentile(&times[..3], 95).as_secs(), 3);
        assert_eq!(median(&[]), Duration::ZERO);
    }
}
