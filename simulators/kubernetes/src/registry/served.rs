//! All served kinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::kind::Kind;
use crate::kinds::table::KINDS;

/// All served kinds, found by path, by name and by shelf.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(super) kinds: Vec<Arc<Kind>>,
    pub(super) by_path: BTreeMap<(String, String, String), Arc<Kind>>,
    /// For custom kinds, by shelf: a row that returns objects as they are stored.
    pub(super) as_stored: BTreeMap<Arc<str>, Arc<Kind>>,
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Self { kinds: Vec::new(), by_path: BTreeMap::new(), as_stored: BTreeMap::new() };
        registry.extend(KINDS.iter().copied().map(Kind::of));
        registry
    }
}

impl Registry {
    pub(super) fn extend(&mut self, kinds: impl IntoIterator<Item = Kind>) {
        for kind in kinds {
            let kind = Arc::new(kind);
            let path = (kind.group.clone(), kind.version.clone(), kind.plural.clone());
            self.by_path.insert(path, Arc::clone(&kind));
            self.kinds.push(kind);
        }
    }

    /// Every kind, in the order of the table; custom ones last.
    pub(crate) fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    /// The kind served under `/apis/group/version/plural` (or `/api/version/plural`).
    pub(crate) fn by_path(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned())).cloned()
    }

    /// The kind with this `apiVersion` and `kind`.
    pub(crate) fn by_type(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kinds
            .iter()
            .find(|row| row.kind == kind && row.group == group && row.version == version)
            .cloned()
    }

    /// The first kind with this kind, plural, singular or short name; the core group comes first.
    pub(crate) fn by_name(&self, name: &str) -> Option<Arc<Kind>> {
        let matches = |row: &&Arc<Kind>| {
            row.kind == name
                || row.plural == name
                || row.singular == name
                || row.short_names.iter().any(|n| n == name)
        };
        self.kinds.iter().find(matches).cloned()
    }

    /// The kind that returns the objects of this shelf in their stored form: no webhook is needed for it.
    pub(crate) fn by_shelf(&self, shelf: &str) -> Option<Arc<Kind>> {
        let own_form = |kind: &Kind| kind.builtin.is_none_or(|kind| kind.stored_form.is_none());
        let stored = || self.kinds.iter().find(|row| *row.shelf == *shelf && own_form(row));
        self.as_stored.get(shelf).or_else(stored).cloned()
    }

    /// The kind of this name for callers that cannot wait for a webhook: in its stored form if a webhook converts it.
    pub(crate) fn by_name_at_once(&self, name: &str) -> Option<Arc<Kind>> {
        let kind = self.by_name(name)?;
        if kind.is_converted() { self.by_shelf(&kind.shelf) } else { Some(kind) }
    }

    /// Whether a kind is still served as in this row: definitions of custom kinds change and are deleted.
    pub(crate) fn still_serves(&self, kind: &Kind) -> bool {
        let now = self.by_path(&kind.group, &kind.version, &kind.plural);
        now.is_some_and(|now| now.made_of == kind.made_of)
    }

    /// Whether any kind of this group and version is served.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.kinds.iter().any(|row| row.group == group && row.version == version)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_two_rows_share_a_path_and_versions_share_a_shelf() {
        let registry = Registry::default();
        let rows = registry.kinds();
        let paths: BTreeSet<_> = rows.iter().map(|row| (&row.group, &row.version, &row.plural)).collect();
        assert_eq!(paths.len(), rows.len());
        let autoscalers: BTreeSet<_> =
            rows.iter().filter(|row| row.kind == "HorizontalPodAutoscaler").map(|row| &row.shelf).collect();
        assert_eq!(autoscalers.len(), 1);
    }
}
