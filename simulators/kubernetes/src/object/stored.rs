//! Stored objects.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use bytes::{BufMut as _, Bytes, BytesMut};
use serde_json::Value;

use super::fields::{is_terminating, metadata, string_at, to_bytes};

/// One version of one object, immutable and shared by all responses that contain it.
///
/// Dereferences to its JSON value, which is parsed from the stored text at first use and dropped with this object: the
/// store keeps the text alone.
#[derive(Debug)]
pub struct Object {
    value: OnceLock<Value>,
    json: OnceLock<Bytes>,
    version: u64,
    kept: Option<Arc<StoredText>>,
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.value()
    }
}

impl Object {
    pub(crate) fn new(value: Value, version: u64) -> Self {
        Self { value: value.into(), json: OnceLock::new(), version, kept: None }
    }

    /// The object as JSON value.
    #[must_use]
    pub fn value(&self) -> &Value {
        self.value.get_or_init(|| self.kept.as_deref().map(StoredText::value).unwrap_or_default())
    }

    /// `metadata.resourceVersion` as a number, by which the log is ordered.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// `metadata.name`.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.kept {
            Some(kept) => kept.place().1,
            None => metadata(self.value(), "name"),
        }
    }

    /// `metadata.namespace`; empty for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> &str {
        match &self.kept {
            Some(kept) => kept.place().0,
            None => metadata(self.value(), "namespace"),
        }
    }

    /// `metadata.uid`.
    #[must_use]
    pub fn uid(&self) -> &str {
        metadata(self.value(), "uid")
    }

    /// `apiVersion`, without parsing the value.
    pub(crate) fn api_version(&self) -> &str {
        match &self.kept {
            Some(kept) => &kept.api_version,
            None => string_at(self.value(), &["apiVersion"]).unwrap_or_default(),
        }
    }

    /// Whether it was deleted and finalizers hold it.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        is_terminating(self.value())
    }

    /// The serialized form, created once and shared by every response with this version.
    pub(crate) fn json(&self) -> Bytes {
        let made = || self.kept.as_ref().map_or_else(|| to_bytes(self.value()), |kept| kept.json.clone());
        self.json.get_or_init(made).clone()
    }

    /// Writes the serialized form without `apiVersion` and `kind`: items in a list of built-in kinds have neither.
    pub(crate) fn put_untyped(&self, to: &mut BytesMut) {
        match &self.kept {
            Some(kept) => {
                to.put_u8(b'{');
                to.put_slice(kept.json.get(kept.untyped..).unwrap_or_default());
            }
            None => {
                let (json, untyped) = typed_first(self.value());
                to.put_u8(b'{');
                to.put_slice(json.get(untyped..).unwrap_or_default());
            }
        }
    }

    /// Whether both were opened from the same text in the store.
    pub(crate) fn shares_text_with(&self, other: &Self) -> bool {
        self.kept.as_ref().zip(other.kept.as_ref()).is_some_and(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// The same version with a value of its own, for a single use: the value is dropped with the response, while this
    /// object may be held for long.
    pub(crate) fn for_one_look(self: &Arc<Self>) -> Arc<Self> {
        match &self.kept {
            Some(kept) if self.value.get().is_none() => kept.open(),
            _ => Arc::clone(self),
        }
    }
}

/// One version of one object in the store: its JSON text, as it is sent, and the members that are read most often. As a
/// tree of values it would take eight times as much memory.
#[derive(Debug)]
pub(crate) struct StoredText {
    /// Its key: name, or namespace and name.
    key: Arc<str>,
    api_version: Arc<str>,
    json: Bytes,
    /// The offset in the text after `apiVersion` and `kind`, which come first.
    untyped: usize,
    version: u64,
}

impl StoredText {
    /// `api_version` is that of the value.
    pub(crate) fn new(key: Arc<str>, api_version: Arc<str>, value: &Value, version: u64) -> Self {
        let (json, untyped) = typed_first(value);
        Self { key, api_version, json, untyped, version }
    }

    /// The same object with another value and version.
    pub(crate) fn under(&self, value: &Value, version: u64) -> Self {
        Self::new(Arc::clone(&self.key), Arc::clone(&self.api_version), value, version)
    }

    /// The object, for reading.
    pub(crate) fn open(self: &Arc<Self>) -> Arc<Object> {
        Arc::new(self.object(OnceLock::new()))
    }

    /// The object with a value that has been parsed already.
    pub(crate) fn opened(self: &Arc<Self>, value: Value) -> Arc<Object> {
        Arc::new(self.object(value.into()))
    }

    fn object(self: &Arc<Self>, value: OnceLock<Value>) -> Object {
        Object { value, json: OnceLock::new(), version: self.version, kept: Some(Arc::clone(self)) }
    }

    /// The value of the text, which was serialized from one.
    pub(crate) fn value(&self) -> Value {
        serde_json::from_slice(&self.json).unwrap_or_default()
    }

    pub(crate) fn key(&self) -> &Arc<str> {
        &self.key
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Namespace and name; names have no slash.
    fn place(&self) -> (&str, &str) {
        self.key.split_once('/').unwrap_or(("", &self.key))
    }

    /// Whether the text contains this member at any place: without it the value need not be parsed.
    pub(crate) fn mentions(&self, member: &str) -> bool {
        let sought = format!("\"{member}\":");
        memchr::memmem::find(&self.json, sought.as_bytes()).is_some()
    }
}

/// Serializes an object with its type first. Returns the offset of the rest, too.
fn typed_first(value: &Value) -> (Bytes, usize) {
    const TYPE: [&str; 2] = ["apiVersion", "kind"];
    let Some(members) = value.as_object() else { return (to_bytes(value), 0) };
    let mut json = vec![b'{'];
    let put = |name: &str, value: &Value, json: &mut Vec<u8>| {
        // Serializing a `serde_json` value does not fail.
        let _ = serde_json::to_writer(&mut *json, name);
        json.push(b':');
        let _ = serde_json::to_writer(&mut *json, value);
        json.push(b',');
    };
    for name in TYPE {
        if let Some(value) = members.get(name) {
            put(name, value, &mut json);
        }
    }
    let untyped = json.len();
    members
        .iter()
        .filter(|(name, _)| !TYPE.contains(&name.as_str()))
        .for_each(|(name, value)| put(name, value, &mut json));
    if json.ends_with(b",") && json.len() > untyped {
        json.pop();
    }
    json.push(b'}');
    (json.into(), untyped)
}
