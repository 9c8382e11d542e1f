//! The served kinds, as data: a table with one row for each kind.
//!
//! Custom resources are added at run time, from the stored CustomResourceDefinitions.

mod builtin;
mod custom;
mod version;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::conversion::{self, reshape};
use crate::object::string_at;
use crate::patch::{Scope, Subject, Versioned, Versions};
use crate::schema::{self, ANYTHING, Schema};
use crate::status::ApiError;

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

/// The conversion from the stored to the served form of a built-in kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// All versions have the same shape; only `apiVersion` differs.
    None,
    /// `events.k8s.io` has other names for the members of core Events.
    Events,
    /// `autoscaling/v1` supports one metric, CPU, in a member of its own.
    Autoscaling,
}

pub(crate) use version::priority;

/// A column of a table of a custom kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
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
    /// Whether the server counts changes of the specification in `metadata.generation`.
    pub generation: bool,
    /// Whether an update may leave out `metadata.resourceVersion`.
    pub unconditional_update: bool,
    /// Whether an update of a missing object creates it.
    pub create_on_update: bool,
    /// Paths of the members, beside name and namespace, that field selectors may name.
    pub fields: Vec<String>,
    /// Whether a CustomResourceDefinition defines it.
    pub custom: bool,
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
    pub(crate) columns: Vec<Column>,
    /// The paths of a custom kind's `scale` subresource.
    pub(crate) scale_paths: Option<ScalePaths>,
    /// Whether objects of this kind are reviews, which are answered and never stored.
    pub(crate) review: bool,
    pub(crate) conversion: Conversion,
    /// Key of the shelf in the store: the same for all versions of a kind.
    pub(crate) shelf: Arc<str>,
}

impl Kind {
    fn new(group: &str, version: &str, plural: &str, kind: &str, namespaced: bool) -> Self {
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
            generation: false,
            unconditional_update: true,
            create_on_update: false,
            fields: Vec::new(),
            custom: false,
            schema: None,
            tree: None,
            versions: None,
            as_stored: false,
            made_of: 0,
            deprecation: None,
            columns: Vec::new(),
            scale_paths: None,
            review: false,
            conversion: Conversion::None,
            shelf: shelf.into(),
        }
    }

    fn short(mut self, names: &[&str]) -> Self {
        self.short_names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    fn categories(mut self, names: &[&str]) -> Self {
        self.categories = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    fn status(mut self, rule: StatusRule) -> Self {
        self.status = rule;
        self
    }

    fn scale(mut self) -> Self {
        self.scale = true;
        self
    }

    fn generation(mut self) -> Self {
        self.generation = true;
        self
    }

    fn version_required(mut self) -> Self {
        self.unconditional_update = false;
        self
    }

    fn create_on_update(mut self) -> Self {
        self.create_on_update = true;
        self
    }

    fn fields(mut self, paths: &[&str]) -> Self {
        self.fields = paths.iter().map(|path| (*path).to_owned()).collect();
        self
    }

    fn review(mut self) -> Self {
        self.review = true;
        self
    }

    /// Whether objects of this kind are reviews, which are answered and never stored.
    #[must_use]
    pub fn is_review(&self) -> bool {
        self.review
    }

    fn stored_as(mut self, shelf: &str, conversion: Conversion) -> Self {
        self.shelf = shelf.into();
        self.conversion = conversion;
        self
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

    /// Whether this is the built-in kind of that name, in any version. A custom kind never is, whatever its name.
    #[must_use]
    pub fn is(&self, group: &str, kind: &str) -> bool {
        !self.custom && self.group == group && self.kind == kind
    }

    /// Group and name of a built-in kind; `None` for a custom one.
    pub(crate) fn builtin(&self) -> Option<(&str, &str)> {
        (!self.custom).then_some((self.group.as_str(), self.kind.as_str()))
    }

    /// Whether a deletion returns the last state of the object instead of a `Status`.
    pub(crate) fn answers_deletion_with_object(&self) -> bool {
        const CORE: [&str; 7] = [
            "persistentvolumeclaims",
            "persistentvolumes",
            "pods",
            "podtemplates",
            "resourcequotas",
            "serviceaccounts",
            "services",
        ];
        match self.group.as_str() {
            "" => CORE.contains(&self.plural.as_str()),
            group => group == "storage.k8s.io" && self.plural != "csistoragecapacities",
        }
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
            None if self.custom => &ANYTHING,
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

    /// The members that a write of a part may change.
    fn scope(&self, subresource: &str) -> Scope {
        match subresource {
            "" if self.has_status() => Scope::AllBut(&["status"]),
            "status" if self.custom => Scope::Only(&["status"]),
            "status" => Scope::Only(&["metadata", "status"]),
            _ => Scope::AllBut(&[]),
        }
    }

    /// Key of an object in its shelf, ordered as etcd orders it: `namespace/name`, or the name alone.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }
}

/// The versions of one kind.
struct Siblings<'a> {
    registry: &'a Registry,
    kind: &'a Kind,
}

impl Siblings<'_> {
    fn row(&self, api_version: &str) -> Option<&Arc<Kind>> {
        let siblings = self.registry.kinds.iter();
        siblings
            .filter(|row| row.shelf == self.kind.shelf && row.kind == self.kind.kind)
            .find(|row| row.has_api_version(api_version))
    }
}

impl Versions for Siblings<'_> {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        self.row(api_version).map(|row| row.tree())
    }

    fn at<'v>(&self, object: &'v Value, api_version: &str) -> Result<Versioned<'v, '_>, ApiError> {
        let Some(row) = self.row(api_version) else { return Ok(None) };
        let own = string_at(object, &["apiVersion"]).and_then(|own| self.row(own));
        let from = own.map_or(self.kind, AsRef::as_ref);
        Ok(Some((Cow::Owned(reshape(from, row, object)?), row.tree())))
    }
}

