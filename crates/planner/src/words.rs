//! Texts for people.

/// The maximum number of names in a text for people: enough to see what they have in common. The rest is counted.
pub(crate) const MAX_NAMED: usize = 5;

/// The first of some names, and the number of the others.
pub(crate) fn name_some<T: AsRef<str>>(names: &[T]) -> String {
    let (named, more) = names.split_at(names.len().min(MAX_NAMED));
    let named = named.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if more.is_empty() { named } else { format!("{named} and {} more", more.len()) }
}
