//! Verbs for the program that embeds the server: builders and assertions, without HTTP.
//!
//! They do not wait, so they cannot call conversion webhooks: objects of kinds with a webhook are returned in their
//! stored form, and written in the storage version.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::object::{Object, metadata, string_at};
use crate::patch::PatchType;
use crate::registry::Kind;
use crate::selector::Selection;
use crate::server::handle::Kubernetes;
use crate::server::options::Options;
use crate::server::own_service;
use crate::status::ApiError;
use crate::verbs::lifecycle::namespace::INITIAL;
use crate::verbs::{DeleteOptions, ListOptions, Part, State};

impl Kubernetes {
    /// A server with the initial objects of every cluster, and nothing else: namespaces, and the Service
    /// `default/kubernetes`, which has endpoints once the server listens ([`Kubernetes::serve_https`]).
    #[must_use]
    pub fn new(options: Options) -> Self {
        let this = Self::empty(options);
        for name in INITIAL {
            let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
            if let Err(error) = this.create(namespace) {
                tracing::error!(%error, name, "a namespace of every cluster could not be created");
            }
        }
        if let Err(error) = this.create(own_service::service()) {
            tracing::error!(%error, "the server's own Service could not be created");
        }
        this
    }

    /// Creates an object, as a client would, of its `apiVersion` and `kind`. Namespaced objects without a namespace go
    /// to `default`.
    ///
    /// # Errors
    /// A client's errors: 404 for unknown kinds and namespaces, 409, 422.
    pub fn create(&self, object: Value) -> Result<Arc<Object>, ApiError> {
        let mut state = self.shared.state.lock();
        let (kind, namespace, _) = addressed(&state, &object)?;
        let created = state.create(&kind, &namespace, object, &self.direct());
        drop(state);
        self.keep_house();
        created
    }

