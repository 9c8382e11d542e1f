//! An AzureCluster during a reconcile.

use capz_api::azure_cluster::{AzureClusterSpec, AzureClusterStatus};
use controllers::Reference;

use crate::kubernetes::kinds::{API_VERSION, AzureCluster};
use crate::kubernetes::patch::Edited;

pub(super) const KIND: &str = "AzureCluster";

pub(super) type EditedCluster = Edited<AzureClusterSpec, AzureClusterStatus>;

/// An AzureCluster for events.
pub(super) fn reference(object: &AzureCluster) -> Reference {
    Reference::of(API_VERSION, KIND, &object.metadata)
}
