//! Overrides of the cloud provider's configuration on the machines (azure.json).

use crate::common::Quantity;
use crate::object::object;

object! {
    /// Overrides of the cloud provider's configuration on the machines (azure.json).
    CloudProviderConfigOverrides {
        /// The backoff of the cloud provider.
        back_offs: BackOff,
        /// The rate limit of the cloud provider.
        rate_limits: Vec<RateLimit>,
    }

    /// The rate limit of the cloud provider for one kind of requests.
    RateLimit {
        /// The limit.
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

    /// The rate limit of the cloud provider.
    RateLimitConfig {
        /// Whether there is a limit.
        cloud_provider_rate_limit: bool,
        /// The burst of reads.
        cloud_provider_rate_limit_bucket: i64,
        /// The burst of writes.
        cloud_provider_rate_limit_bucket_write: i64,
        /// Reads per second.
        #[serde(rename = "cloudProviderRateLimitQPS")]
        cloud_provider_rate_limit_qps: Quantity,
        /// Writes per second.
        #[serde(rename = "cloudProviderRateLimitQPSWrite")]
        cloud_provider_rate_limit_qps_write: Quantity,
    }

    /// The backoff of the cloud provider.
    BackOff {
        /// Whether it retries.
        cloud_provider_backoff: bool,
        /// The first wait in seconds.
        cloud_provider_backoff_duration: i64,
        /// The exponent of the backoff.
        cloud_provider_backoff_exponent: Quantity,
        /// The random part of the wait.
        cloud_provider_backoff_jitter: Quantity,
        /// The number of retries.
        cloud_provider_backoff_retries: i64,
    }
}
