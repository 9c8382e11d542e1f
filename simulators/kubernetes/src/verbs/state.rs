//! The state of the API server, and the context of a write to it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::lifecycle::chores::Chores;
use super::shelves;
use super::write::decode::FieldValidation;
use crate::admission;
use crate::conversion::serve;
use crate::kinds::shared::allocators::{Allocations, Allocators};
use crate::object::Object;
use crate::registry::{Kind, Registry};
use crate::server::options::{Collection, Options};
use crate::status::ApiError;
use crate::store::{SavedShelf, Store};

/// The state of the API server.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) registry: Registry,
    pub(crate) store: Store,
    pub(crate) allocators: Allocators,
    pub(crate) random: StdRng,
    pub(crate) collection: Collection,
    pub(crate) event_ttl: Option<Duration>,
    pub(crate) root_certificate: Option<String>,
    pub(crate) chores: Chores,
    /// Whether garbage collection is running: objects that it affects are queued.
    pub(crate) collecting: bool,
}

/// The context of one write.
#[derive(Debug, Clone)]
pub(crate) struct Write<'a> {
    /// The server's wall clock at the request.
    pub(crate) now: Timestamp,
    /// `dryRun=All`: decide and answer, but store nothing.
    pub(crate) dry_run: bool,
    /// The field manager, for `metadata.managedFields`.
    pub(crate) manager: &'a str,
    /// The handling of unknown members.
    pub(crate) fields: FieldValidation<'a>,
}

impl State {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            registry: Registry::default(),
            store: Store::new(options.event_window),
            allocators: Allocators::new(options.seed).dual_stack(options.dual_stack),
            random: StdRng::seed_from_u64(options.seed),
            collection: options.collection,
            event_ttl: options.event_ttl,
            root_certificate: options.root_certificate.clone(),
            chores: Chores::default(),
            collecting: false,
        }
    }

    /// Replaces all objects by saved ones. `Err` with an unknown kind.
    pub(crate) fn restore(
        &mut self,
        options: &Options,
        version: u64,
        compacted: u64,
        saved: Vec<SavedShelf>,
    ) -> Result<(), String> {
        let mut fresh = Self::new(options);
        for shelf in saved.iter().filter(|shelf| shelf.resource == shelves::DEFINITIONS) {
            for definition in shelf.objects.values() {
                fresh.registry.register_definition(definition);
            }
        }
        for shelf in saved.iter().filter(|shelf| !shelf.objects.is_empty()) {
            let Some(kind) = fresh.registry.by_shelf(&shelf.resource) else {
                return Err(shelf.resource.clone());
            };
            for object in shelf.objects.values() {
                let held = admission::allocations(&kind, object);
                fresh.allocators.exchange(&Allocations::default(), &held);
            }
        }
        // No UID is issued twice: random numbers from here on depend on the version of the saved state.
        fresh.random = StdRng::seed_from_u64(options.seed ^ version.rotate_left(32));
        fresh.chores.attended = self.chores.attended;
        std::mem::swap(&mut fresh.store, &mut self.store);
        *self = fresh;
        self.store.restore(version, compacted, saved);
        Ok(())
    }

    /// The object under this key, in the form of its kind.
    pub(crate) fn get(&self, kind: &Kind, namespace: &str, name: &str) -> Result<Arc<Object>, ApiError> {
        self.store
            .get(&kind.shelf, &kind.key(namespace, name))
            .ok_or_else(|| ApiError::not_found(kind, name))
            .and_then(|object| serve(kind, &object))
    }

    /// A new seed.
    pub(crate) fn new_seed(&mut self) -> [u8; 32] {
        self.random.random()
    }

    /// Runs a verb with random numbers from this seed: a repeated run draws the same ones.
    pub(crate) fn seeded<T>(&mut self, seed: [u8; 32], verb: impl FnOnce(&mut Self) -> T) -> T {
        let others = std::mem::replace(&mut self.random, StdRng::from_seed(seed));
        let outcome = verb(self);
        self.random = others;
        outcome
    }

    pub(crate) fn new_uid(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.random.random()).into_uuid().to_string()
    }

    /// The suffix for `generateName`: five characters that spell no words.
    pub(crate) fn name_suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .filter_map(|_| ALPHABET.get(self.random.random_range(0..ALPHABET.len())))
            .map(|c| char::from(*c))
            .collect()
    }

    /// The duration of a watch without a timeout of its own: between 30 and 60 minutes, as in kube-apiserver.
    pub(crate) fn watch_seconds(&mut self) -> u64 {
        self.random.random_range(1800..3600)
    }
}
