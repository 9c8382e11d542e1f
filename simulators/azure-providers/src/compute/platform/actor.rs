//! Actions of actors on machines and scale sets: autoscalers and the spot market.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::compute::machine::spot::deleted_when_evicted;
use crate::compute::platform::scheduled_events;
use crate::compute::platform::scheduled_events::{EventPlan, EventType, ScheduledEvents};
use crate::compute::scale_set::flexible;
use crate::compute::tables::type_names::{INSTANCE_TYPE, MACHINE_TYPE, SET_TYPE};
use azure_engine::provider::{Act, AzureState, Record};
use azure_engine::settings::actors::{Actor, ActorAction};

/// Scales and evicts.
pub(crate) fn act(azure: &mut AzureState, actor: &Actor, act: &Act) {
    match &actor.action {
        ActorAction::Scale { min, max, capacities } => scale(azure, actor, act, (*min, *max), capacities),
        ActorAction::Evict { share, notice_seconds } => {
            evict(azure, actor, *share, *notice_seconds, act.draw);
        }
        _ => {}
    }
}

/// The scale sets that an actor acts on, ordered by id.
fn scale_sets(azure: &AzureState, actor: &Actor) -> Vec<ResourceId> {
    let sets = azure.store.of_type(SET_TYPE);
    sets.filter(|record| actor.on.fits(&record.id, SET_TYPE)).map(|record| record.id.clone()).collect()
}

/// Sets the capacity of each scale set: the next of `capacities`, or one drawn from the range.
fn scale(azure: &mut AzureState, actor: &Actor, act: &Act, (min, max): (u64, u64), capacities: &[u64]) {
    let at = (act.count.saturating_sub(1)).checked_rem(capacities.len() as u64).unwrap_or_default();
    let scheduled = usize::try_from(at).ok().and_then(|at| capacities.get(at));
    for (number, id) in scale_sets(azure, actor).iter().enumerate() {
        let range = max.saturating_sub(min).saturating_add(1);
        let drawn = || min + act.draw.wrapping_add(number as u64 * 7).checked_rem(range).unwrap_or_default();
        let capacity = scheduled.copied().unwrap_or_else(drawn).clamp(min, max.max(min));
        if azure.document(id).is_some_and(|set| set.pointer("/sku/capacity") != Some(&json!(capacity))) {
            // A refused write is repeated by the next act.
            let sku = json!({ "sku": { "capacity": capacity } });
            let _ = azure.ask(&actor.principal(), "PATCH", id, None, sku);
        }
    }
}

/// Evicts a share of the running spot machines.
fn evict(azure: &mut AzureState, actor: &Actor, share: f64, notice: u64, draw: u64) {
    let events = azure.timetable::<ScheduledEvents>();
    let announced = |id: &ResourceId| events.is_some_and(|events| events.announces(EventType::Preempt, id));
    let mut running: Vec<(u64, ResourceId, bool)> = machines(azure, actor)
        .into_iter()
        .filter(|machine| machine.hidden.get("power").is_none_or(|power| power == "running"))
        .map(|machine| machine.id.clone())
        .filter(|id| !announced(id))
        .filter_map(|id| {
            let deletes = deleted_when_evicted(azure, &id)?;
            Some((azure.seed.number("evicted", id.as_str(), draw), id, deletes))
        })
        .collect();
    running.sort();
    let count =
        if share > 0.0 { ((running.len() as f64 * share.min(1.0)).floor() as usize).max(1) } else { 0 };
    for (_, id, deletes) in running.into_iter().take(count) {
        if let Some(in_seconds) = i64::try_from(notice).ok().filter(|notice| *notice > 0) {
            let mut plan = EventPlan::of(EventType::Preempt, vec![id]);
            plan.in_seconds = Some(in_seconds);
            // A machine that is gone by now needs no announcement.
            let _ = scheduled_events::plan_event(azure, plan);
            continue;
        }
        // A machine that cannot be evicted now stays for the next act.
        let _ = match deletes {
            true => azure.ask(&actor.principal(), "DELETE", &id, None, Value::Null),
            false => azure.ask(&actor.principal(), "POST", &id, Some("deallocate"), Value::Null),
        };
    }
}

/// The machines that an actor acts on, matched by themselves or by their scale set.
fn machines<'a>(azure: &'a AzureState, actor: &Actor) -> Vec<&'a Record> {
    let fits = |machine: &&Record| {
        let kind = machine.resource_type.name();
        // Machines of flexible sets name theirs.
        let set = if kind == INSTANCE_TYPE { machine.id.parent() } else { flexible::set_of(machine) };
        actor.on.fits(&machine.id, kind) || set.is_some_and(|set| actor.on.fits(&set, SET_TYPE))
    };
    let all = azure.store.of_type(MACHINE_TYPE).chain(azure.store.of_type(INSTANCE_TYPE));
    all.filter(fits).collect()
}
