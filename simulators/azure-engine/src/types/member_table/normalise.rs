//! Normalises a written document into its stored form.

use azure_types::ResourceId;
use serde_json::Value;

use super::member::{Fixed, Holds, Member, Otherwise};
use crate::document::{Object, into_object, name, reduce_reference};
use crate::refusal::words::{NotAllowed, OutOfRange, Wrong};
use crate::refusal::{Refusal, Result};
use crate::types::protocol::Protocol;
use crate::types::schema::{Shape, check_reference, shape};

/// A written document, as its table is applied to it.
pub struct Written<'a> {
    /// The resource.
    pub id: &'a ResourceId,
    /// How requests about its type are answered.
    pub protocol: &'static Protocol,
    /// Its `properties` before, if it exists.
    pub old: Option<&'a Value>,
    /// Whether another resource points at it.
    pub used: bool,
}

/// Normalises `properties` into their stored form.
///
/// # Errors
/// A member that the type does not have, a value that does not fit its member, a required member that is missing, a
/// change of a fixed member.
pub fn normalise(table: &[Member], written: &Written<'_>, properties: &mut Object) -> Result<()> {
    if written.protocol.shows_state {
        // Clients send back the state that they were shown.
        properties.retain(|member, _| !member.eq_ignore_ascii_case("provisioningState"));
    }
    normalise_below(table, written, "properties", properties)
}

/// The same for another part of the document, such as one beside `properties`; `root` is its path.
pub(crate) fn normalise_below(
    table: &[Member],
    written: &Written<'_>,
    root: &str,
    object: &mut Object,
) -> Result<()> {
    let namespace = written.id.namespace().unwrap_or_default();
    let mut walk = Walk { written, namespace, path: root.to_owned(), root: root.len() };
    walk.object(table, written.old, object)
}

/// The position in a document at which the table is applied.
struct Walk<'a> {
    written: &'a Written<'a>,
    namespace: &'a str,
    path: String,
    /// The length of the path to the start of the table.
    root: usize,
}