    /// The object, or `None`. `kind` is a kind, plural or short name: `Service`, `services`, `svc`. The namespace of
    /// cluster-scoped kinds is ignored.
    #[must_use]
    pub fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        let state = self.shared.state.lock();
        let kind = state.registry.by_name_at_once(kind)?;
        state.get(&kind, namespace, name).ok()
    }

    /// All objects of a kind in all namespaces, ordered by namespace and name. Empty for unknown kinds.
    #[must_use]
    pub fn list(&self, kind: &str) -> Vec<Arc<Object>> {
        self.list_in(kind, "")
    }

    /// All objects of a kind in one namespace, ordered by name. Empty for unknown kinds.
    #[must_use]
    pub fn list_in(&self, kind: &str, namespace: &str) -> Vec<Arc<Object>> {
        let mut state = self.shared.state.lock();
        let Some(kind) = state.registry.by_name_at_once(kind) else { return Vec::new() };
        let selection = Selection { namespace: namespace.to_owned(), ..Selection::default() };
        state
            .list(&kind, &ListOptions { selection, ..ListOptions::default() })
            .map(|page| page.items)
            .unwrap_or_default()
    }

    /// Waits until `answer` returns a value for all objects of a kind; it is called again after every change among them.
    /// Waits for ever if it never does: bound it with `tokio::time::timeout`.
    ///
    /// # Errors
    /// 404 for an unknown kind.
    pub async fn until<T>(
        &self,
        kind: &str,
        mut answer: impl FnMut(&[Arc<Object>]) -> Option<T>,
    ) -> Result<T, ApiError> {
        let mut changed = {
            let mut state = self.shared.state.lock();
            let kind = state.registry.by_name_at_once(kind).ok_or_else(ApiError::no_such_resource)?;
            state.store.shelf(&kind.shelf).subscribe()
        };
        let mut objects: Vec<Arc<Object>> = Vec::new();
        loop {
            // Objects that have not changed since the last call need not be parsed again.
            let mut parsed: HashMap<u64, Arc<Object>> =
                objects.drain(..).map(|object| (object.version(), object)).collect();
            let listed = self.list(kind).into_iter();
            // A restored state may have the same version for another object.
            let again = |object: Arc<Object>| {
                let before =
                    parsed.remove(&object.version()).filter(|before| before.shares_text_with(&object));
                before.unwrap_or(object)
            };
            objects.extend(listed.map(again));
            if let Some(value) = answer(&objects) {
                return Ok(value);
            }
            if changed.changed().await.is_err() {
                // The store lives as long as this handle, so its shelves never stop notifying.
                std::future::pending::<()>().await;
            }
        }
    }

    /// Replaces an object; for kinds with a status subresource everything but the status. If `metadata.resourceVersion`
    /// is set, it must be the newest one.
    ///
    /// # Errors
    /// A client's errors: 404, 409, 422.
    pub fn update(&self, object: Value) -> Result<Arc<Object>, ApiError> {
        self.write(object, Part::Main)
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    /// A client's errors: 404, 409, 422.
    pub fn update_status(&self, object: Value) -> Result<Arc<Object>, ApiError> {
        self.write(object, Part::Status)
    }

    fn write(&self, object: Value, part: Part) -> Result<Arc<Object>, ApiError> {
        let mut state = self.shared.state.lock();
        let (kind, namespace, name) = addressed(&state, &object)?;
        let write = self.direct();
        let proposal = state.propose_update(&kind, &namespace, &name, part, object, &write);
        let updated = proposal.and_then(|proposal| state.store(&kind, proposal, &write));
        drop(state);
        self.keep_house();
        updated.map(|(object, _)| object)
    }

    /// Merges members into an object (JSON merge patch), all but the status.
    ///
    /// # Errors
    /// A client's errors: 404, 409, 422.
    pub fn merge(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Object>, ApiError> {
        self.patch(kind, namespace, name, patch, Part::Main)
    }

    /// Merges `{"status": …}` into the status of an object (JSON merge patch).
    ///
    /// # Errors
    /// A client's errors: 404, 409, 422.
    pub fn merge_status(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Arc<Object>, ApiError> {
        self.patch(kind, namespace, name, patch, Part::Status)
    }

    /// Merges members into the object of a request, as another client would.
    pub(crate) async fn merge_at(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<(), ApiError> {
        let (merge, write) = ((patch, &PatchType::Merge), self.direct());
        let place = (namespace, name);
        self.settled(kind, |state| state.patch(kind, place, Part::Main, merge, &write).map(drop)).await
    }

    fn patch(
        &self,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
        part: Part,
    ) -> Result<Arc<Object>, ApiError> {
        let mut state = self.shared.state.lock();
        let kind = state.registry.by_name_at_once(kind).ok_or_else(ApiError::no_such_resource)?;
        let merge = (patch, &PatchType::Merge);
        let patched = state.patch(&kind, (namespace, name), part, merge, &self.direct());
        drop(state);
        self.keep_house();
        patched
    }

    /// Deletes an object. If it has finalizers it is only marked. The contents of a namespace are deleted at once,
    /// unless [`Options::collection`] says otherwise.
    ///
    /// # Errors
    /// 404 if there is no such object.
    pub fn delete(&self, kind: &str, namespace: &str, name: &str) -> Result<(), ApiError> {
        let mut state = self.shared.state.lock();
        let kind = state.registry.by_name_at_once(kind).ok_or_else(ApiError::no_such_resource)?;
        let options = DeleteOptions::default();
        state.delete_with_contents(&kind, (namespace, name), &options, true, &self.direct())?;
        drop(state);
        self.keep_house();
        Ok(())
    }
}

/// The kind, namespace and name in an object.
fn addressed(state: &State, object: &Value) -> Result<(Arc<Kind>, String, String), ApiError> {
    let api_version = string_at(object, &["apiVersion"]).unwrap_or_default();
    let kind = string_at(object, &["kind"]).unwrap_or_default();
    let kind = state.registry.by_type(api_version, kind).ok_or_else(|| {
        let message = format!("no matches for kind {kind:?} in version {api_version:?}");
        ApiError::new(404, "NotFound", message)
    })?;
    let namespace = match metadata(object, "namespace") {
        _ if !kind.namespaced => "",
        "" => "default",
        given => given,
    };
    Ok((kind, namespace.to_owned(), metadata(object, "name").to_owned()))
}
