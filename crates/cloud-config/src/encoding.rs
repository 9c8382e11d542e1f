//! The encodings of text files that users write.

/// The encoding of a file that is not valid text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodingError {
    /// There is a byte order mark of UTF-16.
    #[error("it is not UTF-16 text")]
    Utf16,
    /// There is none.
    #[error("it is not UTF-8 text")]
    Utf8,
}

/// The text of a file: UTF-8, or UTF-16 with a byte order mark, as Windows PowerShell writes it. The result has no byte
/// order mark.
///
/// # Errors
/// The bytes are invalid in their encoding.
pub fn decode(bytes: &[u8]) -> Result<String, EncodingError> {
    let utf_16 = |rest: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest.chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect();
        String::from_utf16(&units).map_err(|_| EncodingError::Utf16)
    };
    match bytes {
        [0xFF, 0xFE, rest @ ..] => utf_16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf_16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] | rest => {
            std::str::from_utf8(rest).map(str::to_owned).map_err(|_| EncodingError::Utf8)
        }
    }
}
