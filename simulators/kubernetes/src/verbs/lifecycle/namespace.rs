//! The life of a namespace: kube-controller-manager's namespace controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::kinds::core::namespace::CONTENTS;
use crate::object::{Object, finalizers, list_at, metadata, rfc3339_seconds, set_metadata, string_at};
use crate::registry::Kind;
use crate::server::options::Collection;
use crate::status::ApiError;
use crate::verbs::delete::{DeleteOptions, Deletion};
use crate::verbs::shelves::NAMESPACES;
use crate::verbs::state::{State, Write};

/// The initial namespaces of every cluster.
pub(crate) const INITIAL: &[&str] = &["default", "kube-node-lease", "kube-public", "kube-system"];

/// Namespaces that cannot be deleted.
const IMMORTAL: &[&str] = &["default", "kube-public", "kube-system"];

/// The account of pods that name none.
const DEFAULT_ACCOUNT: &str = "default";

/// The ConfigMap with the certificate of the authority that signed the server's.
const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

/// The namespace of system components, and its ConfigMap with the certificate authority for other servers: controllers
/// written in Go watch it.
const SYSTEM: &str = "kube-system";
const AUTHENTICATION: &str = "extension-apiserver-authentication";

/// The content of that ConfigMap for a server with this certificate authority.
fn authentication(certificate: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": AUTHENTICATION, "namespace": SYSTEM },
        "data": {
            "client-ca-file": certificate,
            "requestheader-allowed-names": r#"["front-proxy-client"]"#,
            "requestheader-client-ca-file": certificate,
            "requestheader-extra-headers-prefix": r#"["X-Remote-Extra-"]"#,
            "requestheader-group-headers": r#"["X-Remote-Group"]"#,
            "requestheader-username-headers": r#"["X-Remote-User"]"#,
        } })
}

