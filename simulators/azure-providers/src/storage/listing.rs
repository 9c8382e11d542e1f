//! Query options of lists of shares and containers: `$filter`, `$maxpagesize`.

use std::collections::BTreeMap;

/// Most items of one page, which is also the default.
const MAX_PAGE: usize = 5_000;

/// How many items a page has at most.
pub(super) fn page_size(query: &BTreeMap<String, String>) -> usize {
    let asked = query.get("$maxpagesize").and_then(|size| size.parse().ok());
    asked.filter(|size| (1..=MAX_PAGE).contains(size)).unwrap_or(MAX_PAGE)
}

/// Whether a name begins as a filter `startswith(name, prefix)` says; other filters admit everything.
pub(super) fn admits(filter: &str, name: &str) -> bool {
    let inner = filter.trim().strip_prefix("startswith(").and_then(|rest| rest.strip_suffix(')'));
    let prefix = inner.and_then(|inner| inner.split_once(',')).map(|(_, prefix)| prefix);
    prefix.is_none_or(|prefix| name.starts_with(prefix.trim().trim_matches('\'')))
}

#[cfg(test)]
mod tests {
    use super::admits;

    #[test]
    fn filters_compare_beginnings() {
        for (filter, admitted) in [
            ("startswith(name, pvc-1)", true),
            ("startswith(name,'pvc')", true),
            ("startswith(name, other)", false),
            ("", true),
        ] {
            assert_eq!(admits(filter, "pvc-123"), admitted, "{filter}");
        }
    }
}
