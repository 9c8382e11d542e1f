//! Lists in XML: pages and their markers.

use super::asked::Asked;
use super::xml::Element;

/// Most items of one page, which is also the default.
const MAX_ITEMS: usize = 5_000;

/// The requested page of items in the order of their keys; the marker of the next one.
pub(super) fn page<T>(asked: &Asked<'_>, mut items: Vec<T>, key: impl Fn(&T) -> &str) -> (Vec<T>, String) {
    let prefix = asked.option("prefix").unwrap_or_default();
    let marker = asked.option("marker").unwrap_or_default();
    let size = asked.option("maxresults").and_then(|size| size.parse().ok()).unwrap_or(MAX_ITEMS);
    let size = size.clamp(1, MAX_ITEMS);
    items.retain(|item| key(item).starts_with(prefix) && key(item) >= marker);
    let next = items.get(size).map(|item| key(item).to_owned()).unwrap_or_default();
    items.truncate(size);
    (items, next)
}

/// The document around the items of a list.
pub(super) fn around(asked: &Asked<'_>, items: Element, next: &str) -> Element {
    let endpoint = format!("https://{}/", asked.request.host);
    let mut root = Element::new("EnumerationResults").attribute("ServiceEndpoint", &endpoint);
    let named = match (asked.part.is_empty(), asked.served.word) {
        (true, _) => None,
        (_, "file") => Some("ShareName"),
        _ => Some("ContainerName"),
    };
    if let Some(named) = named {
        root = root.attribute(named, &asked.part);
    }
    for (name, option) in [("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults")] {
        if let Some(value) = asked.option(option) {
            root = root.with(Element::text(name, value));
        }
    }
    root.with(items).with(Element::text("NextMarker", next))
}
