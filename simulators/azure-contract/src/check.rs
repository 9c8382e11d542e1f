//! Holding a value against a shape.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::shape::{File, Kind, Member, Number, Shape};
use crate::violation::{Problem, Side, Violation};

/// Shapes may hold themselves (errors within errors). No document is that deep.
const DEEPEST: usize = 40;

/// One walk through a document.
pub(crate) struct Check<'a> {
    pub(crate) file: &'a File,
    pub(crate) side: Side,
    pub(crate) found: Vec<Violation>,
}

impl Check<'_> {
    /// Holds a value against a shape. `member` is its path.
    pub(crate) fn value(&mut self, value: &Value, shape: Number, member: &str, depth: usize) {
        let Some(shape) = self.file.types.get(&shape) else { return };
        if value.is_null() || depth > DEEPEST {
            return;
        }
        match shape.kind() {
            Kind::Object { members, additional } => {
                let Some(object) = self.object(value, member) else { return };
                self.members(object, members, additional, member, depth);
            }
            Kind::Tagged { common, by, objects } => {
                let Some(object) = self.object(value, member) else { return };
                let mut members = common.clone();
                let chosen = object.get(by).and_then(Value::as_str).and_then(|value| objects.get(value));
                if let Some(Kind::Object { members: own, .. }) =
                    chosen.and_then(|number| self.file.types.get(number)).map(Shape::kind)
                {
                    members.extend(own.iter().map(|(name, member)| (name.clone(), *member)));
                }
                let mut rest = object.clone();
                if !members.contains_key(by) {
                    rest.remove(by);
                }
                self.members(&rest, &members, None, member, depth);
            }
            Kind::List(items) => {
                let Some(list) = value.as_array() else { return self.wrong_type(value, "array", member) };
                let member = format!("{member}[]");
                for item in list {
                    self.value(item, items, &member, depth + 1);
                }
            }
            Kind::OneOf(shapes) => self.one_of(value, shapes, member, depth),
            Kind::Literal(text) => {
                if !value.as_str().is_some_and(|value| value.eq_ignore_ascii_case(text)) {
                    self.add(member, Problem::Value(value.to_string()));
                }
            }
            Kind::Plain(wanted) => self.plain(value, wanted, shape, member),
        }
    }

    fn members(
        &mut self,
        object: &Map<String, Value>,
        members: &HashMap<String, Member>,
        additional: Option<Number>,
        path: &str,
        depth: usize,
    ) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        for (name, value) in object {
            if let Some(member) = members.get(name) {
                if self.side == Side::Answer && member.is_write_only() {
                    self.add(&below(name), Problem::WriteOnly);
                }
                if !(self.side.is_sent() && member.is_read_only()) {
                    self.value(value, member.0, &below(name), depth + 1);
                }
            } else if let Some(spelled) = members.keys().find(|known| known.eq_ignore_ascii_case(name)) {
                self.add(&below(name), Problem::LetterCase(spelled.clone()));
            } else if let Some(additional) = additional {
                self.value(value, additional, &below("*"), depth + 1);
            } else {
                self.add(&below(name), Problem::Unknown);
            }
        }
        if self.side == Side::Request {
            let missing =
                |(name, member): &(&String, &Member)| member.is_required() && !object.contains_key(*name);
            let mut missing: Vec<_> = members.iter().filter(missing).map(|(name, _)| below(name)).collect();
            missing.sort();
            for member in missing {
                self.add(&member, Problem::Missing);
            }
        }
    }

    /// A value that may be one of several. Texts that are given make an enumeration, which is open where any text may
    /// stand beside them.
    fn one_of(&mut self, value: &Value, shapes: &[Number], member: &str, depth: usize) {
        let mut texts = Vec::new();
        let mut fewest: Option<Vec<Violation>> = None;
        for number in shapes {
            let Some(shape) = self.file.types.get(number) else { continue };
            if let Kind::Literal(text) = shape.kind() {
                texts.push(text);
                continue;
            }
            let mut attempt = Check { file: self.file, side: self.side, found: Vec::new() };
            attempt.value(value, *number, member, depth + 1);
            if attempt.found.is_empty() {
                return;
            }
            if fewest.as_ref().is_none_or(|fewest| attempt.found.len() < fewest.len()) {
                fewest = Some(attempt.found);
            }
        }
        let text = value.as_str();
        if text.is_some_and(|text| texts.contains(&text)) {
            return;
        }
        match fewest {
            Some(fewest) if texts.is_empty() => self.found.extend(fewest),
            _ => {
                let spelled =
                    texts.iter().find(|known| text.is_some_and(|text| known.eq_ignore_ascii_case(text)));
                let problem = match spelled {
                    Some(spelled) => Problem::LetterCase((*spelled).to_owned()),
                    None => Problem::Value(value.to_string()),
                };
                self.add(member, problem);
            }
        }
    }

    fn plain(&mut self, value: &Value, wanted: &str, shape: &Shape, member: &str) {
        let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
        let wanted = match wanted {
            "string" => "string",
            "boolean" => "boolean",
            "integer" => "integer",
            "object" => "object",
            "array" => "array",
            _ => return,
        };
        if json_type(value) != wanted && !(wanted == "integer" && value.is_number() && whole) {
            return self.wrong_type(value, wanted, member);
        }
        if let Some(text) = value.as_str() {
            let length = text.chars().count();
            if !shape.has_length(length) {
                self.add(member, Problem::Length(length));
            } else if !shape.has_form(text) {
                self.add(member, Problem::Pattern(text.to_owned()));
            }
        }
        if let Some(number) = value.as_i64().filter(|number| !shape.has_range(*number)) {
            self.add(member, Problem::Range(number));
        }
    }

    fn object<'v>(&mut self, value: &'v Value, member: &str) -> Option<&'v Map<String, Value>> {
        let object = value.as_object();
        if object.is_none() {
            self.wrong_type(value, "object", member);
        }
        object
    }

    fn wrong_type(&mut self, value: &Value, wanted: &'static str, member: &str) {
        self.add(member, Problem::JsonType(json_type(value), wanted));
    }

    fn add(&mut self, member: &str, problem: Problem) {
        self.found.push(Violation { member: member.to_owned(), problem });
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
