//! What a pool waits for, and so what shows its progress.

use super::sync::ObservedPool;

/// What a pool waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pending {
    /// Nothing: it is as desired.
    Nothing,
    /// Machines that are created or deleted. Their next change is seen in Kubernetes, or ends a call of ours.
    Machines,
    /// An operation in Azure: only another observation shows that it has ended.
    Azure,
}

/// What a pool of `desired` machines waits for. `keep_old_models` is whether machines stay as they are until the pool
/// shrinks.
pub fn pending(pool: ObservedPool<'_>, desired: u32, keep_old_models: bool) -> Pending {
    let ObservedPool { scale_set, instances, machines, .. } = pool;
    // An instance whose machine is leaving is deleted by a call of ours, whose end is known.
    let is_ours = |id: &str| machines.iter().any(|it| it.leaving && it.provider_id.eq_ignore_ascii_case(id));
    let at_work = instances
        .iter()
        .any(|instance| !(instance.is_settled() || instance.is_leaving() && is_ours(&instance.provider_id)));
    let stay = instances.iter().filter(|instance| !instance.is_leaving()).count();
    // The set counts new instances before the list shows them, and no longer counts those that are being deleted.
    let capacity = scale_set["sku"]["capacity"].as_u64().and_then(|it| usize::try_from(it).ok());
    let unlisted = capacity.is_some_and(|capacity| capacity != stay);
    let at_work = at_work
        || match scale_set["properties"]["provisioningState"].as_str() {
            Some("Succeeded") => unlisted,
            Some("Failed") => false,
            _ => true,
        };
    let old = !keep_old_models && instances.iter().any(|instance| !instance.has_latest_model(scale_set));
    if at_work {
        Pending::Azure
    } else if old || instances.len() != desired as usize || machines.iter().any(|it| it.leaving) {
        Pending::Machines
    } else {
        Pending::Nothing
    }
}
