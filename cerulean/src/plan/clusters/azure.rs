//! The contents of Azure: of the real one, or of an empty one.

use std::collections::{BTreeSet, HashMap};

use anyhow::Context as _;
use arm::{ApiVersion, Class, Client, Cloud, Credential, Listing, Transport};
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use capz_planner::sku::Skus;
use capz_planner::{ObservedResources, Reading};
use cloud_config::CloudEndpoints;
use serde_json::Value;

/// The API version for listing sizes.
const SKUS: ApiVersion = ApiVersion::new("2021-07-01");

/// The source of observed state.
#[derive(Debug)]
pub enum Source {
    /// The Azure of a cloud configuration.
    Real(Client),
    /// An empty Azure. Regional offers come from a simulated one.
    Empty,
}

impl Source {
    /// The offers of a region.
    ///
    /// # Errors
    /// Azure cannot be read.
    pub async fn skus(&self, subscription: &str, location: &str) -> anyhow::Result<Skus> {
        let listing = Listing::of(&ResourceId::subscription(subscription), "Microsoft.Compute", "skus");
        let filter = format!("location eq '{location}'");
        let client = match self {
            Self::Real(client) => client.clone(),
            Self::Empty => simulated(subscription, location)?,
        };
        let documents: Vec<Value> = client
            .list(&listing, SKUS, &[("$filter", &filter)], Class::Refresh)
            .await
            .with_context(|| format!("cannot list the sizes of machines in {location}"))?;
        Ok(Skus::read(location, &documents))
    }

    /// Adds the answers for the requested resources to a reading.
    ///
    /// # Errors
    /// Azure cannot be read.
    pub async fn read(
        &self,
        reading: Reading,
        requested: &BTreeSet<ResourceId>,
        observed: &mut ObservedResources,
    ) -> anyhow::Result<()> {
        match (self, reading) {
            (Self::Empty, Reading::Get { id, .. }) => observed.take(&id, None),
            (Self::Empty, Reading::List { .. }) => observed.take_list(requested, &[]),
            (Self::Real(client), Reading::Get { id, api_version }) => {
                let document = client.get_optional(&id, ApiVersion::new(api_version), Class::Refresh).await;
                observed.take(&id, document.with_context(|| format!("cannot read {id}"))?);
            }
            (Self::Real(client), Reading::List { group, resource_type, api_version }) => {
                let listing = Listing::of_type(&group, resource_type);
                let listed = client.list(&listing, ApiVersion::new(api_version), &[], Class::Refresh).await;
                let documents: Vec<Value> = match listed {
                    Ok(documents) => documents,
                    // A missing group is empty.
                    Err(error) if error.is_not_found() => Vec::new(),
                    Err(error) => {
                        return Err(error).with_context(|| format!("cannot list {resource_type} in {group}"));
                    }
                };
                observed.take_list(requested, &documents);
            }
        }
        Ok(())
    }
}

/// A client of a simulated Azure with one subscription and one region.
fn simulated(subscription: &str, location: &str) -> anyhow::Result<Client> {
    let azure = Azure::new(Options {
        subscription: subscription.to_owned(),
        region: location.to_owned(),
        ..Options::default()
    });
    let cloud = Cloud::built_in(&CloudEndpoints::named("").0)?;
    let transport = Transport::in_process(azure.router());
    Ok(Client::builder(cloud, transport, Credential::fixed("of nobody")).build())
}

/// Cached lists by region.
pub type Regions = HashMap<String, Skus>;
