//! An object that needs others which stand beside it, and says when they are missing.

use std::sync::Arc;

use controllers::Reference;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::kinds::{API_VERSION, Object};
use crate::shared::Manager;
use crate::store::{Key, Store};

/// An object that needs others.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub kind: &'static str,
    pub key: &'a Key,
    pub metadata: &'a ObjectMeta,
}

impl About<'_> {
    /// The object of this name beside it, if it has been shown. Without it nothing can be deleted in Azure: an object that is
    /// to go says so, once it is known that there is none.
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
