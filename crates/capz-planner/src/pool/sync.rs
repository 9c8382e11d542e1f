//! The objects that represent instances, and their creation and deletion.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::instance::Instance;
use super::selection::{PoolMachine, PoolTarget, select};

/// The observed state of a pool.
#[derive(Debug, Clone, Copy)]
pub struct ObservedPool<'a> {
    /// The scale set's document.
    pub scale_set: &'a Value,
    /// All instances of it.
    pub instances: &'a [Instance],
    /// The objects that represent them.
    pub machines: &'a [PoolMachine],
    /// `status.lastReconciledReplicas`.
    pub last_reconciled: Option<u32>,
    /// Whether an operation of ours runs on the scale set.
    pub operation: bool,
    /// Whether the number of replicas is managed externally.
    pub external: bool,
}

/// The changes to the objects of a pool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sync {
    /// Instances for which an object is created, by index.
    pub create: Vec<usize>,
    /// Machines whose owner Machine is deleted, by index. Cluster API drains them.
    pub delete: Vec<usize>,
    /// What `status.lastReconciledReplicas` becomes, if it changes.
    pub last_reconciled: Option<u32>,
}

/// Whether machines are being replaced, in contrast to a pool that was scaled down.
pub fn rollout_in_progress(pool: ObservedPool<'_>, desired: u32) -> bool {
    if pool.last_reconciled.is_some_and(|last| desired < last) {
        return false;
    }
    pool.instances.iter().any(|instance| !instance.has_latest_model(pool.scale_set))
}

/// The changes that are due now. `target.rollout` is determined here.
pub fn sync(pool: ObservedPool<'_>, target: PoolTarget) -> Sync {
    let instances: BTreeMap<String, &Instance> =
        pool.instances.iter().map(|it| (it.provider_id.to_ascii_lowercase(), it)).collect();
    let objects: BTreeSet<String> =
        pool.machines.iter().map(|it| it.provider_id.to_ascii_lowercase()).collect();
    let instance_of =
        |machine: &PoolMachine| instances.get(&machine.provider_id.to_ascii_lowercase()).copied();
    let has_object = |instance: &Instance| objects.contains(&instance.provider_id.to_ascii_lowercase());
    let mut sync = Sync {
        create: (0..pool.instances.len())
            .filter(|index| pool.instances.get(*index).is_some_and(|it| !it.is_leaving() && !has_object(it)))
            .collect(),
        ..Sync::default()
    };
    // The objects of instances that were deleted in Azure are deleted with a drain; no other deletion happens in the
    // same round.
    sync.delete = (0..pool.machines.len())
        .filter(|index| pool.machines.get(*index).is_some_and(|it| !it.leaving && instance_of(it).is_none()))
        .collect();
    if !sync.delete.is_empty() || pool.operation || pool.external {
        return sync;
    }
    // The objects may have been written before the model changed: the state in Azure counts.
    let machines: Vec<PoolMachine> = pool
        .machines
        .iter()
        .map(|machine| {
            let latest = instance_of(machine)
                .map_or(machine.latest, |instance| instance.has_latest_model(pool.scale_set));
            PoolMachine { latest, ..machine.clone() }
        })
        .collect();
    let target = PoolTarget { rollout: rollout_in_progress(pool, target.desired), ..target };
    sync.delete = select(&machines, target);
    if machines.len() - sync.delete.len() <= target.desired as usize {
        sync.last_reconciled = Some(target.desired);
    }
    sync
}
