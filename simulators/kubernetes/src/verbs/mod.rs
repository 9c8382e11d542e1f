//! What the API's verbs do to the state: pure of HTTP and of waiting.

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

/// Everything that the API server knows.
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
    /// Whether dependents are being collected: what that touches waits its turn.
    collecting: bool,
}

/// What holds for one write.
#[derive(Debug, Clone)]
pub(crate) struct Write<'a> {
    /// The server's wall clock at the request.
    pub(crate) now: Timestamp,
    /// `dryRun=All`: decide and answer, but store nothing.
    pub(crate) dry_run: bool,
    /// Who writes, for `metadata.managedFields`.
    pub(crate) manager: &'a str,
    /// How far the write goes.
    pub(crate) stage: Stage,
    /// What is done about unknown members.
    pub(crate) fields: FieldValidation<'a>,
}

/// How far a write goes. Hooks are asked between the stages, while the state is not locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stage {
    /// All the way: nobody has to be asked.
    #[default]
    Whole,
    /// Up to the object that the client wants; it is answered and not stored.
    Proposal,
    /// Up to the object that would be stored, as hooks that validate see it.
    Draft,
    /// From a draft on that hooks have seen: it keeps its uid and time.
    Drafted,
}

/// Whose doing a write is, for `metadata.managedFields`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tracking {
    /// An ordinary write: what it changes becomes the writer's.
    Changes,
    /// Server-side apply has said already whose the fields are.
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

    /// Takes up saved objects in place of all there are. `Err` with those of unknown kinds.
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
                // What an object names is taken, because nobody else is there.
                let _ = admission::on_create(&kind, &mut object.clone(), &mut fresh.allocators);
            }
        }
        // No uid is given out twice: what is drawn from here on depends on how far the saved state had come.
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

    /// A seed that nobody else gets.
    pub(crate) fn new_seed(&mut self) -> [u8; 32] {
        self.random.random()
    }

    /// Runs a verb that draws its random numbers from this seed: the same ones each time that it is run.
    pub(crate) fn seeded<T>(&mut self, seed: [u8; 32], verb: impl FnOnce(&mut Self) -> T) -> T {
        let others = std::mem::replace(&mut self.random, StdRng::from_seed(seed));
        let outcome = verb(self);
        self.random = others;
        outcome
    }

    pub(crate) fn new_uid(&mut self) -> String {
        uuid::Builder::from_random_bytes(self.random.random()).into_uuid().to_string()
    }

    /// What is appended to `generateName`: five characters that spell no words.
    fn name_suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..5)
            .filter_map(|_| ALPHABET.get(self.random.random_range(0..ALPHABET.len())))
            .map(|c| char::from(*c))
            .collect()
    }

    /// Seconds that a watch lasts when the client names none: between 30 and 60 minutes, as kube-apiserver.
    pub(crate) fn watch_seconds(&mut self) -> u64 {
        self.random.random_range(1800..3600)
    }
}

/// Says when the entries of `metadata.managedFields` that are new were made.
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
