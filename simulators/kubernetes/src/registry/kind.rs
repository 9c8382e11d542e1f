//! One served kind in one version: its names and what requests to it mean.

use std::sync::Arc;

use serde_json::Value;

use crate::conversion;
use crate::kinds::builtin::{BuiltinKind, Generation, StatusRule, Subresource};
use crate::schema::{self, ANYTHING, Schema};

/// A column of a table of a custom kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PrinterColumn {
    pub(crate) name: String,
    pub(crate) form: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    /// A simple JSONPath.
    pub(crate) path: String,
}

/// Where the numbers of the `scale` subresource are in an object: members of their paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) replicas: Vec<String>,
    pub(crate) actual: Vec<String>,
    /// A text, such as `app=web`; workloads have a LabelSelector instead.
    pub(crate) selector: Option<Vec<String>>,
}

/// One served kind in one version.
#[derive(Debug, Clone)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version within the group, such as `v1`.
    pub version: String,
    /// Name in paths, lower case.
    pub plural: String,
    /// Name for one object on the command line, lower case.
    pub singular: String,
    /// Name in the `kind` member.
    pub kind: String,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Abbreviations for kubectl.
    pub short_names: Vec<String>,
    /// Categories for kubectl, such as `all`.
    pub categories: Vec<String>,
    /// How `status` is written.
    pub status: StatusRule,
    /// Whether there is a `scale` subresource over `spec.replicas`.
    pub scale: bool,
    /// What `metadata.generation` counts.
    pub(crate) generation: Generation,
    /// Whether an update may leave out `metadata.resourceVersion`.
    pub unconditional_update: bool,
    /// Whether an update of a missing object creates it.
    pub create_on_update: bool,
    /// Paths of the members, beside name and namespace, that field selectors may name.
    pub fields: Vec<String>,
    /// What it is, for a built-in kind; a CustomResourceDefinition defines all others.
    pub(crate) builtin: Option<&'static BuiltinKind>,
    /// The schema of its definition (`openAPIV3Schema`).
    pub(crate) schema: Option<Value>,
    /// The same as a tree.
    pub(crate) tree: Option<Arc<Schema>>,
    /// The data that all versions of a custom kind share.
    pub(crate) versions: Option<Arc<conversion::Versions>>,
    /// Whether objects are returned as they are stored, in any version.
    pub(crate) as_stored: bool,
    /// A hash of the relevant parts of its definition.
    pub(crate) made_of: u64,
    /// The warning to clients that use a deprecated version of a custom kind.
    pub(crate) deprecation: Option<String>,
    /// The columns of a custom kind's tables (`additionalPrinterColumns`).
    pub(crate) columns: Vec<PrinterColumn>,
    /// The paths of a custom kind's `scale` subresource.
    pub(crate) scale_paths: Option<ScalePaths>,
    /// Key of the shelf in the store: the same for all versions of a kind.
    pub(crate) shelf: Arc<str>,
}

impl Kind {
    pub(super) fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Self {
        let shelf = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            kind: kind.to_owned(),
            namespaced,
            short_names: Vec::new(),
            categories: Vec::new(),
            status: StatusRule::Ordinary,
            scale: false,
            generation: Generation::None,
            unconditional_update: true,
            create_on_update: false,
            fields: Vec::new(),
            builtin: None,
            schema: None,
            tree: None,
            versions: None,
            as_stored: false,
            made_of: 0,
            deprecation: None,
            columns: Vec::new(),
            scale_paths: None,
            shelf: shelf.into(),
        }
    }

    /// A built-in kind.
    pub(super) fn of(kind: &'static BuiltinKind) -> Self {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let new = Self::new(kind.group, kind.version, kind.plural, kind.kind, kind.namespaced);
        Self {
            short_names: owned(kind.short_names),
            categories: owned(kind.categories),
            status: kind.status,
            scale: kind.scale,
            generation: kind.generation,
            unconditional_update: kind.unconditional_update,
            create_on_update: kind.create_on_update,
            fields: owned(kind.fields),
            builtin: Some(kind),
            shelf: kind.stored_form.map_or_else(|| Arc::clone(&new.shelf), |form| form.shelf.into()),
            ..new
        }
    }

    /// Whether objects of this kind are reviews, which are answered and never stored.
    #[must_use]
    pub fn is_review(&self) -> bool {
        self.builtin.is_some_and(|kind| kind.is_review)
    }

    /// Whether a CustomResourceDefinition defines it.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        self.builtin.is_none()
    }

    /// `group/version`, or the version alone for the core group, as in `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether this is the kind's `apiVersion`.
    pub(crate) fn has_api_version(&self, text: &str) -> bool {
        match text.split_once('/') {
            Some((group, version)) => self.group == group && self.version == version,
            None => self.group.is_empty() && self.version == text,
        }
    }

    /// Name of the resource in error messages: `services`, `deployments.apps`.
    #[must_use]
    pub fn resource(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// Name of the kind in messages about invalid objects: `Service`, `Deployment.apps`.
    #[must_use]
    pub fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// What a built-in kind is; `None` for a custom one.
    pub(crate) fn builtin(&self) -> Option<&'static BuiltinKind> {
        self.builtin
    }

    /// A subresource of this kind alone, by its name in paths.
    pub(crate) fn subresource(&self, name: &str) -> Option<&'static Subresource> {
        self.builtin?.subresources.iter().find(|subresource| subresource.name == name)
    }

    /// Whether there is a `status` subresource.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.status != StatusRule::Ordinary
    }

    /// The schema of the kind's objects.
    pub(crate) fn tree(&self) -> &Schema {
        match &self.tree {
            Some(tree) => tree,
            None if self.is_custom() => &ANYTHING,
            None => schema::builtin::of_kind(&self.group, &self.version, &self.kind).unwrap_or(&ANYTHING),
        }
    }

    /// Whether a webhook may be needed to return an object of this kind.
    pub(crate) fn is_converted(&self) -> bool {
        !self.as_stored && self.versions.as_ref().is_some_and(|versions| versions.webhook.is_some())
    }

    /// The paths of the `scale` subresource.
    pub(crate) fn scale_paths(&self) -> ScalePaths {
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        self.scale_paths.clone().unwrap_or_else(|| ScalePaths {
            replicas: path(&["spec", "replicas"]),
            actual: path(&["status", "replicas"]),
            selector: None,
        })
    }

    /// Key of an object in its shelf, ordered as etcd orders it: `namespace/name`, or the name alone.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }
}
