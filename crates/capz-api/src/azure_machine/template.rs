//! AzureMachineTemplate: a template of machines. It is immutable: changes need a new one.

use std::collections::BTreeMap;

use serde_json::json;

use super::defaults::{completed_as, keep, set_common_defaults};
use super::types::AzureMachineSpec;
use super::validation::check;
use crate::common::{Quantity, TemplateMetadata};
use crate::context::{Context, Random};
use crate::field_error::FieldErrors;
use crate::immutable::changed;
use crate::machine::{SystemAssignedRole, check_role, identity_kinds};
use crate::object::object;
use crate::text::is_set;

object! {
    /// The spec of a template of machines.
    AzureMachineTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureMachineTemplateResource,
    }

    /// A template of machines.
    AzureMachineTemplateResource {
        /// Labels and annotations of the machines.
        metadata: TemplateMetadata,
        /// The machines.
        #[schemars(required)]
        spec: AzureMachineSpec,
    }

    /// The capacity of a machine of this template, for scaling from zero.
    AzureMachineTemplateStatus {
        /// Processors and memory of a machine.
        capacity: BTreeMap<String, Quantity>,
        /// The properties of a node.
        node_info: NodeInfo,
    }

    /// The properties of a node.
    NodeInfo {
        /// The architecture: amd64 or arm64.
        #[schemars(extend("enum" = ["amd64", "arm64"]))]
        architecture: String,
        /// The operating system: linux or windows.
        #[schemars(extend("enum" = ["linux", "windows"]))]
        operating_system: String,
    }
}

/// Sets the defaults of a template; `old` is its previous version. Defaults that depend on a single machine, such as
/// the name of its role assignment, stay unset.
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

/// Validates a template; `old` is its previous version.
pub fn validate_template(
    new: &AzureMachineTemplateSpec,
    old: Option<&AzureMachineTemplateSpec>,
    context: &Context,
) -> FieldErrors {
    let default = AzureMachineSpec::default();
    let machine = machine_of(new).unwrap_or(&default);
    FieldErrors::of(|object| {
        let spec = object.child("spec.template.spec");
        if let Some(old) = old {
            let old = completed_as(machine, machine_of(old).unwrap_or(&default), false);
            return spec.invalid_if(
                !context.topology_dry_run && json!(old) != json!(machine),
                changed(&old, machine),
                "AzureMachineTemplate.spec.template.spec field is immutable. Please create new resource instead.",
            );
        }
        check(machine, &spec);
        let of_one_machine = "a role assignment is of one machine: leave it away in a template";
        spec.child("roleAssignmentName").forbidden_if(is_set(&machine.role_assignment_name), of_one_machine);
        match &machine.system_assigned_identity_role {
            Some(role) if is_set(&role.name) => {
                spec.child("systemAssignedIdentityRole.name").forbidden(of_one_machine);
            }
            Some(role) => {
                // The machine gets the name; the rest is validated as if it were set.
                let kind = machine.identity.as_deref();
                let name = (kind == Some(identity_kinds::SYSTEM_ASSIGNED))
                    .then(|| "00000000-0000-0000-0000-000000000000".to_owned());
                check_role(kind, Some(&SystemAssignedRole { name, ..role.clone() }), None, &spec);
            }
            None => {}
        }
    })
}

fn machine_of(spec: &AzureMachineTemplateSpec) -> Option<&AzureMachineSpec> {
    spec.template.as_ref()?.spec.as_ref()
}
