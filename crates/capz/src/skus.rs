//! Sizes of machines by region. The list is long, the same for everybody with the same rights, and seldom changes.

use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Error, Listing};
use azure_types::ResourceId;
use capz_planner::sku::Skus;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use crate::azure::Access;
use crate::recent::Recent;

/// How long a list counts.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
const VERSION: ApiVersion = ApiVersion::new("2021-07-01");

type Shelf = Arc<tokio::sync::Mutex<Option<(Instant, Arc<Skus>)>>>;

/// Lists of sizes, by whose they are and by region.
#[derive(Default)]
pub struct SkuCache {
    shelves: Mutex<Recent<(Arc<str>, String), Shelf>>,
}

impl SkuCache {
    fn shelf(&self, key: (Arc<str>, String)) -> Shelf {
        let mut shelves = self.shelves.lock();
        if let Some(shelf) = shelves.get(&key) {
            return Arc::clone(shelf);
        }
        let shelf = Shelf::default();
        shelves.insert(key, Arc::clone(&shelf));
        shelf
    }

    /// The sizes of a region.
    ///
    /// # Errors
    /// Azure does not list them.
    pub async fn get(&self, access: &Access, subscription: &str, location: &str) -> Result<Arc<Skus>, Error> {
        let key = (Arc::clone(&access.tenant), format!("{subscription}/{location}"));
        let shelf = self.shelf(key);
        let mut kept = shelf.lock().await;
        if let Some((read, skus)) = kept.as_ref()
            && read.elapsed() < KEPT
        {
            return Ok(Arc::clone(skus));
        }
        let listing = Listing::of(&ResourceId::subscription(subscription), "Microsoft.Compute", "skus");
        let filter = format!("location eq '{location}'");
        let documents: Vec<Value> =
            access.client.list(&listing, VERSION, &[("$filter", &filter)], Class::Refresh).await?;
        let skus = Arc::new(Skus::read(location, &documents));
        *kept = Some((Instant::now(), Arc::clone(&skus)));
        Ok(skus)
    }
}
