//! The tables of the provider: budgets, limits, names, versions and latencies.

pub(crate) mod budgets;
pub(crate) mod joins;
pub(crate) mod latencies;
pub(crate) mod limits;
pub(crate) mod names;
pub(crate) mod versions;