impl Walk<'_> {
    fn object(&mut self, table: &[Member], old: Option<&Value>, object: &mut Object) -> Result<()> {
        self.spell(table, object)?;
        for member in table {
            let length = self.path.len();
            if length > 0 {
                self.path.push('.');
            }
            self.path.push_str(member.name);
            let before = old.and_then(|old| old.get(member.name));
            self.member(member, before, object)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    fn member(&mut self, member: &Member, before: Option<&Value>, object: &mut Object) -> Result<()> {
        match member.holds {
            Holds::Derived | Holds::Users(_) | Holds::User(_) | Holds::Guid | Holds::Created => {
                object.remove(member.name);
                return Ok(());
            }
            Holds::Kept => {
                match before {
                    Some(before) => object.insert(member.name.into(), before.clone()),
                    None => object.remove(member.name),
                };
                return Ok(());
            }
            Holds::Constant(text) => {
                object.insert(member.name.into(), text.into());
                return Ok(());
            }
            _ => {}
        }
        let name = member.name;
        if object.get(name).is_some_and(Value::is_null) {
            object.remove(name);
        }
        if let (Some(Fixed { while_used: false, .. }), Some(before), false) =
            (member.fixed, before, object.contains_key(name))
        {
            object.insert(name.into(), before.clone());
        }
        if let (false, Some(default)) = (object.contains_key(name), default(member)) {
            object.insert(name.into(), default);
        }
        match object.get_mut(name).filter(|value| !(member.required && is_empty(value))) {
            Some(value) => self.value(member, before, value)?,
            None if member.required => {
                return Err((self.written.protocol.words.missing)(&self.wrong(member)));
            }
            None => {}
        }
        if let (true, Some(value)) = (member.closed, object.get_mut(name)) {
            close(member, value);
        }
        if member.none_if_empty && object.get(name).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            object.remove(name);
        }
        self.check_fixed(member, before, object.get(name))?;
        if let (Some(Fixed { while_used: false, .. }), Some(before)) = (member.fixed, before) {
            // It keeps its spelling.
            object.insert(name.into(), before.clone());
        }
        Ok(())
    }

    fn value(&mut self, member: &Member, before: Option<&Value>, value: &mut Value) -> Result<()> {
        let words = self.written.protocol.words;
        match member.holds {
            Holds::Flag => self.shape(member, Shape::Flag, value)?,
            Holds::Number(least, most) => {
                self.shape(member, Shape::Number, value)?;
                let number = value.as_i64().unwrap_or(i64::MAX);
                if !(least..=most).contains(&number) {
                    let (id, called) = (self.written.id, self.called(member));
                    let wrong = OutOfRange { id, member: called, value: number, least, most };
                    return Err((words.out_of_range)(&wrong));
                }
            }
            Holds::Word(allowed, _) => self.word(member, allowed, value)?,
            Holds::Text | Holds::Time | Holds::Duration => {
                self.shape(member, Shape::Text, value)?;
                self.check_text(member, value)?;
            }
            Holds::Texts => {
                for item in self.list(value)? {
                    self.shape(member, Shape::Text, item)?;
                    self.check_text(member, item)?;
                }
            }
            Holds::TextMap => {
                for (_, item) in self.entries(value)? {
                    self.shape(member, Shape::Text, item)?;
                }
            }
            Holds::Uses(kind) | Holds::Names(kind) => self.pointer(kind, value)?,
            Holds::UsesAll(kind) => {
                for item in self.list(value)? {
                    self.pointer(kind, item)?;
                }
            }
            Holds::UsesId(kind) => {
                self.shape(member, Shape::Text, value)?;
                let id = value.as_str().unwrap_or_default();
                if ResourceId::parse(id).is_err() {
                    return Err(Refusal::bad_id(id, &self.path));
                }
                let pointer = serde_json::json!({ "id": id });
                check_reference(&pointer, self.namespace, kind, &self.path)?;
            }
            Holds::Object(table) => self.object(table, before, self.entries(value)?)?,
            Holds::Objects(table) => {
                for (at, item) in self.list(value)?.iter_mut().enumerate() {
                    let length = self.step(at);
                    let before = counterpart(before, item);
                    self.object(table, before, self.entries(item)?)?;
                    self.path.truncate(length);
                }
            }
            Holds::Children(table) => self.children(member, table, before, value)?,
            Holds::Anything
            | Holds::Derived
            | Holds::Constant(_)
            | Holds::Users(_)
            | Holds::User(_)
            | Holds::Guid
            | Holds::Created
            | Holds::Kept => {}
        }
        Ok(())
    }

    fn children(
        &mut self,
        member: &Member,
        table: &[Member],
        before: Option<&Value>,
        value: &mut Value,
    ) -> Result<()> {
        let words = self.written.protocol.words;
        let mut seen = std::collections::HashSet::new();
        for (at, child) in self.list(value)?.iter_mut().enumerate() {
            let length = self.step(at);
            let before = counterpart(before, child).and_then(|before| before.get("properties"));
            let child = self.entries(child)?;
            // Derived members of a child, such as its id, are dropped.
            child.retain(|key, _| ["name", "properties", "zones"].contains(&key.as_str()));
            let called = child.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            if called.is_empty() {
                self.path.push_str(".name");
                return Err((words.missing)(&Wrong { id: self.written.id, member: self.below() }));
            }
            if !seen.insert(called.to_ascii_lowercase()) {
                return Err((words.twice)(&self.written.id.child(member.name, &called)));
            }
            let mut properties = child.remove("properties").map(into_object).unwrap_or_default();
            self.path.push_str(".properties");
            self.object(table, before, &mut properties)?;
            child.insert("properties".into(), Value::Object(properties));
            self.path.truncate(length);
        }
        Ok(())
    }

    /// Gives members Azure's spelling, and refuses others where the provider does.
    fn spell(&self, table: &[Member], object: &mut Object) -> Result<()> {
        let known = |key: &str| table.iter().any(|member| member.name == key);
        let strange: Vec<String> = object.keys().filter(|key| !known(key)).cloned().collect();
        let protocol = self.written.protocol;
        for key in strange {
            match table.iter().find(|member| member.name.eq_ignore_ascii_case(&key)) {
                Some(member) => {
                    if let Some(value) = object.remove(&key) {
                        object.insert(member.name.into(), value);
                    }
                }
                None if protocol.words.refuses_unknown && self.path.starts_with("properties") => {
                    return Err(Refusal::bad_format(format!(
                        "Could not find member '{key}' on object of type '{}'. Path '{}.{key}'.",
                        protocol.noun, self.path
                    )));
                }
                None => {}
            }
        }
        Ok(())
    }

    fn shape(&self, member: &Member, wanted: Shape, value: &mut Value) -> Result<()> {
        let read = shape(wanted, value, &self.path);
        if read.is_err() && member.secret {
            return Err(Refusal::bad_format(format!("Could not read the value at path '{}'.", self.path)));
        }
        read
    }

    fn word(&self, member: &Member, allowed: &[&'static str], value: &mut Value) -> Result<()> {
        let given = value.as_str().unwrap_or_default();
        match allowed.iter().find(|word| word.eq_ignore_ascii_case(given)) {
            Some(word) => *value = (*word).into(),
            None => {
                let (id, called) = (self.written.id, self.called(member));
                let wrong = NotAllowed { id, member: called, value, allowed };
                return Err((self.written.protocol.words.not_allowed)(&wrong));
            }
        }
        Ok(())
    }

    fn check_text(&self, member: &Member, value: &Value) -> Result<()> {
        let text = value.as_str().unwrap_or_default();
        let what = match member.holds {
            Holds::Time if text.parse::<jiff::Timestamp>().is_err() => "a moment as RFC 3339 writes it",
            Holds::Duration if text.parse::<jiff::Span>().is_err() => "a duration as ISO 8601 writes it",
            _ => match member.fits {
                Some((fits, what)) if !fits(text) => what,
                _ => return Ok(()),
            },
        };
        let called = self.called(member);
        let shown = if member.secret { String::new() } else { format!(" '{text}'") };
        let text = format!("The value{shown} of parameter '{called}' is not allowed: it must be {what}.");
        Err((self.written.protocol.words.unfit)(&Wrong { id: self.written.id, member: called }, text))
    }

    fn pointer(&self, kind: &str, value: &mut Value) -> Result<()> {
        check_reference(value, self.namespace, kind, &self.path)?;
        reduce_reference(value, &self.path).map(drop)
    }

    fn list<'v>(&self, value: &'v mut Value) -> Result<&'v mut Vec<Value>> {
        let path = &self.path;
        match value {
            Value::Array(items) => Ok(items),
            _ => Err(Refusal::bad_format(format!("Member '{path}' must be an array."))),
        }
    }

    fn entries<'v>(&self, value: &'v mut Value) -> Result<&'v mut Object> {
        let path = &self.path;
        match value {
            Value::Object(object) => Ok(object),
            _ => Err(Refusal::bad_format(format!("Member '{path}' must be an object."))),
        }
    }

    fn check_fixed(&self, member: &Member, before: Option<&Value>, after: Option<&Value>) -> Result<()> {
        let Some(fixed) = member.fixed.filter(|fixed| self.written.used || !fixed.while_used) else {
            return Ok(());
        };
        if self.written.old.is_none() || same(before, after) {
            return Ok(());
        }
        Err(fixed.refusal.unwrap_or(self.written.protocol.words.fixed)(&self.wrong(member)))
    }

    /// Goes to an item of a list; returns the length of the path before.
    fn step(&mut self, at: usize) -> usize {
        let length = self.path.len();
        self.path.push_str(&format!("[{at}]"));
        length
    }

    /// The path from the start of the table.
    fn below(&self) -> &str {
        self.path.get(self.root..).unwrap_or_default().trim_start_matches('.')
    }

    /// The name in refusals of the present member.
    fn called(&self, member: &Member) -> &str {
        member.called.unwrap_or(self.below())
    }

    fn wrong(&self, member: &Member) -> Wrong<'_> {
        Wrong { id: self.written.id, member: self.called(member) }
    }
}

