//! When the scale set itself is written: with how many machines, and with what of its model.

/// A scale set and what is declared of it, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Numbers {
    /// How many machines the set has or makes.
    pub capacity: u32,
    /// How many of them Azure shows that are not on their way out.
    pub instances: u32,
    /// How many of these are as the set says now.
    pub latest: u32,
    /// Whether the image, the zones or the size differ from what is declared. Nothing else is a change of the model: what a
    /// policy adds is not.
    pub model_changed: bool,
    /// Whether what machines do when they start differs.
    pub bootstrap_changed: bool,
    /// How many machines there shall be.
    pub desired: u32,
    /// How many more there may be while machines are replaced.
    pub surge: u32,
    /// Whether somebody else says how many machines there are.
    pub external: bool,
}

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resize {
    /// Nothing.
    Nothing,
    /// The number of machines alone.
    Capacity(u32),
    /// The model, and the number of machines where it is ours to say.
    Model(Option<u32>),
}

/// What is written now. The set never shrinks by it: machines go one by one, drained.
pub fn resize(numbers: Numbers) -> Resize {
    let Numbers { capacity, instances, latest, desired, .. } = numbers;
    let old = if numbers.model_changed { instances } else { instances.saturating_sub(latest) };
    // An instance that is on its way out may still be shown: then the others are all that count.
    let enough = !numbers.model_changed && (old == 0 || latest == capacity);
    // No more than there are to be replaced: machines too many would only go again.
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
            // A set that is to be smaller keeps its size: its machines go one by one.
            (Numbers { desired: 1, ..changed }, Resize::Model(Some(3))),
            (Numbers { desired: 1, ..REST }, Resize::Nothing),
            // One more as long as there is one to replace, and no more than there are.
            (Numbers { latest: 2, ..REST }, Resize::Capacity(4)),
            (Numbers { latest: 2, surge: 3, ..REST }, Resize::Capacity(4)),
            (Numbers { latest: 3, instances: 4, capacity: 4, ..REST }, Resize::Nothing),
            // The set was told already that the last old one goes, and still shows it.
            (Numbers { latest: 3, instances: 4, ..REST }, Resize::Nothing),
            // One that somebody deleted is made again, with what machines do now when they start.
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
