//! Resource tags: comparing, adding and, if system tags are configured, removing.

use azure_types::Tags;

use crate::outcome::Change;

/// Brings `current` to contain `desired`. Keys and values compare without regard to case. Other keys are removed only
/// if `system_tags` is set, and then only those without any of its items as a prefix.
///
/// Returns what changed; empty if nothing did.
pub(crate) fn reconcile(current: &mut Option<Tags>, desired: &Tags, system_tags: &[String]) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut tags = current.clone().unwrap_or_default();
    for (key, value) in desired {
        let existing = tags.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(key));
        match existing {
            Some((_, old)) if old.eq_ignore_ascii_case(value) => {}
            Some((name, old)) => {
                changes.push(Change::TagChanged { name: name.clone(), from: old.clone(), to: value.clone() });
                old.clone_from(value);
            }
            None => {
                changes.push(Change::TagAdded { name: key.clone(), value: value.clone() });
                tags.insert(key.clone(), value.clone());
            }
        }
    }
    if system_tags.iter().any(|prefix| !prefix.is_empty()) {
        tags.retain(|key, _| {
            let kept = desired.keys().any(|wanted| wanted.eq_ignore_ascii_case(key))
                || system_tags.iter().any(|prefix| !prefix.is_empty() && starts_with(key, prefix));
            if !kept {
                changes.push(Change::TagRemoved { name: key.clone() });
            }
            kept
        });
    }
    if !changes.is_empty() {
        *current = Some(tags);
    }
    changes
}

fn starts_with(key: &str, prefix: &str) -> bool {
    key.to_ascii_lowercase().starts_with(&prefix.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn system(prefixes: &[&str]) -> Vec<String> {
        prefixes.iter().map(|prefix| (*prefix).to_owned()).collect()
    }

    /// LB-335.
    #[test]
    fn lb_335_tags_are_added_and_changed_and_others_stay() {
        let mut current = Some(tags(&[("a", "b"), ("c", "d")]));
        let changes = reconcile(&mut current, &tags(&[("a", "x"), ("y", "z")]), &[]);
        assert_eq!(current, Some(tags(&[("a", "x"), ("c", "d"), ("y", "z")])));
        let text = |text: &str| text.to_owned();
        assert_eq!(
            changes,
            [
                Change::TagChanged { name: text("a"), from: text("b"), to: text("x") },
                Change::TagAdded { name: text("y"), value: text("z") },
            ]
        );
        assert!(reconcile(&mut current, &tags(&[("a", "x"), ("y", "z")]), &[]).is_empty());
    }

    /// LB-336.
    #[test]
    fn lb_336_system_tags_turn_removal_on_and_protect_by_prefix() {
        let desired = tags(&[("a", "x"), ("y", "z")]);
        let mut protected = Some(tags(&[("a", "b"), ("c", "d")]));
        reconcile(&mut protected, &desired, &system(&["c"]));
        assert_eq!(protected, Some(tags(&[("a", "x"), ("c", "d"), ("y", "z")])));
        let mut removed = Some(tags(&[("a", "b"), ("c", "d")]));
        reconcile(&mut removed, &desired, &system(&["q"]));
        assert_eq!(removed, Some(desired));
    }

    #[test]
    fn keys_in_another_case_are_the_same_key() {
        let mut current = Some(tags(&[("Owner", "me")]));
        assert!(reconcile(&mut current, &tags(&[("owner", "me")]), &system(&["q"])).is_empty());
        assert_eq!(current, Some(tags(&[("Owner", "me")])));
    }

    /// LB-336.
    #[test]
    fn an_empty_item_of_system_tags_protects_nothing() {
        let current = tags(&[("a", "b"), ("c", "d"), ("q1", "r")]);
        let mut removed = Some(current.clone());
        reconcile(&mut removed, &tags(&[("a", "b")]), &system(&["", "q"]));
        assert_eq!(removed, Some(tags(&[("a", "b"), ("q1", "r")])));
        let mut kept = Some(current.clone());
        assert_eq!(reconcile(&mut kept, &tags(&[("a", "b")]), &system(&[""])), []);
        assert_eq!(kept, Some(current), "without a real item nothing is removed");
    }
}