/// Drops members that a member's table does not have.
fn close(member: &Member, value: &mut Value) {
    let (Holds::Object(table) | Holds::Objects(table)) = member.holds else { return };
    match value {
        Value::Object(object) => object.retain(|key, _| table.iter().any(|member| member.name == key)),
        Value::Array(items) => items.iter_mut().for_each(|item| close(member, item)),
        _ => {}
    }
}

/// Whether a text or a list is empty.
fn is_empty(value: &Value) -> bool {
    value.as_str().is_some_and(str::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

/// What a missing member stands for.
fn default(member: &Member) -> Option<Value> {
    Some(match (member.otherwise, member.holds) {
        (Some(Otherwise::Number(number)), _) => number.into(),
        (Some(Otherwise::Text(text)), _) => text.into(),
        (Some(Otherwise::Flag(flag)), _) => flag.into(),
        (Some(Otherwise::Empty), Holds::Object(_) | Holds::TextMap | Holds::Anything) => {
            Value::Object(Object::new())
        }
        (Some(Otherwise::Empty), _) => Value::Array(Vec::new()),
        (None, Holds::Word(words, true)) => (*words.first()?).into(),
        (None, _) => return None,
    })
}

/// Whether a fixed member is unchanged. Azure compares names and ids ignoring case, and an empty list equals an absent
/// one.
fn same(before: Option<&Value>, after: Option<&Value>) -> bool {
    let said =
        |value: Option<&Value>| value.filter(|value| !value.as_array().is_some_and(Vec::is_empty)).cloned();
    match (said(before), said(after)) {
        (Some(Value::String(before)), Some(Value::String(after))) => before.eq_ignore_ascii_case(&after),
        (Some(Value::Object(before)), Some(Value::Object(after))) => {
            before.len() == after.len() && before.iter().all(|(key, value)| same(Some(value), after.get(key)))
        }
        (before, after) => before == after,
    }
}

/// The item of the same name in the old list.
fn counterpart<'a>(before: Option<&'a Value>, item: &Value) -> Option<&'a Value> {
    let list = before?.as_array()?;
    list.iter().find(|old| !name(old).is_empty() && name(old).eq_ignore_ascii_case(name(item)))
}
