//! The tables of the provider: what it counts, bounds, names and knows, and how long it takes.

pub(crate) mod budgets;
pub(crate) mod joins;
pub(crate) mod latencies;
pub(crate) mod limits;
pub(crate) mod names;
pub(crate) mod versions;
