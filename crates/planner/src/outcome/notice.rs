//! Notices for the owners of Services.

use k8s::{Notice, ObjectKey};

/// A warning: the owner has to do something.
pub(crate) fn warning(service: &ObjectKey, reason: &'static str, message: String) -> Notice {
    Notice { service: service.clone(), warning: true, reason, message }
}

/// An information: nothing is wrong.
pub(crate) fn information(service: &ObjectKey, reason: &'static str, message: String) -> Notice {
    Notice { warning: false, ..warning(service, reason, message) }
}
