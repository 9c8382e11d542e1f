//! GUIDs, by which roles and assignments are named.

/// Whether a text is a GUID with its hyphens.
pub(super) fn is_guid(text: &str) -> bool {
    let mut parts = text.split('-');
    let fits = [8, 4, 4, 4, 12].into_iter().all(|length| {
        parts
            .next()
            .is_some_and(|part| part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    fits && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::is_guid;

    #[test]
    fn a_guid_has_five_parts_of_hexadecimal_digits() {
        for (text, is) in [
            ("b24988ac-6180-42a0-ab88-20f7382dd24c", true),
            ("B24988AC-6180-42A0-AB88-20F7382DD24C", true),
            ("b24988ac618042a0ab8820f7382dd24c", false),
            ("b24988ac-6180-42a0-ab88-20f7382dd24", false),
            ("b24988ac-6180-42a0-ab88-20f7382dd24g", false),
            ("b24988ac-6180-42a0-ab88-20f7382dd24c-0", false),
            ("", false),
        ] {
            assert_eq!(is_guid(text), is, "{text}");
        }
    }
}
