//! A typed request for a snapshot, from the parameters of its class.

use super::given::{Entries, Given};
use super::keys;
use super::network_access::NetworkAccess;
use super::snapshot_table::SNAPSHOT_PARAMETERS;
use super::tags::{self, Tags};
use super::templates::Templates;
use crate::model::cluster_place::ClusterPlace;
use crate::model::disk_sku::DiskSku;
use crate::model::error::{ClassKind, Result};
use crate::model::topology::normalize_region;

/// What a VolumeSnapshotClass asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotParameters {
    /// Whether only changes are stored.
    pub is_incremental: bool,
    /// The resource group, if the class names one.
    pub group: Option<String>,
    /// The subscription, if the class names one.
    pub subscription: Option<String>,
    /// The region, if the class names one.
    pub region: Option<String>,
    /// All tags, but for the source's ID.
    pub tags: Tags,
    /// Who may export the data.
    pub data_access: Option<String>,
    /// Access over the network.
    pub network: NetworkAccess,
    /// The user agent of requests to Azure.
    pub user_agent: Option<String>,
    /// Minutes of instant access.
    pub instant_access_minutes: Option<u64>,
    given: Given,
}

impl SnapshotParameters {
    /// Reads the parameters of a class.
    ///
    /// # Errors
    /// A key is unknown, or a value invalid.
    pub fn parse(class: &Entries, place: &ClusterPlace) -> Result<Self> {
        let given = Given::read(SNAPSHOT_PARAMETERS, ClassKind::VolumeSnapshot, class)?;
        Ok(Self {
            // Only this exact word turns it off.
            is_incremental: !place.is_stack && given.text(keys::INCREMENTAL) != Some("false"),
            group: given.owned(keys::RESOURCE_GROUP),
            subscription: given.owned(keys::SUBSCRIPTION_ID),
            region: given.text(keys::LOCATION).map(normalize_region),
            tags: tags::of(&given, &Templates::default())?,
            data_access: given.owned(keys::DATA_ACCESS),
            network: NetworkAccess::of_snapshot(&given),
            user_agent: given.owned(keys::USER_AGENT),
            instant_access_minutes: given.number(keys::INSTANT_ACCESS),
            given,
        })
    }

    /// Checks the parameters against the kind of the source, once it is known.
    ///
    /// # Errors
    /// One of them needs another kind.
    pub fn check_source(&self, sku: DiskSku) -> Result<()> {
        self.given.check_sku(SNAPSHOT_PARAMETERS, sku)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::Code;

    fn parse(list: &[(&str, &str)], is_stack: bool) -> Result<SnapshotParameters> {
        let place = ClusterPlace {
            subscription: "s".into(),
            group: "g".into(),
            location: "westus2".into(),
            is_stack,
        };
        let entries = list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        SnapshotParameters::parse(&entries, &place)
    }

    /// CSI-009. Section 3.6: only the exact text `false` disables, and Azure Stack has none.
    #[test]
    fn snapshots_are_incremental_unless_the_class_says_false() {
        for (list, is_stack, expected) in [
            (vec![], false, true),
            (vec![("incremental", "false")], false, false),
            (vec![("incremental", "False")], false, true),
            (vec![("Incremental", "no")], false, true),
            (vec![("incremental", "true")], true, false),
        ] {
            assert_eq!(parse(&list, is_stack).unwrap().is_incremental, expected, "{list:?}");
        }
    }

    /// CSI-010. Section 3.6, with its FIX: an unknown key is an invalid argument.
    #[test]
    fn mistakes_are_invalid_arguments() {
        for list in [
            vec![("skuName", "Premium_LRS")],
            vec![("instantAccessDurationMinutes", "59")],
            vec![("instantAccessDurationMinutes", "301")],
            vec![("dataAccessAuthMode", "Entra")],
            vec![("networkAccessPolicy", "None")],
            vec![("tags", "=")],
        ] {
            assert_eq!(parse(&list, false).unwrap_err().code(), Code::InvalidArgument, "{list:?}");
        }
        let instant = parse(&[("instantAccessDurationMinutes", "60")], false).unwrap();
        assert!(instant.check_source(DiskSku::PremiumV2Lrs).is_ok());
        assert_eq!(instant.check_source(DiskSku::PremiumLrs).unwrap_err().code(), Code::InvalidArgument);
    }

    /// Section 3.6: unlike a disk, a snapshot has no default for its network; side-cars' names become tags.
    #[test]
    fn a_snapshot_has_tags_and_no_defaults_for_its_network() {
        let snapshot = parse(
            &[
                ("csi.storage.k8s.io/volumesnapshot/name", "n"),
                ("csi.storage.k8s.io/volumesnapshot/namespace", "ns"),
                ("csi.storage.k8s.io/volumesnapshotcontent/name", "c"),
            ],
            false,
        )
        .unwrap();
        assert_eq!(snapshot.network, NetworkAccess::default());
        assert_eq!(snapshot.tags["kubernetes.io-created-for-snapshot-name"], "n");
        assert_eq!(snapshot.tags["kubernetes.io-created-for-snapshot-namespace"], "ns");
        assert_eq!(snapshot.tags.len(), 3);
    }
}
