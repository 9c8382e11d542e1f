//! Rules for texts that several parts of the system share with Kubernetes.

/// The largest size of an event's message, in bytes.
pub const MAX_EVENT_MESSAGE: usize = 1024;

/// Parses a boolean like Go's `strconv.ParseBool`, which flags and labels use; `None` for every other text.
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// The text, cut at a character boundary so that with the mark of the cut it has at most `limit` bytes (at least the
/// mark's three).
pub fn shorten(mut text: String, limit: usize) -> String {
    const MARK: &str = "…";
    if text.len() > limit {
        let mut end = limit.saturating_sub(MARK.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let event = |text: String| shorten(text, MAX_EVENT_MESSAGE);
        assert_eq!(event("short".into()), "short");
        assert_eq!(event("x".repeat(1024)), "x".repeat(1024));
        let cut = event("ü".repeat(600));
        assert!(cut.len() <= 1024 && cut.len() > 1018 && cut.ends_with("ü…"), "{} bytes", cut.len());
        assert_eq!(shorten("long".into(), 3), "…");
    }

    #[test]
    fn booleans_are_read_as_go_reads_them() {
        for (text, value) in
            [("T", Some(true)), ("1", Some(true)), ("False", Some(false)), ("", None), ("yes", None)]
        {
            assert_eq!(parse_bool(text), value, "{text}");
        }
    }
}
