//! Which hooks see a request.

use std::sync::Arc;

use serde_json::Value;

use super::hooks::{Hook, Registrations};
use super::registration;
use super::rule::Operation;
use crate::object::Object;
use crate::registry::Kind;
use crate::server::handle::Kubernetes;

/// The object of a request, and its operation.
pub(crate) struct AdmissionSubject<'a> {
    pub(crate) kind: &'a Arc<Kind>,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) operation: Operation,
    pub(crate) object: Option<Value>,
    pub(crate) old: Option<Arc<Object>>,
}

impl AdmissionSubject<'_> {
    /// Whether the subresource has a type of its own, the same in all versions of the kind.
    pub(super) fn is_of_its_own(&self) -> bool {
        matches!(self.subresource, "scale" | "binding" | "eviction" | "token")
    }
}

impl Kubernetes {
    /// The hooks whose rules match a request with one of these operations, in the order in which they are called.
    pub(crate) fn hooks_for(
        &self,
        kind: &Arc<Kind>,
        subresource: &str,
        namespace: &str,
        operations: &[Operation],
    ) -> Vec<Arc<Hook>> {
        if registration::is_exempt(kind) {
            return Vec::new();
        }
        let all: Vec<Arc<Hook>> = {
            let hooks = self.shared.hooks.read();
            let mut state = self.shared.state.lock();
            let mut registered = hooks.registrations.lock();
            registered.refresh(&mut state);
            hooks.functions.iter().chain(&registered.hooks).cloned().collect()
        };
        if all.is_empty() {
            return all;
        }
        let equivalents = self.equivalents(kind);
        let fits = |hook: &Arc<Hook>| {
            let mut operations = operations.iter();
            operations.any(|operation| {
                hook.matching_kind(kind, &equivalents, subresource, namespace, *operation).is_some()
            })
        };
        all.into_iter().filter(fits).collect()
    }

    /// Drops the cached registrations after the state was replaced.
    pub(crate) fn forget_registrations(&self) {
        *self.shared.hooks.read().registrations.lock() = Registrations::default();
    }

    /// The same resource in other versions, or in another group that serves the same objects.
    pub(super) fn equivalents(&self, kind: &Arc<Kind>) -> Vec<Arc<Kind>> {
        let state = self.shared.state.lock();
        let same = |other: &&Arc<Kind>| other.shelf == kind.shelf && !Arc::ptr_eq(other, kind);
        state.registry.kinds().iter().filter(same).cloned().collect()
    }
}

impl Hook {
    /// The kind in whose form the hook sees the request; `None` if its rules do not match.
    pub(super) fn matching_kind(
        &self,
        kind: &Arc<Kind>,
        equivalents: &[Arc<Kind>],
        subresource: &str,
        namespace: &str,
        operation: Operation,
    ) -> Option<Arc<Kind>> {
        let fits = |kind: &Arc<Kind>| {
            self.rules.iter().any(|rule| rule.fits(kind, subresource, namespace, operation))
        };
        if fits(kind) {
            return Some(Arc::clone(kind));
        }
        if self.equivalent { equivalents.iter().find(|other| fits(other)).cloned() } else { None }
    }

    /// Whether its selectors match the labels of the namespace and of the object, new or old.
    pub(super) fn selects(&self, subject: &AdmissionSubject<'_>, namespace: Option<&Value>) -> bool {
        let selected = |object: Option<&Value>| object.is_some_and(|object| self.objects.matches(object));
        let by_namespace = self.namespaces.is_empty()
            || namespace.is_none_or(|namespace| self.namespaces.matches(namespace));
        by_namespace
            && (self.objects.is_empty()
                || selected(subject.object.as_ref())
                || selected(subject.old.as_deref().map(Object::value)))
    }
}
