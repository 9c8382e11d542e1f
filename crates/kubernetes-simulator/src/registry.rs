//! The kinds that are served, as data: one row of a table a kind.
//!
//! Custom resources join at run time, from the CustomResourceDefinitions that are stored.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::object::{list_at, string_at};

/// What the `status` member of a kind is subject to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusRule {
    /// The kind has no status subresource: `status`, if any, is an ordinary member.
    Ordinary,
    /// Only the status subresource writes it; a create drops it.
    Subresource,
    /// Only the status subresource changes it, but a create may bring it (Node: kubelets do).
    SubresourceKeptOnCreate,
}

/// How the stored form of a kind becomes the served one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conversion {
    /// All versions have one shape; `apiVersion` alone differs.
    None,
    /// `events.k8s.io` shows core Events under other member names.
    Events,
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
    /// What kubectl accepts as abbreviations.
    pub short_names: Vec<String>,
    /// Groups of kinds that kubectl knows by one name, such as `all`.
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
    /// Whether a CustomResourceDefinition brought it.
    pub custom: bool,
    /// The schema that it brought (`openAPIV3Schema`).
    pub(crate) schema: Option<Value>,
    /// Whether objects of this kind are questions: they are answered and never stored.
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
            review: false,
            conversion: Conversion::None,
            shelf: shelf.into(),
        }
    }

    fn short(mut self, names: &[&str]) -> Self {
        self.short_names = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    fn all(mut self) -> Self {
        self.categories = vec!["all".to_owned()];
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

    /// Whether objects of this kind are questions, which are answered and never stored.
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

    /// Whether there is a `status` subresource.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.status != StatusRule::Ordinary
    }

    /// Key of an object in its shelf, ordered as etcd orders it: `namespace/name`, or the name alone.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }
}

const CORE: &str = "";
const ADMISSION: &str = "admissionregistration.k8s.io";
const SHELF_OF_EVENTS: &str = "events";
const EVENT_FIELDS: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
];
const POD_FIELDS: &[&str] = &[
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.nominatedNodeName",
];
const REGARDING_FIELDS: &[&str] = &[
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingController",
    "type",
];

