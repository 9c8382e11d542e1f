//! Pages of lists (`spec/arm-wire.md`, 8.1).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// One page out of `items`, which are ordered by `key`; the token for the next page, where one is left.
///
/// The token names the last item shown, so that items which come or go between two pages neither
/// repeat nor hide others.
pub(crate) fn page<T, K: Fn(&T) -> (u64, String)>(
    mut items: Vec<T>,
    key: K,
    token: Option<&str>,
    size: usize,
) -> Option<(Vec<T>, Option<String>)> {
    if let Some(token) = token {
        let last = decode(token)?;
        items.retain(|item| key(item) > last);
    }
    let more = items.len() > size.max(1);
    items.truncate(size.max(1));
    let next = items.last().filter(|_| more).map(|last| encode(&key(last)));
    Some((items, next))
}

/// Orders numbered names by number and others by text.
pub(crate) fn order_of(name: &str) -> (u64, String) {
    let lower = name.to_ascii_lowercase();
    let last = lower.rsplit('/').next().unwrap_or_default();
    (last.parse().unwrap_or(u64::MAX), lower)
}

/// The same for an id: by its parent, then by number or name.
pub(crate) fn order_of_id(id: &azure_types::ResourceId) -> (u64, String) {
    order_of(id.as_str())
}

fn encode((number, text): &(u64, String)) -> String {
    URL_SAFE_NO_PAD.encode(format!("{number}:{text}"))
}

fn decode(token: &str) -> Option<(u64, String)> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (number, text) = text.split_once(':')?;
    Some((number.parse().ok()?, text.into()))
}

#[cfg(test)]
mod tests {
    use super::{order_of, page};

    #[test]
    fn pages_neither_repeat_nor_hide_items() {
        let mut items: Vec<String> = (0..25).map(|n| format!("/set/{n}")).collect();
        items.sort_by_key(|item| order_of(item));
        let (mut seen, mut token) = (Vec::new(), None::<String>);
        loop {
            let (mut some, next) = page(items.clone(), |item| order_of(item), token.as_deref(), 10).unwrap();
            seen.append(&mut some);
            // One that was shown goes in between.
            items.retain(|item| item != "/set/3");
            token = next;
            if token.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..25).map(|n| format!("/set/{n}")).collect::<Vec<_>>());
        assert!(page(items, |item| order_of(item), Some("%%"), 10).is_none());
    }
}
