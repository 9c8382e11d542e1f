//! The documents and the index of their referrers.
//!
//! References are stored on the side that makes them; the index is rebuilt from a document whenever it is stored or
//! removed. Back-references are read from the index, so that they cannot dangle.

pub mod attachments;
pub mod history;
pub(crate) mod incarnations;
pub mod reference;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::ops::Bound;

use azure_types::ResourceId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::document::Object;
use crate::store::history::History;
use crate::store::incarnations::Incarnations;
use crate::store::reference::{Reference, Role};

/// The store's view of a document's type.
pub trait Indexed: 'static {
    /// The type in Azure's spelling.
    fn type_name(&self) -> &'static str;

    /// All references of a document.
    fn references_of(&self, record: &Record<Self>) -> Vec<Reference>;

    /// The public address that a document holds.
    fn public_address_of(&self, record: &Record<Self>) -> Option<IpAddr>;
}

/// The state of a resource, as far as the engine's rules need it. The types' names are in `state_name.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It is being created.
    Creating,
    /// It is being changed.
    Updating,
    /// It is being deleted.
    Deleting,
    /// It is ready.
    Succeeded,
    /// Its last operation failed.
    Failed,
    /// Its last operation was cancelled.
    Canceled,
}

impl State {
    /// The usual name; a document shows `AzureState::state_name`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Creating => "Creating",
            Self::Updating => "Updating",
            Self::Deleting => "Deleting",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Canceled => "Canceled",
        }
    }
}

/// One stored resource, with its type.
pub struct Record<T: ?Sized + 'static> {
    /// Its id, in the spelling of the last write.
    pub id: ResourceId,
    /// Its type.
    pub resource_type: &'static T,
    /// The document without what is derived on reading (etags, states, back-references).
    pub body: Value,
    /// State of the service that is not shown as such (power state, allocated NIC addresses).
    pub hidden: Object,
    /// Raised by every change; etags derive from it.
    pub version: u64,
    /// Its state.
    pub state: State,
    /// Key of the operation that runs, or of the last one.
    pub operation: Option<String>,
    /// The time of its creation.
    pub created: Timestamp,
    /// How many resources of this id there have been, this one included. Set by the store.
    pub incarnation: u64,
}

impl<T: ?Sized> Clone for Record<T> {
    fn clone(&self) -> Self {
        Self {
            id: self.id.clone(),
            resource_type: self.resource_type,
            body: self.body.clone(),
            hidden: self.hidden.clone(),
            version: self.version,
            state: self.state,
            operation: self.operation.clone(),
            created: self.created,
            incarnation: self.incarnation,
        }
    }
}

impl<T: ?Sized> Record<T> {
    /// A new resource that is ready.
    pub fn new(resource_type: &'static T, id: &ResourceId, body: Value, created: Timestamp) -> Self {
        Self {
            id: id.clone(),
            resource_type,
            body,
            hidden: Object::new(),
            version: 1,
            state: State::Succeeded,
            operation: None,
            created,
            incarnation: 0,
        }
    }
}

/// A referrer of a document.
#[derive(Debug, Clone)]
pub struct Referrer {
    /// The referrer: a document, or a child in it.
    pub from: ResourceId,
    /// The role of the reference.
    pub role: Role,
}

/// All documents of one simulated Azure.
pub struct Store<T: ?Sized + 'static> {
    records: BTreeMap<String, Record<T>>,
    by_type: HashMap<&'static str, BTreeSet<String>>,
    /// Per referring record: its references.
    outgoing: HashMap<String, Vec<Reference>>,
    /// Per target: its referrers, by id.
    incoming: HashMap<String, BTreeMap<String, Referrer>>,
    /// Per subnet: the addresses in use, each with the resource that holds it.
    addresses: HashMap<String, BTreeMap<IpAddr, ResourceId>>,
    public_addresses: BTreeMap<IpAddr, String>,
    public_of: HashMap<String, IpAddr>,
    /// How many resources there have been of each id.
    incarnations: Incarnations,
    /// Recent states of resources.
    pub history: History<Record<T>>,
}

impl<T: ?Sized> Default for Store<T> {
    fn default() -> Self {
        Self {
            records: BTreeMap::new(),
            by_type: HashMap::new(),
            outgoing: HashMap::new(),
            incoming: HashMap::new(),
            addresses: HashMap::new(),
            public_addresses: BTreeMap::new(),
            public_of: HashMap::new(),
            incarnations: Incarnations::default(),
            history: History::default(),
        }
    }
}

impl<T: ?Sized + Indexed> Store<T> {
    /// The record of an id.
    pub fn get(&self, id: &ResourceId) -> Option<&Record<T>> {
        self.records.get(&id.to_lower())
    }

