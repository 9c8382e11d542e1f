//! What several kinds share.

pub(crate) mod allocators;
pub(crate) mod cells;
pub(crate) mod columns;
pub(crate) mod defaults;
pub(crate) mod events;
pub(crate) mod immutable;
pub(crate) mod label_selector;
pub(crate) mod metadata;
pub(crate) mod names;
pub(crate) mod pod_spec;
pub(crate) mod pod_template;
pub(crate) mod rules;
pub(crate) mod workload;
