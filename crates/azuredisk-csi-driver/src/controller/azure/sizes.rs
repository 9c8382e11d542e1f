//! How many data disks the machines of a size take, as Azure publishes it for the region.

use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Listing};
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use volume_planner::attach::capacity::max_data_disks;
use volume_planner::attach::published_sizes::PublishedSizes;

use super::client::Azure;

/// Sizes change when Azure brings new ones.
const READ_INTERVAL: Duration = Duration::from_secs(24 * 3600);
/// Pause after the list could not be read.
const RETRY_INTERVAL: Duration = Duration::from_secs(600);
/// The version of the list (Azure REST reference, "Resource Skus - List").
const VERSION: ApiVersion = ApiVersion::new("2021-07-01");

/// The sizes. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Sizes(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    azure: Azure,
    known: Mutex<PublishedList>,
}

#[derive(Debug, Default)]
struct PublishedList {
    published: Arc<PublishedSizes>,
    /// When they are read next; absent while they are being read.
    next: Option<Instant>,
    is_being_read: bool,
}

impl Sizes {
    pub(crate) fn new(azure: Azure) -> Self {
        Self(Arc::new(Inner { azure, known: Mutex::default() }))
    }

    /// The number of data disks of a size. Azure's list is read in the background: until it is there, the rule of the size's family
    /// counts, which is never too large.
    pub(crate) fn max_data_disks(&self, size: Option<&str>) -> u32 {
        self.read_if_due();
        let published = Arc::clone(&self.0.known.lock().published);
        max_data_disks(size.and_then(|size| published.max_data_disks(size)), size).0
    }

    fn read_if_due(&self) {
        {
            let mut known = self.0.known.lock();
            if known.is_being_read || known.next.is_some_and(|next| Instant::now() < next) {
                return;
            }
            known.is_being_read = true;
        }
        let inner = Arc::clone(&self.0);
        tokio::spawn(async move {
            let read = inner.read().await;
            let mut known = inner.known.lock();
            known.is_being_read = false;
            known.next = Some(Instant::now() + if read.is_some() { READ_INTERVAL } else { RETRY_INTERVAL });
            if let Some(read) = read {
                known.published = Arc::new(read);
            }
        });
    }
}

impl Inner {
    async fn read(&self) -> Option<PublishedSizes> {
        let connection = self.azure.connection().await.ok()?;
        let place = &connection.place;
        let scope = ResourceId::subscription(&place.subscription);
        let listing = Listing::of(&scope, "Microsoft.Compute", "skus");
        let filter = format!("location eq '{}'", place.location);
        let keep = |element: Value| PublishedSizes::parse([&element]);
        let read = connection
            .client
            .list_map(&listing, VERSION, &[("$filter", &filter)], Class::Refresh, keep)
            .await;
        match read {
            Ok(pages) => Some(pages.into_iter().collect()),
            Err(error) => {
                tracing::warn!(%error, "the sizes of machines cannot be read: rules by family count meanwhile");
                None
            }
        }
    }
}
