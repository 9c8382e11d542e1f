//! AzureMachineTemplate: what machines are made from. A template that is used does not change: a new one is made.

use std::collections::BTreeMap;

use serde_json::json;

use super::AzureMachineSpec;
use super::defaults::{completed_as, keep, set_common_defaults};
use super::validation::check;
use crate::common::{Quantity, TemplateMetadata};
use crate::context::{Context, Random};
use crate::field_error::{FieldErrors, Path};
use crate::immutable::changed;
use crate::machine::check_role;
use crate::object::object;

object! {
    /// What machines are made from.
    AzureMachineTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureMachineTemplateResource,
    }
}

object! {
    /// A template of machines.
    AzureMachineTemplateResource {
        /// Labels and annotations of the machines.
        metadata: TemplateMetadata,
        /// The machines.
        #[schemars(required)]
        spec: AzureMachineSpec,
    }
}

object! {
    /// What a machine of this template offers, for scaling from zero.
    AzureMachineTemplateStatus {
        /// Processors and memory of a machine.
        capacity: BTreeMap<String, Quantity>,
        /// What a node is.
        node_info: NodeInfo,
    }
}

object! {
    /// What a node is.
    NodeInfo {
        /// The architecture: amd64 or arm64.
        #[schemars(extend("enum" = ["amd64", "arm64"]))]
        architecture: String,
        /// The system: linux or windows.
        #[schemars(extend("enum" = ["linux", "windows"]))]
        operating_system: String,
    }
}

/// Completes a template, where `old` is what it was. What depends on one machine alone, such as the name of its role
/// assignment, stays open.
pub fn set_template_defaults(
    spec: &mut AzureMachineTemplateSpec,
    old: Option<&AzureMachineTemplateSpec>,
    random: &mut dyn Random,
) {
    let machine = spec.template.get_or_insert_default().spec.get_or_insert_default();
    if let Some(old) = old.and_then(machine_of) {
        keep(machine, old);
    }
    set_common_defaults(machine, random);
}

/// What is wrong with a template, where `old` is what it was.
pub fn validate_template(
    new: &AzureMachineTemplateSpec,
    old: Option<&AzureMachineTemplateSpec>,
    context: &Context,
) -> FieldErrors {
    let mut errors = FieldErrors::default();
    let path = Path::new("spec.template.spec");
    let default = AzureMachineSpec::default();
    let machine = machine_of(new).unwrap_or(&default);
    if let Some(old) = old {
        let old = completed_as(machine, machine_of(old).unwrap_or(&default), false);
        if !context.topology_dry_run && json!(old) != json!(machine) {
            errors.invalid(
                &path,
                changed(&old, machine),
                "AzureMachineTemplate.spec.template.spec field is immutable. Please create new resource instead.",
            );
        }
        return errors;
    }
    check(machine, &path, &mut errors);
    if machine.role_assignment_name.as_deref().is_some_and(|name| !name.is_empty()) {
        errors.forbidden(
            &path.child("roleAssignmentName"),
            "a role assignment is of one machine: leave it away in a template",
        );
    }
    if let Some(role) = &machine.system_assigned_identity_role {
        if role.name.as_deref().is_some_and(|name| !name.is_empty()) {
            errors.forbidden(
                &path.child("systemAssignedIdentityRole.name"),
                "a role assignment is of one machine: leave it away in a template",
            );
        } else {
            // The name comes with the machine; the rest is judged as if it were there.
            let mut role = role.clone();
            role.name = Some("00000000-0000-0000-0000-000000000000".to_owned());
            let kind = machine.identity.as_deref();
            if kind != Some("SystemAssigned") {
                role.name = None;
            }
            check_role(kind, Some(&role), None, &path, &mut errors);
        }
    }
    errors
}

fn machine_of(spec: &AzureMachineTemplateSpec) -> Option<&AzureMachineSpec> {
    spec.template.as_ref()?.spec.as_ref()
}
