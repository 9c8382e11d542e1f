//! Machine pools: their scale set, and the objects of its instances.

pub mod objects;
pub mod pool_machine;
pub mod reconcile;
