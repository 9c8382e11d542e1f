//! Snapshots are listed.

use arm::Class;
use azure_types::ResourceId;
use csi::v1::list_snapshots_response::Entry;
use csi::v1::{ListSnapshotsRequest, ListSnapshotsResponse};
use tonic::Status;
use volume_planner::Code;
use volume_planner::azure_error::AzureRequest;
use volume_planner::id::{DiskId, SnapshotId};
use volume_planner::listing::snapshots::{SnapshotFilter, list_snapshots};

use super::snapshot_calls::{Snapshots, message};
use crate::controller::messages::refused;

impl Snapshots {
    /// A page of snapshots: the one with an ID, those of a volume, or all of the cluster's group. An ID that is malformed is that of
    /// no snapshot.
    pub(crate) async fn list(&self, request: ListSnapshotsRequest) -> Result<ListSnapshotsResponse, Status> {
        let place = self.azure.place().await?;
        let asked = |text: &str| !text.is_empty();
        let id = asked(&request.snapshot_id)
            .then(|| SnapshotId::parse_or_name(&request.snapshot_id, &place, Code::NotFound));
        let source = asked(&request.source_volume_id)
            .then(|| DiskId::parse(&request.source_volume_id, Code::NotFound));
        let (id, source) = match (id.transpose(), source.transpose()) {
            (Ok(id), Ok(source)) => (id, source),
            _ => return Ok(ListSnapshotsResponse::default()),
        };
        let documents = match (&id, &source) {
            (Some(id), _) => self
                .azure
                .get(AzureRequest::Snapshot, id.resource(), Class::Refresh)
                .await?
                .into_iter()
                .collect(),
            (None, Some(source)) => self.of_group(source.subscription(), source.group()).await?,
            (None, None) => self.of_group(&place.subscription, &place.group).await?,
        };
        let filter = SnapshotFilter { id, source };
        let page = list_snapshots(&documents, &filter, &request.starting_token, request.max_entries);
        let page = page.map_err(|it| refused(&it))?;
        let entries = page.entries.into_iter().map(|facts| Entry { snapshot: Some(message(facts)) });
        Ok(ListSnapshotsResponse { entries: entries.collect(), next_token: page.next_token })
    }

    async fn of_group(&self, subscription: &str, group: &str) -> Result<Vec<serde_json::Value>, Status> {
        let group = ResourceId::group(subscription, group);
        self.azure.list(AzureRequest::Snapshot, &group, "snapshots").await
    }
}
