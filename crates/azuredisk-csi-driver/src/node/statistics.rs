//! Statistics of a volume.

use csi::v1::volume_usage::Unit;
use csi::v1::{NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, VolumeUsage};
use tonic::Status;
use volumes_node::system::{Amount, FileKind};

use super::service::{NodeService, path, required};
use super::status::{of_device, of_mount};

impl NodeService {
    pub(super) async fn statistics(
        &self,
        request: &NodeGetVolumeStatsRequest,
    ) -> Result<NodeGetVolumeStatsResponse, Status> {
        required("volume ID", &request.volume_id)?;
        let volume = path("volume path", &request.volume_path)?;
        let usage = match self.mounts.kind(&volume).await.map_err(of_mount)? {
            FileKind::BlockDevice(number) => {
                let device = self.devices.of_number(number, &volume).await;
                let total = self.devices.size(&device).await.map_err(of_device)?;
                vec![of(Unit::Bytes, Amount { total, ..Amount::default() })]
            }
            FileKind::Folder | FileKind::File => {
                // The folder of a volume that is mounted no more would answer with the machine's own disk.
                if self.mounts.at(&volume).await.map_err(of_mount)?.is_none() {
                    let text = format!("no volume is mounted at {}; publish it first", volume.display());
                    return Err(Status::not_found(text));
                }
                let statistics = self.mounts.statistics(&volume).await.map_err(of_mount)?;
                vec![of(Unit::Bytes, statistics.space), of(Unit::Inodes, statistics.inodes)]
            }
        };
        Ok(NodeGetVolumeStatsResponse { usage, ..NodeGetVolumeStatsResponse::default() })
    }
}

fn of(unit: Unit, amount: Amount) -> VolumeUsage {
    let number = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    VolumeUsage {
        unit: unit.into(),
        total: number(amount.total),
        available: number(amount.available),
        used: number(amount.used),
    }
}
