//! Which machines of a pool are deleted now: broken ones, marked ones, surplus ones, and those that are to be replaced.

use super::numbers::DeletePolicy;

/// A machine of a pool, according to its AzureMachinePoolMachine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolMachine {
    /// The provider ID of its instance.
    pub provider_id: String,
    /// The creation time of the object, in any unit.
    pub created: i64,
    /// The provisioning state of the instance; `None` if it is unknown.
    pub state: Option<String>,
    /// Whether its node is ready.
    pub ready: bool,
    /// Whether it has the latest model.
    pub latest: bool,
    /// Whether it, or its Machine, is marked to be deleted first.
    pub marked: bool,
    /// Whether it, or its Machine, is being deleted: it is drained, and no longer counts.
    pub leaving: bool,
}

/// The desired state of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolTarget {
    /// The desired number of machines.
    pub desired: u32,
    /// How many fewer may be ready while machines are replaced.
    pub max_unavailable: u32,
    /// Which one is deleted first.
    pub policy: DeletePolicy,
    /// Whether machines are being replaced: one that is not ready yet may be the replacement of another one.
    pub rollout: bool,
    /// Whether machines stay as they are until the pool shrinks (gate SkipMachinePoolModelReconciliation).
    pub keep_old_models: bool,
    /// The seed of the random order.
    pub seed: u64,
}

/// The machines that are deleted now, as indexes into the list.
pub fn select(machines: &[PoolMachine], target: PoolTarget) -> Vec<usize> {
    let order = ordered(machines, target);
    let of = |which: &dyn Fn(&PoolMachine) -> bool| -> Vec<usize> {
        order
            .iter()
            .copied()
            .filter(|index| machines.get(*index).is_some_and(|it| !it.leaving && which(it)))
            .collect()
    };
    let is = |machine: &PoolMachine, state: &str| machine.state.as_deref() == Some(state);
    let mut broken = of(&|it| is(it, "Failed") && !it.ready);
    broken.extend(of(&|it| is(it, "Deleting")));
    broken.extend(
        of(&|it| is(it, "Failed") && it.ready).into_iter().take(serving_that_may_go(machines, target)),
    );
    if !broken.is_empty() {
        broken.sort_by_key(|index| machines.get(*index).is_some_and(|it| !it.marked));
        return broken;
    }
    let marked = of(&|it| it.marked);
    if !marked.is_empty() {
        return marked;
    }
    let ready = |it: &PoolMachine| it.ready && is(it, "Succeeded");
    let unready = |it: &PoolMachine| !it.ready && it.state.is_some();
    let (ready_old, ready_latest) = (of(&|it| ready(it) && !it.latest), of(&|it| ready(it) && it.latest));
    let (unready_old, unready_latest) =
        (of(&|it| unready(it) && !it.latest), of(&|it| unready(it) && it.latest));
    let ready_count = ready_old.len() + ready_latest.len();
    // A machine that is not ready yet replaces one that is deleted when it is: both are desired until then.
    let protected = if target.rollout { ready_old.len().min(unready_latest.len()) } else { 0 };
    let desired = target.desired as usize;
    let all = ready_count + unready_old.len() + unready_latest.len();
    let too_many = all.saturating_sub(protected + desired);
    if too_many > 0 {
        let spare = unready_latest.len() - protected;
        let candidates: Vec<usize> = if target.keep_old_models {
            let mut spare = spare;
            let mut unready = of(&unready);
            unready.retain(|index| {
                let stays = unready_latest.contains(index) && spare == 0;
                if unready_latest.contains(index) {
                    spare = spare.saturating_sub(1);
                }
                !stays
            });
            unready.into_iter().chain(of(&ready)).collect()
        } else {
            let spare = unready_latest.into_iter().take(spare);
            unready_old.into_iter().chain(spare).chain(ready_old).chain(ready_latest).collect()
        };
        return candidates.into_iter().take(too_many).collect();
    }
    if ready_count < desired || target.keep_old_models {
        return Vec::new();
    }
    let unavailable = target.max_unavailable as usize;
    let budget = if unavailable > desired { desired } else { ready_count - desired + unavailable };
    ready_old.into_iter().take(budget).collect()
}

/// How many instances that Azure reports as failed, and whose nodes are ready all the same, may be deleted: as many as
/// may be unavailable, and at least one while no other leaves.
fn serving_that_may_go(machines: &[PoolMachine], target: PoolTarget) -> usize {
    let serving =
        machines.iter().filter(|it| it.ready && !it.leaving && it.state.as_deref() != Some("Deleting"));
    let unavailable = (target.desired as usize).saturating_sub(serving.count());
    let one = usize::from(!machines.iter().any(|it| it.leaving));
    (target.max_unavailable as usize).saturating_sub(unavailable).max(one)
}

/// Machines in the order in which they are deleted.
fn ordered(machines: &[PoolMachine], target: PoolTarget) -> Vec<usize> {
    let mut order: Vec<(i128, &str, usize)> = machines
        .iter()
        .enumerate()
        .map(|(index, machine)| {
            let rank = match target.policy {
                DeletePolicy::Oldest => i128::from(machine.created),
                DeletePolicy::Newest => -i128::from(machine.created),
                DeletePolicy::Random => i128::from(drawn(target.seed, &machine.provider_id)),
            };
            (rank, machine.provider_id.as_str(), index)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, _, index)| index).collect()
}

/// A random number for a machine: the same for the same seed, so that a second decision selects the same machines
/// (SplitMix64 over the seed and the name).
fn drawn(seed: u64, name: &str) -> u64 {
    let mix = |state: u64| {
        let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ (state >> 31)
    };
    name.bytes().fold(mix(seed), |state, byte| mix(state ^ u64::from(byte)))
}
