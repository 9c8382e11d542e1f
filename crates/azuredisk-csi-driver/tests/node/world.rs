//! A simulated machine with the service, and requests to it.

use std::collections::HashMap;
use std::sync::Arc;

use azuredisk_csi_driver::node::{NodeOptions, NodeService};
use csi::v1::node_server::Node as _;
use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use csi::v1::{
    CapacityRange, NodeExpandVolumeRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, VolumeCapability,
};
use tonic::{Code, Request, Status};
use volumes_node::simulated::{Layout, SimulatedMachine};

pub const VOLUME: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/pvc-1";
pub const STAGING: &str = "/var/lib/kubelet/plugins/kubernetes.io/csi/disk.csi.azure.com/1/globalmount";
pub const TARGET: &str = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pvc-1/mount";
pub const SECOND: &str = "/var/lib/kubelet/pods/2/volumes/kubernetes.io~csi/pvc-1/mount";
pub const GIB: i64 = 1024 * 1024 * 1024;

/// How a volume is used, with a mode.
pub fn capability(access: AccessType, mode: Mode) -> VolumeCapability {
    VolumeCapability { access_type: Some(access), access_mode: Some(AccessMode { mode: mode.into() }) }
}

pub fn mounted(kind: &str, flags: &[&str]) -> AccessType {
    AccessType::Mount(MountVolume {
        fs_type: kind.to_owned(),
        mount_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        ..MountVolume::default()
    })
}

pub fn raw() -> AccessType {
    AccessType::Block(BlockVolume {})
}

pub fn map(entries: &[(&str, &str)]) -> HashMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub fn stage(access: AccessType) -> NodeStageVolumeRequest {
    NodeStageVolumeRequest {
        volume_id: VOLUME.to_owned(),
        publish_context: map(&[("LUN", "3")]),
        staging_target_path: STAGING.to_owned(),
        volume_capability: Some(capability(access, Mode::SingleNodeWriter)),
        ..NodeStageVolumeRequest::default()
    }
}

pub fn publish(access: AccessType, target: &str) -> NodePublishVolumeRequest {
    NodePublishVolumeRequest {
        volume_id: VOLUME.to_owned(),
        publish_context: map(&[("LUN", "3")]),
        staging_target_path: STAGING.to_owned(),
        target_path: target.to_owned(),
        volume_capability: Some(capability(access, Mode::SingleNodeWriter)),
        ..NodePublishVolumeRequest::default()
    }
}

/// A call in a test, with an answer that says only what matters.
#[derive(Debug, Clone)]
pub enum Step {
    Stage(NodeStageVolumeRequest),
    Publish(NodePublishVolumeRequest),
    Expand(&'static str, i64),
    Unpublish(&'static str),
    Unstage,
}

pub struct World {
    pub machine: SimulatedMachine,
    pub service: NodeService,
    options: NodeOptions,
}

impl World {
    pub fn new(layout: Layout) -> Self {
        Self::with(layout, NodeOptions { node_id: "node-1".to_owned(), ..NodeOptions::default() })
    }

    pub fn with(layout: Layout, options: NodeOptions) -> Self {
        let machine = SimulatedMachine::new(layout);
        let service = NodeService::new(options.clone(), Arc::new(machine.clone()), None, None);
        Self { machine, service, options }
    }

    /// The process ends and another one starts.
    pub fn restart(&mut self) {
        self.machine.heal();
        self.service = NodeService::new(self.options.clone(), Arc::new(self.machine.clone()), None, None);
    }

    pub async fn call(&self, step: Step) -> Result<(), Status> {
        run(&self.service, step).await
    }

    pub async fn succeeds(&self, step: Step) {
        let words = format!("{step:?}");
        self.call(step).await.unwrap_or_else(|status| panic!("{words}: {status}"));
    }

    /// The call fails with this code and a message that contains these words.
    pub async fn fails(&self, step: Step, code: Code, words: &str) {
        let shown = format!("{step:?}");
        let status = self.call(step).await.expect_err(&shown);
        assert_eq!(status.code(), code, "{shown}: {status}");
        assert!(status.message().contains(words), "{words} is missing in {}", status.message());
    }
}

pub async fn run(service: &NodeService, step: Step) -> Result<(), Status> {
    match step {
        Step::Stage(request) => service.node_stage_volume(Request::new(request)).await.map(drop),
        Step::Publish(request) => service.node_publish_volume(Request::new(request)).await.map(drop),
        Step::Expand(path, gib) => {
            let request = NodeExpandVolumeRequest {
                volume_id: VOLUME.to_owned(),
                volume_path: path.to_owned(),
                capacity_range: Some(CapacityRange { required_bytes: gib * GIB, limit_bytes: 0 }),
                ..NodeExpandVolumeRequest::default()
            };
            let answer = service.node_expand_volume(Request::new(request)).await?.into_inner();
            assert!(answer.capacity_bytes >= gib * GIB);
            Ok(())
        }
        Step::Unpublish(target) => {
            let (volume_id, target_path) = (VOLUME.to_owned(), target.to_owned());
            let request = NodeUnpublishVolumeRequest { volume_id, target_path };
            service.node_unpublish_volume(Request::new(request)).await.map(drop)
        }
        Step::Unstage => {
            let (volume_id, staging_target_path) = (VOLUME.to_owned(), STAGING.to_owned());
            let request = NodeUnstageVolumeRequest { volume_id, staging_target_path };
            service.node_unstage_volume(Request::new(request)).await.map(drop)
        }
    }
}
