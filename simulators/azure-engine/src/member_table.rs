//! What the members of a type's `properties` hold: one table a type. It drives what is read, filled in and refused when a
//! document is written, what the document points at, and who is shown to point at it.

use azure_types::ResourceId;
use serde_json::Value;

use super::document::{Object, enumeration, items, reference, references, stored_reference};
use super::error::Refusal;
use super::protocol::Protocol;
use super::reference::Reference;
use super::schema::{Shape, shape};
use super::words::OutOfRange;

/// What a member holds.
#[derive(Debug, Clone, Copy)]
pub enum Holds {
    /// True or false.
    Flag,
    /// A whole number between two.
    Number(i64, i64),
    /// One of some words, in Azure's spelling; with `true` the first where it is missing.
    Word(&'static [&'static str], bool),
    /// A pointer to a resource of a type of the same namespace.
    Uses(&'static str),
    /// A list of them.
    UsesAll(&'static str),
    /// A pointer that keeps nothing from being deleted.
    Names(&'static str),
    /// What the type looks at by itself.
    Anything,
    /// What the service says of the resource; what clients send is dropped.
    Derived,
    /// The same, with a text that is always there.
    Constant(&'static str),
    /// The resources that point here, by the last segment of their type (an empty one means any). Never stored.
    Users(&'static str),
}

/// Until when a member can be changed.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    /// Only while somebody points at the resource.
    pub while_used: bool,
    /// How a change is refused: takes the member's name.
    pub refusal: fn(&str) -> Refusal,
}

/// One member.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its name, in Azure's spelling.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// The number that a missing one stands for.
    pub otherwise: Option<i64>,
    /// Until when it can be changed.
    pub fixed: Option<Fixed>,
    /// Whether it is shown although it is an empty list.
    pub shown_empty: bool,
}

impl Member {
    /// A member that holds this.
    pub const fn new(name: &'static str, holds: Holds) -> Self {
        Self { name, holds, otherwise: None, fixed: None, shown_empty: false }
    }

    /// What a missing number stands for.
    #[must_use]
    pub const fn or(self, otherwise: i64) -> Self {
        Self { otherwise: Some(otherwise), ..self }
    }

    /// Cannot be changed while somebody points at the resource.
    #[must_use]
    pub const fn fixed_while_used(self, refusal: fn(&str) -> Refusal) -> Self {
        Self { fixed: Some(Fixed { while_used: true, refusal }), ..self }
    }

    /// Shown although nobody is in the list.
    #[must_use]
    pub const fn shown_empty(self) -> Self {
        Self { shown_empty: true, ..self }
    }
}

/// A document that is written, as its table judges it.
pub struct Written<'a> {
    /// The resource.
    pub id: &'a ResourceId,
    /// How requests about its type are answered.
    pub protocol: &'static Protocol,
    /// Its `properties` before, where it exists.
    pub old: Option<&'a Value>,
    /// Whether anybody points at it.
    pub used: bool,
}

/// Brings `properties` into the form that is stored.
///
/// # Errors
/// A member that the type does not have, a value that is none of its member's, a change of what is fixed.
pub fn normalise(table: &[Member], written: &Written<'_>, properties: &mut Object) -> Result<(), Refusal> {
    spell(table, written.protocol, properties)?;
    let namespace = written.id.namespace().unwrap_or_default();
    for member in table {
        let path = format!("properties.{}", member.name);
        let mut of_shape = |wanted: Shape| match properties.get_mut(member.name) {
            Some(value) => shape(wanted, value, &path, namespace),
            None => Ok(()),
        };
        match member.holds {
            Holds::Flag => of_shape(Shape::Flag)?,
            Holds::Number(least, most) => {
                of_shape(Shape::Number)?;
                number(member, (least, most), written, properties)?;
            }
            Holds::Word(words, first) => enumeration(properties, member.name, words, first)?,
            Holds::Uses(kind) | Holds::Names(kind) => {
                of_shape(Shape::Refers(kind))?;
                reference(properties, member.name)?;
            }
            Holds::UsesAll(kind) => {
                for item in
                    properties.get_mut(member.name).and_then(Value::as_array_mut).into_iter().flatten()
                {
                    shape(Shape::Refers(kind), item, &path, namespace)?;
                }
                references(properties, member.name)?;
            }
            Holds::Anything => {}
            Holds::Derived | Holds::Users(_) => drop(properties.remove(member.name)),
            Holds::Constant(text) => drop(properties.insert(member.name.into(), text.into())),
        }
        let before = written.old.and_then(|old| old.get(member.name));
        if let (Some(fixed), Some(before)) = (member.fixed, before)
            && properties.get(member.name) != Some(before)
            && (written.used || !fixed.while_used)
        {
            return Err((fixed.refusal)(member.name));
        }
    }
    Ok(())
}

/// Gives members Azure's spelling, and refuses others where the provider does.
fn spell(table: &[Member], protocol: &Protocol, properties: &mut Object) -> Result<(), Refusal> {
    let known = |key: &str| table.iter().any(|member| member.name == key);
    let strange: Vec<String> = properties.keys().filter(|key| !known(key)).cloned().collect();
    for key in strange {
        match table.iter().find(|member| member.name.eq_ignore_ascii_case(&key)) {
            Some(member) => {
                if let Some(value) = properties.remove(&key) {
                    properties.insert(member.name.into(), value);
                }
            }
            None if protocol.words.refuses_unknown => {
                return Err(Refusal::bad_format(format!(
                    "Could not find member '{key}' on object of type '{}'. Path 'properties.{key}'.",
                    protocol.noun
                )));
            }
            None => {}
        }
    }
    Ok(())
}

fn number(
    member: &Member,
    (least, most): (i64, i64),
    written: &Written<'_>,
    properties: &mut Object,
) -> Result<(), Refusal> {
    let Some(value) = properties.get(member.name).and_then(Value::as_i64).or(member.otherwise) else {
        return Ok(());
    };
    if !(least..=most).contains(&value) {
        let wrong = OutOfRange { id: written.id, member: member.name, value, least, most };
        return Err((written.protocol.words.out_of_range)(&wrong));
    }
    properties.insert(member.name.into(), value.into());
    Ok(())
}

/// Everything that a stored document points at.
pub fn pointers(table: &[Member], id: &ResourceId, document: &Value) -> Vec<Reference> {
    let mut all = Vec::new();
    for member in table {
        match member.holds {
            Holds::Uses(_) => {
                all.extend(stored_reference(document, &format!("properties/{}/id", member.name)))
            }
            Holds::UsesAll(_) => {
                let list = items(document, &format!("properties/{}", member.name));
                all.extend(list.iter().filter_map(|item| stored_reference(item, "id")));
            }
            _ => {}
        }
    }
    all.into_iter().map(|to| Reference::uses(id, to)).collect()
}
