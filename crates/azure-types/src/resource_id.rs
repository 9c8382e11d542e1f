//! Resource ids: the paths by which Azure Resource Manager names everything.
//!
//! An ID keeps its spelling and is compared without regard to case, because Azure returns other spellings than it was
//! sent.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An absolute resource id such as
/// `/subscriptions/{id}/resourceGroups/{group}/providers/Microsoft.Network/loadBalancers/{name}`.
///
/// Subscriptions and resource groups have IDs as well. Equality, order and hash ignore ASCII case. Copies share the
/// text: documents contain many IDs, and plans copy documents.
#[derive(Clone)]
pub struct ResourceId(Arc<str>);

/// How many bytes are compared or hashed at a time.
const BLOCK: usize = 32;

/// Why a text is not a resource id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceIdError {
    /// The text does not begin with `/subscriptions/{id}`.
    #[error("resource id `{0}` must begin with /subscriptions/<subscription id>")]
    NotInSubscription(String),
    /// Two slashes follow each other, or the text ends in one.
    #[error("resource id `{0}` has an empty segment")]
    EmptySegment(String),
    /// A resource type without a name, or another word instead of `resourceGroups` or `providers`.
    #[error("resource id `{id}` is incomplete or malformed at `{segment}`")]
    Malformed {
        /// The whole text.
        id: String,
        /// The segment at which it becomes invalid.
        segment: String,
    },
    /// A character that no ID may contain (control characters, `?`, `#`, `%`, `<`, `>`, `\`).
    #[error("resource id `{id}` holds the character {character:?}, which no resource name may have")]
    ForbiddenCharacter {
        /// The whole text.
        id: String,
        /// The character.
        character: char,
    },
}

fn is_forbidden(c: char) -> bool {
    c.is_control() || matches!(c, '?' | '#' | '%' | '<' | '>' | '\\')
}

/// The bytes that need a closer look: forbidden ones, and those of characters outside of ASCII, which may be control
/// characters, too.
const SUSPICIOUS: [bool; 256] = {
    let mut table = [true; 256];
    let mut byte = b' ';
    while byte < 0x7f {
        table[byte as usize] = matches!(byte, b'?' | b'#' | b'%' | b'<' | b'>' | b'\\');
        byte += 1;
    }
    table
};

/// The first character of a text that no ID may contain. Documents contain thousands of IDs, and nearly all are valid
/// ASCII.
fn forbidden_in(text: &str) -> Option<char> {
    let suspicious = text.bytes().fold(false, |any, byte| any | SUSPICIOUS[usize::from(byte)]);
    if suspicious { text.chars().find(|c| is_forbidden(*c)) } else { None }
}

/// Whether two slashes follow each other, or the text ends in one.
fn has_empty_segment(text: &str) -> bool {
    let (_, doubled) = text.bytes().fold((false, false), |(after_slash, doubled), byte| {
        let slash = byte == b'/';
        (slash, doubled | (slash & after_slash))
    });
    doubled || text.ends_with('/')
}

/// Checks whether a text is an absolute ID.
fn check(text: &str) -> Result<(), ResourceIdError> {
    let bad = |segment: &str| ResourceIdError::Malformed { id: text.into(), segment: segment.into() };
    if let Some(character) = forbidden_in(text) {
        return Err(ResourceIdError::ForbiddenCharacter { id: text.into(), character });
    }
    let outside = || ResourceIdError::NotInSubscription(text.into());
    let mut segments = text.strip_prefix('/').ok_or_else(outside)?.split('/');
    if !segments.next().is_some_and(|s| s.eq_ignore_ascii_case("subscriptions")) {
        return Err(outside());
    }
    if has_empty_segment(text) {
        return Err(ResourceIdError::EmptySegment(text.into()));
    }
    segments.next().ok_or_else(outside)?;
    let Some(mut keyword) = segments.next() else { return Ok(()) };
    if keyword.eq_ignore_ascii_case("resourceGroups") {
        segments.next().ok_or_else(|| bad(keyword))?;
        match segments.next() {
            Some(next) => keyword = next,
            None => return Ok(()),
        }
    }
    // `providers/{namespace}/{type}/{name}[/{type}/{name}...]`, possibly extended by another provider.
    if !keyword.eq_ignore_ascii_case("providers") {
        return Err(bad(keyword));
    }
    segments.next().ok_or_else(|| bad(keyword))?;
    let mut complete = false;
    while let Some(kind) = segments.next() {
        segments.next().ok_or_else(|| bad(kind))?;
        complete = !kind.eq_ignore_ascii_case("providers");
    }
    if complete { Ok(()) } else { Err(bad(keyword)) }
}

impl ResourceId {
    /// Parses an absolute id.
    ///
    /// # Errors
    ///
    /// The text is not an absolute ID.
    pub fn parse(text: &str) -> Result<Self, ResourceIdError> {
        check(text)?;
        Ok(Self(text.into()))
    }

    /// The ID of a text that is known to be valid.
    pub(crate) fn trusted(text: String) -> Self {
        Self(text.into())
    }

    /// Whether a text is an absolute id.
    pub fn is_valid(text: &str) -> bool {
        check(text).is_ok()
    }

    /// The id of a subscription.
    pub fn subscription(subscription: &str) -> Self {
        Self(["/subscriptions/", subscription].concat().into())
    }

