//! Members with a text. An empty text counts as absent, as for clients written in Go.

/// The text of a member.
pub(crate) fn text(member: &Option<String>) -> &str {
    member.as_deref().unwrap_or_default()
}

/// Whether a member has a text.
pub(crate) fn is_set(member: &Option<String>) -> bool {
    !text(member).is_empty()
}

/// Sets a member that has no text.
pub(crate) fn fill(member: &mut Option<String>, value: impl Into<String>) {
    if !is_set(member) {
        *member = Some(value.into());
    }
}

/// Sets a member that has no text to its known one.
pub(crate) fn keep(member: &mut Option<String>, known: &Option<String>) {
    if !is_set(member) && known.is_some() {
        member.clone_from(known);
    }
}
