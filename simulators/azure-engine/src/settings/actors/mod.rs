//! Actors: the other users of the same Azure, such as policies that add tags, operators who edit by hand, autoscalers
//! and the spot market.
//!
//! They need no task of their own: like the ends of operations, their actions run when the state is read, at the time
//! for which they were due. So the same seed and the same requests give the same history, however often the state is
//! read.

mod declaration;

use std::collections::BTreeSet;
use std::time::Duration;

use azure_types::ResourceId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

pub use declaration::{Actor, ActorAction, Condition, Schedule, Selection};

use crate::document::Object;
use crate::refusal::{Code, Refusal, Result};
use crate::settings::seed::Seed;

/// A write, as policies see it.
pub struct Write<'a> {
    /// The id of the resource.
    pub id: &'a ResourceId,
    /// Its full type.
    pub resource_type: &'a str,
    /// Whether the resource can have tags.
    pub tagged: bool,
    /// The principal of the actor that writes.
    pub by: Option<&'a str>,
}

/// The actors of one Azure, and their pending actions.
#[derive(Default)]
pub struct Actors {
    declared: Vec<Declared>,
    /// Tags to be written later, ordered by time.
    pending_writes: BTreeSet<(Instant, u64, PendingWrite)>,
    /// The number of pending writes so far.
    numbered: u64,
}

struct Declared {
    actor: Actor,
    /// Set when the clock is read first.
    next: Option<Instant>,
    done: u64,
}

/// A write that an actor still has to make on one resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PendingWrite {
    pub(crate) actor: String,
    pub(crate) id: ResourceId,
    pub(crate) tries: u32,
}

/// An action that is due now.
pub(crate) enum DueAction {
    /// Number `count` of an actor with a schedule.
    Scheduled(Actor, u64),
    Write(Actor, PendingWrite),
}

/// Actors as they are saved: times as distances from the moment of saving.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedActors {
    declared: Vec<(Actor, Option<u64>, u64)>,
    #[serde(rename = "errands")]
    pending_writes: Vec<(u64, u64, PendingWrite)>,
    numbered: u64,
}

impl Actors {
    /// Makes the state of these actors.
    pub fn of(actors: &[Actor]) -> Self {
        let mut all = Self::default();
        actors.iter().for_each(|actor| all.declare(actor.clone()));
        all
    }

    /// Adds an actor; it replaces one of the same name.
    pub fn declare(&mut self, actor: Actor) {
        self.remove(&actor.name);
        self.declared.push(Declared { actor, next: None, done: 0 });
    }

