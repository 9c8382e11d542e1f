//! The owner of a private link service, by its tags.

use azure_types::PrivateLinkService;
use k8s::ObjectKey;
use ownership::{Evidence, Proof};

use crate::model::Cluster;
use crate::outcome::proof;

/// The cluster that created it.
pub(super) const CLUSTER_TAG: &str = "k8s-azure-cluster-name";

/// The Service that created it.
pub(super) const OWNER_TAG: &str = "k8s-azure-owner-service";

/// A private link service's relation to a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership<'a> {
    /// The Service created it, and may change and remove it.
    Ours,
    /// This Service of the cluster created it; other Services may use it unchanged.
    Shared(&'a str),
    /// The cluster did not create it: it is left unchanged.
    Unmanaged,
}

pub(super) fn tag<'a>(link: &'a PrivateLinkService, key: &str) -> &'a str {
    let mut tags = link.tags.iter().flatten();
    tags.find(|(name, _)| name.eq_ignore_ascii_case(key)).map_or("", |(_, value)| value.trim())
}

/// Whether the private link service was not created by the cluster.
pub(crate) fn is_unmanaged(cluster: &Cluster, link: &PrivateLinkService) -> bool {
    !tag(link, CLUSTER_TAG).eq_ignore_ascii_case(&cluster.name)
}

/// The Service that created it.
pub(super) fn owner_key(link: &PrivateLinkService) -> Option<ObjectKey> {
    tag(link, OWNER_TAG).split_once('/').map(|(namespace, name)| ObjectKey::new(namespace, name))
}

/// The proof that the cluster created it.
pub(super) fn proof(cluster: &Cluster, link: &PrivateLinkService) -> Proof {
    let owner = owner_key(link).map_or_else(|| proof::cluster(cluster), |key| proof::service(cluster, &key));
    let fact = |key: &str| Evidence::Tag { key: key.to_owned(), value: tag(link, key).to_owned() };
    Proof::new(owner, fact(CLUSTER_TAG)).and(fact(OWNER_TAG))
}

impl<'a> Ownership<'a> {
    pub(super) fn of(cluster: &Cluster, service: &ObjectKey, link: &'a PrivateLinkService) -> Self {
        let owner = tag(link, OWNER_TAG);
        if is_unmanaged(cluster, link) {
            Self::Unmanaged
        } else if owner.eq_ignore_ascii_case(&service.to_string()) {
            Self::Ours
        } else {
            Self::Shared(owner)
        }
    }
}
