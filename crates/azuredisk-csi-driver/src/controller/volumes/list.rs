//! Volumes are listed.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use csi::v1::list_volumes_response::{Entry, VolumeStatus};
use csi::v1::{ListVolumesRequest, ListVolumesResponse, Volume};
use tonic::Status;
use volume_planner::azure_error::AzureRequest;
use volume_planner::listing::volumes::{ListedVolume, list_volumes};

use super::volume_calls::Volumes;
use crate::controller::attach::node_name_of;
use crate::controller::messages::refused;

impl Volumes {
    /// A page of the driver's volumes, each with the nodes that have it: those of Kubernetes' volumes in all their groups, or
    /// without Kubernetes the disks of the cluster's group.
    pub(crate) async fn list(&self, request: ListVolumesRequest) -> Result<ListVolumesResponse, Status> {
        let place = self.azure.place().await?;
        let volumes = self.view.disks();
        let groups: BTreeSet<ResourceId> = match &volumes {
            Some(volumes) => {
                volumes.iter().map(|disk| ResourceId::group(disk.subscription(), disk.group())).collect()
            }
            None => [ResourceId::group(&place.subscription, &place.group)].into(),
        };
        let mut disks = Vec::new();
        for group in groups {
            disks.extend(self.azure.list(AzureRequest::Disk, &group, "disks").await?);
        }
        let page = list_volumes(&disks, volumes.as_ref(), &request.starting_token, request.max_entries);
        let page = page.map_err(|it| refused(&it))?;
        let machines = page.entries.iter().flat_map(|volume| volume.machines.iter().cloned()).collect();
        let nodes = self.view.nodes_on(&machines);
        let entry = |volume: ListedVolume| {
            let name = |machine: &ResourceId| nodes.get(machine).cloned().or_else(|| node_name_of(machine));
            Entry {
                status: Some(VolumeStatus {
                    published_node_ids: volume.machines.iter().filter_map(name).collect(),
                    ..VolumeStatus::default()
                }),
                volume: Some(Volume {
                    capacity_bytes: i64::try_from(volume.capacity_bytes).unwrap_or(i64::MAX),
                    volume_id: volume.id.to_string(),
                    ..Volume::default()
                }),
            }
        };
        let entries = page.entries.into_iter().map(entry).collect();
        Ok(ListVolumesResponse { entries, next_token: page.next_token })
    }
}
