//! Which names new resources may have ("Naming rules and restrictions for Azure resources").

use std::collections::HashSet;

use azure_types::ResourceId;

use super::document::{items, name};
use super::error::Refusal;
use super::glob::matches;
use super::state::AzureState;
use super::store::Record;

/// What names of some types look like.
pub(crate) struct NameRule {
    /// Full types, with wildcards; the first rule that fits a type decides.
    pub(crate) of: &'static str,
    pub(crate) fits: fn(&str) -> bool,
    /// How the provider words it: takes the full type and the name.
    pub(crate) refusal: fn(&str, &str) -> Refusal,
}

/// Whether a name has at most so many characters, begins with a letter or digit, ends with one or with
/// an underscore, and holds nothing else but `.`, `-` and `_`: the rule of most types.
pub(crate) fn ordinary(name: &str, longest: usize) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    name.chars().count() <= longest
        && name.starts_with(char::is_alphanumeric)
        && name.ends_with(word)
        && name.chars().all(|c| word(c) || matches!(c, '.' | '-'))
}

impl AzureState {
    /// Checks the names that a write brings in: of the resource, and of children that were not there.
    pub(crate) fn check_names(&self, candidate: &Record, old: Option<&Record>) -> Result<(), Refusal> {
        let resource_type = candidate.resource_type.name();
        if old.is_none() {
            self.check_name(&candidate.id, resource_type, candidate.id.name())?;
        }
        for collection in candidate.resource_type.protocol().child_collections {
            let path = format!("properties/{}", collection.name);
            let before = old.map_or(&[][..], |old| items(&old.body, &path));
            let before: HashSet<String> =
                before.iter().map(|child| name(child).to_ascii_lowercase()).collect();
            let child_type = format!("{resource_type}/{}", collection.name);
            for child in items(&candidate.body, &path).iter().map(name) {
                if !before.contains(&child.to_ascii_lowercase()) {
                    self.check_name(&candidate.id, &child_type, child)?;
                }
            }
        }
        Ok(())
    }

    fn check_name(&self, id: &ResourceId, resource_type: &str, name: &str) -> Result<(), Refusal> {
        let provider = id.namespace().and_then(|namespace| self.provider(namespace));
        let rules = provider.map_or(&[][..], |provider| provider.names);
        match rules.iter().find(|rule| matches(rule.of, resource_type)) {
            Some(rule) if !(rule.fits)(name) => Err((rule.refusal)(resource_type, name)),
            _ => Ok(()),
        }
    }
}
