//! The finalizers of the server's own controllers.

/// Of a definition that waits until its objects are gone.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Of a foreground deletion, which waits for dependents.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";

/// Of a deletion that waits until its dependents are orphaned.
pub(crate) const ORPHAN: &str = "orphan";
