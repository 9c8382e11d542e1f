//! Runs due actions of actors, through the same requests as clients send.

use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::document::edit::Edit;
use crate::provider::{Act, Acts, AzureState};
use crate::settings::actors::{Actor, ActorAction, DueAction, PendingWrite, missing};

/// Pause before an actor repeats a write that was refused because the resource was busy: about as long as an operation
/// takes with the usual latencies.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// Tries in all: five minutes, so that an operation that never ends does not occupy the actor for ever.
const MAX_TRIES: u32 = 30;

impl AzureState {
    /// Runs the first action of an actor that is due at `now`, if there is one.
    pub(crate) fn act_for_actors(&mut self, now: Instant) {
        let seed = self.seed;
        match self.actors.take(now, seed) {
            Some(DueAction::Scheduled(actor, count)) => routine(self, &actor, count),
            Some(DueAction::Write(actor, pending)) => run(self, &actor, pending, now),
            None => {}
        }
    }
}

fn routine(azure: &mut AzureState, actor: &Actor, count: u64) {
    let draw = azure.seed.number("actor", &actor.name, count);
    match &actor.action {
        ActorAction::Edit { edit } => {
            let found = fitting(azure, actor);
            if let Some(id) = pick(&found, draw) {
                let now = azure.now().to_string();
                let fill = |text: &str| text.replace("{now}", &now).replace("{count}", &count.to_string());
                change(azure, actor, id, &edit.with_texts(&fill));
            }
        }
        // Actions that need knowledge of types belong to their provider.
        ActorAction::Scale { .. } | ActorAction::Evict { .. } => {
            let acts: Vec<Acts> = azure.providers.iter().filter_map(|provider| provider.acts).collect();
            acts.into_iter().for_each(|acts| acts(azure, actor, &Act { count, draw }));
        }
        // Policies act on writes.
        ActorAction::Tag { .. } | ActorAction::Deny { .. } => {}
    }
}

/// The resources that an actor looks at, ordered by id.
fn fitting(azure: &AzureState, actor: &Actor) -> Vec<ResourceId> {
    let all = azure.store.all();
    all.filter(|record| actor.on.fits(&record.id, record.resource_type.name()) && !azure.is_given(&record.id))
        .map(|record| record.id.clone())
        .collect()
}

fn pick(found: &[ResourceId], draw: u64) -> Option<&ResourceId> {
    let at = draw.checked_rem(found.len() as u64)?;
    found.get(usize::try_from(at).ok()?)
}

/// Reads a resource, changes it and writes it back whole, as an operator in a portal does.
fn change(azure: &mut AzureState, actor: &Actor, id: &ResourceId, edit: &Edit) {
    let Some(before) = azure.document(id) else { return };
    let mut after = before.clone();
    edit.apply(&mut after);
    if after != before {
        let _ = azure.ask(&actor.principal(), "PUT", id, None, after);
    }
}

/// Writes the tags that a resource still lacks.
fn run(azure: &mut AzureState, actor: &Actor, pending: PendingWrite, due: Instant) {
    let ActorAction::Tag { tags, replace, .. } = &actor.action else { return };
    let Some(document) = azure.document(&pending.id) else { return };
    let present = document.get("tags").and_then(Value::as_object).cloned().unwrap_or_default();
    let now = azure.now().to_string();
    let lacking = missing(tags, *replace, &present, &now);
    if lacking.is_empty() {
        return;
    }
    let mut all = present;
    all.extend(lacking.into_iter().map(|(tag, value)| (tag, value.into())));
    let outcome = azure.ask(&actor.principal(), "PATCH", &pending.id, None, json!({ "tags": all }));
    // A busy resource becomes free in time.
    let busy = outcome.is_err_and(|refusal| matches!(refusal.status, 409 | 429));
    if let (true, Some(again)) = (busy && pending.tries < MAX_TRIES, due.checked_add(RETRY_INTERVAL)) {
        azure.actors.add_pending(again, PendingWrite { tries: pending.tries + 1, ..pending });
    }
}
