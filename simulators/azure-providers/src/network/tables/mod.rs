//! The tables of the provider: what it counts, bounds, names and knows.

pub(crate) mod budgets;
pub(crate) mod limits;
pub(crate) mod members;
pub(crate) mod names;
pub(crate) mod versions;
