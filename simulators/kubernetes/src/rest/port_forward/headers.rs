//! Headers of SPDY/3 streams: names and values with their lengths, compressed by one zlib stream for each connection
//! and direction, with a dictionary that both sides have ("SPDY Protocol, Draft 3", section 2.6.10).

use std::collections::BTreeMap;

use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{DecompressorOxide, decompress, inflate_flags};

/// The dictionary: these words, each after its length, and [`ENDING`].
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age \
    allow authorization cache-control connection content-base content-encoding content-language content-length content-location \
    content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range \
    if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer \
    retry-after server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status \
    200_OK version HTTP/1.1 url public set-cookie keep-alive origin";
const ENDING: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 \
    Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not \
    Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec \
    00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,\
    application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=\
    iso-8859-1,utf-,*,enq=0.";
/// The length of the zlib header with the checksum of the dictionary.
const ZLIB_HEADER: usize = 6;
/// Maximum size of a connection's headers.
const MAX_BYTES: usize = 256 * 1024;

fn dictionary() -> Vec<u8> {
    let words = WORDS.split_whitespace().map(|word| word.replace('_', " "));
    let mut bytes = Vec::new();
    for word in words {
        bytes.extend(u32::try_from(word.len()).unwrap_or_default().to_be_bytes());
        bytes.extend(word.as_bytes());
    }
    bytes.extend(ENDING.as_bytes());
    bytes
}

/// Reads the headers of one connection's streams, in order.
pub(super) struct Reader {
    state: Box<DecompressorOxide>,
    /// The dictionary and all headers read so far: later headers may refer to them.
    known: Vec<u8>,
    end: usize,
    begun: bool,
}

impl Reader {
    pub(super) fn new() -> Self {
        let mut known = dictionary();
        let end = known.len();
        known.resize(end + MAX_BYTES, 0);
        Self { state: Box::default(), known, end, begun: false }
    }

    /// The headers of the next stream, by name. `None` if they are malformed; the connection cannot be used any more.
    pub(super) fn read(&mut self, compressed: &[u8]) -> Option<BTreeMap<String, String>> {
        let mut input = if self.begun { compressed } else { compressed.get(ZLIB_HEADER..)? };
        self.begun = true;
        let begin = self.end;
        let flags = inflate_flags::TINFL_FLAG_HAS_MORE_INPUT
            | inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
        loop {
            let (status, read, written) =
                decompress(&mut self.state, input, &mut self.known, self.end, flags);
            self.end += written;
            input = input.get(read..)?;
            match status {
                TINFLStatus::NeedsMoreInput if input.is_empty() => break,
                TINFLStatus::NeedsMoreInput => {}
                _ => return None,
            }
        }
        parse(self.known.get(begin..self.end)?)
    }
}

/// Names and values, each after its length; their number comes first.
fn parse(mut bytes: &[u8]) -> Option<BTreeMap<String, String>> {
    fn number(bytes: &mut &[u8]) -> Option<usize> {
        let (head, rest) = bytes.split_at_checked(4)?;
        *bytes = rest;
        usize::try_from(u32::from_be_bytes(head.try_into().ok()?)).ok()
    }
    fn text(bytes: &mut &[u8]) -> Option<String> {
        let length = number(bytes)?;
        let (head, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        String::from_utf8(head.to_vec()).ok()
    }
    let count = number(&mut bytes)?;
    let mut headers = BTreeMap::new();
    for _ in 0..count {
        let name = text(&mut bytes)?.to_ascii_lowercase();
        headers.insert(name, text(&mut bytes)?);
    }
    Some(headers)
}

/// Empty headers, for the first or a later stream of this side: stored uncompressed, without the dictionary.
pub(super) fn none(first: bool) -> Vec<u8> {
    const NO_HEADERS: [u8; 4] = [0; 4];
    // A stored block that is not the last one: its length, and the length's complement.
    const STORED: [u8; 5] = [0x00, 0x04, 0x00, 0xfb, 0xff];
    // An empty block. Without it Go's reader looks for the next block at once, and finds the end of the data.
    const FLUSH: [u8; 5] = [0x00, 0x00, 0x00, 0xff, 0xff];
    let begin: &[u8] = if first { &[0x78, 0x01] } else { &[] };
    [begin, &STORED, &NO_HEADERS, &FLUSH].concat()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two blocks that Go's implementation (github.com/moby/spdystream 0.5.1) wrote for the error stream and the data
    /// stream of a forwarded port 2379.
    pub(crate) const OF_GO: [&[u8]; 2] = include!("of_go.txt");

    #[test]
    fn the_dictionary_is_the_one_of_the_draft() {
        // The Adler-32 checksum at the beginning of each stream.
        let (mut one, mut two) = (1_u32, 0_u32);
        for byte in dictionary() {
            one = (one + u32::from(byte)) % 65521;
            two = (two + one) % 65521;
        }
        assert_eq!((dictionary().len(), two << 16 | one), (1423, 0xe3c6_a7c2));
    }

    #[test]
    fn headers_of_go_are_read() {
        let mut reader = Reader::new();
        for (block, kind) in OF_GO.iter().zip(["error", "data"]) {
            let headers = reader.read(block).unwrap();
            let expected = [("port", "2379"), ("requestid", "0"), ("streamtype", kind)];
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(headers, BTreeMap::from(expected));
        }
        assert!(reader.read(b"nonsense").is_none());
    }
}
