//! How much there may be of everything: Azure's published limits ("Azure subscription and service
//! limits, quotas, and constraints"), each of which can be overridden.
//!
//! Providers declare theirs as data. What is a plain count (resources in a region, items of a list) is
//! checked here; what takes knowledge of a type is checked there, against [`AzureState::limit`].

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::Value;

use super::document::{Object, items};
use super::error::Refusal;
use super::resource_type::{Provider, ResourceType};
use super::state::AzureState;
use super::store::Record;

/// One limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// `{namespace}.{what}Per{whom}`, such as `network.securityRulesPerGroup`.
    pub(crate) name: &'static str,
    pub(crate) value: u64,
    pub(crate) counts: Counts,
}

/// What a limit counts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Counts {
    /// What the types that know it check by themselves.
    Elsewhere,
    /// Resources of a type in one region of the subscription. What they are called in a refusal.
    PerRegion { of: &'static str, called: &'static str, words: Words },
    /// Resources that use one resource of a type, such as the machines of a set.
    Users { of: &'static str, called: &'static str, words: Words },
    /// Items of a list in the documents of a type, by path.
    Items { of: &'static str, at: &'static str, called: &'static str, words: Words },
}

/// How a provider words the refusal.
pub(crate) type Words = fn(&Excess<'_>) -> Refusal;

/// A limit that a write would exceed.
pub(crate) struct Excess<'a> {
    pub(crate) id: &'a ResourceId,
    /// What there is too much of, in the plural, such as `network interfaces`.
    pub(crate) called: &'a str,
    pub(crate) region: &'a str,
    pub(crate) most: u64,
    /// How many there would be.
    pub(crate) wanted: u64,
}

