//! What Azure holds: the real one, or an empty one.

use std::collections::{BTreeSet, HashMap};

use anyhow::Context as _;
use arm::{ApiVersion, Class, Client, Cloud, Credential, Listing, Transport};
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use capz_planner::sku::Skus;
use capz_planner::{Observed, Reading};
use cloud_config::CloudEndpoints;
use serde_json::Value;

/// The version in which sizes are listed.
const SKUS: ApiVersion = ApiVersion::new("2021-07-01");

/// Where it is looked up what there is.
#[derive(Debug)]
pub enum Source {
    /// Azure, as a cloud configuration leads to it.
    Real(Client),
    /// Nothing is there. What a region offers is asked of a simulated one.
    Empty,
}

impl Source {
    /// What a region offers.
    ///
    /// # Errors
    /// Azure does not say.
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

    /// Takes in what a reading answers about the resources that are asked about.
    ///
    /// # Errors
    /// Azure does not say.
    pub async fn read(
        &self,
        reading: Reading,
        asked: &BTreeSet<ResourceId>,
        observed: &mut Observed,
    ) -> anyhow::Result<()> {
        match (self, reading) {
            (Self::Empty, Reading::Get { id, .. }) => observed.take(&id, None),
            (Self::Empty, Reading::List { .. }) => observed.take_list(asked, &[]),
            (Self::Real(client), Reading::Get { id, api_version }) => {
                let document = client.get_optional(&id, ApiVersion::new(api_version), Class::Refresh).await;
                observed.take(&id, document.with_context(|| format!("cannot read {id}"))?);
            }
            (Self::Real(client), Reading::List { group, resource_type, api_version }) => {
                let (namespace, kind) = resource_type.split_once('/').unwrap_or(("", resource_type));
                let listing = Listing::of(&group, namespace, kind);
                let listed = client.list(&listing, ApiVersion::new(api_version), &[], Class::Refresh).await;
                let documents: Vec<Value> = match listed {
                    Ok(documents) => documents,
                    // A group that is not there holds nothing.
                    Err(error) if error.is_not_found() => Vec::new(),
                    Err(error) => {
                        return Err(error).with_context(|| format!("cannot list {resource_type} in {group}"));
                    }
                };
                observed.take_list(asked, &documents);
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

/// Lists of regions that were asked before.
pub type Regions = HashMap<String, Skus>;
