//! Until when a caller waits (gRPC over HTTP/2, `grpc-timeout`).

use std::time::Duration;

use tokio::time::Instant;
use tonic::metadata::MetadataMap;

const HEADER: &str = "grpc-timeout";

/// How long a kubelet waits for calls about volumes.
const DEFAULT: Duration = Duration::from_secs(120);

/// How much earlier waiting ends, so that the caller gets the reason instead of its own timeout.
const MARGIN: Duration = Duration::from_secs(5);

/// When a wait within a call has to end.
pub(super) fn of(metadata: &MetadataMap) -> Instant {
    let given = metadata.get(HEADER).and_then(|text| text.to_str().ok()).and_then(parse);
    let whole = given.unwrap_or(DEFAULT);
    Instant::now() + whole.saturating_sub(MARGIN).max(whole / 2)
}

fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number.checked_mul(3_600)?),
        "M" => Duration::from_secs(number.checked_mul(60)?),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_wait_ends_a_moment_before_the_callers_deadline() {
        for (text, seconds) in [
            (None, 115.0),
            (Some("120S"), 115.0),
            (Some("2M"), 115.0),
            (Some("1H"), 3_595.0),
            (Some("6000m"), 3.0),
            (Some("1000000u"), 0.5),
            (Some("x"), 115.0),
            (Some(""), 115.0),
            (Some("5é"), 115.0),
        ] {
            let mut metadata = MetadataMap::new();
            if let Some(text) = text
                && let Ok(value) = text.parse()
            {
                metadata.insert(HEADER, value);
            }
            assert_eq!((of(&metadata) - Instant::now()).as_secs_f64(), seconds, "{text:?}");
        }
    }
}
