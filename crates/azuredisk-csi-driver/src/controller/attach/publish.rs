//! A volume is attached to a node.

use arm::Class;
use azure_types::ResourceId;
use csi::v1::{ControllerPublishVolumeRequest, ControllerPublishVolumeResponse};
use logical_time::LogicalTime;
use serde_json::Value;
use tokio::time::{sleep, timeout};
use tonic::Status;
use volume_planner::access;
use volume_planner::attach::elsewhere::{Elsewhere, decide};
use volume_planner::attach::machine::manager_id;
use volume_planner::azure_error::AzureRequest;
use volume_planner::disk::attachment;
use volume_planner::disk::context::VolumeContext;
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::disk::publish_context::publish_context;
use volume_planner::id::DiskId;
use volume_planner::{Code, Refusal};
use writer::Kind;

use super::attachments::Attachments;
use super::intent::DiskIntent;
use super::lookup::node_name_of;
use crate::controller::azure::status_of_failure;
use crate::controller::messages::{capability, entries, map, refused, required};

impl Attachments {
    /// Attaches a disk to a node's machine, together with all others that wait for this machine. The answer comes when Azure's list
    /// shows the disk's LUN.
    pub(crate) async fn publish(
        &self,
        request: ControllerPublishVolumeRequest,
    ) -> Result<ControllerPublishVolumeResponse, Status> {
        let asked = LogicalTime::now();
        required(&request.volume_id, "volume ID")?;
        required(&request.node_id, "node ID")?;
        let Some(wanted) = &request.volume_capability else {
            return Err(refused(&Refusal::Missing("volume capability")));
        };
        let disk = DiskId::parse(&request.volume_id, Code::NotFound).map_err(|it| refused(&it))?;
        let context =
            VolumeContext::parse(&entries(request.volume_context), self.options.weakens_in_tree_caching);
        let context = context.map_err(|it| refused(&it))?;
        let (node, arrival) = (request.node_id.as_str(), self.arrival());
        let _waiting = self.metrics.waits();

        self.view.until_complete().await?;
        // Others that arrive now are in the same write: the writer waits for those that still read their disks.
        let Some(machine) = self.machines.find(node).await? else {
            // If the disk does not exist, either, that is the answer.
            self.disk(&disk).await?;
            return Err(no_node(node));
        };
        let writer = self.writer(&machine, node).await?;
        let mut announcement = Some(writer.announce());
        let _expected = writer.resource().expected.announce(&disk);
        let mut document = self.disk(&disk).await?;
        let shares = document.as_ref().map(|document| ObservedDisk(document).max_shares());
        let shares = shares.max(context.max_shares).unwrap_or(1);
        access::check(&[capability(wanted)], shares).map_err(|it| refused(&it))?;
        if let Some(holder) = other_holder(document.as_ref(), &machine) {
            // Others do not wait for that.
            announcement = None;
            self.free(&request.volume_id, &disk, &holder, &machine).await?;
            document = self.disk(&disk).await?;
        }
        let window = context.attach_delay_ms.map(std::time::Duration::from_millis);
        sleep(window.unwrap_or(self.options.batch_window)).await;

        let intent = attachment::intent(arrival, disk.clone(), context, document.as_ref().map(ObservedDisk));
        let answer = writer
            .submit(disk.clone(), DiskIntent::Attach(Box::new(intent)), asked, announcement)
            .await
            .map_err(|failure| {
                if failure.kind == Kind::ResourceExhausted {
                    self.metrics.refused_as_full();
                }
                self.without_machine(node, &failure)
            })?;
        let Some(lun) = answer.observed.lun(&disk) else {
            return Err(refused(&Refusal::DetachInProgress(disk.resource().clone())));
        };
        let context = publish_context(lun, context, document.as_ref().map(ObservedDisk));
        Ok(ControllerPublishVolumeResponse { publish_context: map(context) })
    }

    /// The disk's document; absent if Azure does not give it in time, or cannot: then it judges the attach alone.
    async fn disk(&self, disk: &DiskId) -> Result<Option<Value>, Status> {
        let id = disk.resource();
        let read = self.azure.get(AzureRequest::Disk, id, Class::Create);
        match timeout(self.options.get_disk_timeout, read).await {
            Ok(Ok(Some(document))) => Ok(Some(document)),
            Ok(Ok(None)) => Err(refused(&Refusal::DiskNotFound(id.clone()))),
            Ok(Err(status)) if status.code() == tonic::Code::Unavailable => Ok(None),
            Ok(Err(status)) => Err(status),
            Err(_) => Ok(None),
        }
    }

    /// Detaches a disk from the machine that still has it, if Kubernetes does not want it there any more.
    async fn free(
        &self,
        volume: &str,
        disk: &DiskId,
        holder: &ResourceId,
        machine: &ResourceId,
    ) -> Result<(), Status> {
        let holders = self.view.nodes_on(&[holder.clone()].into());
        let node = holders.get(holder).cloned().or_else(|| node_name_of(holder));
        let wanted = match &node {
            Some(node) => self.view.has_attachment(volume, node).await,
            None => None,
        };
        match decide(disk, holder, machine, wanted) {
            Elsewhere::Refused(refusal) => Err(refused(&refusal)),
            Elsewhere::DetachThere(from) => {
                tracing::info!(%disk, machine = %from, "detaching a disk from a machine where it is not wanted");
                self.detach(disk, &from, node.as_deref().unwrap_or(from.name())).await?;
                // The disk names its manager for a moment longer than the manager's list has it.
                self.until_released(disk, &from).await
            }
        }
    }

    /// The status for a failure of a machine's writer. A machine that does not exist is searched for again next time.
    pub(super) fn without_machine(&self, node: &str, failure: &writer::Failure) -> Status {
        if failure.is_not_found() {
            self.machines.forget(node);
        }
        status_of_failure(failure)
    }
}

/// The machine that has a disk which cannot be shared, if it is another one.
fn other_holder(document: Option<&Value>, machine: &ResourceId) -> Option<ResourceId> {
    let disk = ObservedDisk(document?);
    let holder = manager_id(&disk.managed_by()?);
    (disk.max_shares() < 2 && holder != *machine).then_some(holder)
}

fn no_node(node: &str) -> Status {
    Status::not_found(format!("node {node} is not found: Azure has no machine for it"))
}
