//! Ranges of bytes.

use azure_engine::answer::data_plane::DataAnswer;
use azure_engine::refusal::{Code, Refusal, Result};

use super::service_request::ServiceRequest;

/// The refusal of a range outside the file.
pub(super) fn bad() -> Refusal {
    Code::azures(416, "InvalidRange")
        .says("The range specified is invalid for the current size of the resource.")
}

/// First and last byte of `bytes=a-b`; in `bytes=a-` the end is open.
pub(super) fn parse(text: &str) -> Option<(usize, Option<usize>)> {
    let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    let last = if last.is_empty() { None } else { Some(last.parse().ok()?) };
    Some((first.parse().ok()?, last))
}

/// The range that a request names.
pub(super) fn requested_range(request: &ServiceRequest<'_>) -> Option<(usize, Option<usize>)> {
    request.header("x-ms-range").or(request.header("range")).and_then(parse)
}

/// The bytes that a request reads: all of them, or the range that it names.
pub(super) fn read(request: &ServiceRequest<'_>, bytes: &[u8]) -> Result<DataAnswer> {
    let length = bytes.len();
    let Some((first, last)) = requested_range(request) else {
        return Ok(DataAnswer { body: bytes.to_vec(), ..DataAnswer::empty(200) });
    };
    let end = last.map_or(length, |last| length.min(last.saturating_add(1)));
    match bytes.get(first..end).filter(|part| !part.is_empty()) {
        Some(part) => Ok(DataAnswer { body: part.to_vec(), ..DataAnswer::empty(206) }
            .with("content-range", format!("bytes {first}-{}/{length}", end - 1))),
        None => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn ranges_have_a_beginning() {
        assert_eq!(parse("bytes=0-9"), Some((0, Some(9))));
        assert_eq!(parse("bytes=5-"), Some((5, None)));
        assert_eq!(parse("bytes=-5"), None);
    }
}
