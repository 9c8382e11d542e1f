//! What actors do when they are due, with the same requests as everybody else.

use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{Actor, ActorAction, Actors, DueAction, PendingWrite, missing};
use crate::compute::spot::deleted_when_evicted;
use crate::edit::Edit;
use crate::engine::document::{stored_reference, text};
use crate::engine::state::AzureState;
use crate::imds::scheduled_events::{EventPlan, EventType};

/// How long an actor waits before it repeats a write that was refused because the resource was busy: about as long as an
/// operation takes with the usual latencies.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// How often it tries: five minutes in all, so that an operation that never ends does not keep it busy for ever.
const MAX_TRIES: u32 = 30;

const MACHINES: &str = "Microsoft.Compute/virtualMachines";
const SCALE_SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";

impl Actors {
    /// Does what is due first, if anything is due at `now`.
    pub(crate) fn act(azure: &mut AzureState, now: Instant) {
        let seed = azure.seed;
        match azure.actors.take(now, seed) {
            Some(DueAction::Scheduled(actor, count)) => routine(azure, &actor, count),
            Some(DueAction::Write(actor, pending)) => run(azure, &actor, pending, now),
            None => {}
        }
    }
}

fn routine(azure: &mut AzureState, actor: &Actor, count: u64) {
    let draw = azure.seed.number("actor", &actor.name, count);
    match &actor.action {
        ActorAction::Edit { edit } => {
            let found = fitting(azure, actor, |_| true);
            if let Some(id) = pick(&found, draw) {
                let now = azure.now().to_string();
                let fill = |text: &str| text.replace("{now}", &now).replace("{count}", &count.to_string());
                change(azure, actor, id, &edit.with_texts(&fill));
            }
        }
        ActorAction::Scale { min, max, capacities } => {
            let at = (count.saturating_sub(1)).checked_rem(capacities.len() as u64).unwrap_or_default();
            let scheduled = usize::try_from(at).ok().and_then(|at| capacities.get(at));
            for (number, id) in
                fitting(azure, actor, |kind| kind.eq_ignore_ascii_case(SCALE_SETS)).iter().enumerate()
            {
                let range = max.saturating_sub(*min).saturating_add(1);
                let drawn =
                    || min + draw.wrapping_add(number as u64 * 7).checked_rem(range).unwrap_or_default();
                let capacity = scheduled.copied().unwrap_or_else(drawn).clamp(*min, (*max).max(*min));
                if azure
                    .document(id)
                    .is_some_and(|set| set.pointer("/sku/capacity") != Some(&json!(capacity)))
                {
                    // What is refused now is tried again with the next act.
                    let _ = azure.ask(
                        &actor.principal(),
                        "PATCH",
                        id,
                        None,
                        json!({ "sku": { "capacity": capacity } }),
                    );
                }
            }
        }
        ActorAction::Evict { share, notice_seconds } => evict(azure, actor, *share, *notice_seconds, draw),
        // Policies act on writes.
        ActorAction::Tag { .. } | ActorAction::Deny { .. } => {}
    }
}

/// The resources that an actor looks at and whose types it can work with, ordered by id.
fn fitting(azure: &AzureState, actor: &Actor, can: impl Fn(&str) -> bool) -> Vec<ResourceId> {
    azure
        .store
        .all()
        .filter(|record| {
            let kind = record.resource_type.name();
            can(kind) && actor.on.fits(&record.id, kind)
        })
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
    // What is busy now will not be for ever.
    let busy = outcome.is_err_and(|refusal| matches!(refusal.status, 409 | 429));
    if let (true, Some(again)) = (busy && pending.tries < MAX_TRIES, due.checked_add(RETRY_INTERVAL)) {
        azure.actors.add_pending(again, PendingWrite { tries: pending.tries + 1, ..pending });
    }
}

/// Takes a share of the spot machines that run.
fn evict(azure: &mut AzureState, actor: &Actor, share: f64, notice: u64, draw: u64) {
    let mut running: Vec<(u64, ResourceId, bool)> = machines(azure, actor)
        .into_iter()
        .filter(|id| !azure.events.announces(EventType::Preempt, id))
        .filter_map(|id| {
            let deletes = deleted_when_evicted(azure, &id)?;
            let off = power(azure, &id).is_some_and(|state| state != "running");
            (!off).then(|| (azure.seed.number("evicted", id.as_str(), draw), id, deletes))
        })
        .collect();
    running.sort();
    let count =
        if share > 0.0 { ((running.len() as f64 * share.min(1.0)).floor() as usize).max(1) } else { 0 };
    for (_, id, deletes) in running.into_iter().take(count) {
        if let Some(in_seconds) = i64::try_from(notice).ok().filter(|notice| *notice > 0) {
            let mut plan = EventPlan::of(EventType::Preempt, vec![id]);
            plan.in_seconds = Some(in_seconds);
            // Who is gone by now needs no announcement.
            let _ = azure.plan_event(plan);
            continue;
        }
        // What cannot be taken now stays for the next time.
        let _ = match deletes {
            true => azure.ask(&actor.principal(), "DELETE", &id, None, Value::Null),
            false => azure.ask(&actor.principal(), "POST", &id, Some("deallocate"), Value::Null),
        };
    }
}

/// The machines that an actor looks at, by themselves or by their scale set.
fn machines(azure: &AzureState, actor: &Actor) -> Vec<ResourceId> {
    let instances = format!("{SCALE_SETS}/virtualMachines");
    azure
        .store
        .all()
        .filter(|record| {
            let kind = record.resource_type.name();
            let is_instance = kind.eq_ignore_ascii_case(&instances);
            // Machines of flexible sets name theirs.
            let set = match is_instance {
                true => record.id.parent(),
                false => stored_reference(&record.body, "properties/virtualMachineScaleSet/id"),
            };
            (is_instance || kind.eq_ignore_ascii_case(MACHINES))
                && (actor.on.fits(&record.id, kind) || set.is_some_and(|set| actor.on.fits(&set, SCALE_SETS)))
        })
        .map(|record| record.id.clone())
        .collect()
}

/// The word behind `PowerState/` in a machine's instance view.
fn power(azure: &AzureState, id: &ResourceId) -> Option<String> {
    let record = azure.store.get(id)?;
    let view = record.resource_type.view(azure, record, &["instanceView"])?.ok()?;
    let statuses = view.get("statuses")?.as_array()?;
    let codes = statuses.iter().filter_map(|status| text(status, "code"));
    codes.filter_map(|code| code.strip_prefix("PowerState/")).map(str::to_owned).next()
}
