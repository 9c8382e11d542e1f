//! A snapshot is created.

use csi::messages::{entries, required};
use csi::status::refused;
use csi::v1::{CreateSnapshotRequest, CreateSnapshotResponse, Snapshot};
use serde_json::Value;
use tonic::Status;
use volume_planner::share_id::{ShareId, ShareSnapshotId};
use volume_planner::shares::{share, snapshot};
use volume_planner::size::to_bytes;
use volume_planner::{Code, Refusal};

use super::snapshot_calls::Snapshots;
use crate::controller::azure::share_id;

impl Snapshots {
    /// Takes a snapshot of a share, or finds the one that an earlier call has taken: the name of the request is in its metadata.
    pub(crate) async fn create(
        &self,
        request: CreateSnapshotRequest,
    ) -> Result<CreateSnapshotResponse, Status> {
        required(&request.name, "snapshot name")?;
        required(&request.source_volume_id, "source volume ID")?;
        let source = ShareId::parse(&request.source_volume_id, Code::NotFound).map_err(|it| refused(&it))?;
        let document = snapshot::document(&entries(request.parameters), &request.name);
        let document = document.map_err(|it| refused(&it))?;
        let place = self.azure.place()?;
        let _held = self.locks.hold(&request.name)?;
        let (account, share) = share_id(&source, &place);
        let not_found = || refused(&Refusal::SourceNotFound(request.source_volume_id.clone()));

        let listed = self.azure.shares_and_snapshots(&account).await?.ok_or_else(not_found)?;
        let find = |listed: &[Value]| {
            let found = snapshot::find(listed, &source.share, &request.name).map_err(|it| refused(&it))?;
            Ok::<_, Status>(found.map(str::to_owned))
        };
        let size = size_of(&listed, &source.share);
        let time = match find(&listed)? {
            Some(time) => time,
            None => {
                size.ok_or_else(not_found)?;
                let taken = self.azure.snapshot(&share, &document).await?;
                let own = taken.as_ref().and_then(snapshot::time_of).map(str::to_owned);
                let listed = self.azure.shares_and_snapshots(&account).await?.ok_or_else(not_found)?;
                let first = find(&listed)?.or_else(|| own.clone());
                let first = first.ok_or_else(|| Status::aborted("the snapshot is not listed yet; retry"))?;
                // Another replica was faster: all answer the same one, and the later one goes.
                if let Some(own) = own.filter(|own| *own != first) {
                    self.azure.delete_snapshot(&share, &own).await?;
                }
                first
            }
        };
        let subscription = match source.subscription.as_str() {
            "" => place.subscription.clone(),
            own => own.to_owned(),
        };
        let snapshot = Snapshot {
            size_bytes: i64::try_from(to_bytes(size.unwrap_or(0))).unwrap_or(i64::MAX),
            creation_time: timestamp(&time),
            snapshot_id: ShareSnapshotId { volume: ShareId { subscription, ..source }, time }.to_string(),
            source_volume_id: request.source_volume_id,
            ready_to_use: true,
            ..Snapshot::default()
        };
        Ok(CreateSnapshotResponse { snapshot: Some(snapshot) })
    }
}

/// The size of a share in a list, in GiB; absent if it is not there.
fn size_of(listed: &[Value], name: &str) -> Option<u64> {
    let is_it = |entry: &&Value| {
        let own = entry.get("name").and_then(Value::as_str);
        snapshot::time_of(entry).is_none() && own.is_some_and(|own| own.eq_ignore_ascii_case(name))
    };
    listed.iter().find(is_it).map(|entry| share::size_of(entry).unwrap_or(0))
}

/// The time that names a snapshot, as messages have it.
fn timestamp(text: &str) -> Option<prost_types::Timestamp> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(prost_types::Timestamp { seconds: time.as_second(), nanos: time.subsec_nanosecond() })
}
