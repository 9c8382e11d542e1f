//! The gate of the kinds with raw resources. The planner validates the resources.

use crate::context::Gates;
use crate::field_error::FieldErrors;

/// The kinds with raw resources.
pub(crate) const KINDS: [&str; 6] = [
    "AzureASOManagedCluster",
    "AzureASOManagedClusterTemplate",
    "AzureASOManagedControlPlane",
    "AzureASOManagedControlPlaneTemplate",
    "AzureASOManagedMachinePool",
    "AzureASOManagedMachinePoolTemplate",
];

/// Validates an object of one of these kinds: with the gate closed none is created, except templates, of which nothing
/// comes. Existing objects may change.
pub(crate) fn validate(kind: &str, is_new: bool, gates: Gates) -> FieldErrors {
    FieldErrors::of(|object| {
        object.child("spec").forbidden_if(
            is_new && !gates.aso_api && !kind.ends_with("Template"),
            "objects of this kind need the feature gate ASOAPI: start the manager with --feature-gates=ASOAPI=true",
        );
    })
}
