//! Who reaches a cluster's API server, and who signs in.

use crate::object::object;

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
