//! What objects stand for instances, and what happens to them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::instance::Instance;
use super::selection::{PoolMachine, Wanted, select};

/// What is known of a pool.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The scale set's document.
    pub scale_set: &'a Value,
    /// All instances of it.
    pub instances: &'a [Instance],
    /// The objects that stand for them.
    pub machines: &'a [PoolMachine],
    /// `status.lastReconciledReplicas`.
    pub last_reconciled: Option<u32>,
    /// Whether Azure is at work on the scale set for us.
    pub operation: bool,
    /// Whether somebody else says how many replicas there are.
    pub external: bool,
}

/// What is to be done with the objects of a pool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sync {
    /// Instances for which an object is made, by their place.
    pub create: Vec<usize>,
    /// Machines whose owner Machine is deleted, by their place. Draining is Cluster API's.
    pub delete: Vec<usize>,
    /// What `status.lastReconciledReplicas` becomes, if it changes.
    pub last_reconciled: Option<u32>,
}

/// Whether machines are being replaced, as opposed to a pool that somebody made smaller.
pub fn rollout_in_progress(known: Known<'_>, desired: u32) -> bool {
    if known.last_reconciled.is_some_and(|last| desired < last) {
        return false;
    }
    known.instances.iter().any(|instance| !instance.has_latest_model(known.scale_set))
}

/// What is to be done now. `wanted.rollout` is found out here.
pub fn sync(known: Known<'_>, wanted: Wanted) -> Sync {
    let instances: BTreeMap<String, &Instance> =
        known.instances.iter().map(|it| (it.provider_id.to_ascii_lowercase(), it)).collect();
    let objects: BTreeSet<String> =
        known.machines.iter().map(|it| it.provider_id.to_ascii_lowercase()).collect();
    let instance_of =
        |machine: &PoolMachine| instances.get(&machine.provider_id.to_ascii_lowercase()).copied();
    let has_object = |instance: &Instance| objects.contains(&instance.provider_id.to_ascii_lowercase());
    let mut sync = Sync {
        create: (0..known.instances.len())
            .filter(|index| known.instances.get(*index).is_some_and(|it| !it.is_leaving() && !has_object(it)))
            .collect(),
        ..Sync::default()
    };
    // Whoever deleted an instance gets its object drained away; nothing else goes in the same round.
    sync.delete = (0..known.machines.len())
        .filter(|index| known.machines.get(*index).is_some_and(|it| !it.leaving && instance_of(it).is_none()))
        .collect();
    if !sync.delete.is_empty() || known.operation || known.external {
        return sync;
    }
    // What the objects say may be from before the model changed: what Azure shows counts.
    let machines: Vec<PoolMachine> = known
        .machines
        .iter()
        .map(|machine| {
            let latest = instance_of(machine)
                .map_or(machine.latest, |instance| instance.has_latest_model(known.scale_set));
            PoolMachine { latest, ..machine.clone() }
        })
        .collect();
    let wanted = Wanted { rollout: rollout_in_progress(known, wanted.desired), ..wanted };
    sync.delete = select(&machines, wanted);
    if machines.len() - sync.delete.len() <= wanted.desired as usize {
        sync.last_reconciled = Some(wanted.desired);
    }
    sync
}
