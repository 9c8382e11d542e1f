//! Client-side rate limits: read and validated, not applied (`spec/config-and-cli.md`, 1.4.9). The
//! client learns its budgets from Azure's own headers; files in the field carry values that would
//! slow down clusters which are fine today.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::document::Keys;

/// The limits of one client, or of all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RateLimit {
    /// `cloudProviderRateLimit`: whether the limits were meant to be active.
    pub enabled: bool,
    /// `cloudProviderRateLimitQPS`: reads a second.
    pub qps: f64,
    /// `cloudProviderRateLimitBucket`: burst of reads.
    pub bucket: i64,
    /// `cloudProviderRateLimitQPSWrite`: writes a second.
    pub qps_write: f64,
    /// `cloudProviderRateLimitBucketWrite`: burst of writes.
    pub bucket_write: i64,
}

/// The keys that hold the limits of single clients, at top level or below `Entries`.
pub const PER_CLIENT_KEYS: &[&str] = &[
    "storageAccountRateLimit",
    "availabilitySetRateLimit",
    "loadBalancerRateLimit",
    "deploymentRateLimit",
    "diskRateLimit",
    "interfaceRateLimit",
    "ipGroupRateLimit",
    "containerServiceRateLimit",
    "natGatewayRateLimit",
    "privateEndpointRateLimit",
    "privateLinkServiceRateLimit",
    "privateDNSRateLimit",
    "publicIPAddressRateLimit",
    "routeTableRateLimit",
    "securityGroupRateLimit",
    "serviceGatewayRateLimit",
    "snapshotRateLimit",
    "subnetsRateLimit",
    "virtualMachineRateLimit",
    "virtualMachineScaleSetRateLimit",
    "virtualNetworkRateLimit",
];

impl RateLimit {
    pub(crate) fn read(keys: &mut Keys<'_>) -> Self {
        Self {
            enabled: keys.boolean("cloudProviderRateLimit"),
            qps: keys.float("cloudProviderRateLimitQPS"),
            bucket: keys.integer("cloudProviderRateLimitBucket"),
            qps_write: keys.float("cloudProviderRateLimitQPSWrite"),
            bucket_write: keys.integer("cloudProviderRateLimitBucketWrite"),
        }
    }

    /// The limits of single clients: `Entries`, then the top level, which wins.
    pub(crate) fn read_per_client(keys: &mut Keys<'_>) -> BTreeMap<String, Self> {
        let mut found = Vec::new();
        if let Some(entries) = keys.object("Entries") {
            found.extend(entries.into_iter().filter_map(|(name, value)| match value {
                Value::Object(object) => Some((name, object)),
                _ => None,
            }));
        }
        for name in PER_CLIENT_KEYS {
            if let Some(object) = keys.object(name) {
                found.push(((*name).to_owned(), object));
            }
        }
        let mut limits = BTreeMap::new();
        for (name, object) in found {
            let canonical = PER_CLIENT_KEYS.iter().find(|known| known.eq_ignore_ascii_case(&name));
            let name = canonical.map_or(name.clone(), |known| (*known).to_owned());
            let mut inner = Keys::new(object, Some(name.clone()), keys.problems());
            limits.insert(name, Self::read(&mut inner));
        }
        limits
    }
}
