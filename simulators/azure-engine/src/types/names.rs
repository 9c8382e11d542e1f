//! Rules for names of new resources ("Naming rules and restrictions for Azure resources").

use crate::refusal::Refusal;

/// The form of names of some types.
pub struct NameRule {
    /// Full types, with wildcards; the first matching rule decides.
    pub of: &'static str,
    /// Whether a name has that form.
    pub fits: fn(&str) -> bool,
    /// The provider's refusal: takes the full type and the name.
    pub refusal: fn(&str, &str) -> Refusal,
}

/// Whether a name has at most so many characters, begins with a letter or digit, ends with one or with
/// an underscore, and holds nothing else but `.`, `-` and `_`: the rule of most types.
pub fn ordinary(name: &str, longest: usize) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    name.chars().count() <= longest
        && name.starts_with(char::is_alphanumeric)
        && name.ends_with(word)
        && name.chars().all(|c| word(c) || matches!(c, '.' | '-'))
}
