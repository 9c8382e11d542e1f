//! Azure's published limits ("Azure subscription and service limits, quotas, and constraints"), each of which can be
//! overridden.
//!
//! Providers declare theirs as data. Plain counts (resources in a region, items of a list) are checked here; limits
//! that need knowledge of a type are checked there, against `AzureState::limit`.

use std::collections::BTreeMap;

use azure_types::ResourceId;

use crate::refusal::Refusal;

/// One limit.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// `{namespace}.{counted}Per{holder}`, such as `network.securityRulesPerGroup`.
    pub name: &'static str,
    /// Azure's published value.
    pub value: u64,
    /// What it counts.
    pub counts: Counts,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy)]
pub enum Counts {
    /// Nothing here: the types that know the limit check it.
    Elsewhere,
    /// Resources of a type in one region of the subscription.
    PerRegion {
        /// The full type.
        of: &'static str,
        /// Their noun in a refusal.
        called: &'static str,
        /// How the refusal is worded.
        words: Words,
    },
    /// Resources that use one resource of a type, such as the machines of a set.
    Users {
        /// The full type.
        of: &'static str,
        /// Their noun in a refusal.
        called: &'static str,
        /// How the refusal is worded.
        words: Words,
    },
    /// Items of a list in the documents of a type, by path.
    Items {
        /// The full type.
        of: &'static str,
        /// The path of the list.
        at: &'static str,
        /// Their noun in a refusal.
        called: &'static str,
        /// How the refusal is worded.
        words: Words,
    },
}

/// How a provider words the refusal.
pub type Words = fn(&Excess<'_>) -> Refusal;

/// A limit that a write would exceed.
pub struct Excess<'a> {
    /// The resource with too much.
    pub id: &'a ResourceId,
    /// What there is too much of, in the plural, such as `network interfaces`.
    pub called: &'a str,
    /// Its region.
    pub region: &'a str,
    /// The limit.
    pub most: u64,
    /// How many there would be.
    pub wanted: u64,
}

impl Limit {
    /// A limit that a type checks by itself.
    pub const fn of(name: &'static str, value: u64) -> Self {
        Self { name, value, counts: Counts::Elsewhere }
    }
}

/// The limits of Resource Manager itself.
const GENERAL: [Limit; 6] = [
    Limit::of("resources.groupsPerSubscription", 980),
    Limit::of("resources.perGroupAndType", 800),
    Limit::of("resources.tagsPerResource", 50),
    Limit::of("resources.tagNameLength", 512),
    Limit::of("resources.tagValueLength", 256),
    Limit::of("resources.requestBytes", 4 * 1024 * 1024),
];

/// All limits, with the overrides in force.
#[derive(Debug, Clone)]
pub struct Limits {
    published: BTreeMap<&'static str, u64>,
    overrides: BTreeMap<String, u64>,
}

impl Limits {
    /// Resource Manager's own limits and those that providers declare.
    pub fn new(declared: impl IntoIterator<Item = &'static Limit>, overrides: BTreeMap<String, u64>) -> Self {
        let declared = declared.into_iter().chain(&GENERAL);
        Self { published: declared.map(|limit| (limit.name, limit.value)).collect(), overrides }
    }

    /// Replaces the overrides.
    ///
    /// # Errors
    /// The name that no limit has; nothing is changed then.
    pub fn set(&mut self, overrides: BTreeMap<String, u64>) -> Result<(), String> {
        match overrides.keys().find(|name| !self.published.contains_key(name.as_str())) {
            Some(unknown) => Err(unknown.clone()),
            None => {
                self.overrides = overrides;
                Ok(())
            }
        }
    }

    /// Every limit by name, overrides included.
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.published
            .iter()
            .map(|(name, value)| ((*name).to_owned(), self.get(name).unwrap_or(*value)))
            .collect()
    }

    /// The overrides in force.
    pub fn overrides(&self) -> BTreeMap<String, u64> {
        self.overrides.clone()
    }

    pub(crate) fn get(&self, name: &str) -> Option<u64> {
        self.overrides.get(name).or_else(|| self.published.get(name)).copied()
    }
}
