//! The beginning of an answer, short enough for an error.

/// The beginning of what a service says, in one line.
pub(crate) fn excerpt(body: &[u8]) -> String {
    const MAX_CHARS: usize = 300;
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.join(" ") {
        text if text.is_empty() => "(no text)".to_owned(),
        text => text.chars().take(MAX_CHARS).collect(),
    }
}
