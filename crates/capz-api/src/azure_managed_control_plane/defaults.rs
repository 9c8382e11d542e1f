//! Defaults of an AzureManagedControlPlane.

use super::extension;
use super::types::AzureManagedControlPlaneSpec;
use crate::context::Random;
use crate::text::{fill, is_set, keep as keep_text, text};

/// Sets the defaults of the control plane `name`; `old` is its previous version, whose defaults stay. `cluster` is the
/// name of the Cluster, once the object has its label.
pub fn set_defaults(
    name: &str,
    cluster: Option<&str>,
    spec: &mut AzureManagedControlPlaneSpec,
    old: Option<&AzureManagedControlPlaneSpec>,
    random: &mut dyn Random,
) {
    if let Some(old) = old {
        keep(spec, old);
    }
    set_common_defaults(spec);
    if let (Some(member), Some(cluster)) = (spec.fleets_member.as_mut(), cluster) {
        fill(&mut member.name, cluster);
    }
    // An absent key means that machines have none.
    if spec.ssh_public_key.as_deref() == Some("") {
        spec.ssh_public_key = Some(random.ssh_public_key());
    }
    if let Some(cluster) = cluster {
        fill(&mut spec.resource_group_name, cluster);
    }
    let group = text(&spec.resource_group_name).to_owned();
    if !group.is_empty() {
        let machines = format!("MC_{group}_{name}_{}", text(&spec.location));
        fill(&mut spec.node_resource_group_name, machines);
    }
    let is_overlay = spec.is_overlay();
    let network = spec.virtual_network.get_or_insert_default();
    fill(&mut network.name, name);
    if !group.is_empty() {
        fill(&mut network.resource_group, group);
    }
    network.set_ranges(name, is_overlay);
    spec.oidc_issuer_profile.get_or_insert_default().enabled.get_or_insert(false);
    fill(&mut spec.dns_prefix, name);
    extension::set_defaults(spec.extensions.as_deref_mut().unwrap_or_default(), name);
}

/// Defaults that control planes and their templates share.
pub(super) fn set_common_defaults(spec: &mut AzureManagedControlPlaneSpec) {
    if let Some(version) = spec.version.as_mut().filter(|text| !text.is_empty() && !text.starts_with('v')) {
        version.insert(0, 'v');
    }
    let tier = &mut spec.sku.get_or_insert_default().tier;
    fill(tier, "Free");
    if tier.as_deref() == Some("Paid") {
        *tier = Some("Standard".to_owned());
    }
}

/// Keeps values of admission and of the controller that a file does not contain.
fn keep(spec: &mut AzureManagedControlPlaneSpec, old: &AzureManagedControlPlaneSpec) {
    keep_text(&mut spec.resource_group_name, &old.resource_group_name);
    keep_text(&mut spec.node_resource_group_name, &old.node_resource_group_name);
    keep_text(&mut spec.dns_prefix, &old.dns_prefix);
    if spec.ssh_public_key.is_some() {
        keep_text(&mut spec.ssh_public_key, &old.ssh_public_key);
    }
    if let Some(known) = &old.control_plane_endpoint {
        spec.control_plane_endpoint.get_or_insert_default().keep(known);
    }
    if let (Some(member), Some(known)) = (spec.fleets_member.as_mut(), old.fleets_member.as_ref()) {
        keep_text(&mut member.name, &known.name);
    }
    let Some(known) = &old.virtual_network else { return };
    let network = spec.virtual_network.get_or_insert_default();
    keep_text(&mut network.name, &known.name);
    keep_text(&mut network.cidr_block, &known.cidr_block);
    keep_text(&mut network.resource_group, &known.resource_group);
    if let Some(known) = &known.subnet {
        let subnet = network.subnet.get_or_insert_default();
        keep_text(&mut subnet.name, &known.name);
        keep_text(&mut subnet.cidr_block, &known.cidr_block);
    }
}

impl AzureManagedControlPlaneSpec {
    /// Whether pods have addresses outside of the virtual network.
    pub(super) fn is_overlay(&self) -> bool {
        self.network_plugin_mode.as_deref() == Some("overlay")
    }

    /// With a prefix in DNS: objects that were stored before there was a default have the object's name as theirs.
    pub(super) fn with_dns_prefix(&self, name: &str) -> Self {
        let mut named = self.clone();
        if !is_set(&named.dns_prefix) {
            named.dns_prefix = Some(name.to_owned());
        }
        named
    }
}
