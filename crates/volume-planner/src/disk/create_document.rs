//! The document of a new disk (Azure REST reference, "Disks - Create Or Update").

use serde_json::{Value, json};

use super::source::Source;
use crate::model::document::object;
use crate::model::topology::DiskPlace;
use crate::parameters::disk::DiskParameters;

/// The document to PUT. Members without a value are left to Azure.
pub(super) fn create_document(
    parameters: &DiskParameters,
    size_gib: u64,
    place: &DiskPlace,
    source: Option<&Source>,
) -> Value {
    let performance = parameters.performance.of_new_disk(parameters.sku, size_gib);
    let network = &parameters.network;
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let encryption = parameters
        .encryption
        .as_ref()
        .map(|encryption| json!({ "diskEncryptionSetId": encryption.set.as_str(), "type": encryption.kind }));
    let creation = object([
        ("createOption", Some(if source.is_some() { "Copy" } else { "Empty" }.into())),
        ("sourceResourceId", source.map(|source| source.resource().into())),
        ("logicalSectorSize", parameters.sector_size.map(Value::from)),
        ("performancePlus", parameters.performance_plus.map(Value::from)),
    ]);
    let properties = object([
        ("creationData", Some(creation)),
        ("diskSizeGB", Some(size_gib.into())),
        ("diskIOPSReadWrite", performance.iops.map(Value::from)),
        ("diskMBpsReadWrite", performance.mbps.map(Value::from)),
        ("encryption", encryption),
        ("networkAccessPolicy", text(&network.policy)),
        ("publicNetworkAccess", text(&network.public)),
        ("diskAccessId", network.disk_access.as_ref().map(|id| id.as_str().into())),
        ("burstingEnabled", parameters.has_bursting.then_some(true.into())),
        ("maxShares", (parameters.max_shares > 1).then_some(parameters.max_shares.into())),
    ]);
    object([
        ("location", Some(place.region.as_str().into())),
        ("zones", place.zone.as_ref().map(|zone| json!([zone]))),
        ("sku", Some(json!({ "name": parameters.sku.name() }))),
        ("tags", Some(json!(parameters.tags))),
        ("properties", Some(properties)),
    ])
}
