//! Machine sizes by region. The list is long, the same for all clients with the same rights, and seldom changes.

use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Error, Listing};
use azure_types::ResourceId;
use capz_planner::sku::Skus;
use freshness::SharedReadings;
use serde_json::Value;

use crate::azure::clients::AzureAccess;

/// How long a list is valid.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
const VERSION: ApiVersion = ApiVersion::new("2021-07-01");

/// Lists of sizes, by the rights of the client and by region.
pub struct SkuCache(SharedReadings<(Arc<str>, String), Arc<Skus>, Error>);

impl Default for SkuCache {
    fn default() -> Self {
        Self(SharedReadings::kept_for(KEPT))
    }
}

impl SkuCache {
    /// Returns the sizes of a region.
    ///
    /// # Errors
    /// Azure does not list them.
    pub async fn get(
        &self,
        access: &AzureAccess,
        subscription: &str,
        location: &str,
    ) -> Result<Arc<Skus>, Error> {
        let key = (Arc::clone(&access.tenant), format!("{subscription}/{location}"));
        let ask = async || {
            let listing = Listing::of(&ResourceId::subscription(subscription), "Microsoft.Compute", "skus");
            let filter = format!("location eq '{location}'");
            let documents: Vec<Value> =
                access.client.list(&listing, VERSION, &[("$filter", &filter)], Class::Refresh).await?;
            Ok(Arc::new(Skus::read(location, &documents)))
        };
        self.0.get(key, |asked| asked.at.elapsed() < KEPT, ask).await
    }
}
