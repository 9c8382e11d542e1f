//! Pages of lists.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// Fewer bytes than any recorded token of Azure has.
const LEAST_FOREIGN: usize = 64;

/// One page of `items`, which are ordered by [`sort`]; and the token for the next page, if there is one.
///
/// The token names the last shown item, so that items that are added or deleted between two pages neither repeat nor
/// hide others.
pub fn page<T>(
    mut items: Vec<T>,
    id: impl Fn(&T) -> &str,
    token: Option<&str>,
    size: usize,
) -> Option<(Vec<T>, Option<String>)> {
    if let Some(token) = token {
        let Some((number, text)) = decode(token) else {
            // A token of another Resource Manager is long and opaque: there are no items behind it.
            let foreign = STANDARD.decode(token).is_ok_and(|bytes| bytes.len() >= LEAST_FOREIGN);
            return foreign.then(|| (Vec::new(), None));
        };
        items.retain(|item| {
            let item = id(item);
            let own = number_of(item);
            own > number || own == number && item.to_ascii_lowercase() > text
        });
    }
    let more = items.len() > size.max(1);
    items.truncate(size.max(1));
    let next = items.last().filter(|_| more).map(|last| encode(number_of(id(last)), id(last)));
    Some((items, next))
}

/// The same with the last name in Base64 as token, and an empty last page.
pub fn page_by_name<T>(
    mut items: Vec<T>,
    name: impl Fn(&T) -> &str,
    token: Option<&str>,
    size: usize,
) -> Option<(Vec<T>, Option<String>)> {
    items.sort_by_cached_key(|item| name(item).to_ascii_lowercase());
    if let Some(token) = token {
        let last = String::from_utf8(STANDARD.decode(token).ok()?).ok()?.to_ascii_lowercase();
        items.retain(|item| name(item).to_ascii_lowercase() > last);
    }
    items.truncate(size.max(1));
    let next = items.last().map(|last| STANDARD.encode(name(last)));
    Some((items, next))
}

/// Orders items, which are in the order of their lower-case ids: those with a number for a name come
/// first, by number.
pub fn sort<T>(items: &mut [T], id: impl Fn(&T) -> &str) {
    items.sort_by_cached_key(|item| number_of(id(item)));
}

fn number_of(id: &str) -> u64 {
    id.rsplit('/').next().and_then(|last| last.parse().ok()).unwrap_or(u64::MAX)
}

fn encode(number: u64, text: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{number}:{}", text.to_ascii_lowercase()))
}

fn decode(token: &str) -> Option<(u64, String)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (number, text) = text.split_once(':')?;
    Some((number.parse().ok()?, text.into()))
}

#[cfg(test)]
mod tests {
    use super::{page, page_by_name, sort};

    #[test]
    fn pages_neither_repeat_nor_hide_items() {
        let mut items: Vec<String> = (0..25).map(|n| format!("/set/{n}")).collect();
        items.sort();
        sort(&mut items, |item| item);
        let (mut seen, mut token) = (Vec::new(), None::<String>);
        loop {
            let (mut some, next) = page(items.clone(), |item| item, token.as_deref(), 10).unwrap();
            seen.append(&mut some);
            // An item that was shown is deleted in between.
            items.retain(|item| item != "/set/3");
            token = next;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..25).map(|n| format!("/set/{n}")).collect::<Vec<_>>());
        assert!(page(items.clone(), |item| item, Some("%%"), 10).is_none());
        let foreign = "5ZBBasMw".repeat(20);
        assert_eq!(page(items, |item| item, Some(&foreign), 10), Some((Vec::new(), None)));
    }

    #[test]
    fn an_empty_page_comes_last() {
        let (first, token) = page_by_name(vec!["b", "A", "c"], |item| item, None, 2).unwrap();
        assert_eq!(first, ["A", "b"]);
        let (second, token) = page_by_name(vec!["b", "A", "c"], |item| item, token.as_deref(), 2).unwrap();
        assert_eq!(second, ["c"]);
        let (last, token) = page_by_name(vec!["b", "A", "c"], |item| item, token.as_deref(), 2).unwrap();
        assert!(last.is_empty() && token.is_none());
        assert!(page_by_name(vec!["a"], |item| item, Some("%%"), 2).is_none());
    }
}
