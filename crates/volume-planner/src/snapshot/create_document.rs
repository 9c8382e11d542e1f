//! The documents of snapshots (Azure REST reference, "Snapshots - Create Or Update").

use serde_json::{Value, json};

use crate::model::document::object;
use crate::parameters::snapshot::SnapshotParameters;
use crate::parameters::tags::Tags;

/// The members that tell the snapshots of a request apart.
pub(super) struct SnapshotDocument<'a> {
    pub(super) region: &'a str,
    /// `Copy`, or `CopyStart` for a copy from another region.
    pub(super) create_option: &'static str,
    pub(super) source: &'a str,
    /// How long the source can be restored instantly: a copy cannot.
    pub(super) instant_access_minutes: Option<u64>,
    pub(super) tags: &'a Tags,
}

impl SnapshotDocument<'_> {
    /// The document to PUT.
    pub(super) fn make(&self, parameters: &SnapshotParameters) -> Value {
        let text = |text: &Option<String>| text.as_deref().map(Value::from);
        let creation = object([
            ("createOption", Some(self.create_option.into())),
            ("sourceResourceId", Some(self.source.into())),
            ("instantAccessDurationMinutes", self.instant_access_minutes.map(Value::from)),
        ]);
        let properties = object([
            ("creationData", Some(creation)),
            ("incremental", Some(parameters.is_incremental.into())),
            ("dataAccessAuthMode", text(&parameters.data_access)),
            ("networkAccessPolicy", text(&parameters.network.policy)),
            ("publicNetworkAccess", text(&parameters.network.public)),
        ]);
        json!({ "location": self.region, "tags": self.tags, "properties": properties })
    }
}
