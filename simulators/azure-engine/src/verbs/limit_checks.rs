//! Checks of a write against limits that are plain counts.

use azure_types::ResourceId;
use serde_json::Value;

use crate::document::items;
use crate::provider::{AzureState, Provider, Record, ResourceType};
use crate::refusal::{Code, Result};
use crate::settings::limits::{Counts, Excess, Words};

impl AzureState {
    /// The value of a limit: the override, or Azure's. A name without a limit is unbounded.
    pub fn limit(&self, name: &str) -> u64 {
        self.limits.get(name).unwrap_or(u64::MAX)
    }

    /// Checks the plain counts that a write would change.
    pub fn check_limits(&self, candidate: &Record, existed: bool) -> Result<()> {
        let resource_type = candidate.resource_type;
        let Some(provider) = self.provider_of(resource_type.name()) else { return Ok(()) };
        if !existed {
            self.check_group_room(provider, candidate)?;
        }
        let is = |of: &str| of == resource_type.name();
        let region = self.location_of(candidate);
        for limit in provider.limits {
            let most = self.limit(limit.name);
            let check = |id: &ResourceId, called, words: Words, wanted| {
                if wanted <= most {
                    return Ok(());
                }
                Err(words(&Excess { id, called, region: &region, most, wanted }))
            };
            match limit.counts {
                Counts::PerRegion { of, called, words } if !existed && is(of) => {
                    let there = self.in_region(resource_type, candidate.id.subscription_id(), &region, most);
                    check(&candidate.id, called, words, there + 1)?;
                }
                Counts::Items { of, at, called, words } if is(of) => {
                    check(&candidate.id, called, words, items(&candidate.body, at).len() as u64)?;
                }
                Counts::Users { of, called, words } => {
                    for used in self.newly_used(candidate, of) {
                        check(&used, called, words, self.store.referrers(&used).count() as u64 + 1)?;
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
    fn check_group_room(&self, provider: &Provider, candidate: &Record) -> Result<()> {
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
        Err(Code::azures(409, "ResourceQuotaExceeded").says(format_args!(
                "Creating the resource of type '{type_name}' would exceed the quota of '{most}' resources of type \
                 '{type_name}' per resource group. The current resource count is '{count}', please delete some \
                 resources of this type before creating a new one."
            ),
        ))
    }

    /// Whether the subscription may have a further group.
    pub fn check_group_count(
        &self,
        subscription: &str,
        name: &str,
        resource_type: &dyn ResourceType,
    ) -> Result<()> {
        let most = self.limit("resources.groupsPerSubscription");
        let scope = ResourceId::subscription(subscription);
        let count = self.store.of_type_below(resource_type.name(), &scope).len() as u64;
        if count < most {
            return Ok(());
        }
        Err(Code::azures(409, "ResourceGroupQuotaExceeded").says(format_args!(
                "Creating the resource group '{name}' would exceed the quota of '{most}'. The current resource group \
                 count is '{count}', please delete some resource groups before creating a new one."
            ),
        ))
    }
}
