//! Reports that an object depends on another object of its namespace which does not exist.

use std::sync::Arc;

use controllers::Reference;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::context::manager::Manager;
use crate::kubernetes::kinds::{API_VERSION, Object};
use crate::kubernetes::store::{Key, Store};

/// An object that depends on others.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub kind: &'static str,
    pub key: &'a Key,
    pub metadata: &'a ObjectMeta,
}

impl About<'_> {
    /// The object of this name in the same namespace, if a watch has shown it. Without it nothing can be deleted in
    /// Azure: an object that is being deleted reports that the other one is missing, once the store is complete.
    pub fn needs<S: Clone, T: Clone>(
        self,
        manager: &Manager,
        kind: &str,
        store: &Store<S, T>,
        name: &str,
    ) -> Option<Arc<Object<S, T>>> {
        let found = store.get(&self.key.beside(name));
        if found.is_none() && store.is_complete() && self.metadata.deletion_timestamp.is_some() {
            let about = Reference::of(API_VERSION, self.kind, self.metadata);
            let words = format!(
                "it waits for the {kind} {name}, which does not exist: create it again, or delete by hand what is left in Azure, and then the finalizer"
            );
            manager.recorder.warning(about, "OwnerNotFound", words);
        }
        found
    }
}
