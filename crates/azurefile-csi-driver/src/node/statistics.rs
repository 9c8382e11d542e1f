//! Statistics of a volume. The service counts the files of a share when it is asked, so that they are kept for a while.

use csi::v1::volume_usage::Unit;
use csi::v1::{NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, VolumeUsage};
use tonic::Status;
use volume_planner::Code;
use volume_planner::share_id::ShareId;
use volumes_node::system::Amount;

use super::service::{NodeService, path, required};
use super::status::of_mount;

impl NodeService {
    pub(super) async fn statistics(
        &self,
        request: &NodeGetVolumeStatsRequest,
    ) -> Result<NodeGetVolumeStatsResponse, Status> {
        required("volume ID", &request.volume_id)?;
        let volume = path("volume path", &request.volume_path)?;
        let age = self.options.statistics_age;
        let names: Vec<String> =
            std::iter::once(request.volume_id.clone()).chain(share_of(&request.volume_id)).collect();
        // What was unmounted has no statistics, however young they are.
        self.mounts.kind(&volume).await.map_err(of_mount)?;
        if self.mounts.at(&volume).await.map_err(of_mount)?.is_none() {
            let text = format!("no volume is mounted at {}; publish it first", volume.display());
            return Err(Status::not_found(text));
        }
        if let Some(kept) = names.iter().find_map(|name| self.remembered.statistics(name, age)) {
            return Ok(kept);
        }
        let statistics = self.mounts.statistics(&volume).await.map_err(of_mount)?;
        if self.options.logs_statistics {
            tracing::info!(path = %volume.display(), value = statistics.space.used, "read statistics of a volume");
        }
        let usage = vec![of(Unit::Bytes, statistics.space), of(Unit::Inodes, statistics.inodes)];
        let found = NodeGetVolumeStatsResponse { usage, ..NodeGetVolumeStatsResponse::default() };
        for name in &names {
            self.remembered.keep_statistics(name, &found, age);
        }
        Ok(found)
    }
}

/// The name of all volumes of a share (section 4.7): `#ACCOUNT#SHARE###NAMESPACE`.
fn share_of(volume: &str) -> Option<String> {
    let id = ShareId::parse(volume, Code::NotFound).ok().filter(|id| id.disk.is_empty())?;
    let share = id.share.split('/').next().unwrap_or_default();
    (!share.is_empty()).then(|| format!("#{}#{share}###{}", id.account, id.secret_namespace))
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
