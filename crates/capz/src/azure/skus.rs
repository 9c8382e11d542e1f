//! Machine sizes by region. The list is long, the same for all clients with the same rights, and seldom changes.

use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Error, Listing};
use azure_types::ResourceId;
use capz_planner::sku::Skus;
use parking_lot::Mutex;
use serde_json::Value;

use crate::azure::clients::Access;
use crate::azure::recent::Recent;
use crate::azure::shelf::Shelf;

/// How long a list is valid.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
const VERSION: ApiVersion = ApiVersion::new("2021-07-01");

type Sizes = Arc<Shelf<Arc<Skus>>>;

/// Lists of sizes, by the rights of the client and by region.
#[derive(Default)]
pub struct SkuCache {
    shelves: Mutex<Recent<(Arc<str>, String), Sizes>>,
}

impl SkuCache {
    fn shelf(&self, key: (Arc<str>, String)) -> Sizes {
        let mut shelves = self.shelves.lock();
        if let Some(shelf) = shelves.get(&key) {
            return Arc::clone(shelf);
        }
        let shelf = Arc::default();
        shelves.insert(key, Arc::clone(&shelf));
        shelf
    }

    /// Returns the sizes of a region.
    ///
    /// # Errors
    /// Azure does not list them.
    pub async fn get(&self, access: &Access, subscription: &str, location: &str) -> Result<Arc<Skus>, Error> {
        let key = (Arc::clone(&access.tenant), format!("{subscription}/{location}"));
        let shelf = self.shelf(key);
        let ask = async {
            let listing = Listing::of(&ResourceId::subscription(subscription), "Microsoft.Compute", "skus");
            let filter = format!("location eq '{location}'");
            let documents: Vec<Value> =
                access.client.list(&listing, VERSION, &[("$filter", &filter)], Class::Refresh).await?;
            Ok(Arc::new(Skus::read(location, &documents)))
        };
        shelf.read(|began| began.elapsed() < KEPT, ask).await
    }
}
