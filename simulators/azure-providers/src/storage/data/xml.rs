//! XML as the services write it.

/// An element with attributes, and text or elements in it.
pub(super) struct Element {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    text: String,
    inner: Vec<Element>,
    /// For metadata, whose names clients choose.
    named: Option<String>,
}

impl Element {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, attributes: Vec::new(), text: String::new(), inner: Vec::new(), named: None }
    }

    /// Adds an element with a text.
    pub(super) fn text(self, name: &'static str, text: &str) -> Self {
        self.with(Self { text: text.to_owned(), ..Self::new(name) })
    }

    /// The same, where there is a text.
    pub(super) fn text_if(self, name: &'static str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    /// The metadata of something: an element for each.
    pub(super) fn metadata<'a>(pairs: impl IntoIterator<Item = (&'a String, &'a str)>) -> Self {
        let inner = pairs
            .into_iter()
            .map(|(name, value)| Self {
                named: Some(name.to_owned()),
                text: value.to_owned(),
                ..Self::new("")
            })
            .collect();
        Self { inner, ..Self::new("Metadata") }
    }

    pub(super) fn attribute(mut self, name: &'static str, value: &str) -> Self {
        self.attributes.push((name, value.to_owned()));
        self
    }

    pub(super) fn with(mut self, inner: Self) -> Self {
        self.inner.push(inner);
        self
    }

    fn write(&self, into: &mut String) {
        let name = self.named.as_deref().unwrap_or(self.name);
        into.push('<');
        into.push_str(name);
        for (attribute, value) in &self.attributes {
            into.push_str(&format!(" {attribute}=\"{}\"", escaped(value)));
        }
        if self.text.is_empty() && self.inner.is_empty() {
            into.push_str(" />");
            return;
        }
        into.push('>');
        into.push_str(&escaped(&self.text));
        self.inner.iter().for_each(|inner| inner.write(into));
        into.push_str(&format!("</{name}>"));
    }
}

/// A whole document.
pub(super) fn document(root: Element) -> Vec<u8> {
    let mut text = "<?xml version=\"1.0\" encoding=\"utf-8\"?>".to_owned();
    root.write(&mut text);
    text.into_bytes()
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The text of the first element of a name in a small document without attributes: what clients send.
pub(super) fn texts<'a>(document: &'a str, name: &str) -> Vec<&'a str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let parts = document.split(open.as_str()).skip(1);
    parts.filter_map(|part| part.split(close.as_str()).next()).collect()
}

#[cfg(test)]
mod tests {
    use super::{Element, document, texts};

    #[test]
    fn names_and_texts_are_escaped() {
        let root = Element::new("A").attribute("of", "x\"y").text("B", "<&>").with(Element::new("C"));
        let written = String::from_utf8(document(root)).unwrap();
        assert!(written.ends_with("<A of=\"x&quot;y\"><B>&lt;&amp;&gt;</B><C /></A>"), "{written}");
        assert_eq!(texts("<L><Latest>a</Latest><Latest>b</Latest></L>", "Latest"), ["a", "b"]);
    }
}
