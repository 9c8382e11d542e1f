//! Types of expressions and their assignability (CEL's language definition: "Gradual type checking").

use std::fmt;
use std::sync::LazyLock;

use serde_json::json;

use super::names::escape;
use crate::schema::{Additional, Form, Link, Schema};

/// A type. Values of unknown types are `Dyn`, which is assignable to and from every type.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::admission) enum Type<'s> {
    Dyn,
    /// The type of a part with an error: no further errors are reported about it.
    Error,
    Null,
    Bool,
    Int,
    Uint,
    Double,
    Text,
    Bytes,
    Timestamp,
    Duration,
    List(Box<Self>),
    Map(Box<Self>, Box<Self>),
    /// The type of types.
    Kind(Box<Self>),
    /// A type that only functions return, such as an optional value or a quantity.
    Opaque(&'static str, Vec<Self>),
    Object(Object<'s>),
    /// A type parameter in a function's signature.
    Parameter(&'static str),
    /// A type parameter in one call.
    Variable(usize),
}

/// The opaque type of optional values.
pub(super) const OPTIONAL: &str = "optional_type";

/// An object with members that its schema describes.
#[derive(Debug, Clone)]
pub(in crate::admission) struct Object<'s> {
    /// Its path: two objects have the same type if their paths are equal.
    name: String,
    schema: &'s Schema,
}

impl PartialEq for Object<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The members of metadata that rules can see.
static METADATA: LazyLock<Schema> = LazyLock::new(|| {
    let text = json!({ "type": "string" });
    Schema::parse(&json!({ "type": "object", "properties": { "name": text, "generateName": text } }))
});

impl<'s> Object<'s> {
    /// The type of a member by its name in CEL.
    pub(super) fn member(&self, name: &str) -> Option<Type<'s>> {
        let (property, link) =
            self.schema.properties.iter().find(|(property, _)| escape(property) == name)?;
        let place = format!("{}.{property}", self.name);
        match link {
            Link::Inline(schema) => Type::of(schema, &place),
            Link::Definition(_) => Some(Type::Object(Object { name: place, schema: &METADATA })),
        }
    }
}

impl<'s> Type<'s> {
    /// The type of `self` in rules of this schema; `None` if no schema describes the value.
    pub(in crate::admission) fn of_self(schema: &'s Schema) -> Option<Self> {
        Self::of(schema, "selfType1")
    }

    fn of(schema: &'s Schema, place: &str) -> Option<Self> {
        let link = |link: &'s Link, part: &str| match link {
            Link::Inline(schema) => Self::of(schema, &format!("{place}.{part}")),
            Link::Definition(_) => Some(Self::Dyn),
        };
        if schema.int_or_string {
            return Some(Self::Dyn);
        }
        Some(match schema.form? {
            Form::Array => Self::List(Box::new(link(schema.items.as_ref()?, "@idx")?)),
            Form::Object => match &schema.additional {
                Additional::Of(values) => Self::Map(Box::new(Self::Text), Box::new(link(values, "@elem")?)),
                _ => Self::Object(Object { name: place.to_owned(), schema }),
            },
            Form::String => match &*schema.format {
                "byte" => Self::Bytes,
                "duration" => Self::Duration,
                "date" | "date-time" => Self::Timestamp,
                _ => Self::Text,
            },
            Form::Boolean => Self::Bool,
            Form::Number => Self::Double,
            Form::Integer => Self::Int,
        })
    }

    pub(in crate::admission) fn optional(of: Self) -> Self {
        Self::Opaque(OPTIONAL, vec![of])
    }

    /// The type inside an optional type, or the type itself; and whether it was optional.
    pub(super) fn unwrapped(self) -> (Self, bool) {
        match self {
            Self::Opaque(OPTIONAL, mut of) => (of.pop().unwrap_or(Self::Dyn), true),
            other => (other, false),
        }
    }

    /// Whether null is assignable to the type.
    fn is_nullable(&self) -> bool {
        matches!(self, Self::Null | Self::Opaque(..) | Self::Object(_) | Self::Timestamp | Self::Duration)
    }

    fn parts(&self) -> Vec<&Self> {
        match self {
            Self::List(item) | Self::Kind(item) => vec![item],
            Self::Map(key, value) => vec![key, value],
            Self::Opaque(_, parts) => parts.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The same type with its parts replaced, or the type itself replaced if it has no parts.
    fn map(&self, with: &mut impl FnMut(&Self) -> Self) -> Self {
        match self {
            Self::List(item) => Self::List(Box::new(with(item))),
            Self::Kind(item) => Self::Kind(Box::new(with(item))),
            Self::Map(key, value) => Self::Map(Box::new(with(key)), Box::new(with(value))),
            Self::Opaque(name, parts) => Self::Opaque(name, parts.iter().map(with).collect()),
            other => other.clone(),
        }
    }

    /// Whether it is at most as specific as another type with which it agrees.
    fn is_at_most_as_specific_as(&self, other: &Self) -> bool {
        let open = |one: &Self| matches!(one, Self::Dyn | Self::Variable(_));
        if open(self) || open(other) {
            return open(self);
        }
        let (parts, others) = (self.parts(), other.parts());
        if parts.is_empty() {
            return self == other;
        }
        parts.len() == others.len()
            && parts.iter().zip(others).all(|(one, other)| one.is_at_most_as_specific_as(other))
    }
}

impl fmt::Display for Type<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Dyn | Self::Parameter(_) | Self::Variable(_) => "dyn",
            Self::Error => "!error!",
            Self::Null => "null",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::Text => "string",
            Self::Bytes => "bytes",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::List(_) => "list",
            Self::Map(..) => "map",
            Self::Kind(_) => "type",
            Self::Opaque(name, _) => name,
            Self::Object(object) => &object.name,
        };
        let parts: Vec<String> = self.parts().into_iter().map(ToString::to_string).collect();
        if parts.is_empty() { f.write_str(name) } else { write!(f, "{name}({})", parts.join(", ")) }
    }
}