    /// The id of a resource group.
    pub fn group(subscription: &str, group: &str) -> Self {
        Self(["/subscriptions/", subscription, "/resourceGroups/", group].concat().into())
    }

    /// The id of a top-level resource in this group (or subscription).
    pub fn resource(&self, namespace: &str, kind: &str, name: &str) -> Self {
        Self([&self.0, "/providers/", namespace, "/", kind, "/", name].concat().into())
    }

    /// The id of a child of this resource, such as a load balancer's `probes`.
    pub fn child(&self, kind: &str, name: &str) -> Self {
        Self([&self.0, "/", kind, "/", name].concat().into())
    }

    /// The resource that this one is a child of; for a top-level resource its group or subscription,
    /// for a group its subscription.
    pub fn parent(&self) -> Option<Self> {
        let (rest, _name) = self.0.rsplit_once('/')?;
        let (parent, _kind) = rest.rsplit_once('/')?;
        if parent.is_empty() {
            return None;
        }
        // `.../providers/Microsoft.Network` is no resource: skip it.
        let scope = match parent.rsplit_once('/') {
            Some((above, _namespace)) => match above.rsplit_once('/') {
                Some((scope, word)) if word.eq_ignore_ascii_case("providers") => scope,
                _ => parent,
            },
            None => parent,
        };
        Some(Self(scope.into()))
    }

    /// The text, in its original spelling.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn segments(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').skip(1)
    }

    /// The subscription's id.
    pub fn subscription_id(&self) -> &str {
        self.segments().nth(1).unwrap_or_default()
    }

    /// The resource group's name; absent for subscription-level resources.
    pub fn group_name(&self) -> Option<&str> {
        let mut segments = self.segments().skip(2);
        segments.next().filter(|s| s.eq_ignore_ascii_case("resourceGroups"))?;
        segments.next()
    }

    /// The provider namespace that owns the resource, such as `Microsoft.Network`.
    pub fn namespace(&self) -> Option<&str> {
        let mut namespace = None;
        let mut segments = self.segments();
        while let Some(segment) = segments.next() {
            if segment.eq_ignore_ascii_case("providers") {
                namespace = segments.next();
            }
        }
        namespace
    }

    /// The full type, such as `Microsoft.Network/loadBalancers/probes`;
    /// groups and subscriptions have `Microsoft.Resources/resourceGroups` and `.../subscriptions`.
    pub fn resource_type(&self) -> String {
        let Some(namespace) = self.namespace() else {
            let kind = if self.group_name().is_some() { "resourceGroups" } else { "subscriptions" };
            return format!("Microsoft.Resources/{kind}");
        };
        let mut kind = namespace.to_owned();
        for (segment, _name) in self.type_and_name_pairs() {
            kind.push('/');
            kind.push_str(segment);
        }
        kind
    }

    /// The (type, name) pairs behind the provider namespace, outermost first.
    pub fn type_and_name_pairs(&self) -> Vec<(&str, &str)> {
        let segments: Vec<&str> = self.segments().collect();
        let Some(at) = segments.iter().rposition(|s| s.eq_ignore_ascii_case("providers")) else {
            return Vec::new();
        };
        segments.get(at + 2..).unwrap_or_default().chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
    }

    /// The resource's own name: the last segment.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Whether this id is `other` or lies below it.
    pub fn is_within(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        mine.len() >= theirs.len()
            && mine[..theirs.len()].eq_ignore_ascii_case(theirs)
            && mine.get(theirs.len()).is_none_or(|next| *next == b'/')
    }

    /// The text, to be shared by equal IDs.
    pub(crate) fn shared_text(&mut self) -> &mut Arc<str> {
        &mut self.0
    }

    /// The text in lower case: a key for maps that other code reads as text.
    pub fn to_lower(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

/// IDs of one cluster share long beginnings and differ in their last characters: equality compares from the end, order
/// skips equal blocks first.
impl PartialEq for ResourceId {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        mine.len() == theirs.len()
            && mine.iter().rev().zip(theirs.iter().rev()).take(BLOCK).all(|(a, b)| a.eq_ignore_ascii_case(b))
            && (mine == theirs || mine.eq_ignore_ascii_case(theirs))
    }
}

impl Eq for ResourceId {}

impl Hash for ResourceId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // Most IDs differ at the end; the length distinguishes those with the same end.
        let id = self.0.as_bytes();
        let end = &id[id.len().saturating_sub(2 * BLOCK)..];
        let mut lower = [0; 2 * BLOCK];
        let lower = &mut lower[..end.len()];
        lower.copy_from_slice(end);
        lower.make_ascii_lowercase();
        state.write(lower);
        state.write_usize(id.len());
    }
}

impl Ord for ResourceId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let (mine, theirs) = (self.0.as_bytes(), other.0.as_bytes());
        let equal = mine.chunks(BLOCK).zip(theirs.chunks(BLOCK)).take_while(|(a, b)| a == b).count() * BLOCK;
        let lower = |byte: &u8| byte.to_ascii_lowercase();
        mine[equal.min(mine.len())..]
            .iter()
            .map(lower)
            .cmp(theirs[equal.min(theirs.len())..].iter().map(lower))
    }
}

impl PartialOrd for ResourceId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

impl std::str::FromStr for ResourceId {
    type Err = ResourceIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

impl Serialize for ResourceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ResourceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}