/// All served kinds, found by path, by name and by shelf.
#[derive(Debug)]
pub(crate) struct Registry {
    kinds: Vec<Arc<Kind>>,
    by_path: BTreeMap<(String, String, String), Arc<Kind>>,
    /// For custom kinds, by shelf: a row that returns objects as they are stored.
    as_stored: BTreeMap<Arc<str>, Arc<Kind>>,
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Self { kinds: Vec::new(), by_path: BTreeMap::new(), as_stored: BTreeMap::new() };
        registry.extend(builtin::kinds());
        registry
    }
}

impl Registry {
    fn extend(&mut self, kinds: Vec<Kind>) {
        for kind in kinds {
            let kind = Arc::new(kind);
            let path = (kind.group.clone(), kind.version.clone(), kind.plural.clone());
            self.by_path.insert(path, Arc::clone(&kind));
            self.kinds.push(kind);
        }
    }

    /// Every kind, in the order of the table; custom ones last.
    pub(crate) fn kinds(&self) -> &[Arc<Kind>] {
        &self.kinds
    }

    /// The kind served under `/apis/group/version/plural` (or `/api/version/plural`).
    pub(crate) fn by_path(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned())).cloned()
    }

    /// The kind with this `apiVersion` and `kind`.
    pub(crate) fn by_type(&self, api_version: &str, kind: &str) -> Option<Arc<Kind>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.kinds
            .iter()
            .find(|row| row.kind == kind && row.group == group && row.version == version)
            .cloned()
    }

    /// The first kind with this kind, plural, singular or short name; the core group comes first.
    pub(crate) fn by_name(&self, name: &str) -> Option<Arc<Kind>> {
        let matches = |row: &&Arc<Kind>| {
            row.kind == name
                || row.plural == name
                || row.singular == name
                || row.short_names.iter().any(|n| n == name)
        };
        self.kinds.iter().find(matches).cloned()
    }

    /// The kind that returns the objects of this shelf in their stored form: no webhook is needed for it.
    pub(crate) fn by_shelf(&self, shelf: &str) -> Option<Arc<Kind>> {
        let stored =
            || self.kinds.iter().find(|row| *row.shelf == *shelf && row.conversion == Conversion::None);
        self.as_stored.get(shelf).or_else(stored).cloned()
    }

    /// The kind of this name for callers that cannot wait for a webhook: in its stored form if a webhook converts it.
    pub(crate) fn by_name_at_once(&self, name: &str) -> Option<Arc<Kind>> {
        let kind = self.by_name(name)?;
        if kind.is_converted() { self.by_shelf(&kind.shelf) } else { Some(kind) }
    }

    /// A part of a kind's objects, for patches and field ownership.
    pub(crate) fn subject<T>(
        &self,
        kind: &Kind,
        subresource: &str,
        then: impl FnOnce(&Subject<'_>) -> T,
    ) -> T {
        then(&Subject {
            schema: kind.tree(),
            api_version: &kind.api_version(),
            kind: &kind.kind,
            subresource,
            scope: kind.scope(subresource),
            structures: (!kind.custom).then_some(kind),
            versions: &Siblings { registry: self, kind },
        })
    }

    /// Whether a kind is still served as in this row: definitions of custom kinds change and are deleted.
    pub(crate) fn still_serves(&self, kind: &Kind) -> bool {
        let now = self.by_path(&kind.group, &kind.version, &kind.plural);
        now.is_some_and(|now| now.made_of == kind.made_of)
    }

    /// Whether any kind of this group and version is served.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.kinds.iter().any(|row| row.group == group && row.version == version)
    }
}
