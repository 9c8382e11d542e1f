//! Tags as users write them (cloud-provider-azure, "Tagging resources managed by Cloud Provider Azure").

use std::collections::BTreeMap;

use crate::{Problem, Remedy};

/// Tags by key, ordered by key. No two keys are equal without regard to case, because Azure treats them as one.
pub type Tags = BTreeMap<String, String>;

/// Parses `a=b,c=d`. Pieces that are not one `key=value` are left out and returned with the tags, so that the program
/// can log them.
///
/// Keys and values are trimmed, except that a value which is `null` in any case keeps its spaces: Azure reserves the
/// bare word. A later key replaces an earlier one that is equal without regard to case.
pub fn parse_tags(text: &str) -> (Tags, Vec<String>) {
    let mut tags = Tags::new();
    let mut ignored = Vec::new();
    for piece in text.split(',').filter(|piece| !piece.trim().is_empty()) {
        let mut parts = piece.split('=');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(key), Some(value), None) if !key.trim().is_empty() => insert(&mut tags, key, value),
            _ => ignored.push(piece.trim().to_owned()),
        }
    }
    (tags, ignored)
}

/// Merges `over` into `under`: keys equal without regard to case are replaced, spelling included.
pub fn merge_tags(under: &mut Tags, over: &Tags) {
    for (key, value) in over {
        insert(under, key, value);
    }
}

/// Inserts one tag under the rules of [`parse_tags`]; an empty key is ignored.
pub(crate) fn insert(tags: &mut Tags, key: &str, value: &str) {
    let key = key.trim();
    if key.is_empty() {
        return;
    }
    let trimmed = value.trim();
    let value = if trimmed.eq_ignore_ascii_case("null") { value } else { trimmed };
    tags.retain(|existing, _| !existing.eq_ignore_ascii_case(key));
    tags.insert(key.to_owned(), value.to_owned());
}

/// The prefixes of `systemTags`, trimmed. Empty items are ignored: an empty prefix would match every key and silently
/// turn deletion off.
pub(crate) fn parse_system_tags(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|prefix| !prefix.is_empty()).map(str::to_owned).collect()
}

/// Limits that Azure enforces on every resource: names over 512 and values over 256 characters are refused.
pub(crate) fn limits(tags: &Tags) -> impl Iterator<Item = Problem> {
    tags.iter().filter(|(key, value)| key.chars().count() > 512 || value.chars().count() > 256).map(
        |(key, _)| {
            Problem::new(
                "tags",
                key.chars().take(64).collect::<String>(),
                "Azure takes tag names of at most 512 and values of at most 256 characters",
                Remedy::give("tags", "shorter tags"),
            )
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(pairs: &[(&str, &str)]) -> Tags {
        pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
    }

    /// LB-334.
    #[test]
    fn lb_334_pieces_that_are_no_pair_are_ignored_and_null_keeps_its_spaces() {
        let (parsed, ignored) = parse_tags("a=b, c = d ,e,f=g=h, x= null");
        assert_eq!(parsed, tags(&[("a", "b"), ("c", "d"), ("x", " null")]));
        assert_eq!(ignored, ["e", "f=g=h"]);
    }

    /// NODE-145.
    #[test]
    fn node_145_tag_strings() {
        for (text, expected) in [
            ("a=b,c", tags(&[("a", "b")])),
            (" k = v ", tags(&[("k", "v")])),
            ("k= Null ", tags(&[("k", " Null ")])),
            ("=x", tags(&[])),
            ("", tags(&[])),
            ("a=1,A=2", tags(&[("A", "2")])),
            ("a=", tags(&[("a", "")])),
        ] {
            assert_eq!(parse_tags(text).0, expected, "{text}");
        }
    }

    #[test]
    fn empty_prefixes_do_not_protect_everything() {
        assert_eq!(parse_system_tags(" kubernetes , aks-,, "), ["kubernetes", "aks-"]);
    }
}