/// The types that the type variables of calls are bound to.
#[derive(Debug, Clone, Default)]
pub(super) struct Bindings<'s>(Vec<Option<Type<'s>>>);

impl<'s> Bindings<'s> {
    /// A new type variable.
    pub(super) fn variable(&mut self) -> Type<'s> {
        self.0.push(None);
        Type::Variable(self.0.len() - 1)
    }

    /// Whether a value of the type `given` is assignable to `wanted`; type variables are bound accordingly.
    pub(super) fn accept(&mut self, given: &Type<'s>, wanted: &Type<'s>) -> bool {
        self.accept_all(&[given], &[wanted])
    }

    /// The same for several values at once.
    pub(super) fn accept_all(&mut self, given: &[&Type<'s>], wanted: &[&Type<'s>]) -> bool {
        let mut attempt = self.clone();
        let fits = given.len() == wanted.len()
            && given.iter().zip(wanted).all(|(given, wanted)| attempt.agree(given, wanted));
        if fits {
            *self = attempt;
        }
        fits
    }

    fn agree(&mut self, given: &Type<'s>, wanted: &Type<'s>) -> bool {
        if let Type::Variable(variable) = wanted {
            match self.bind(*variable, given) {
                Some(agrees) => return agrees,
                None if matches!(given, Type::Variable(_)) => {}
                None => return false,
            }
        }
        if let Type::Variable(variable) = given {
            return self.bind(*variable, wanted) == Some(true);
        }
        match (given, wanted) {
            (Type::Dyn | Type::Error, _) | (_, Type::Dyn | Type::Error) => true,
            (Type::Null, other) | (other, Type::Null) => other.is_nullable(),
            (Type::Kind(_), Type::Kind(_)) => true,
            (Type::List(one), Type::List(other)) => self.agree(one, other),
            (Type::Map(key, value), Type::Map(other_key, other)) => {
                self.agree(key, other_key) && self.agree(value, other)
            }
            (Type::Opaque(name, parts), Type::Opaque(other, others)) => {
                name == other
                    && parts.len() == others.len()
                    && parts.iter().zip(others).all(|(one, other)| self.agree(one, other))
            }
            (one, other) => one == other,
        }
    }

    /// Binds a type variable. `None` if its type would contain itself.
    fn bind(&mut self, variable: usize, to: &Type<'s>) -> Option<bool> {
        if *to == Type::Variable(variable) {
            return Some(true);
        }
        let Some(bound) = self.0.get(variable).cloned().flatten() else {
            return self.set(variable, to.clone()).then_some(true);
        };
        if bound == *to {
            return Some(true);
        }
        let agrees = self.agree(to, &bound);
        if agrees && to.is_at_most_as_specific_as(&bound) {
            self.set(variable, to.clone());
        }
        Some(agrees)
    }

    fn set(&mut self, variable: usize, to: Type<'s>) -> bool {
        let free = !self.contains(&to, variable);
        if let (true, Some(place)) = (free, self.0.get_mut(variable)) {
            *place = Some(to);
        }
        free
    }

    fn contains(&self, of: &Type<'s>, variable: usize) -> bool {
        match of {
            Type::Variable(other) if *other == variable => true,
            Type::Variable(other) => {
                self.0.get(*other).and_then(Option::as_ref).is_some_and(|of| self.contains(of, variable))
            }
            other => other.parts().into_iter().any(|part| self.contains(part, variable)),
        }
    }

    /// The type with all bound variables replaced.
    pub(super) fn resolve(&self, of: &Type<'s>) -> Type<'s> {
        match of {
            Type::Variable(variable) => match self.0.get(*variable).and_then(Option::as_ref) {
                Some(bound) => self.resolve(bound),
                None => of.clone(),
            },
            other => other.map(&mut |part| self.resolve(part)),
        }
    }

    /// A function's type in one call: each of its type parameters becomes a new variable.
    pub(super) fn instantiate(
        &mut self,
        of: &Type<'s>,
        parameters: &mut Vec<(&'static str, Type<'s>)>,
    ) -> Type<'s> {
        match of {
            Type::Parameter(name) => {
                if let Some((_, known)) = parameters.iter().find(|(other, _)| other == name) {
                    return known.clone();
                }
                let new = self.variable();
                parameters.push((name, new.clone()));
                new
            }
            other => other.map(&mut |part| self.instantiate(part, parameters)),
        }
    }
}
