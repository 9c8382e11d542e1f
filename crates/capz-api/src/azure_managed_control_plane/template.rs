//! AzureManagedControlPlaneTemplate: a template of managed clusters for a ClusterClass. It has no members that belong to
//! one cluster.

use schemars::Schema;
use serde_json::{Value, json};

use super::defaults::set_common_defaults;
use super::types::AzureManagedControlPlaneSpec;
use super::validation::check_common;
use super::{immutable, network};
use crate::context::Context;
use crate::field_error::FieldErrors;
use crate::immutable::is_empty;
use crate::object::object;
use crate::text::fill;

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

/// Sets the defaults of the template `name`. Names that belong to one cluster stay unset.
pub fn set_template_defaults(name: &str, spec: &mut AzureManagedControlPlaneTemplateSpec) {
    let cluster = spec.template.get_or_insert_default().spec.get_or_insert_default();
    fill(&mut cluster.network_plugin, "azure");
    fill(&mut cluster.load_balancer_sku, "Standard");
    cluster.enable_preview_features.get_or_insert(false);
    set_common_defaults(cluster);
    cluster.virtual_network.get_or_insert_default().set_ranges(name, false);
}

/// Validates the template `name`; `old` is its previous version. Rules that variables of a ClusterClass may still satisfy
/// are those of the clusters.
pub fn validate_template(
    name: &str,
    new: &AzureManagedControlPlaneTemplateSpec,
    old: Option<&AzureManagedControlPlaneTemplateSpec>,
    context: &Context,
) -> FieldErrors {
    let cluster_of = |spec: &AzureManagedControlPlaneTemplateSpec| {
        spec.template.as_ref().and_then(|template| template.spec.clone()).unwrap_or_default()
    };
    let (new, old) = (cluster_of(new), old.map(cluster_of));
    if let Some(old) = &old {
        let changes = FieldErrors::of(|object| {
            immutable::check_template(&new, old, &object.child("spec.template.spec"));
        });
        if !changes.is_empty() {
            return changes;
        }
    }
    let errors = |spec: &AzureManagedControlPlaneSpec| {
        FieldErrors::of(|object| {
            let field = object.child("spec.template.spec");
            let identity = json!(spec.identity_ref);
            let words = "name the AzureClusterIdentity with which clusters are created";
            field.child("identityRef").required_if(is_empty(&identity), words);
            check_common(name, spec, &object.child("metadata.name"), &field);
        })
    };
    let mut found = errors(&new);
    if let Some(old) = &old {
        found = found.without(&errors(old));
    }
    let of_cluster = FieldErrors::of(|object| {
        let address = object.child("spec.template.spec.dnsServiceIP");
        network::check_cluster(&context.cluster_network, new.dns_service_ip.as_deref(), &address, object);
    });
    found.0.extend(of_cluster.0);
    found
}
