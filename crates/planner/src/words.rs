//! Texts for people.

/// How many things a text for people names: enough to see what they have in common. The rest is counted.
pub(crate) const MAX_NAMED: usize = 5;

/// The first of some names, and how many more there are.
pub(crate) fn name_some<T: AsRef<str>>(names: &[T]) -> String {
    let (named, more) = names.split_at(names.len().min(MAX_NAMED));
    let named = named.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if more.is_empty() { named } else { format!("{named} and {} more", more.len()) }
}
