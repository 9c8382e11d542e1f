//! Fingerprints of writes. Equal writes have equal fingerprints, whatever Azure changes on its own between them.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::rc::Rc;

use planner::Step;
use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Members that vary although the desired state is the same.
const VOLATILE: &[&str] = &["etag", "provisioningState", "resourceGuid"];

/// The fingerprint of steps.
pub(crate) fn of<'a>(steps: impl IntoIterator<Item = &'a Step>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for step in steps {
        step.target.hash(&mut hasher);
        (step.action as u8).hash(&mut hasher);
        step.changes.hash(&mut hasher);
        if let Some(document) = &step.document {
            hash(document, &mut hasher);
        }
    }
    hasher.finish()
}

/// Hashes a document's JSON while it is serialised: a load balancer of a thousand Services is megabytes.
fn hash(document: &impl Serialize, hasher: &mut DefaultHasher) {
    let silent = Rc::new(Cell::new(false));
    let text = Text { hasher, silent: Rc::clone(&silent) };
    let members = Members { silent, key: None, depth: 0, silent_from: None };
    // A document that cannot be serialised cannot be written either.
    let _ = document.serialize(&mut Serializer::with_formatter(text, members));
}

/// Hashes what is written to it, except volatile members.
struct Text<'a> {
    hasher: &'a mut DefaultHasher,
    silent: Rc<Cell<bool>>,
}

impl Write for Text<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.silent.get() {
            self.hasher.write(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Tracks the member that the serialiser is in.
struct Members {
    silent: Rc<Cell<bool>>,
    /// The name of the member, while it is being written.
    key: Option<String>,
    depth: usize,
    /// The depth of the volatile member that the serialiser is in.
    silent_from: Option<usize>,
}

impl Formatter for Members {
    fn begin_object_key<W: ?Sized + Write>(&mut self, _writer: &mut W, _first: bool) -> io::Result<()> {
        self.key = Some(String::new());
        self.silent.set(true);
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        match &mut self.key {
            Some(key) => key.push_str(text),
            None => writer.write_all(text.as_bytes())?,
        }
        Ok(())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let key = self.key.take().unwrap_or_default();
        self.depth += 1;
        if self.silent_from.is_none() && VOLATILE.contains(&key.as_str()) {
            self.silent_from = Some(self.depth);
        }
        self.silent.set(self.silent_from.is_some());
        writer.write_all(key.as_bytes())?;
        writer.write_all(b":")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b",")?;
        if self.silent_from == Some(self.depth) {
            self.silent_from = None;
            self.silent.set(false);
        }
        self.depth -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn print(document: &Value) -> u64 {
        let mut hasher = DefaultHasher::new();
        hash(document, &mut hasher);
        hasher.finish()
    }

    #[test]
    fn what_azure_changes_by_itself_does_not_count_and_everything_else_does() {
        let document = |etag: &str, state: &str, port: u16, name: &str| {
            json!({"etag": etag, "name": name, "properties": {
                "provisioningState": state, "resourceGuid": {"deep": [etag, {"etag": etag}]},
                "rules": [{"etag": etag, "port": port}, {"port": 1}], "last": "etag",
            }})
        };
        let one = print(&document("1", "Succeeded", 80, "web"));
        assert_eq!(one, print(&document("2", "Updating", 80, "web")));
        assert_ne!(one, print(&document("1", "Succeeded", 81, "web")));
        assert_ne!(one, print(&document("1", "Succeeded", 80, "shop")));
        let mut more = document("1", "Succeeded", 80, "web");
        more["properties"]["more"] = 1.into();
        assert_ne!(one, print(&more));
        let mut without = document("1", "Succeeded", 80, "web");
        without.as_object_mut().map(|members| members.remove("etag"));
        assert_eq!(one, print(&without));
        // The ends of lists are part of the fingerprint.
        assert_ne!(print(&json!({"a": [["x"], "y"]})), print(&json!({"a": [["x", "y"]]})));
        assert_ne!(print(&json!({"a": "b,c"})), print(&json!({"a": "b", "c": ""})));
    }
}