    /// Removes an actor. Returns whether there was one of that name.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.declared.len();
        self.declared.retain(|declared| declared.actor.name != name);
        self.pending_writes.retain(|(_, _, pending)| pending.actor != name);
        self.declared.len() < before
    }

    /// The actors.
    pub fn list(&self) -> Vec<Actor> {
        self.declared.iter().map(|declared| declared.actor.clone()).collect()
    }

    /// Runs policies before a write is checked: they change the document or refuse it. `now` is the time as text.
    pub fn proposed(&self, write: &Write<'_>, now: &str, body: &mut Object) -> Result<()> {
        for Declared { actor, .. } in self.fitting(write) {
            match &actor.action {
                ActorAction::Tag { tags, replace, after_ms: None } if write.tagged => {
                    let present = body.entry("tags").or_insert_with(|| json!({}));
                    if let Some(present) = present.as_object_mut() {
                        for (tag, value) in missing(tags, *replace, present, now) {
                            present.insert(tag, value.into());
                        }
                    }
                }
                ActorAction::Deny { when } => {
                    let document = Value::Object(body.clone());
                    if when.iter().all(|condition| condition.holds(&document)) {
                        return Err(disallowed(write.id, &actor.name));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Notes an accepted write for policies that act later.
    pub fn accepted(&mut self, write: &Write<'_>, now: Instant) {
        let new: Vec<(Instant, PendingWrite)> = self
            .fitting(write)
            .filter_map(|Declared { actor, .. }| match &actor.action {
                ActorAction::Tag { after_ms: Some(after), .. } if write.tagged => Some((
                    now.checked_add(Duration::from_millis(*after))?,
                    PendingWrite { actor: actor.name.clone(), id: write.id.clone(), tries: 0 },
                )),
                _ => None,
            })
            .collect();
        for (due, pending) in new {
            // One pending write suffices for consecutive writes.
            if !self
                .pending_writes
                .iter()
                .any(|(_, _, known)| known.actor == pending.actor && known.id == pending.id)
            {
                self.add_pending(due, pending);
            }
        }
    }

    pub(crate) fn add_pending(&mut self, due: Instant, pending: PendingWrite) {
        self.numbered += 1;
        self.pending_writes.insert((due, self.numbered, pending));
    }

    /// The actors that match a write; an actor does not match its own writes.
    fn fitting<'a>(&'a self, write: &'a Write<'_>) -> impl Iterator<Item = &'a Declared> {
        self.declared.iter().filter(|declared| {
            declared.actor.on.fits(write.id, write.resource_type)
                && write.by.is_none_or(|by| by != declared.actor.principal())
        })
    }

    /// When the next actor acts. `now` starts the clocks of actors that were declared just now.
    pub fn due(&mut self, now: Instant) -> Option<Instant> {
        for declared in &mut self.declared {
            if let (None, Some(schedule)) = (declared.next, &declared.actor.schedule)
                && schedule.times.is_none_or(|times| declared.done < times)
            {
                let pause = schedule.first_ms.unwrap_or(schedule.every_ms);
                declared.next = now.checked_add(Duration::from_millis(pause));
            }
        }
        let routine = self.declared.iter().filter_map(|declared| declared.next);
        routine.chain(self.pending_writes.first().map(|(due, ..)| *due)).min()
    }

    /// Takes the next due action at `now`, and schedules its actor's next one.
    pub(crate) fn take(&mut self, now: Instant, seed: Seed) -> Option<DueAction> {
        let first = self
            .declared
            .iter_mut()
            .filter(|declared| declared.next.is_some_and(|next| next <= now))
            .min_by_key(|declared| declared.next);
        let pending = self.pending_writes.first().filter(|(due, ..)| *due <= now);
        match (first, pending) {
            (Some(declared), pending) if pending.is_none_or(|(due, ..)| declared.next <= Some(*due)) => {
                declared.done += 1;
                let (actor, count) = (declared.actor.clone(), declared.done);
                declared.next = actor.schedule.as_ref().and_then(|schedule| {
                    let draw = seed.number("actor pause", &actor.name, count);
                    let jitter = draw.checked_rem(schedule.jitter_ms.saturating_add(1)).unwrap_or_default();
                    // A pause of zero would keep all other actors from acting.
                    let pause = Duration::from_millis(schedule.every_ms.max(1).saturating_add(jitter));
                    schedule
                        .times
                        .is_none_or(|times| count < times)
                        .then(|| declared.next?.checked_add(pause))
                        .flatten()
                });
                Some(DueAction::Scheduled(actor, count))
            }
            (_, Some(_)) => {
                let (_, _, pending) = self.pending_writes.pop_first()?;
                let actor = self.declared.iter().find(|declared| declared.actor.name == pending.actor)?;
                Some(DueAction::Write(actor.actor.clone(), pending))
            }
            _ => None,
        }
    }

    /// Their saved form.
    pub fn save(&self, now: Instant) -> SavedActors {
        let distance =
            |then: &Instant| then.saturating_duration_since(now).as_millis().try_into().unwrap_or(u64::MAX);
        SavedActors {
            declared: self
                .declared
                .iter()
                .map(|declared| (declared.actor.clone(), declared.next.as_ref().map(distance), declared.done))
                .collect(),
            pending_writes: self
                .pending_writes
                .iter()
                .map(|(due, number, pending)| (distance(due), *number, pending.clone()))
                .collect(),
            numbered: self.numbered,
        }
    }

    /// Restores the saved form.
    pub fn restore(saved: SavedActors, now: Instant) -> Self {
        let after = |left: u64| now.checked_add(Duration::from_millis(left)).unwrap_or(now);
        Self {
            declared: saved
                .declared
                .into_iter()
                .map(|(actor, next, done)| Declared { actor, next: next.map(after), done })
                .collect(),
            pending_writes: saved
                .pending_writes
                .into_iter()
                .map(|(left, number, pending)| (after(left), number, pending))
                .collect(),
            numbered: saved.numbered,
        }
    }
}

/// The tags that a document lacks.
pub(crate) fn missing(
    tags: &std::collections::BTreeMap<String, String>,
    replace: bool,
    present: &Object,
    now: &str,
) -> Vec<(String, String)> {
    tags.iter()
        .filter_map(|(tag, value)| {
            // Azure keeps the spelling of a tag, but compares without case.
            let known = present.keys().find(|known| known.eq_ignore_ascii_case(tag));
            let value = value.replace("{now}", now);
            match known {
                Some(_) if !replace => None,
                Some(known) if present.get(known).and_then(Value::as_str) == Some(&value) => None,
                known => Some((known.unwrap_or(tag).clone(), value)),
            }
        })
        .collect()
}

/// The refusal by a policy.
fn disallowed(id: &ResourceId, policy: &str) -> Refusal {
    let scope = format!("/subscriptions/{}/providers/Microsoft.Authorization", id.subscription_id());
    let identifiers = json!([{
        "policyAssignment": { "name": policy, "id": format!("{scope}/policyAssignments/{policy}") },
        "policyDefinition": { "name": policy, "id": format!("{scope}/policyDefinitions/{policy}") },
    }]);
    Code::azures(403, "RequestDisallowedByPolicy").says(format_args!(
        "Resource '{}' was disallowed by policy. Policy identifiers: '{identifiers}'.",
        id.name()
    ))
}
