//! Shelves of the kinds whose objects have a life of their own.

pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
pub(crate) const NAMESPACES: &str = "namespaces";
pub(crate) const PODS: &str = "pods";
pub(crate) const BUDGETS: &str = "poddisruptionbudgets.policy";
pub(crate) const EVENTS: &str = "events";
