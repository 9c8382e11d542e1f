//! Signatures of requests by an account's key ("Authorize with Shared Key").

use std::collections::BTreeMap;

use azure_engine::answer::data_plane::DataRequest;

/// Headers that are signed by value alone, in this order.
const HEADERS: [&str; 11] = [
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
];

/// The text that a client signs.
pub(super) fn text(request: &DataRequest<'_>, account: &str) -> String {
    let header = |name: &str| request.headers.get(name).map(|value| value.trim()).unwrap_or_default();
    let dated = request.headers.contains_key("x-ms-date");
    let mut lines = vec![request.method];
    lines.extend(HEADERS.iter().map(|name| match *name {
        // Since version 2015-02-21 an empty body has no length.
        "content-length" if header(name) == "0" => "",
        "date" if dated => "",
        name => header(name),
    }));
    let mut text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    for (name, value) in request.headers.iter().filter(|(name, _)| name.starts_with("x-ms-")) {
        text.push_str(&format!("{name}:{}\n", value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    let path = if request.path.is_empty() { "/" } else { request.path };
    text.push_str(&format!("/{account}{path}"));
    let mut options: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(request.raw_query.as_bytes()) {
        options.entry(name.to_ascii_lowercase()).or_default().push(value.into_owned());
    }
    for (name, mut values) in options {
        values.sort();
        text.push_str(&format!("\n{name}:{}", values.join(",")));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{DataRequest, text};

    #[test]
    fn the_signed_text_is_the_documented_one() {
        // The example of "Authorize with Shared Key", for the file service.
        let headers = BTreeMap::from(
            [
                ("content-length", "0"),
                ("x-ms-date", "Fri, 26 Jun 2015 23:39:12 GMT"),
                ("x-ms-version", "2015-02-21"),
                ("user-agent", "x"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let request = DataRequest {
            method: "GET",
            host: "a.file.core.windows.net",
            account: "myaccount",
            path: "/mycontainer",
            raw_query: "restype=container&comp=metadata&timeout=20",
            query: &BTreeMap::new(),
            headers: &headers,
            body: &[],
            secure: true,
            caller: None,
        };
        assert_eq!(
            text(&request, "myaccount"),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\nx-ms-version:2015-02-21\n\
             /myaccount/mycontainer\ncomp:metadata\nrestype:container\ntimeout:20"
        );
    }
}
