//! What a built-in kind is: one value with everything that distinguishes the kind, and defaults for all of it.
//!
//! A kind's file holds such a value. Names and paths, verbs and subresources, columns, defaults, rules and an example are
//! read from it by the registry, discovery, admission, tables and the verbs; none of them names a kind.

use jiff::Timestamp;
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, Resource};
use schemars::JsonSchema;
use schemars::generate::SchemaGenerator;
use serde_json::Value;

use crate::kinds::shared::allocators::{Allocations, Allocators};
use crate::kinds::shared::columns::{CREATED_AT, Column, NAME};
use crate::kinds::shared::defaults::Row;
use crate::kinds::shared::immutable::Immutable;
use crate::kinds::shared::names::dns_subdomain;
use crate::object::invalid::Causes;

/// How the `status` member of a kind is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusRule {
    /// The kind has no status subresource: `status`, if any, is an ordinary member.
    Ordinary,
    /// Only the status subresource writes it; a create drops it.
    Subresource,
    /// Only the status subresource changes it, but a create may bring it (Node: kubelets do).
    SubresourceKeptOnCreate,
}

/// What `metadata.generation` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Nothing: objects have no generation.
    None,
    /// Nothing: it is always 1.
    Constant,
    /// Changes of the specification.
    Specification,
    /// Changes of the specification and of annotations.
    SpecificationAndAnnotations,
}

/// A subresource of one kind, beside `status` and `scale`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subresource {
    /// Its name in paths.
    pub(crate) name: &'static str,
    /// Group, version and kind of the object that it takes; without a group those of its kind.
    pub(crate) takes: (Option<(&'static str, &'static str)>, &'static str),
    /// The verb that it serves.
    pub(crate) verb: &'static str,
}

/// The stored form of a kind that is stored as another one: the same objects in another shape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredForm {
    /// The shelf of the other kind.
    pub(crate) shelf: &'static str,
    /// Its `apiVersion`.
    pub(crate) api_version: &'static str,
    /// Converts the stored shape into that of this kind.
    pub(crate) read: fn(&mut Value),
    /// Converts the shape of this kind into the stored one.
    pub(crate) write: fn(&mut Value),
}

/// Adds the empty members that stored objects have.
pub(crate) type Complete<'a> = dyn Fn(&Value) -> Value + 'a;

