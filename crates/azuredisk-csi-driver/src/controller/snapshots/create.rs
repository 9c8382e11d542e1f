//! A snapshot is created.

use arm::Class;
use csi::call::Call;
use csi::operation::Operation;
use csi::v1::{CreateSnapshotRequest, CreateSnapshotResponse};
use serde_json::Value;
use tonic::Status;
use volume_planner::azure_error::AzureRequest;
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::id::{DiskId, SnapshotId};
use volume_planner::parameters::snapshot::SnapshotParameters;
use volume_planner::snapshot::create::{NewSnapshot, SnapshotRequest, SnapshotStep};
use volume_planner::snapshot::observed::{ObservedSnapshot, SnapshotFacts};
use volume_planner::{Code, Refusal};

use super::snapshot_calls::{Snapshots, message};
use crate::controller::azure::Azure;
use crate::controller::messages::{entries, refused, required};
use crate::pace::Pace;

/// A snapshot in another region takes two writes; two more are for those that Azure failed to make.
const MAX_WRITES: u32 = 4;

impl Snapshots {
    /// Creates a snapshot, or finds the one that an earlier call has created. It is answered before its data are copied, as not
    /// ready; the side-car asks again.
    pub(crate) async fn create(
        &self,
        request: CreateSnapshotRequest,
    ) -> Result<CreateSnapshotResponse, Status> {
        required(&request.name, "snapshot name")?;
        required(&request.source_volume_id, "source volume ID")?;
        let place = self.azure.place().await?;
        let source = DiskId::parse(&request.source_volume_id, Code::NotFound).map_err(|it| refused(&it))?;
        let parameters = SnapshotParameters::parse(&entries(request.parameters), &place);
        let parameters = parameters.map_err(|it| refused(&it))?;
        let azure = self.azure.as_agent(parameters.user_agent.as_deref());
        let _held = self.locks.hold(&request.name)?;
        let disk = azure.get(AzureRequest::Disk, source.resource(), Class::Create).await?;
        let disk = disk.ok_or_else(|| refused(&Refusal::SourceNotFound(source.to_string())))?;
        let observed = ObservedDisk(&disk);
        let region = observed.place().region;
        let new = SnapshotRequest {
            name: &request.name,
            source,
            source_region: Some(&region).filter(|region| !region.is_empty()).map(String::as_str),
            source_sku: observed.sku(),
            parameters: &parameters,
        };
        let new = NewSnapshot::plan(new, &place).map_err(|it| refused(&it))?;
        if new.local_id().is_some() {
            Call::current().is(Operation::CreateSnapshotCrossRegion);
        }
        let facts = self.until_answered(&azure, &new).await?;
        Ok(CreateSnapshotResponse { snapshot: Some(message(facts)) })
    }

    /// Takes one step after the other. Each is decided by what Azure has, so that another call, or another replica, goes on where
    /// this one is interrupted.
    async fn until_answered(&self, azure: &Azure, new: &NewSnapshot) -> Result<SnapshotFacts, Status> {
        let (mut pace, mut writes) = (Pace::default(), 0);
        loop {
            let own = read(azure, &new.id).await?;
            let local = match new.local_id() {
                Some(local) => read(azure, local).await?,
                None => None,
            };
            let (seen, seen_local) =
                (own.as_ref().map(ObservedSnapshot), local.as_ref().map(ObservedSnapshot));
            let step = new.next(seen, seen_local).map_err(|it| refused(&it))?;
            let waits = |facts: &SnapshotFacts| self.options.waits_for_snapshots && !facts.is_ready;
            match step {
                SnapshotStep::Done(facts) | SnapshotStep::Wait(facts) if waits(&facts) => pace.pause().await,
                SnapshotStep::Done(facts) | SnapshotStep::Wait(facts) => return Ok(facts),
                SnapshotStep::DeleteLocal(local, facts) => {
                    // The snapshot is there: a copy that stays costs money and changes nothing for the caller.
                    if let Err(status) = azure.delete(AzureRequest::Snapshot, local.resource()).await {
                        let error = status.message();
                        tracing::warn!(snapshot = %local, error, "a local copy of a snapshot stays");
                    }
                    return Ok(facts);
                }
                SnapshotStep::Put(id, _) if writes == MAX_WRITES => {
                    return Err(Status::internal(format!(
                        "Azure has failed to create snapshot {id} {writes} times"
                    )));
                }
                SnapshotStep::Put(id, document) => {
                    writes += 1;
                    let is_failed = (id == new.id && own.is_some()) || (id != new.id && local.is_some());
                    if is_failed {
                        azure.replace_failed(AzureRequest::Snapshot, id.resource(), &document).await?;
                    } else {
                        azure.create(AzureRequest::Snapshot, id.resource(), &document).await?;
                    }
                }
            }
        }
    }
}

async fn read(azure: &Azure, id: &SnapshotId) -> Result<Option<Value>, Status> {
    azure.get(AzureRequest::Snapshot, id.resource(), Class::Create).await
}
