//! The hosts under which a cluster's API server is found.

use azure_engine::document::{at, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use serde_json::Value;

const LETTERS: u64 = 26;

/// The label that a cluster's hosts share: what the client chose, and eight letters.
pub(super) fn label(azure: &AzureState, cluster: &Record) -> String {
    let chosen = ["properties/dnsPrefix", "properties/fqdnSubdomain"];
    let chosen = chosen.iter().find_map(|path| text(&cluster.body, path)).unwrap_or_default();
    let mut drawn = azure.seed.number("cluster host", cluster.id.as_str(), cluster.incarnation);
    let mut letters = String::new();
    for _ in 0..8 {
        letters.push(char::from(b'a' + u8::try_from(drawn % LETTERS).unwrap_or_default()));
        drawn /= LETTERS;
    }
    format!("{}-{letters}", chosen.to_ascii_lowercase())
}

/// The hosts of a cluster's API server: the public and the private one.
pub(super) fn hosts(azure: &AzureState, cluster: &Record) -> (Option<String>, Option<String>) {
    let (label, location) = (label(azure, cluster), azure.location(&cluster.id));
    let access = at(&cluster.body, "properties/apiServerAccessProfile").cloned().unwrap_or_default();
    let private = at(&access, "enablePrivateCluster") == Some(&Value::Bool(true));
    let public = !private || at(&access, "enablePrivateClusterPublicFQDN") != Some(&Value::Bool(false));
    (
        public.then(|| format!("{label}.hcp.{location}.azmk8s.io")),
        private.then(|| private_host(azure, cluster)),
    )
}

/// The host of a private cluster: in the zone that the client brings, or in its own.
pub(super) fn private_host(azure: &AzureState, cluster: &Record) -> String {
    let given = stored_reference(&cluster.body, "properties/apiServerAccessProfile/privateDNSZone");
    let zone = given.map_or_else(|| private_zone(azure, cluster), |zone| zone.name().to_owned());
    // In a zone of the client's, a chosen name stands as it is.
    match text(&cluster.body, "properties/fqdnSubdomain") {
        Some(chosen) => format!("{}.{zone}", chosen.to_ascii_lowercase()),
        None => format!("{}.{zone}", label(azure, cluster)),
    }
}

/// The zone that a private cluster gets where the client brings none.
pub(super) fn private_zone(azure: &AzureState, cluster: &Record) -> String {
    let guid = azure.seed.guid("private zone", cluster.id.as_str(), cluster.incarnation);
    format!("{guid}.privatelink.{}.azmk8s.io", azure.location(&cluster.id))
}

/// The host that kubeconfigs name.
pub(super) fn host(azure: &AzureState, cluster: &Record) -> String {
    let (public, private) = hosts(azure, cluster);
    private.or(public).unwrap_or_default()
}