/// A built-in kind in one version.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BuiltinKind {
    /// API group; empty for the core group.
    pub(crate) group: &'static str,
    /// Version within the group.
    pub(crate) version: &'static str,
    /// Name in paths.
    pub(crate) plural: &'static str,
    /// Name in the `kind` member.
    pub(crate) kind: &'static str,
    /// Whether objects live in a namespace.
    pub(crate) namespaced: bool,
    /// Adds the schema of its type, and of all types in it.
    pub(crate) schema: fn(&mut SchemaGenerator),
    /// Abbreviations for kubectl.
    pub(crate) short_names: &'static [&'static str],
    /// Categories for kubectl.
    pub(crate) categories: &'static [&'static str],

    /// Whether objects are reviews, which are answered and never stored: create is their only verb.
    pub(crate) is_review: bool,
    /// Set for a kind that is stored in the shape of another one.
    pub(crate) stored_form: Option<StoredForm>,
    /// The directory of objects in etcd, where it is not the plural: messages show it.
    pub(crate) etcd_directory: Option<&'static str>,
    /// How `status` is written.
    pub(crate) status: StatusRule,
    /// Whether there is a `scale` subresource over `spec.replicas`.
    pub(crate) scale: bool,
    /// Further subresources.
    pub(crate) subresources: &'static [Subresource],
    /// What `metadata.generation` counts.
    pub(crate) generation: Generation,
    /// Whether an update may leave out `metadata.resourceVersion`.
    pub(crate) unconditional_update: bool,
    /// Whether an update of a missing object creates it.
    pub(crate) create_on_update: bool,
    /// Paths of the members, beside name and namespace, that field selectors may name.
    pub(crate) fields: &'static [&'static str],
    /// Whether dependents stay by default when their owner is deleted.
    pub(crate) orphans_dependents: bool,
    /// Whether a deletion returns the last state of the object instead of a `Status`.
    pub(crate) deletion_returns_object: bool,

    /// The rule for names.
    pub(crate) name: fn(&str) -> Result<(), String>,
    /// Whether an object without a name gets one.
    pub(crate) generates_name: bool,
    /// The columns of `kubectl get`.
    pub(crate) columns: &'static [Column],

    /// Optional members, by the pointer of the map that holds them, that are dropped if they are empty.
    pub(crate) dropped_if_empty: &'static [(&'static str, &'static [&'static str])],
    /// The pointer of the pod specification in the object, whose defaults and derived members all such kinds share.
    pub(crate) pod_spec: Option<&'static str>,
    /// Defaults of missing members.
    pub(crate) defaults: &'static [Row],
    /// Tables of defaults that several kinds share, each with the pointer of the map that it is applied to.
    pub(crate) shared_defaults: &'static [(&'static str, &'static [Row])],
    /// Normalizes an object that was decoded, before anything is compared with it.
    pub(crate) decode: fn(&mut Value),
    /// Derives members from others.
    pub(crate) derive: fn(&mut Value),
    /// Sets members of a new object, before it is validated.
    pub(crate) prepare_create: fn(&mut Value),
    /// Sets members of a replacement, before it is validated: the old object, the new one, and what completes both.
    pub(crate) prepare_update: fn(&Value, &mut Value, &Complete<'_>),

    /// Validates an object.
    pub(crate) validate: fn(&Value, &mut Causes),
    /// Members that an update must not change.
    pub(crate) immutable: &'static [Immutable],
    /// Validates the change from an old object to a new one.
    pub(crate) validate_update: Option<fn(&Value, &Value, &mut Causes)>,
    /// Completes and validates an object where that needs the old one, or addresses and ports of the cluster.
    pub(crate) admit: fn(Option<&Value>, &mut Value, &mut Allocators, &mut Causes),
    /// The cluster addresses and node ports that an object holds.
    pub(crate) allocations: fn(&Value) -> Allocations,
    /// Sets the times in the status of an object that will be stored; the old one if there is one.
    pub(crate) date_status: fn(Option<&Value>, &mut Value, Timestamp),

    /// A valid object as JSON, without its type and name.
    pub(crate) example: &'static str,
}

impl BuiltinKind {
    const fn new<T: Resource + JsonSchema>(namespaced: bool) -> Self {
        Self {
            group: T::GROUP,
            version: T::VERSION,
            plural: T::URL_PATH_SEGMENT,
            kind: T::KIND,
            namespaced,
            schema: |generator| drop(generator.subschema_for::<T>()),
            short_names: &[],
            categories: &[],
            is_review: false,
            stored_form: None,
            etcd_directory: None,
            status: StatusRule::Ordinary,
            scale: false,
            subresources: &[],
            generation: Generation::None,
            unconditional_update: true,
            create_on_update: false,
            fields: &[],
            orphans_dependents: false,
            deletion_returns_object: false,
            name: dns_subdomain,
            generates_name: false,
            columns: &[NAME, CREATED_AT],
            dropped_if_empty: &[],
            pod_spec: None,
            defaults: &[],
            shared_defaults: &[],
            decode: |_| {},
            derive: |_| {},
            prepare_create: |_| {},
            prepare_update: |_, _, _| {},
            validate: |_, _| {},
            immutable: &[],
            validate_update: None,
            admit: |_, _, _, _| {},
            allocations: |_| Allocations::default(),
            date_status: |_, _, _| {},
            example: "{}",
        }
    }

    /// A kind whose objects live in namespaces: the names are those of its type, everything else has a default.
    pub(crate) const fn namespaced<T: Resource<Scope = NamespaceResourceScope> + JsonSchema>() -> Self {
        Self::new::<T>(true)
    }

    /// A cluster-scoped kind: the names are those of its type, everything else has a default.
    pub(crate) const fn cluster<T: Resource<Scope = ClusterResourceScope> + JsonSchema>() -> Self {
        Self::new::<T>(false)
    }
}
