//! How many data disks the machines of a size take, as Azure publishes it for the region.

use arm::{ApiVersion, Class, Listing};
use azure_types::ResourceId;
use serde_json::Value;
use volume_planner::attach::capacity::max_data_disks;
use volume_planner::attach::published_sizes::PublishedSizes;

use super::client::Azure;

/// The version of the list (Azure REST reference, "Resource Skus - List").
const VERSION: ApiVersion = ApiVersion::new("2021-07-01");

/// The sizes. All of one connection to Azure share what is known.
#[derive(Debug, Clone)]
pub(crate) struct Sizes(Azure);

impl Sizes {
    pub(crate) fn new(azure: Azure) -> Self {
        Self(azure)
    }

    /// The number of data disks of a size. Azure's list is read in the background: until it is there, the rule of the size's family
    /// counts, which is never too large.
    pub(crate) fn max_data_disks(&self, size: Option<&str>) -> u32 {
        if self.0.sizes().lock().begin_if_due() {
            let sizes = self.clone();
            tokio::spawn(async move { sizes.read().await });
        }
        max_data_disks(size.and_then(|size| self.published(size)), size).0
    }

    /// What Azure's list says of a size.
    pub(crate) fn published(&self, size: &str) -> Option<u32> {
        let published = self.0.sizes().lock().published();
        published.max_data_disks(size)
    }

    /// Reads the list if that is due.
    pub(crate) async fn refresh(&self) {
        if self.0.sizes().lock().begin_if_due() {
            self.read().await;
        }
    }

    async fn read(&self) {
        let read = self.list().await;
        self.0.sizes().lock().take(read);
    }

    async fn list(&self) -> Option<PublishedSizes> {
        let connection = self.0.connection().await.ok()?;
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
