//! A volume is detached from a node.

use std::time::Duration;

use arm::Class;
use azure_types::ResourceId;
use csi::v1::{ControllerUnpublishVolumeRequest, ControllerUnpublishVolumeResponse};
use logical_time::LogicalTime;
use tokio::time::sleep;
use tonic::Status;
use volume_planner::attach::force_detach::{ForceInputs, may_force};
use volume_planner::attach::intent::Detach;
use volume_planner::attach::machine::manager_id;
use volume_planner::azure_error::AzureRequest;
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::id::DiskId;
use volume_planner::{Code, Refusal};
use writer::{Acknowledged, Failure, Writer};

use super::attachments::Attachments;
use super::disk_list::DiskList;
use super::intent::DiskIntent;
use crate::controller::messages::{refused, required};
use crate::pace::Pace;

/// Detaches that come at once come some milliseconds apart. A detach waits so long for others: one that misses the write of a machine
/// waits for a whole write more.
const GATHERING: Duration = Duration::from_millis(20);

impl Attachments {
    /// Detaches a disk from a node's machine, together with all others that wait for this machine. The answer comes when Azure's list
    /// does not have it any more. From a machine that is gone it is detached as soon as Azure says so of the disk.
    pub(crate) async fn unpublish(
        &self,
        request: ControllerUnpublishVolumeRequest,
    ) -> Result<ControllerUnpublishVolumeResponse, Status> {
        required(&request.volume_id, "volume ID")?;
        required(&request.node_id, "node ID")?;
        // An ID that is not a disk's is attached to no machine.
        let Ok(disk) = DiskId::parse(&request.volume_id, Code::InvalidArgument) else {
            return Ok(ControllerUnpublishVolumeResponse {});
        };
        let _waiting = self.metrics.waits();
        match self.machines.find(&request.node_id).await? {
            Some(machine) => self.detach(&disk, &machine, &request.node_id).await?,
            None => self.detach_from_holder(&disk, &request.node_id).await?,
        }
        Ok(ControllerUnpublishVolumeResponse {})
    }

    /// Detaches a disk from the machine of a node for which no machine was found: the disk itself may name it, which is then in another
    /// group, or gone.
    async fn detach_from_holder(&self, disk: &DiskId, node: &str) -> Result<(), Status> {
        let document = self.azure.get(AzureRequest::Disk, disk.resource(), Class::Delete).await?;
        let Some(document) = document else { return Ok(()) };
        for manager in ObservedDisk(&document).all_managers() {
            let machine = manager_id(&manager);
            if self.machines.is_of(&machine, node).await? {
                return self.detach(disk, &machine, node).await;
            }
        }
        Ok(())
    }

    /// Detaches a disk from a machine.
    pub(super) async fn detach(&self, disk: &DiskId, machine: &ResourceId, node: &str) -> Result<(), Status> {
        let writer = self.writer(machine, node).await?;
        let answer = match self.submitted(&writer, disk, node).await {
            Ok(answer) => answer,
            Err(failure) if failure.is_not_found() => {
                self.machines.forget(node);
                return self.until_released(disk, machine).await;
            }
            Err(failure) => return Err(self.without_machine(node, &failure)),
        };
        if answer.observed.has(disk) {
            return Err(refused(&Refusal::DetachInProgress(disk.resource().clone())));
        }
        Ok(())
    }

    /// Submits a detach. If Azure takes too long, or cannot, and the machine is known not to run its node, it is forced.
    async fn submitted(
        &self,
        writer: &Writer<DiskList>,
        disk: &DiskId,
        node: &str,
    ) -> Result<Acknowledged<DiskList>, Failure> {
        let asked = LogicalTime::now();
        let announcement = writer.announce();
        sleep(GATHERING).await;
        let regular = writer.submit(disk.clone(), self.intent(disk, false), asked, Some(announcement));
        let mut regular = std::pin::pin!(regular);
        let failed = tokio::select! {
            answer = &mut regular => match answer {
                Ok(answer) => return Ok(answer),
                Err(failure) if failure.is_not_found() => return Err(failure),
                Err(failure) => Some(failure),
            },
            () = sleep(self.options.detach_timeout) => None,
        };
        let inputs = ForceInputs {
            is_enabled: self.options.may_force_detach,
            volume_permits: self.view.permits_force(disk),
            is_node_ready: self.view.node(node).and_then(|facts| facts.is_ready),
        };
        match failed {
            Some(failure) if !may_force(inputs) => return Err(failure),
            None if !may_force(inputs) => return regular.await,
            _ => {}
        }
        let message = format!(
            "node {node} is not ready, and Azure does not detach disk {}: the detach is forced, and what the machine has not \
             written yet is lost",
            disk.name()
        );
        tracing::warn!(node, %disk, "{message}");
        self.view.warn_of(disk, "ForcedDetach", &message);
        let _urgent = writer.resource().urgency.announce();
        writer.submit(disk.clone(), self.intent(disk, true), asked, None).await
    }

    fn intent(&self, disk: &DiskId, is_forced: bool) -> DiskIntent {
        DiskIntent::Detach { arrival: self.arrival(), detach: Detach { disk: disk.clone(), is_forced } }
    }

    /// Waits until Azure does not name a machine as the disk's manager any more.
    pub(super) async fn until_released(&self, disk: &DiskId, machine: &ResourceId) -> Result<(), Status> {
        let mut pace = Pace::default();
        loop {
            let document = self.azure.get(AzureRequest::Disk, disk.resource(), Class::Delete).await?;
            let Some(document) = document else { return Ok(()) };
            let managers = ObservedDisk(&document).all_managers();
            let is_held = managers.iter().map(manager_id).any(|manager| manager == *machine);
            if !is_held {
                return Ok(());
            }
            pace.pause().await;
        }
    }
}
