//! The steps that every kind has, with what the kind adds to them.

use serde_json::Value;

use super::{custom, metadata};
use crate::kinds::shared::allocators::{Allocations, Allocators};
use crate::kinds::shared::defaults::fill;
use crate::kinds::shared::immutable::check_immutable;
use crate::kinds::shared::pod_template;
use crate::object::invalid::{Causes, Invalid};
use crate::registry::Kind;
use crate::{structural, wire};

/// Normalizes an object as a server does when it decodes it, before it compares members: equivalent notations become
/// equal, and missing members get their defaults.
pub(crate) fn prepare(kind: &Kind, object: &mut Value) {
    if let Some(builtin) = kind.builtin() {
        (builtin.decode)(object);
    }
    set_defaults(kind, object);
}

/// Sets missing members: defaults, and members that are derived from others.
fn set_defaults(kind: &Kind, object: &mut Value) {
    let Some(builtin) = kind.builtin() else {
        structural::settle(kind.tree(), object);
        return;
    };
    if let Some(at) = builtin.pod_spec {
        pod_template::apply_defaults(object, at);
    }
    fill(object, builtin.defaults);
    for (at, rows) in builtin.shared_defaults {
        if let Some(part) = object.pointer_mut(at) {
            fill(part, rows);
        }
    }
    if let Some(spec) = builtin.pod_spec.and_then(|at| object.pointer_mut(at)) {
        pod_template::derive_members(spec);
    }
    (builtin.derive)(object);
}

/// Completes and validates an object that will be created or will replace `old`.
///
/// Free addresses and ports are chosen for it, but they are not taken: see [`allocations`].
///
/// # Errors
/// All invalid fields.
pub(crate) fn admit(
    kind: &Kind,
    old: Option<&Value>,
    object: &mut Value,
    allocators: &mut Allocators,
) -> Result<(), Vec<Invalid>> {
    let mut causes = Causes::default();
    // A replacement may contain members of the stored object, which is complete.
    if let Err(why) = wire::tidy(kind, object) {
        causes.push(Invalid::new("", why));
    }
    metadata::tidy(kind, object);
    // Hooks may have changed it.
    set_defaults(kind, object);
    let Some(builtin) = kind.builtin() else {
        metadata::validate(kind, object, &mut causes);
        custom::validate(kind, old, object, &mut causes);
        return causes.refuse();
    };
    match old {
        None => (builtin.prepare_create)(object),
        Some(old) => (builtin.prepare_update)(old, object, &|object| complete(kind, object)),
    }
    metadata::validate(kind, object, &mut causes);
    (builtin.admit)(old, object, allocators, &mut causes);
    (builtin.validate)(object, &mut causes);
    if let Some(old) = old
        && (!builtin.immutable.is_empty() || builtin.validate_update.is_some())
    {
        let (old, object) = (complete(kind, old), complete(kind, object));
        check_immutable(builtin.immutable, &old, &object, &mut causes);
        if let Some(validate_update) = builtin.validate_update {
            validate_update(&old, &object, &mut causes);
        }
    }
    causes.refuse()
}

/// An object with all empty members that stored objects have: an object that is not stored yet lacks them.
fn complete(kind: &Kind, object: &Value) -> Value {
    let mut object = object.clone();
    wire::complete(kind, &mut object);
    object
}

/// The cluster addresses and node ports that an object holds.
pub(crate) fn allocations(kind: &Kind, object: &Value) -> Allocations {
    kind.builtin().map(|builtin| (builtin.allocations)(object)).unwrap_or_default()
}
