//! What the cloud configuration says of the cluster's accounts.

use arm::Client;
use manager::configuration::Reading;
use volume_planner::ClusterPlace;
use volume_planner::topology::normalize_region;

use crate::controller::Connection;

/// A connection by a configuration: the client, and where the cluster keeps its accounts.
pub(crate) fn connection(reading: &Reading, client: Client) -> Connection {
    let config = &reading.config;
    let place = ClusterPlace {
        subscription: config.subscription_id.clone(),
        group: config.resource_group.clone(),
        location: normalize_region(&config.location),
        is_stack: config.is_azure_stack(),
    };
    Connection { client, place }
}
