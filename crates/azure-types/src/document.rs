//! The common parts of all documents: the macro that declares them, and the small types that recur.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::resource_id::ResourceId;

/// Members that a type does not name, kept unchanged.
///
/// They are rarely read, and the documents of a large cluster have tens of thousands of them: they are kept as the text
/// of a JSON object, a tenth of the size of a map of values. Copies share it: documents are copied to change the
/// members that their types name, and this part stays the same.
#[derive(Clone, Default)]
pub struct Rest(Option<Arc<str>>);

impl Rest {
    /// No members.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The text of their JSON object; absent if there are none.
    pub(crate) fn text(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The reverse of [`Rest::text`]; an empty text means no members.
    pub(crate) fn from_text(text: Option<String>) -> Self {
        Self(text.filter(|text| !text.is_empty()).map(Arc::from))
    }

    fn members(&self) -> Map<String, Value> {
        // The text was written as an object.
        self.0.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// The value of a member.
    pub fn get(&self, member: &str) -> Option<Value> {
        self.members().remove(member)
    }

    /// Sets a member.
    pub fn insert(&mut self, member: &str, value: Value) {
        let mut members = self.members();
        members.insert(member.to_owned(), value);
        *self = members.into();
    }

    /// Removes a member.
    pub fn remove(&mut self, member: &str) {
        let mut members = self.members();
        if members.remove(member).is_some() {
            *self = members.into();
        }
    }
}

impl From<Map<String, Value>> for Rest {
    fn from(members: Map<String, Value>) -> Self {
        Self((!members.is_empty()).then(|| Value::Object(members).to_string().into()))
    }
}

impl PartialEq for Rest {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || self.members() == other.members()
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.members()).finish()
    }
}

impl Serialize for Rest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.members())
    }
}

impl<'de> Deserialize<'de> for Rest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}

/// Resource tags by key. Azure compares keys without regard to case but keeps their spelling.
pub type Tags = BTreeMap<String, String>;

/// Declares a document: every member is optional, absent members are not written (Resource Manager has no `null`), and
/// members that the type does not name stay in `rest`.
macro_rules! document {
    ($(#[$doc:meta])* $name:ident { $($(#[$member:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name {
            $(
                $(#[$member])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $field: Option<$kind>,
            )*
            /// Members that this type does not name, kept as they came.
            #[serde(flatten)]
            pub rest: $crate::document::Rest,
        }
    };
}
pub(crate) use document;

/// Declares a document with the members that all resources and most of their parts have.
macro_rules! part {
    ($(#[$doc:meta])* $name:ident { $($members:tt)* }) => {
        $crate::document::document! {
            $(#[$doc])*
            $name {
                /// Its own id.
                id: $crate::resource_id::ResourceId,
                /// Its name; that of a part is unique in its resource.
                name: String,
                /// The version of the document, for `If-Match`.
                etag: String,
                $($members)*
            }
        }
    };
}
pub(crate) use part;

/// Declares a document with the members that all resources have.
macro_rules! resource {
    ($(#[$doc:meta])* $name:ident { $($members:tt)* }) => {
        $crate::document::part! {
            $(#[$doc])*
            $name {
                /// The region.
                location: String,
                /// The resource's tags.
                tags: $crate::document::Tags,
                $($members)*
            }
        }
    };
}
pub(crate) use resource;

document! {
    /// A reference to another resource by its id.
    SubResource {
        /// The id of the resource referred to.
        id: ResourceId,
    }
}

impl SubResource {
    /// A reference to `id`.
    pub fn to(id: ResourceId) -> Self {
        Self { id: Some(id), rest: Rest::new() }
    }
}

document! {
    /// The size or price class of a resource.
    Sku {
        /// The class, such as `Standard` for network resources or a machine size for scale sets.
        name: String,
        /// `Regional` or `Global` for network resources, `Standard` for scale sets.
        tier: String,
        /// The number of instances of a scale set.
        capacity: i64,
    }
}

document! {
    /// An edge zone.
    ExtendedLocation {
        /// The zone's name.
        name: String,
        /// `EdgeZone`.
        #[serde(rename = "type")]
        kind: String,
    }
}

/// An enumeration member that keeps unknown values; compared without regard to case. The usual ones take no memory of
/// their own: documents of a large cluster have tens of thousands.
#[derive(Debug, Clone, Default, Eq, Serialize)]
#[serde(transparent)]
pub struct Word(Cow<'static, str>);

/// The words that most documents hold, as Azure spells them.
const USUAL: [&str; 25] = [
    "Succeeded",
    "Updating",
    "Deleting",
    "Failed",
    "Creating",
    "Static",
    "Dynamic",
    "IPv4",
    "IPv6",
    "Tcp",
    "Udp",
    "All",
    "*",
    "Default",
    "SourceIP",
    "SourceIPProtocol",
    "Http",
    "Https",
    "None",
    "Up",
    "Down",
    "Allow",
    "Deny",
    "Inbound",
    "Outbound",
];

impl Word {
    /// Whether this is the given value, in any case.
    pub fn is(&self, value: &str) -> bool {
        self.0.eq_ignore_ascii_case(value)
    }

    /// The spelling that came from Azure or goes to it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Word;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E>(self, text: &str) -> Result<Word, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_str(Text)
    }
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.is(&other.0)
    }
}

impl From<&str> for Word {
    fn from(value: &str) -> Self {
        let usual = USUAL.into_iter().find(|usual| *usual == value);
        Self(usual.map_or_else(|| Cow::Owned(value.to_owned()), Cow::Borrowed))
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
