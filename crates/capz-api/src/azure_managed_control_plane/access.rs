//! Who reaches a cluster's API server, and who signs in.

use ipnet::IpNet;

use crate::field_error::Field;
use crate::object::object;
use crate::text::text;

object! {
    /// Sign-in with Microsoft Entra ID.
    AadProfile {
        /// The ids of the groups whose members administer the cluster.
        #[serde(rename = "adminGroupObjectIDs")]
        #[schemars(required)]
        admin_group_object_ids: Vec<String>,
        /// Whether Azure manages the integration.
        #[schemars(required)]
        managed: bool,
    }

    /// Who reaches the API server.
    ApiServerAccessProfile {
        /// The ranges from which the API server may be reached; from everywhere if there are none.
        #[serde(rename = "authorizedIPRanges")]
        authorized_ip_ranges: Vec<String>,
        /// Whether the API server has an address in the virtual network only.
        enable_private_cluster: bool,
        /// Whether the private API server has a public name, too.
        #[serde(rename = "enablePrivateClusterPublicFQDN")]
        enable_private_cluster_public_fqdn: bool,
        /// The private DNS zone of a private cluster: System, None, or the id of a zone.
        #[serde(rename = "privateDNSZone")]
        private_dns_zone: String,
    }
}

/// What an id of a private zone has before the zone's name.
const ZONES: &str = "privatednszones/";

/// Validates who reaches the API server.
pub(super) fn check(profile: Option<&ApiServerAccessProfile>, field: &Field<'_>) {
    let Some(profile) = profile else { return };
    for (index, range) in profile.authorized_ip_ranges.iter().flatten().enumerate() {
        let field = field.child("authorizedIPRanges").index(index);
        let is_wrong = range.parse::<IpNet>().is_err();
        field.invalid_if(is_wrong, range, "invalid CIDR format: write it as 12.34.56.78/32");
    }
    let zone = text(&profile.private_dns_zone);
    if zone.is_empty() || ["system", "none"].contains(&zone.to_ascii_lowercase().as_str()) {
        return;
    }
    let field = field.child("privateDNSZone");
    if !is_zone_of_clusters(&zone.to_ascii_lowercase()) {
        field.invalid(
            zone,
            "it must be System, None, or the id of a private DNS zone whose name is private.REGION.azmk8s.io or \
             privatelink.REGION.azmk8s.io, with at most one label of 1 to 32 letters, digits and '-' before it",
        );
    } else if profile.enable_private_cluster != Some(true) {
        field
            .invalid(zone, "only a private cluster has a private DNS zone: set enablePrivateCluster to true");
    }
}

/// Whether it is the id, in lower case, of a zone in which Azure can keep the names of private clusters.
fn is_zone_of_clusters(id: &str) -> bool {
    let name = id.find(ZONES).and_then(|start| id.get(start + ZONES.len()..));
    let labels: Vec<&str> = name.unwrap_or_default().split('.').collect();
    let (first, rest) = match labels.as_slice() {
        [first, rest @ ..] if rest.len() == 4 => (Some(*first), rest),
        rest => (None, rest),
    };
    let [kind, region, "azmk8s", "io"] = rest else { return false };
    let is_label = |label: &str| {
        (1..=32).contains(&label.len()) && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    ["private", "privatelink"].contains(kind)
        && !region.is_empty()
        && region.chars().all(|c| c.is_ascii_alphanumeric())
        && first.is_none_or(is_label)
}
