//! Validation of an AzureManagedControlPlane, by itself and against its previous version.

use super::types::AzureManagedControlPlaneSpec;
use super::{access, autoscaler, extension, immutable, network, security, version};
use crate::context::Context;
use crate::field_error::{Field, FieldErrors};
use crate::machine::check_ssh_key;
use crate::names::is_dns_label;
use crate::text::{is_set, text};

/// Words that Azure permits in no name of a cluster.
const RESERVED_WORDS: [&str; 2] = ["microsoft", "windows"];

/// Validates the control plane `name`; `old` is its previous version, and `upgraded` the version to which Azure has
/// upgraded the cluster, or empty. An error that the previous version has, too, stops no update.
pub fn validate(
    name: &str,
    new: &AzureManagedControlPlaneSpec,
    old: Option<&AzureManagedControlPlaneSpec>,
    upgraded: &str,
    context: &Context,
) -> FieldErrors {
    if let Some(old) = old {
        let changes = FieldErrors::of(|object| {
            immutable::check(name, new, old, upgraded, &object.child("spec"));
        });
        if !changes.is_empty() {
            return changes;
        }
    }
    let errors = |spec| FieldErrors::of(|object| check(name, spec, object));
    let mut errors = match old {
        Some(old) => errors(new).without(&errors(old)),
        None => errors(new),
    };
    let of_cluster = FieldErrors::of(|object| {
        let address = object.child("spec.dnsServiceIP");
        network::check_cluster(&context.cluster_network, new.dns_service_ip.as_deref(), &address, object);
    });
    errors.0.extend(of_cluster.0);
    errors
}

fn check(name: &str, spec: &AzureManagedControlPlaneSpec, object: &Field<'_>) {
    let field = object.child("spec");
    field.child("resourceGroupName").required_if(
        !is_set(&spec.resource_group_name),
        "name the resource group, or set the label cluster.x-k8s.io/cluster-name, whose value is the default",
    );
    let identity = spec.identity_ref.as_ref();
    field.child("identityRef.name").required_if(
        !identity.is_some_and(|reference| is_set(&reference.name)),
        "name the AzureClusterIdentity with which the cluster is created",
    );
    if is_set(&spec.ssh_public_key) {
        check_ssh_key(spec.ssh_public_key.as_deref(), &field.child("sshPublicKey"));
    }
    check_identity(spec, &field.child("identity.userAssignedIdentityResourceID"));
    field.child("networkPluginMode").invalid_if(
        spec.is_overlay() && spec.network_plugin.as_deref() == Some("kubenet"),
        &spec.network_plugin_mode,
        "the network plugin kubenet has no mode overlay: set networkPlugin to azure",
    );
    let prefix = text(&spec.dns_prefix);
    let words = "it must have 2 to 54 letters, digits and '-', of which the first and the last are no '-'";
    let is_wrong = !prefix.is_empty() && !(2..=54).contains(&prefix.len()) || !is_dns_label(prefix);
    field.child("dnsPrefix").invalid_if(is_set(&spec.dns_prefix) && is_wrong, prefix, words);
    field.child("disableLocalAccounts").invalid_if(
        spec.disable_local_accounts.is_some() && spec.aad_profile.is_none(),
        spec.disable_local_accounts,
        "without local accounts, people sign in with Microsoft Entra ID: set aadProfile",
    );
    if let Some(member) = spec.fleets_member.as_ref().filter(|member| is_set(&member.name)) {
        let member = text(&member.name);
        let is_wrong = !is_dns_label(member) || member.contains(|c: char| c.is_ascii_uppercase());
        let words = "it must have small letters, digits and '-', of which the first and the last are no '-'";
        field.child("fleetsMember.name").invalid_if(is_wrong, member, words);
    }
    check_common(name, spec, &object.child("metadata.name"), &field);
}

/// Validates what control planes and their templates share.
pub(super) fn check_common(
    name: &str,
    spec: &AzureManagedControlPlaneSpec,
    name_field: &Field<'_>,
    field: &Field<'_>,
) {
    version::check(text(&spec.version), &field.child("version"));
    network::check_load_balancer(spec.load_balancer_profile.as_ref(), &field.child("loadBalancerProfile"));
    network::check_dns_address(spec.dns_service_ip.as_deref(), &field.child("dnsServiceIP"));
    let lower = name.to_ascii_lowercase();
    let reserved = RESERVED_WORDS.iter().any(|word| lower.contains(word));
    name_field.invalid_if(
        reserved,
        name,
        "Azure permits no name of a cluster with 'microsoft' or 'windows' in it",
    );
    autoscaler::check(spec.autoscaler_profile.as_ref(), &field.child("autoscalerProfile"));
    extension::check(spec.extensions.as_deref(), &field.child("extensions"));
    let identity = spec.identity.as_ref().and_then(|identity| identity.kind.as_deref());
    let issuer = spec.oidc_issuer_profile.as_ref().and_then(|issuer| issuer.enabled);
    let is_user_assigned = identity == Some(USER_ASSIGNED);
    let profile = spec.security_profile.as_ref();
    security::check(profile, is_user_assigned, issuer == Some(true), &field.child("securityProfile"));
    check_cilium(spec, field);
    access::check(spec.api_server_access_profile.as_ref(), &field.child("apiServerAccessProfile"));
    network::check(spec.virtual_network.as_ref(), &field.child("virtualNetwork"));
}

/// The type of an identity that exists by itself.
const USER_ASSIGNED: &str = "UserAssigned";

/// A user-assigned identity is named if, and only if, the cluster has one.
fn check_identity(spec: &AzureManagedControlPlaneSpec, field: &Field<'_>) {
    let Some(identity) = &spec.identity else { return };
    let id = text(&identity.user_assigned_identity_resource_id);
    let is_user_assigned = identity.kind.as_deref() == Some(USER_ASSIGNED);
    let words = "the identity type UserAssigned needs the id of an identity";
    field.required_if(is_user_assigned && id.is_empty(), words);
    let words = "only the identity type UserAssigned has the id of an identity";
    field.invalid_if(!is_user_assigned && !id.is_empty(), id, words);
}

/// Cilium is the dataplane and the policy engine, in the mode overlay, or neither.
fn check_cilium(spec: &AzureManagedControlPlaneSpec, field: &Field<'_>) {
    let (policy, dataplane) = (text(&spec.network_policy), text(&spec.network_dataplane));
    let is_dataplane = dataplane == "cilium";
    let words = "the network policy cilium needs the dataplane cilium: set networkDataplane";
    field.child("networkPolicy").invalid_if(policy == "cilium" && !is_dataplane, policy, words);
    let field = field.child("networkDataplane");
    let words = "the dataplane cilium needs the mode overlay: set networkPluginMode";
    field.invalid_if(is_dataplane && !spec.is_overlay(), dataplane, words);
    let words = "the dataplane cilium needs the network policy cilium: set networkPolicy";
    field.invalid_if(is_dataplane && policy != "cilium", dataplane, words);
}
