//! AzureManagedControlPlaneTemplate: a template of managed clusters for a ClusterClass. It has no members that belong to
//! one cluster.

use schemars::Schema;
use serde_json::Value;

use super::types::AzureManagedControlPlaneSpec;
use crate::object::object;

object! {
    /// The spec of a template of managed clusters.
    AzureManagedControlPlaneTemplateSpec {
        /// The template.
        #[schemars(required)]
        template: AzureManagedControlPlaneTemplateResource,
    }

    /// A template of managed clusters.
    AzureManagedControlPlaneTemplateResource {
        /// The clusters.
        #[schemars(required, transform = without_members_of_one_cluster)]
        spec: AzureManagedControlPlaneSpec,
    }
}

/// Members of a control plane that its template lacks, because no two clusters can have the same value.
const MEMBERS_OF_ONE_CLUSTER: [&str; 5] = [
    "/controlPlaneEndpoint",
    "/dnsPrefix",
    "/fleetsMember/properties/name",
    "/nodeResourceGroupName",
    "/sshPublicKey",
];

fn without_members_of_one_cluster(schema: &mut Schema) {
    let Some(properties) = schema.as_object_mut().and_then(|schema| schema.get_mut("properties")) else {
        return;
    };
    for member in MEMBERS_OF_ONE_CLUSTER {
        let (parent, name) = member.rsplit_once('/').unwrap_or_default();
        if let Some(parent) = properties.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(name);
        }
    }
}
