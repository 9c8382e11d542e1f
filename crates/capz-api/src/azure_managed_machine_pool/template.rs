//! AzureManagedMachinePoolTemplate: a template of node pools.

use schemars::Schema;
use serde_json::Value;

use super::types::AzureManagedMachinePoolSpec;
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
