//! The shapes of documents, as the files of the contract hold them.

use std::collections::HashMap;

use regex::Regex;
use serde::Deserialize;

/// The number of a shape in its file.
pub(crate) type Number = u32;

/// One file: the types of one namespace in one version.
#[derive(Deserialize)]
pub(crate) struct File {
    /// The shape of each type, by its name in lower case.
    pub(crate) resources: HashMap<String, Number>,
    /// All shapes by their numbers.
    pub(crate) types: HashMap<Number, Shape>,
}

/// What a value may be. Exactly one group of members is there, and decides which kind of shape it is.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Shape {
    /// An object's members.
    o: Option<HashMap<String, Member>>,
    /// The shape of members that an object has beyond these.
    a: Option<Number>,
    /// The common members of objects that one member distinguishes.
    b: Option<HashMap<String, Member>>,
    /// The name of that discriminator.
    d: Option<String>,
    /// The objects by its value.
    e: HashMap<String, Number>,
    /// The shape of a list's items.
    l: Option<Number>,
    /// The shapes of which a value has one.
    u: Option<Vec<Number>>,
    /// A text that is given.
    s: Option<String>,
    /// A JSON type.
    t: Option<String>,
    #[serde(rename = "minLength")]
    min_length: Option<usize>,
    #[serde(rename = "maxLength")]
    max_length: Option<usize>,
    #[serde(rename = "minValue")]
    min_value: Option<i64>,
    #[serde(rename = "maxValue")]
    max_value: Option<i64>,
    #[serde(deserialize_with = "pattern")]
    pattern: Option<Regex>,
}

/// A member's shape and flags.
#[derive(Deserialize, Clone, Copy)]
pub(crate) struct Member(pub(crate) Number, u32);

impl Member {
    /// Whether a request must state it. What is known only once the resource is there is not required.
    pub(crate) fn is_required(self) -> bool {
        self.1 & 1 != 0 && !self.is_read_only() && self.1 & 8 == 0
    }

    pub(crate) fn is_read_only(self) -> bool {
        self.1 & 2 != 0
    }

    pub(crate) fn is_write_only(self) -> bool {
        self.1 & 4 != 0
    }
}

/// A shape by its kind.
pub(crate) enum Kind<'a> {
    Object { members: &'a HashMap<String, Member>, additional: Option<Number> },
    Tagged { common: &'a HashMap<String, Member>, by: &'a str, objects: &'a HashMap<String, Number> },
    List(Number),
    OneOf(&'a [Number]),
    Literal(&'a str),
    Plain(&'a str),
}

impl Shape {
    pub(crate) fn kind(&self) -> Kind<'_> {
        match self {
            Self { o: Some(members), a, .. } => Kind::Object { members, additional: *a },
            Self { b: Some(common), d: Some(by), e, .. } => Kind::Tagged { common, by, objects: e },
            Self { l: Some(items), .. } => Kind::List(*items),
            Self { u: Some(shapes), .. } => Kind::OneOf(shapes),
            Self { s: Some(text), .. } => Kind::Literal(text),
            Self { t, .. } => Kind::Plain(t.as_deref().unwrap_or("any")),
        }
    }

    /// Whether a text of that many characters is neither too short nor too long.
    pub(crate) fn has_length(&self, length: usize) -> bool {
        self.min_length.is_none_or(|min| length >= min) && self.max_length.is_none_or(|max| length <= max)
    }

    /// Whether a number is neither too small nor too large.
    pub(crate) fn has_range(&self, number: i64) -> bool {
        self.min_value.is_none_or(|min| number >= min) && self.max_value.is_none_or(|max| number <= max)
    }

    /// Whether a text has the form that is asked for.
    pub(crate) fn has_form(&self, text: &str) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
    }
}

/// A pattern; none where it looks around itself, which this crate's regular expressions cannot.
fn pattern<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Regex>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.and_then(|text| Regex::new(&text).ok()))
}