    /// The record of an id, to be changed in place; [`Store::reindex`] must follow if references change.
    pub fn get_mut(&mut self, id: &ResourceId) -> Option<&mut Record<T>> {
        let key = id.to_lower();
        self.history.remember(&key, self.records.get(&key));
        self.records.get_mut(&key)
    }

    /// A record as it was at a moment.
    pub fn as_of(&self, id: &ResourceId, moment: Instant) -> Option<&Record<T>> {
        self.at(&id.to_lower(), moment)
    }

    fn at(&self, key: &str, moment: Instant) -> Option<&Record<T>> {
        self.history.at(key, moment).unwrap_or_else(|| self.records.get(key))
    }

    /// The records of a type whose id begins with `scope/`, as they were at a moment.
    pub fn of_type_as_of(&self, resource_type: &str, scope: &ResourceId, moment: Instant) -> Vec<&Record<T>> {
        let prefix = scope.to_lower() + "/";
        let mut keys: BTreeSet<String> = self.history.below(&prefix).cloned().collect();
        keys.extend(self.of_type_below(resource_type, scope).into_iter().map(|record| record.id.to_lower()));
        let is = |record: &&Record<T>| record.resource_type.type_name().eq_ignore_ascii_case(resource_type);
        keys.iter().filter_map(|key| self.at(key, moment)).filter(is).collect()
    }

    /// The incarnation that an id is in, or will be in when it is created next.
    pub fn incarnation(&self, id: &ResourceId) -> u64 {
        let key = id.to_lower();
        let past = self.incarnations.of(&key);
        if self.records.contains_key(&key) { past } else { past + 1 }
    }

    /// The record that holds this id: itself, or the nearest one above it.
    pub fn holder(&self, id: &ResourceId) -> Option<&Record<T>> {
        let mut key = id.to_lower();
        loop {
            if let Some(record) = self.records.get(&key) {
                return Some(record);
            }
            key.truncate(key.rfind('/').filter(|at| *at > 0)?);
        }
    }

    /// All records, ordered by lower-case id.
    pub fn all(&self) -> impl Iterator<Item = &Record<T>> {
        self.records.values()
    }

