//! AzureManagedMachinePoolTemplate: a template of node pools.

use schemars::Schema;
use serde_json::Value;

use super::defaults::set_defaults;
use super::types::AzureManagedMachinePoolSpec;
use super::validation::check;
use crate::field_error::FieldErrors;
use crate::object::object;

object! {
    /// The spec of a template of node pools.
    AzureManagedMachinePoolTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureManagedMachinePoolTemplateResource,
    }

    /// A template of node pools.
    AzureManagedMachinePoolTemplateResource {
        /// The node pools.
        #[schemars(required, transform = without_machines)]
        spec: AzureManagedMachinePoolSpec,
    }
}

/// A template has no machines.
fn without_machines(schema: &mut Schema) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.remove("providerIDList");
    }
}

/// Sets the defaults of the template `name`.
pub fn set_template_defaults(name: &str, spec: &mut AzureManagedMachinePoolTemplateSpec) {
    let pool = spec.template.get_or_insert_default().spec.get_or_insert_default();
    set_defaults(name, pool, None);
}

/// Validates the template `name`; `old` is its previous version. It has the rules of a pool, except that a cluster does
/// not need a template.
pub fn validate_template(
    name: &str,
    new: &AzureManagedMachinePoolTemplateSpec,
    old: Option<&AzureManagedMachinePoolTemplateSpec>,
) -> FieldErrors {
    let pool = |spec: Option<&AzureManagedMachinePoolTemplateSpec>| {
        spec.and_then(|spec| spec.template.as_ref()?.spec.clone())
    };
    let (new, old) = (pool(Some(new)).unwrap_or_default(), pool(old));
    FieldErrors::of(|object| check(name, &new, old.as_ref(), &object.child("spec.template.spec")))
}
