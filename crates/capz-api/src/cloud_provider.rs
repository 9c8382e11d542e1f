//! What the cloud provider's configuration on the machines (azure.json) says beside the usual.

use crate::common::Quantity;
use crate::object::object;

object! {
    /// What the cloud provider's configuration on the machines (azure.json) says beside the usual.
    CloudProviderConfigOverrides {
        /// How long the cloud provider waits before it tries again.
        back_offs: BackOff,
        /// How many requests the cloud provider sends.
        rate_limits: Vec<RateLimit>,
    }
}

object! {
    /// How many requests of one kind the cloud provider sends.
    RateLimit {
        /// How many.
        config: RateLimitConfig,
        /// The kind.
        #[schemars(required, extend("enum" = [
            "defaultRateLimit", "routeRateLimit", "subnetsRateLimit", "interfaceRateLimit", "routeTableRateLimit",
            "loadBalancerRateLimit", "publicIPAddressRateLimit", "securityGroupRateLimit", "virtualMachineRateLimit",
            "storageAccountRateLimit", "diskRateLimit", "snapshotRateLimit", "virtualMachineScaleSetRateLimit",
            "virtualMachineSizesRateLimit", "availabilitySetRateLimit"
        ]))]
        name: String,
    }
}

object! {
    /// How many requests the cloud provider sends.
    RateLimitConfig {
        /// Whether there is a limit.
        cloud_provider_rate_limit: bool,
        /// How many reads may come at once.
        cloud_provider_rate_limit_bucket: i64,
        /// How many writes may come at once.
        cloud_provider_rate_limit_bucket_write: i64,
        /// Reads a second.
        #[serde(rename = "cloudProviderRateLimitQPS")]
        cloud_provider_rate_limit_qps: Quantity,
        /// Writes a second.
        #[serde(rename = "cloudProviderRateLimitQPSWrite")]
        cloud_provider_rate_limit_qps_write: Quantity,
    }
}

object! {
    /// How long the cloud provider waits before it tries again.
    BackOff {
        /// Whether it tries again.
        cloud_provider_backoff: bool,
        /// The first wait in seconds.
        cloud_provider_backoff_duration: i64,
        /// By how much the wait grows.
        cloud_provider_backoff_exponent: Quantity,
        /// The share of the wait that is random.
        cloud_provider_backoff_jitter: Quantity,
        /// How often it tries again.
        cloud_provider_backoff_retries: i64,
    }
}
