//! Where accounts and shares are.

use azure_types::ResourceId;
use volume_planner::ClusterPlace;
use volume_planner::share_id::ShareId;

pub(crate) const STORAGE: &str = "Microsoft.Storage";
pub(crate) const ACCOUNTS: &str = "storageAccounts";

/// An account of a group.
pub(crate) fn account_id(group: &ResourceId, name: &str) -> ResourceId {
    group.resource(STORAGE, ACCOUNTS, name)
}

/// The file service of an account.
pub(crate) fn file_service(account: &ResourceId) -> ResourceId {
    account.child("fileServices", "default")
}

/// The share of a volume. What the ID does not say is the cluster's.
pub(crate) fn share_id(volume: &ShareId, place: &ClusterPlace) -> (ResourceId, ResourceId) {
    let own = |text: &str, usual: &str| if text.is_empty() { usual.to_owned() } else { text.to_owned() };
    let group =
        ResourceId::group(&own(&volume.subscription, &place.subscription), &own(&volume.group, &place.group));
    let account = account_id(&group, &volume.account);
    let share = file_service(&account).child("shares", &volume.share);
    (account, share)
}
