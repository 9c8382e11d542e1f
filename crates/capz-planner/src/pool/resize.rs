//! When the scale set itself is written: with how many machines, and with what of its model. Source:
//! spec/capz/self-managed.md, 8.4.

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
