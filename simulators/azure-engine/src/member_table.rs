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

#[cfg(test)]
mod tests {
    use azure_types::ResourceId;
    use serde_json::{Value, json};

    use super::{Holds, Member, Written, normalise, pointers};
    use crate::document::into_object;
    use crate::error::Refusal;
    use crate::protocol::Protocol;

    const PROTOCOL: Protocol = Protocol::new("N/things", "Thing", &[]);

    fn fixed(member: &str) -> Refusal {
        Refusal::new(409, "Fixed", member)
    }

    const TABLE: [Member; 8] = [
        Member::new("flag", Holds::Flag),
        Member::new("count", Holds::Number(1, 9)).or(3).fixed_while_used(fixed),
        Member::new("word", Holds::Word(&["One", "Two"], true)),
        Member::new("other", Holds::Uses("others")),
        Member::new("others", Holds::UsesAll("others")),
        Member::new("named", Holds::Names("others")),
        Member::new("state", Holds::Derived),
        Member::new("kind", Holds::Constant("Thing")),
    ];

    fn id(tail: &str) -> ResourceId {
        ResourceId::group("s", "g").resource("N", "others", tail)
    }

    fn stored(given: Value, old: Option<&Value>, used: bool) -> Result<Value, String> {
        let thing = ResourceId::group("s", "g").resource("N", "things", "a");
        let written = Written { id: &thing, protocol: &PROTOCOL, old, used };
        let mut properties = into_object(given);
        match normalise(&TABLE, &written, &mut properties) {
            Ok(()) => Ok(Value::Object(properties)),
            Err(refusal) => Err(refusal.code),
        }
    }

    #[test]
    fn a_table_fills_in_and_refuses() {
        let whole = json!({ "count": 3, "word": "One", "kind": "Thing" });
        let with = |member: &str, value: Value| {
            let mut whole = whole.clone();
            whole[member] = value;
            Ok(whole)
        };
        let pointer = |to: &str| json!({ "id": id(to), "etag": "x" });
        for (given, expected) in [
            (json!({}), Ok(whole.clone())),
            (json!({ "state": "x", "KIND": "y" }), Ok(whole.clone())),
            (json!({ "Count": "5" }), with("count", json!(5))),
            (json!({ "word": "two" }), with("word", json!("Two"))),
            (json!({ "flag": "True" }), with("flag", json!(true))),
            (json!({ "other": pointer("o") }), with("other", json!({ "id": id("o") }))),
            (json!({ "others": [pointer("o")] }), with("others", json!([{ "id": id("o") }]))),
            (json!({ "count": 10 }), Err("InvalidPropertyValue".to_owned())),
            (json!({ "count": [] }), Err("InvalidRequestFormat".to_owned())),
            (json!({ "word": "three" }), Err("InvalidRequestFormat".to_owned())),
            (json!({ "stranger": 1 }), Err("InvalidRequestFormat".to_owned())),
            (
                json!({ "other": { "id": ResourceId::group("s", "g") } }),
                Err("InvalidRequestFormat".to_owned()),
            ),
        ] {
            assert_eq!(stored(given.clone(), None, false), expected, "{given}");
        }
        // What is stored is stored so again.
        assert_eq!(stored(whole.clone(), Some(&whole), true), Ok(whole));
    }

    #[test]
    fn what_is_fixed_changes_only_while_nobody_needs_it() {
        let old = json!({ "count": 3 });
        assert!(stored(json!({ "count": 4 }), Some(&old), false).is_ok());
        assert!(stored(json!({ "count": 3 }), Some(&old), true).is_ok());
        assert_eq!(stored(json!({ "count": 4 }), Some(&old), true), Err("Fixed".to_owned()));
    }

    #[test]
    fn pointers_are_what_uses_and_not_what_names() {
        let thing = ResourceId::group("s", "g").resource("N", "things", "a");
        let document = json!({ "properties": {
            "other": { "id": id("a") }, "others": [{ "id": id("b") }, { "id": id("c") }], "named": { "id": id("d") },
        } });
        let found: Vec<ResourceId> =
            pointers(&TABLE, &thing, &document).into_iter().map(|one| one.to).collect();
        assert_eq!(found, [id("a"), id("b"), id("c")]);
    }
}