impl Limit {
    /// A limit that a type checks by itself.
    pub(crate) const fn of(name: &'static str, value: u64) -> Self {
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
pub(crate) struct Limits {
    published: BTreeMap<&'static str, u64>,
    overrides: BTreeMap<String, u64>,
}

impl Limits {
    pub(crate) fn new(providers: &[Provider], overrides: BTreeMap<String, u64>) -> Self {
        let declared = providers.iter().flat_map(|provider| provider.limits).chain(&GENERAL);
        Self { published: declared.map(|limit| (limit.name, limit.value)).collect(), overrides }
    }

    /// Replaces the overrides.
    ///
    /// # Errors
    /// The name that no limit has; nothing is changed then.
    pub(crate) fn set(&mut self, overrides: BTreeMap<String, u64>) -> Result<(), String> {
        match overrides.keys().find(|name| !self.published.contains_key(name.as_str())) {
            Some(unknown) => Err(unknown.clone()),
            None => {
                self.overrides = overrides;
                Ok(())
            }
        }
    }

    /// Every limit by name, overrides included.
    pub(crate) fn all(&self) -> BTreeMap<String, u64> {
        self.published
            .iter()
            .map(|(name, value)| ((*name).to_owned(), self.get(name).unwrap_or(*value)))
            .collect()
    }

    pub(crate) fn overrides(&self) -> BTreeMap<String, u64> {
        self.overrides.clone()
    }

    fn get(&self, name: &str) -> Option<u64> {
        self.overrides.get(name).or_else(|| self.published.get(name)).copied()
    }
}

/// Checks that every override names a limit.
///
/// # Errors
/// The name that no limit has.
pub(crate) fn check(overrides: &BTreeMap<String, u64>) -> Result<(), String> {
    Limits::new(&crate::providers::all(), BTreeMap::new()).set(overrides.clone())
}

impl AzureState {
    /// The value of a limit: the override, or Azure's. A name that is in no table bounds nothing.
    pub(crate) fn limit(&self, name: &str) -> u64 {
        self.limits.get(name).unwrap_or(u64::MAX)
    }

    /// Checks the plain counts that a write would change.
    pub(crate) fn check_limits(&self, candidate: &Record, existed: bool) -> Result<(), Refusal> {
        let resource_type = candidate.resource_type;
        let namespace = candidate.id.namespace().unwrap_or_default();
        let Some(provider) = self.provider(namespace) else { return Ok(()) };
        if !existed {
            self.check_group_room(provider, candidate)?;
        }
        let is = |of: &str| of == resource_type.name();
        for limit in provider.limits {
            let most = self.limit(limit.name);
            match limit.counts {
                Counts::PerRegion { of, called, words } if !existed && is(of) => {
                    let region = self.location_of(candidate);
                    let wanted =
                        self.in_region(resource_type, candidate.id.subscription_id(), &region, most) + 1;
                    if wanted > most {
                        return Err(words(&Excess {
                            id: &candidate.id,
                            called,
                            region: &region,
                            most,
                            wanted,
                        }));
                    }
                }
                Counts::Items { of, at, called, words } if is(of) => {
                    let wanted = items(&candidate.body, at).len() as u64;
                    if wanted > most {
                        let region = self.location_of(candidate);
                        return Err(words(&Excess {
                            id: &candidate.id,
                            called,
                            region: &region,
                            most,
                            wanted,
                        }));
                    }
                }
                Counts::Users { of, called, words } => {
                    for used in self.newly_used(candidate, of) {
                        let wanted = self.store.referrers(&used).count() as u64 + 1;
                        if wanted > most {
                            let region = self.location_of(candidate);
                            return Err(words(&Excess { id: &used, called, region: &region, most, wanted }));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The resources of a type that a write would use and that it does not use yet.
    fn newly_used(&self, candidate: &Record, of: &str) -> Vec<ResourceId> {
        let mut used: Vec<ResourceId> =
            candidate.resource_type.references(candidate).into_iter().map(|reference| reference.to).collect();
        used.retain(|to| {
            let is = self.store.get(to).is_some_and(|record| record.resource_type.name() == of);
            is && !self.store.referrers(to).any(|referrer| referrer.from.is_within(&candidate.id))
        });
        used
    }

    fn location_of(&self, candidate: &Record) -> String {
        let own = candidate.body.get("location").and_then(Value::as_str);
        own.map_or_else(|| self.location(&candidate.id), str::to_owned)
    }

    /// How many resources of a type a region has; 0 where there cannot be as many as `most` anywhere.
    fn in_region(
        &self,
        resource_type: &dyn ResourceType,
        subscription: &str,
        region: &str,
        most: u64,
    ) -> u64 {
        if (self.store.count(resource_type.name()) as u64) < most {
            return 0;
        }
        let here = |record: &&&Record| record.body.get("location").and_then(Value::as_str) == Some(region);
        let scope = ResourceId::subscription(subscription);
        self.store.of_type_below(resource_type.name(), &scope).iter().filter(here).count() as u64
    }

    /// ARM's own limit of resources of one type in a group, from which providers exempt types.
    fn check_group_room(&self, provider: &Provider, candidate: &Record) -> Result<(), Refusal> {
        let (type_name, most) = (candidate.resource_type.name(), self.limit("resources.perGroupAndType"));
        let tracked = candidate.resource_type.protocol().tracked;
        let exempt = !tracked || provider.unlimited.contains(&type_name);
        let Some(group) = candidate.id.group_name().filter(|_| !exempt) else { return Ok(()) };
        if (self.store.count(type_name) as u64) < most {
            return Ok(());
        }
        let group = ResourceId::group(candidate.id.subscription_id(), group);
        let count = self.store.of_type_below(type_name, &group).len() as u64;
        if count < most {
            return Ok(());
        }
        Err(Refusal::new(
            409,
            "ResourceQuotaExceeded",
            format!(
                "Creating the resource of type '{type_name}' would exceed the quota of '{most}' resources of type \
                 '{type_name}' per resource group. The current resource count is '{count}', please delete some \
                 resources of this type before creating a new one."
            ),
        ))
    }

    /// Whether the subscription may have a further group.
    pub(crate) fn check_group_count(
        &self,
        subscription: &str,
        name: &str,
        resource_type: &dyn ResourceType,
    ) -> Result<(), Refusal> {
        let most = self.limit("resources.groupsPerSubscription");
        let scope = ResourceId::subscription(subscription);
        let count = self.store.of_type_below(resource_type.name(), &scope).len() as u64;
        if count < most {
            return Ok(());
        }
        Err(Refusal::new(
            409,
            "ResourceGroupQuotaExceeded",
            format!(
                "Creating the resource group '{name}' would exceed the quota of '{most}'. The current resource group \
                 count is '{count}', please delete some resource groups before creating a new one."
            ),
        ))
    }

    /// Tags are an object of texts, not too many and not too long; no tags at all are left out.
    pub(crate) fn check_tags(&self, body: &mut Object) -> Result<(), Refusal> {
        let tags = match body.get("tags") {
            None => return Ok(()),
            Some(Value::Object(tags)) if tags.values().all(Value::is_string) => tags,
            Some(_) => return Err(Refusal::bad_content("tags must be an object of texts")),
        };
        if tags.is_empty() {
            body.remove("tags");
            return Ok(());
        }
        let most = self.limit("resources.tagsPerResource");
        if tags.len() as u64 > most {
            let text = format!(
                "Too many tags on the resource/resource group. Requested tag count - '{}'. Maximum number of tags \
                 allowed - '{most}'.",
                tags.len()
            );
            return Err(Refusal::new(400, "TooManyTags", text));
        }
        let (name_length, value_length) =
            (self.limit("resources.tagNameLength"), self.limit("resources.tagValueLength"));
        let length = |text: &str| text.chars().count() as u64;
        let reserved = |c: char| c.is_control() || matches!(c, '<' | '>' | '%' | '&' | '\\' | '?' | '/');
        for (name, value) in tags {
            let value = value.as_str().unwrap_or_default();
            // Azure's own tags begin so, and hold resource ids.
            let hidden = name.starts_with("hidden-");
            let (code, text) = if name.is_empty() || (name.contains(reserved) && !hidden) {
                let text = format!(
                    "The tag names '{name}' have reserved characters '<,>,%,&,\\,?,/' or control characters."
                );
                ("InvalidTagNameCharacters", text)
            } else if length(name) > name_length {
                ("InvalidTagNameLength", too_long("name", name, name_length))
            } else if length(value) > value_length {
                ("InvalidTagValueLength", too_long("value", value, value_length))
            } else {
                continue;
            };
            return Err(Refusal::new(400, code, text));
        }
        Ok(())
    }
}

fn too_long(what: &str, text: &str, most: u64) -> String {
    format!(
        "Tag {what} too large.  Following tag {what} '{text}' exceeded the maximum length. Maximum allowed length for \
         tag {what} - '{most}' characters."
    )
}
