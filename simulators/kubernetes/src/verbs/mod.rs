//! The API's verbs on the state, without HTTP and without waiting.

mod create;
pub(crate) mod decode;
mod definition;
mod delete;
mod garbage;
mod housekeeping;
mod list;
mod metadata;
pub(crate) mod namespace;
pub(crate) mod pod;
pub(crate) mod scale;
mod update;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use crate::admission::{self, Allocators};
use crate::conversion::serve;
use crate::kubernetes::Options;
use crate::object::Object;
use crate::registry::{Kind, Registry};
use crate::status::ApiError;
use crate::store::{SavedShelf, Store};

pub use housekeeping::Collection;

pub(crate) use decode::{FieldValidation, Reaction, changed as decode_changed};
pub(crate) use housekeeping::SavedChore;

pub(crate) use delete::{DeleteOptions, Deletion, Propagation, orphans_by_default};
pub(crate) use list::{ListOptions, Page, VersionMatch};
pub(crate) use update::Part;

/// The state of the API server.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) registry: Registry,
    pub(crate) store: Store,
    pub(crate) allocators: Allocators,
    random: StdRng,
    collection: Collection,
    event_ttl: Option<Duration>,
    root_certificate: Option<String>,
    chores: housekeeping::Chores,
    /// Whether garbage collection is running: objects that it affects are queued.
    collecting: bool,
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
    /// How far the write goes.
    pub(crate) stage: Stage,
    /// The handling of unknown members.
    pub(crate) fields: FieldValidation<'a>,
}

/// How far a write goes. Hooks are called between the stages, while the state is not locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// The whole write, without hooks.
    #[default]
    Whole,
    /// Up to the object that the client wants; it is returned and not stored.
    Proposal,
    /// Up to the object that would be stored, which validating hooks see.
    Draft,
    /// From a draft that hooks have seen: it keeps its UID and time.
    Drafted,
}

/// How a write is recorded in `metadata.managedFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tracking {
    /// An ordinary write: the writer owns what it changes.
    Changes,
    /// Server-side apply has recorded the owners already.
    Applied,
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
            chores: housekeeping::Chores::default(),
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
        for shelf in saved.iter().filter(|shelf| shelf.resource == definition::SHELF) {
            for definition in shelf.objects.values() {
                fresh.registry.register_definition(definition);
            }
        }
        for shelf in saved.iter().filter(|shelf| !shelf.objects.is_empty()) {
            let Some(kind) = fresh.registry.by_shelf(&shelf.resource) else {
                return Err(shelf.resource.clone());
            };
            for object in shelf.objects.values() {
                // The allocations of an object succeed: no other object exists.
                let _ = admission::on_create(&kind, &mut object.clone(), &mut fresh.allocators);
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
    fn name_suffix(&mut self) -> String {
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

/// Sets the time of new entries in `metadata.managedFields`.
fn date_managed_fields(object: &mut Value, now: Timestamp) {
    let Some(entries) = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut) else {
        return;
    };
    for entry in entries.iter_mut().filter_map(Value::as_object_mut) {
        if entry.entry("time").or_insert_with(|| Value::from(rfc3339_seconds(now))).is_null() {
            entry.remove("time");
        }
    }
}

/// Times in metadata have whole seconds.
pub(crate) fn rfc3339_seconds(now: Timestamp) -> String {
    Timestamp::from_second(now.as_second()).unwrap_or(now).to_string()
}