    /// The records below an id, ordered by lower-case id.
    pub fn below(&self, id: &ResourceId) -> impl Iterator<Item = &Record<T>> {
        let prefix = id.to_lower() + "/";
        self.records
            .range::<String, _>((Bound::Included(&prefix), Bound::Unbounded))
            .take_while({
                let prefix = prefix.clone();
                move |(key, _)| key.starts_with(&prefix)
            })
            .map(|(_, record)| record)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The records of a type, in Azure's spelling, whose id begins with `scope/`, ordered by lower-case
    /// id.
    pub fn of_type_below(&self, resource_type: &str, scope: &ResourceId) -> Vec<&Record<T>> {
        let Some(keys) = self.by_type.get(resource_type) else { return Vec::new() };
        let prefix = scope.to_lower() + "/";
        // Below a resource there is little else: scanning costs less than looking up each one.
        if scope.namespace().is_some() {
            return self
                .records
                .range::<String, _>((Bound::Included(&prefix), Bound::Unbounded))
                .take_while(|(key, _)| key.starts_with(&prefix))
                .map(|(_, record)| record)
                .filter(|record| record.resource_type.type_name() == resource_type)
                .collect();
        }
        keys.range::<String, _>((Bound::Included(&prefix), Bound::Unbounded))
            .take_while(|key| key.starts_with(&prefix))
            .filter_map(|key| self.records.get(key))
            .collect()
    }

    /// All records of a type, ordered by lower-case id.
    pub fn of_type(&self, resource_type: &str) -> impl Iterator<Item = &Record<T>> {
        let keys = self.by_type.get(resource_type).into_iter().flatten();
        keys.filter_map(|key| self.records.get(key))
    }

    /// How many resources there have been of each id, by lower-case id, and the highest forgotten count.
    pub fn incarnations(&self) -> (BTreeMap<String, u64>, u64) {
        self.incarnations.save()
    }

    /// Replaces everything by what was saved.
    pub fn restore(&mut self, records: Vec<Record<T>>, (counts, floor): (BTreeMap<String, u64>, u64)) {
        // Lagging reads see the former state.
        let history = std::mem::take(&mut self.history);
        *self = Self { history, ..Self::default() };
        for record in records {
            let (key, incarnation) = (record.id.to_lower(), record.incarnation);
            self.insert(record);
            if let Some(record) = self.records.get_mut(&key) {
                record.incarnation = incarnation;
            }
        }
        let lives = |key: &str| self.records.contains_key(key);
        self.incarnations = Incarnations::restore(counts, floor, lives);
    }

    /// The resources that hold an address, in whatever subnet.
    pub fn holders_of(&self, address: IpAddr) -> impl Iterator<Item = &ResourceId> {
        self.addresses.values().filter_map(move |held| held.get(&address))
    }

    /// How many records of a type there are anywhere.
    pub fn count(&self, resource_type: &'static str) -> usize {
        self.by_type.get(resource_type).map_or(0, BTreeSet::len)
    }

    /// Stores a record. Returns the targets outside the record whose referrers changed.
    pub fn insert(&mut self, mut record: Record<T>) -> Vec<ResourceId> {
        let key = record.id.to_lower();
        self.history.remember(&key, self.records.get(&key));
        record.incarnation = match self.records.contains_key(&key) {
            true => self.incarnations.of(&key),
            false => self.incarnations.begin(&key),
        };
        let references = record.resource_type.references_of(&record);
        let public = record.resource_type.public_address_of(&record);
        self.by_type.entry(record.resource_type.type_name()).or_default().insert(key.clone());
        self.records.insert(key.clone(), record);
        self.hold_public(&key, public);
        self.point(&key, references)
    }

    /// Brings the index up to date after a record was changed in place.
    pub fn reindex(&mut self, id: &ResourceId) -> Vec<ResourceId> {
        let key = id.to_lower();
        let Some(record) = self.records.get(&key) else { return Vec::new() };
        let references = record.resource_type.references_of(record);
        let public = record.resource_type.public_address_of(record);
        self.hold_public(&key, public);
        self.point(&key, references)
    }

    /// Removes a record. Returns it and the targets whose referrers changed.
    pub fn remove(&mut self, id: &ResourceId) -> Option<(Record<T>, Vec<ResourceId>)> {
        let key = id.to_lower();
        self.history.remember(&key, self.records.get(&key));
        let record = self.records.remove(&key)?;
        self.incarnations.end(&key);
        if let Some(keys) = self.by_type.get_mut(record.resource_type.type_name()) {
            keys.remove(&key);
        }
        self.hold_public(&key, None);
        let changed = self.point(&key, Vec::new());
        Some((record, changed))
    }

    fn hold_public(&mut self, key: &str, address: Option<IpAddr>) {
        if let Some(old) = self.public_of.remove(key) {
            self.public_addresses.remove(&old);
        }
        if let Some(address) = address {
            self.public_of.insert(key.into(), address);
            self.public_addresses.insert(address, key.into());
        }
    }

    fn point(&mut self, key: &str, references: Vec<Reference>) -> Vec<ResourceId> {
        let old = self.outgoing.remove(key).unwrap_or_default();
        let pair = |reference: &Reference| (reference.from.to_lower(), reference.to.to_lower());
        let before: BTreeSet<_> = old.iter().map(pair).collect();
        let after: BTreeSet<_> = references.iter().map(pair).collect();
        for reference in &old {
            let to = reference.to.to_lower();
            if let Some(referrers) = self.incoming.get_mut(&to) {
                referrers.remove(&reference.from.to_lower());
                if referrers.is_empty() {
                    self.incoming.remove(&to);
                }
            }
            if let (Some(address), Some(taken)) = (reference.address, self.addresses.get_mut(&to)) {
                taken.remove(&address);
                if taken.is_empty() {
                    self.addresses.remove(&to);
                }
            }
        }
        for reference in &references {
            let to = reference.to.to_lower();
            if let Some(address) = reference.address {
                self.addresses.entry(to.clone()).or_default().insert(address, reference.from.clone());
            }
            self.incoming.entry(to).or_default().insert(
                reference.from.to_lower(),
                Referrer { from: reference.from.clone(), role: reference.role },
            );
        }
        let outside = |to: &str| {
            !(to.starts_with(key) && to.as_bytes().get(key.len()).is_none_or(|next| *next == b'/'))
        };
        let mut changed: Vec<ResourceId> = old
            .iter()
            .filter(|reference| !after.contains(&pair(reference)))
            .chain(references.iter().filter(|reference| !before.contains(&pair(reference))))
            .map(|reference| reference.to.clone())
            .filter(|to| outside(&to.to_lower()))
            .collect();
        changed.sort();
        changed.dedup();
        if !references.is_empty() {
            self.outgoing.insert(key.into(), references);
        }
        changed
    }

    /// The referrers of exactly this id, ordered by the referrer's id.
    pub fn referrers(&self, id: &ResourceId) -> impl Iterator<Item = &Referrer> {
        self.incoming.get(&id.to_lower()).into_iter().flat_map(BTreeMap::values)
    }

    /// The addresses in use in a subnet.
    pub fn addresses(&self, subnet: &ResourceId) -> Option<&BTreeMap<IpAddr, ResourceId>> {
        self.addresses.get(&subnet.to_lower())
    }

    /// Whether any resource holds a public address from `first` to `last`.
    pub fn public_address_within(&self, first: &IpAddr, last: &IpAddr) -> bool {
        self.public_addresses.range(first..=last).next().is_some()
    }

    /// Whether a public address is held by any resource.
    pub fn public_address_taken(&self, address: &IpAddr) -> bool {
        self.public_addresses.contains_key(address)
    }
}