/// The kinds that every cluster has. Rules per kind follow kube-apiserver's registry strategies.
fn builtin() -> Vec<Kind> {
    use StatusRule::{Subresource, SubresourceKeptOnCreate};
    let namespaced = |group, version, plural, kind| Kind::new(group, version, plural, kind, true);
    let cluster = |group, version, plural, kind| Kind::new(group, version, plural, kind, false);
    vec![
        cluster(CORE, "v1", "namespaces", "Namespace")
            .short(&["ns"])
            .status(Subresource)
            .fields(&["status.phase"]),
        cluster(CORE, "v1", "nodes", "Node")
            .short(&["no"])
            .status(SubresourceKeptOnCreate)
            .fields(&["spec.unschedulable"]),
        cluster(CORE, "v1", "persistentvolumes", "PersistentVolume").short(&["pv"]).status(Subresource),
        namespaced(CORE, "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
            .short(&["pvc"])
            .status(Subresource),
        namespaced(CORE, "v1", "services", "Service")
            .short(&["svc"])
            .all()
            .status(Subresource)
            .fields(&["spec.clusterIP", "spec.type"]),
        namespaced(CORE, "v1", "pods", "Pod").short(&["po"]).all().status(Subresource).fields(POD_FIELDS),
        namespaced(CORE, "v1", "secrets", "Secret").fields(&["type"]),
        namespaced(CORE, "v1", "configmaps", "ConfigMap").short(&["cm"]),
        namespaced(CORE, "v1", "serviceaccounts", "ServiceAccount").short(&["sa"]),
        namespaced(CORE, "v1", "endpoints", "Endpoints").short(&["ep"]).create_on_update(),
        namespaced(CORE, "v1", "events", "Event").short(&["ev"]).create_on_update().fields(EVENT_FIELDS),
        namespaced("events.k8s.io", "v1", "events", "Event")
            .short(&["ev"])
            .create_on_update()
            .fields(REGARDING_FIELDS)
            .stored_as(SHELF_OF_EVENTS, Conversion::Events),
        namespaced("coordination.k8s.io", "v1", "leases", "Lease").version_required().create_on_update(),
        namespaced("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice").generation(),
        namespaced("apps", "v1", "deployments", "Deployment")
            .short(&["deploy"])
            .all()
            .status(Subresource)
            .scale()
            .generation(),
        namespaced("apps", "v1", "replicasets", "ReplicaSet")
            .short(&["rs"])
            .all()
            .status(Subresource)
            .scale()
            .generation()
            .fields(&["status.replicas"]),
        namespaced("apps", "v1", "daemonsets", "DaemonSet")
            .short(&["ds"])
            .all()
            .status(Subresource)
            .generation(),
        cluster("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
            .short(&["crd", "crds"])
            .status(Subresource)
            .generation()
            .version_required(),
        cluster(ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
            .generation()
            .version_required(),
        cluster(ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration")
            .generation()
            .version_required(),
        cluster("authentication.k8s.io", "v1", "tokenreviews", "TokenReview").review(),
        cluster("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview").review(),
        cluster("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview").review(),
        cluster("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview").review(),
        cluster("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview").review(),
        namespaced("authorization.k8s.io", "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview")
            .review(),
    ]
}

/// All served kinds, found by path, by name and by shelf.
#[derive(Debug)]
pub(crate) struct Registry {
    kinds: Vec<Arc<Kind>>,
    by_path: BTreeMap<(String, String, String), Arc<Kind>>,
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Self { kinds: Vec::new(), by_path: BTreeMap::new() };
        registry.extend(builtin());
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
        let (group, version) = api_version.split_once('/').unwrap_or((CORE, api_version));
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

    /// The kind whose form is the stored one on this shelf.
    pub(crate) fn by_shelf(&self, shelf: &str) -> Option<Arc<Kind>> {
        self.kinds.iter().find(|row| *row.shelf == *shelf && row.conversion == Conversion::None).cloned()
    }

    /// Whether any kind of this group and version is served.
    pub(crate) fn serves(&self, group: &str, version: &str) -> bool {
        self.kinds.iter().any(|row| row.group == group && row.version == version)
    }

    /// Serves the custom kinds of a CustomResourceDefinition, in all its served versions.
    pub(crate) fn register_definition(&mut self, definition: &Value) {
        self.forget_definition(definition);
        let text = |path: &[&str]| string_at(definition, path).unwrap_or_default();
        let names = |path: &[&str]| -> Vec<String> {
            list_at(definition, path).iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        let mut rows = Vec::new();
        for version in list_at(definition, &["spec", "versions"]) {
            if version.get("served").and_then(Value::as_bool) != Some(true) {
                continue;
            }
            let mut kind = Kind::new(
                text(&["spec", "group"]),
                string_at(version, &["name"]).unwrap_or_default(),
                text(&["spec", "names", "plural"]),
                text(&["spec", "names", "kind"]),
                text(&["spec", "scope"]) != "Cluster",
            );
            if let Some(singular) = string_at(definition, &["spec", "names", "singular"]) {
                kind.singular = singular.to_owned();
            }
            kind.short_names = names(&["spec", "names", "shortNames"]);
            kind.categories = names(&["spec", "names", "categories"]);
            if version.pointer("/subresources/status").is_some() {
                kind.status = StatusRule::Subresource;
            }
            kind.generation = true;
            kind.unconditional_update = false;
            kind.custom = true;
            kind.schema = version.pointer("/schema/openAPIV3Schema").cloned();
            kind.fields = list_at(version, &["selectableFields"])
                .iter()
                .filter_map(|field| string_at(field, &["jsonPath"]))
                .map(|path| path.trim_start_matches('.').to_owned())
                .collect();
            rows.push(kind);
        }
        self.extend(rows);
    }

    /// Stops serving the kinds of a CustomResourceDefinition.
    pub(crate) fn forget_definition(&mut self, definition: &Value) {
        let group = string_at(definition, &["spec", "group"]).unwrap_or_default();
        let plural = string_at(definition, &["spec", "names", "plural"]).unwrap_or_default();
        let stays = |row: &Kind| !(row.custom && row.group == group && row.plural == plural);
        self.kinds.retain(|row| stays(row));
        self.by_path.retain(|_, row| stays(row));
    }
}
