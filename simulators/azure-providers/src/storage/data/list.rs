//! Lists in XML: pages and their markers.

use super::service_request::ServiceRequest;
use super::xml::Element;

/// Most items of one page, which is also the default.
const MAX_ITEMS: usize = 5_000;

/// The requested page of items in the order of their keys; the marker of the next one.
pub(super) fn page<T>(
    request: &ServiceRequest<'_>,
    mut items: Vec<T>,
    key: impl Fn(&T) -> &str,
) -> (Vec<T>, String) {
    let prefix = request.option("prefix").unwrap_or_default();
    let marker = request.option("marker").unwrap_or_default();
    let size = request.option("maxresults").and_then(|size| size.parse().ok()).unwrap_or(MAX_ITEMS);
    let size = size.clamp(1, MAX_ITEMS);
    items.retain(|item| key(item).starts_with(prefix) && key(item) >= marker);
    let next = items.get(size).map(|item| key(item).to_owned()).unwrap_or_default();
    items.truncate(size);
    (items, next)
}

/// The document around the items of a list.
pub(super) fn around(request: &ServiceRequest<'_>, items: Element, next: &str) -> Element {
    let endpoint = format!("https://{}/", request.http.host);
    let mut root = Element::new("EnumerationResults").attribute("ServiceEndpoint", &endpoint);
    let named = match (request.part.is_empty(), request.data_service.word) {
        (true, _) => None,
        (_, "file") => Some("ShareName"),
        _ => Some("ContainerName"),
    };
    if let Some(named) = named {
        root = root.attribute(named, &request.part);
    }
    for (name, option) in [("Prefix", "prefix"), ("Marker", "marker"), ("MaxResults", "maxresults")] {
        if let Some(value) = request.option(option) {
            root = root.text(name, value);
        }
    }
    root.with(items).text("NextMarker", next)
}
