//! The source of a new volume is read.

use arm::Class;
use csi::v1::VolumeContentSource;
use csi::v1::volume_content_source::Type;
use serde_json::Value;
use tonic::Status;
use volume_planner::azure_error::AzureRequest;
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::disk::source::Source;
use volume_planner::id::{DiskId, SnapshotId};
use volume_planner::{ClusterPlace, Code, Refusal};

use crate::controller::azure::Azure;
use crate::controller::messages::refused;

/// How many disks are read to find the size of one whose copy has not begun.
const MAX_ANCESTORS: usize = 10;

/// Reads a source.
pub(super) async fn source(
    azure: &Azure,
    content: &VolumeContentSource,
    place: &ClusterPlace,
) -> Result<Source, Status> {
    match &content.r#type {
        Some(Type::Snapshot(snapshot)) => {
            let id = SnapshotId::parse_or_name(&snapshot.snapshot_id, place, Code::NotFound);
            let id = id.map_err(|it| refused(&it))?;
            let document = azure.get(AzureRequest::Snapshot, id.resource(), Class::Create).await?;
            let document = document.ok_or_else(|| missing(&snapshot.snapshot_id))?;
            Ok(Source::snapshot(id, &document))
        }
        Some(Type::Volume(volume)) => {
            let id = DiskId::parse(&volume.volume_id, Code::NotFound).map_err(|it| refused(&it))?;
            let document = azure.get(AzureRequest::Disk, id.resource(), Class::Create).await?;
            let document = document.ok_or_else(|| missing(&volume.volume_id))?;
            let mut source = Source::disk(id, Some(ObservedDisk(&document)));
            if let Source::Disk { size_gib, .. } = &mut source
                && size_gib.is_none()
            {
                *size_gib = ancestors_size(azure, document).await?;
            }
            Ok(source)
        }
        None => Err(refused(&Refusal::Missing("volume content source"))),
    }
}

/// The size of the disk that a disk without a size is a copy of.
async fn ancestors_size(azure: &Azure, mut document: Value) -> Result<Option<u64>, Status> {
    for _ in 0..MAX_ANCESTORS {
        let parent = ObservedDisk(&document).source().map(|id| DiskId::parse(id, Code::Internal));
        let Some(Ok(parent)) = parent else { return Ok(None) };
        let Some(next) = azure.get(AzureRequest::Disk, parent.resource(), Class::Create).await? else {
            return Ok(None);
        };
        if let Some(size) = ObservedDisk(&next).size_gib() {
            return Ok(Some(size));
        }
        document = next;
    }
    Ok(None)
}

fn missing(id: &str) -> Status {
    refused(&Refusal::SourceNotFound(id.to_owned()))
}
