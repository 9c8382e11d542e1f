//! Where a volume goes: the wishes about its account, with what the cloud configuration adds.

use azure_types::ResourceId;
use volume_planner::ClusterPlace;
use volume_planner::parameters::share::ShareParameters;
use volume_planner::shares::account::AccountRequest;

/// The group of a class's accounts.
pub(super) fn group(parameters: &ShareParameters) -> ResourceId {
    ResourceId::group(&parameters.account.subscription, &parameters.account.group)
}

/// The wishes of a class.
pub(super) fn request(
    parameters: &ShareParameters,
    subnets: Vec<ResourceId>,
    place: &ClusterPlace,
) -> AccountRequest {
    AccountRequest {
        region: parameters.account.region.clone().unwrap_or_else(|| place.location.clone()),
        parameters: parameters.account.clone(),
        protocol: parameters.protocol,
        subnets,
    }
}