impl State {
    /// Creates the objects that kube-controller-manager creates in every namespace: the default ServiceAccount, and the
    /// certificate by which pods verify the server. Without a certificate none of them is created.
    pub(crate) fn furnish_namespace(&mut self, name: &str, write: &Write<'_>) {
        let Some(certificate) = self.root_certificate.clone() else { return };
        if self.store.get(NAMESPACES, name).is_none_or(|namespace| namespace.is_terminating()) {
            return;
        }
        let mut objects = vec![
            json!({ "apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": { "name": DEFAULT_ACCOUNT, "namespace": name } }),
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": ROOT_CERTIFICATE, "namespace": name,
                "annotations": { "kubernetes.io/description": "Contains a CA bundle that can be used to verify the \
                    kube-apiserver when using internal endpoints such as the internal service IP or \
                    kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
                    clusters." } },
                "data": { "ca.crt": certificate } }),
        ];
        if name == SYSTEM {
            objects.push(authentication(&certificate));
        }
        for object in objects {
            let manager = match metadata(&object, "name") {
                AUTHENTICATION => "kube-apiserver",
                _ => "kube-controller-manager",
            };
            let write = &Write { manager, ..write.clone() };
            let kind = string_at(&object, &["kind"]).unwrap_or_default();
            let Some(kind) = self.registry.by_type("v1", kind) else { continue };
            if self.get(&kind, name, metadata(&object, "name")).is_err()
                && let Err(error) = self.create(&kind, name, object, write)
            {
                tracing::warn!(%error, namespace = name, "cannot create a namespace's default objects");
            }
        }
    }

    /// Recreates such an object after it was deleted.
    pub(crate) fn refurnish_namespace(&mut self, kind: &Kind, gone: &Object, write: &Write<'_>) {
        if matches!(
            (&*kind.shelf, gone.name()),
            ("serviceaccounts", DEFAULT_ACCOUNT) | ("configmaps", ROOT_CERTIFICATE | AUTHENTICATION)
        ) {
            self.furnish_namespace(gone.namespace(), write);
        }
    }

    /// Marks a namespace as terminating. [`State::empty_namespace`] deletes its contents.
    pub(crate) fn delete_namespace(
        &mut self,
        kind: &Kind,
        current: &Arc<Object>,
        write: &Write<'_>,
    ) -> Result<Deletion, ApiError> {
        let name = current.name().to_owned();
        if IMMORTAL.contains(&name.as_str()) {
            return Err(ApiError::forbidden(kind, &name, "this namespace may not be deleted"));
        }
        if write.dry_run {
            return Ok(Deletion::Waiting(Arc::clone(current)));
        }
        if !current.is_terminating() {
            let mut marked = current.value().clone();
            set_metadata(&mut marked, "deletionTimestamp", Value::from(rfc3339_seconds(write.now)));
            if let Some(members) = marked.as_object_mut() {
                members.insert("status".to_owned(), json!({ "phase": "Terminating" }));
            }
            self.store.put(&kind.shelf, &name, marked);
        }
        self.get(kind, "", &name).map(Deletion::Waiting)
    }

    /// Deletes everything in a terminating namespace, and then the namespace itself if nothing is left.
    pub(crate) fn empty_namespace(&mut self, name: &str, write: &Write<'_>) {
        if !self.store.get(NAMESPACES, name).is_some_and(|namespace| namespace.is_terminating()) {
            return;
        }
        for (shelf, key) in self.store.in_namespace(name) {
            let Some(object) = self.store.get(&shelf, &key) else { continue };
            let Some(kind) = self.registry.by_shelf(&shelf) else { continue };
            // The object may have been deleted with its owner meanwhile, which is fine.
            let _ = self.delete(&kind, object.namespace(), object.name(), &DeleteOptions::default(), write);
        }
        self.finish_namespace(name, write);
        self.report_remaining(name, write);
    }

    /// Continues the deletion of a terminating namespace: once it is empty, the finalizer for its contents is removed,
    /// and without any finalizer it is deleted.
    pub(crate) fn finish_namespace(&mut self, name: &str, write: &Write<'_>) {
        let found = if name.is_empty() { None } else { self.store.get(NAMESPACES, name) };
        let Some(namespace) = found.filter(|namespace| namespace.is_terminating()) else { return };
        let Some(kind) = self.registry.by_shelf(NAMESPACES) else { return };
        let mut holds = list_at(&namespace, &["spec", "finalizers"]).to_vec();
        if self.collection != Collection::Off {
            if !self.store.in_namespace(name).is_empty() {
                return;
            }
            holds.retain(|finalizer| finalizer != CONTENTS);
        }
        if holds.is_empty() && finalizers(&namespace).is_empty() {
            self.remove(&kind, name, write);
        } else if list_at(&namespace, &["spec", "finalizers"]) != holds.as_slice() {
            let mut value = namespace.value().clone();
            value["spec"]["finalizers"] = Value::Array(holds);
            self.store.put(&kind.shelf, name, value);
        }
    }

    /// Sets the conditions of a terminating namespace that say what it waits for.
    fn report_remaining(&mut self, name: &str, write: &Write<'_>) {
        let Some(namespace) = self.store.get(NAMESPACES, name) else { return };
        let (mut objects, mut holders) = (BTreeMap::<String, u64>::new(), BTreeMap::<String, u64>::new());
        for (shelf, key) in self.store.in_namespace(name) {
            let Some(object) = self.store.get(&shelf, &key) else { continue };
            // The API server's messages have the dot even if the group is empty.
            let (plural, group) = shelf.split_once('.').unwrap_or((&shelf, ""));
            *objects.entry(format!("{plural}.{group}")).or_default() += 1;
            for finalizer in finalizers(&object) {
                *holders.entry(finalizer).or_default() += 1;
            }
        }
        let time = rfc3339_seconds(write.now);
        let condition = |kind: &str, status: bool, reason: &str, message: &str| {
            let status = if status { "True" } else { "False" };
            json!({ "type": kind, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": time })
        };
        let objects: Vec<String> = objects
            .iter()
            .map(|(resource, count)| format!("{resource} has {count} resource instances"))
            .collect();
        let holders: Vec<String> = holders
            .iter()
            .map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"))
            .collect();
        let remaining = format!("Some resources are remaining: {}", objects.join(", "));
        let finalizing =
            format!("Some content in the namespace has finalizers remaining: {}", holders.join(", "));
        let conditions = [
            condition(
                "NamespaceDeletionDiscoveryFailure",
                false,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            condition(
                "NamespaceDeletionGroupVersionParsingFailure",
                false,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            condition(
                "NamespaceDeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            if objects.is_empty() {
                let message = "All content successfully removed";
                condition("NamespaceContentRemaining", false, "ContentRemoved", message)
            } else {
                condition("NamespaceContentRemaining", true, "SomeResourcesRemain", &remaining)
            },
            if holders.is_empty() {
                let message = "All content-preserving finalizers finished";
                condition("NamespaceFinalizersRemaining", false, "ContentHasNoFinalizers", message)
            } else {
                condition("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", &finalizing)
            },
        ];
        let mut value = namespace.value().clone();
        value["status"]["conditions"] = json!(conditions);
        if value != *namespace.value() {
            self.store.put(&NAMESPACES.into(), name, value);
        }
    }
}
