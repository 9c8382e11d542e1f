//! The tree of a schema.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::Value;

use crate::expression::{Program, compile};

/// A JSON type of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Form {
    /// The name in `type`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// How the items of a list are identified (`x-kubernetes-list-type`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum ListType {
    /// Not at all: the list is one value.
    #[default]
    Atomic,
    /// By their value, which is unique.
    Set,
    /// By the values of these members.
    Map(Vec<String>),
}

/// The strategic merge of a member (`x-kubernetes-patch-strategy`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PatchStrategy {
    /// Lists merge: by this member of their items if there is one, otherwise as a set.
    pub(crate) merge: Option<Option<String>>,
    /// `$retainKeys` of the patch lists the members that stay.
    pub(crate) retain_keys: bool,
}

/// The value of `additionalProperties`.
#[derive(Debug, Clone, Default)]
pub(crate) enum Additional {
    /// Members without a schema of their own are unknown.
    #[default]
    None,
    /// They may have any value.
    Any,
    /// They follow this schema.
    Of(Link),
}

/// The schema of a member or item: its own, or a definition, which may contain itself.
#[derive(Debug, Clone)]
pub(crate) enum Link {
    Inline(Box<Schema>),
    /// A built-in definition.
    Definition(Box<Reference>),
}

/// A reference to a built-in definition.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    pub(crate) name: Box<str>,
    /// Set by [`Schema::resolve`].
    definition: OnceLock<&'static Schema>,
}

impl Reference {
    pub(crate) fn to(name: &str) -> Box<Self> {
        Box::new(Self { name: name.into(), definition: OnceLock::new() })
    }
}

impl Deref for Link {
    type Target = Schema;

    fn deref(&self) -> &Schema {
        match self {
            Self::Inline(schema) => schema,
            Self::Definition(reference) => reference.definition.get().copied().unwrap_or(&ANYTHING),
        }
    }
}

/// The compiled expressions of a rule.
#[derive(Debug)]
pub(crate) struct CompiledRule {
    pub(crate) rule: Program,
    pub(crate) message: Option<Program>,
}

/// One rule in CEL (`x-kubernetes-validations`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Rule {
    pub(crate) rule: String,
    pub(crate) message: Option<String>,
    pub(crate) message_expression: Option<String>,
    pub(crate) reason: Option<String>,
    pub(crate) field_path: Option<String>,
    pub(crate) optional_old_self: bool,
    pub(super) compiled: OnceLock<Arc<Result<CompiledRule, String>>>,
}

impl Rule {
    /// The rule's programs, compiled at first use.
    ///
    /// # Errors
    /// The error of the parser.
    pub(crate) fn compiled(&self) -> Result<&CompiledRule, &str> {
        let compile = || {
            let message = self.message_expression.as_deref().map(compile).transpose()?;
            Ok(CompiledRule { rule: compile(&self.rule)?, message })
        };
        self.compiled.get_or_init(|| Arc::new(compile())).as_ref().as_ref().map_err(String::as_str)
    }
}

/// Constraints beyond the type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Constraints {
    pub(crate) required: Vec<String>,
    pub(crate) values: Vec<Value>,
    pub(crate) pattern: Option<String>,
    pub(crate) minimum: Option<f64>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) maximum: Option<f64>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) multiple_of: Option<f64>,
    pub(crate) min_length: Option<u64>,
    pub(crate) max_length: Option<u64>,
    pub(crate) min_items: Option<u64>,
    pub(crate) max_items: Option<u64>,
    pub(crate) min_properties: Option<u64>,
    pub(crate) max_properties: Option<u64>,
    pub(crate) all_of: Vec<Schema>,
    pub(crate) any_of: Vec<Schema>,
    pub(crate) one_of: Vec<Schema>,
    pub(crate) not: Option<Box<Schema>>,
}

/// The schema of one value.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema {
    /// Name of the definition, such as `io.k8s.api.core.v1.ServiceSpec`, for messages.
    pub(crate) definition: Option<Box<str>>,
    /// `None` for any type.
    pub(crate) form: Option<Form>,
    /// `int32`, `date-time` and the like; empty if there is no format.
    pub(crate) format: Box<str>,
    pub(crate) nullable: bool,
    pub(crate) int_or_string: bool,
    pub(crate) preserve_unknown: bool,
    /// The object has `apiVersion`, `kind` and `metadata` of its own.
    pub(crate) embedded_resource: bool,
    pub(crate) properties: BTreeMap<String, Link>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Link>,
    pub(crate) default: Option<Value>,
    pub(crate) list: ListType,
    /// The object is atomic in field ownership (`x-kubernetes-map-type: atomic`).
    pub(crate) atomic: bool,
    pub(crate) patch: PatchStrategy,
    pub(crate) constraints: Option<Box<Constraints>>,
    pub(crate) rules: Vec<Rule>,
}

/// The schema of values without a schema: maps are granular, lists are atomic.
pub(crate) static ANYTHING: LazyLock<Schema> =
    LazyLock::new(|| Schema { preserve_unknown: true, ..Schema::default() });

impl Schema {
    /// The schema of the member `name`; `None` if there is none.
    pub(crate) fn member(&self, name: &str) -> Option<&Self> {
        match (self.properties.get(name), &self.additional) {
            (Some(link), _) => Some(link),
            (None, Additional::Of(link)) => Some(link),
            (None, _) => None,
        }
    }

    /// As [`Schema::member`]; a member without a schema may have any value.
    pub(crate) fn member_or_any(&self, name: &str) -> &Self {
        self.member(name).unwrap_or(&ANYTHING)
    }

    /// The schema of the items of a list; items without a schema may have any value.
    pub(crate) fn item_or_any(&self) -> &Self {
        self.items.as_deref().unwrap_or(&ANYTHING)
    }

    /// Whether unknown members are kept.
    pub(crate) fn keeps_unknown(&self) -> bool {
        self.preserve_unknown || !matches!(self.additional, Additional::None)
    }

    /// Resolves the references in a schema, except for those inside of other definitions. Until then a reference allows
    /// any value.
    pub(crate) fn resolve(&self, definition: &dyn Fn(&str) -> Option<&'static Self>) {
        let additional = match &self.additional {
            Additional::Of(link) => Some(link),
            Additional::None | Additional::Any => None,
        };
        for link in self.properties.values().chain(&self.items).chain(additional) {
            match link {
                Link::Inline(schema) => schema.resolve(definition),
                Link::Definition(reference) => {
                    if let Some(definition) = definition(&reference.name) {
                        // A reference that was copied from a resolved schema leads to the same definition.
                        let _ = reference.definition.set(definition);
                    }
                }
            }
        }
    }

    /// The last part of the definition's name: `ServiceSpec`.
    pub(crate) fn type_name(&self) -> Option<&str> {
        self.definition.as_deref()?.rsplit('.').next()
    }
}
