//! Ranges of bytes.

use azure_engine::answer::data_plane::DataAnswer;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};

use super::service_request::{ServiceRequest, bad_header};
use super::source;
use crate::storage::sparse::Bytes;

/// The most bytes of one answer: they are in memory.
const MAX_READ_BYTES: u64 = 1024 * 1024 * 1024;

/// The refusal of a range outside the file.
pub(super) fn bad() -> Refusal {
    Code::azures(416, "InvalidRange")
        .says("The range specified is invalid for the current size of the resource.")
}

/// First and last byte of `bytes=a-b`; in `bytes=a-` the end is open.
pub(super) fn parse(text: &str) -> Option<(u64, Option<u64>)> {
    let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    let last = if last.is_empty() { None } else { Some(last.parse().ok()?) };
    Some((first.parse().ok()?, last))
}

/// The range that a request names.
pub(super) fn requested_range(request: &ServiceRequest<'_>) -> Option<(u64, Option<u64>)> {
    request.header("x-ms-range").or(request.header("range")).and_then(parse)
}

/// The range of the source that a request names.
pub(super) fn source_range(request: &ServiceRequest<'_>) -> Option<(u64, Option<u64>)> {
    request.header("x-ms-source-range").and_then(parse)
}

/// The bytes of a range, as far as there are so many.
pub(super) fn part(bytes: &Bytes, (first, last): (u64, Option<u64>)) -> Result<Vec<u8>> {
    let end = last.map_or(bytes.len(), |last| bytes.len().min(last.saturating_add(1)));
    let fits = end > first && end - first <= MAX_READ_BYTES;
    bytes.read(first, end).filter(|_| fits).ok_or_else(bad)
}

/// The bytes that a request reads: all of them, or the range that it names.
pub(super) fn read(request: &ServiceRequest<'_>, bytes: &Bytes) -> Result<DataAnswer> {
    let length = bytes.len();
    let Some((first, last)) = requested_range(request) else {
        let body = if length == 0 { Vec::new() } else { part(bytes, (0, None))? };
        return Ok(DataAnswer { body, ..DataAnswer::empty(200) });
    };
    let body = part(bytes, (first, last))?;
    let end = first + body.len() as u64;
    Ok(DataAnswer { body, ..DataAnswer::empty(206) }
        .with("content-range", format!("bytes {first}-{}/{length}", end - 1)))
}

/// A change of a range.
pub(super) struct Change {
    first: u64,
    end: u64,
    /// The new bytes; zeros without them.
    bytes: Option<Vec<u8>>,
}

impl Change {
    /// What a request asks for: the bytes that it sends, those of its source, or, where the header `what` says so, zeros.
    pub(super) fn of(azure: &AzureState, request: &ServiceRequest<'_>, what: &str) -> Result<Self> {
        let Some((first, Some(last))) = requested_range(request) else { return Err(bad_header()) };
        let clears = request.header(what).is_some_and(|what| what.eq_ignore_ascii_case("clear"));
        let bytes = match request.header("x-ms-copy-source") {
            _ if clears => None,
            Some(_) => {
                let range = source_range(request).ok_or_else(bad_header)?;
                Some(part(&source::bytes(azure, request)?, range)?)
            }
            None => Some(request.http.body.to_vec()),
        };
        let end = last.saturating_add(1);
        let wanted = end.saturating_sub(first);
        match bytes.as_ref().is_none_or(|bytes| bytes.len() as u64 == wanted) {
            true => Ok(Self { first, end, bytes }),
            false => Err(bad_header()),
        }
    }

    /// Whether the range begins and ends with a page of that many bytes.
    pub(super) fn is_of_pages(&self, page: u64) -> bool {
        self.first.is_multiple_of(page) && self.end.is_multiple_of(page)
    }

    /// Makes the change.
    pub(super) fn apply(&self, bytes: &mut Bytes) -> Result<()> {
        let fits = match &self.bytes {
            Some(new) => bytes.write(self.first, new),
            None => bytes.clear(self.first, self.end),
        };
        if fits { Ok(()) } else { Err(bad()) }
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
