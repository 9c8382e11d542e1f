//! Texts for people.

/// Whether `word` occurs in `text` without an adjacent letter, digit, dot or dash that would make it part of a longer
/// name.
pub(crate) fn names_word(text: &str, word: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ':');
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let mut after = text[at + word.len()..].chars();
        let next = after.next();
        // A full stop that ends a sentence is not part of an address.
        let dotted = next == Some('.') && after.next().is_some_and(char::is_alphanumeric);
        !before.is_some_and(|c| joins(c) || c == '.') && !next.is_some_and(joins) && !dotted
    })
}

/// The maximum number of names in a text for people: enough to see what they have in common. The rest is counted.
pub(crate) const MAX_NAMED: usize = 5;

/// The first of some names, and the number of the others.
pub(crate) fn name_some<T: AsRef<str>>(names: &[T]) -> String {
    let (named, more) = names.split_at(names.len().min(MAX_NAMED));
    let named = named.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if more.is_empty() { named } else { format!("{named} and {} more", more.len()) }
}

/// A value, or `none`.
pub(crate) fn or_none<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}
