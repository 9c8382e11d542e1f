//! When the scale set itself is written: with how many machines, and with which part of its model.

/// A scale set and its declaration, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// The capacity of the set.
    pub capacity: u32,
    /// The number of its instances that are not being deleted.
    pub instances: u32,
    /// The number of these with the latest model.
    pub latest: u32,
    /// Whether the image, the zones or the size differ from the declaration. Other differences are no change of the
    /// model, such as additions by a policy.
    pub model_changed: bool,
    /// Whether the bootstrap data differs.
    pub bootstrap_changed: bool,
    /// The desired number of machines.
    pub desired: u32,
    /// How many more are permitted while machines are replaced.
    pub surge: u32,
    /// Whether the number of machines is managed externally.
    pub external: bool,
}

/// The part of the set that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resize {
    /// Nothing.
    Nothing,
    /// Only the number of machines.
    Capacity(u32),
    /// The model, and the number of machines unless it is managed externally.
    Model(Option<u32>),
}

/// Decides the next write. It never shrinks the set: machines are deleted one by one, after a drain.
pub fn resize(numbers: Numbers) -> Resize {
    let Numbers { capacity, instances, latest, desired, .. } = numbers;
    let old = if numbers.model_changed { instances } else { instances.saturating_sub(latest) };
    // An instance that is being deleted may still be listed: then only the others count.
    let enough = !numbers.model_changed && (old == 0 || latest == capacity);
    // No more than there are to replace: surplus machines would only be deleted again.
    let more = if enough { 0 } else { numbers.surge.min(old) };
    let target = desired.saturating_add(more);
    let grows = !numbers.external && target > capacity;
    if numbers.model_changed || (grows && numbers.bootstrap_changed) {
        return Resize::Model((!numbers.external).then_some(target.max(capacity)));
    }
    if grows { Resize::Capacity(target) } else { Resize::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: Numbers = Numbers {
        capacity: 3,
        instances: 3,
        latest: 3,
        model_changed: false,
        bootstrap_changed: false,
        desired: 3,
        surge: 1,
        external: false,
    };

    /// CAPZ-139, CAPZ-149, CAPZ-154.
    #[test]
    fn a_set_grows_for_replacements_and_never_shrinks() {
        let changed = Numbers { model_changed: true, ..REST };
        let bootstrap = Numbers { bootstrap_changed: true, ..REST };
        let external = Numbers { external: true, ..REST };
        for (numbers, expected) in [
            (REST, Resize::Nothing),
            (changed, Resize::Model(Some(4))),
            (Numbers { surge: 5, ..changed }, Resize::Model(Some(6))),
            (Numbers { surge: 0, ..changed }, Resize::Model(Some(3))),
            (Numbers { instances: 0, latest: 0, capacity: 0, desired: 0, ..changed }, Resize::Model(Some(0))),
            // A set that should become smaller keeps its capacity: its machines are deleted one by one.
            (Numbers { desired: 1, ..changed }, Resize::Model(Some(3))),
            (Numbers { desired: 1, ..REST }, Resize::Nothing),
            // One more as long as there is one to replace, and no more than there are.
            (Numbers { latest: 2, ..REST }, Resize::Capacity(4)),
            (Numbers { latest: 2, surge: 3, ..REST }, Resize::Capacity(4)),
            (Numbers { latest: 3, instances: 4, capacity: 4, ..REST }, Resize::Nothing),
            // The deletion of the last old instance has begun, and the set still shows it.
            (Numbers { latest: 3, instances: 4, ..REST }, Resize::Nothing),
            // A machine that another actor deleted is created again, with the current bootstrap data.
            (Numbers { capacity: 2, instances: 2, latest: 2, ..REST }, Resize::Capacity(3)),
            (bootstrap, Resize::Nothing),
            (Numbers { desired: 5, ..bootstrap }, Resize::Model(Some(5))),
            (Numbers { desired: 5, ..external }, Resize::Nothing),
            (Numbers { latest: 1, ..external }, Resize::Nothing),
            (Numbers { model_changed: true, ..external }, Resize::Model(None)),
        ] {
            assert_eq!(resize(numbers), expected, "{numbers:?}");
        }
    }
}
