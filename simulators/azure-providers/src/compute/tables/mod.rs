//! The provider's tables: budgets, latencies, limits, names, versions, sizes, and how requests are answered.

pub(crate) mod budgets;
pub(crate) mod cluster_api_images;
pub(crate) mod codes;
pub(crate) mod images;
pub(crate) mod joins;
pub(crate) mod latencies;
pub(crate) mod limits;
pub(crate) mod protocol;
pub(crate) mod sizes;
pub(crate) mod type_names;
pub(crate) mod versions;
pub(crate) mod words;
