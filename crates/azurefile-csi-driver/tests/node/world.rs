//! A simulated machine with the service, and requests to it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use azurefile_csi_driver::node::plan::login::SecretName;
use azurefile_csi_driver::node::{
    AccountName, Azure, CloudPlace, Cluster, Folder, Key, NodeOptions, NodeService, Outside, Proxy,
    ProxyMount, Reader, StoredSecret, TokenIdentity,
};
use csi::v1::node_server::Node as _;
use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::volume_capability::{AccessMode, AccessType, MountVolume};
use csi::v1::{
    NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
    VolumeCapability,
};
use parking_lot::Mutex;
use tonic::{Code, Request, Status};
use volumes_node::simulated::{FileService, Layout, SimulatedMachine};

pub const VOLUME: &str = "g#acc#share###";
pub const HOST: &str = "acc.file.core.windows.net";
pub const KEY: &str = "a2V5LW9uZQ==";
pub const SECOND_KEY: &str = "a2V5LXR3bw==";
pub const SECRET: &str = "default/azure-storage-account-acc-secret";
pub const STAGING: &str = "/var/lib/kubelet/plugins/kubernetes.io/csi/file.csi.azure.com/1/globalmount";
pub const TARGET: &str = "/var/lib/kubelet/pods/1/volumes/kubernetes.io~csi/pv-1/mount";
pub const SECOND: &str = "/var/lib/kubelet/pods/2/volumes/kubernetes.io~csi/pv-1/mount";
pub const TOKENS: &str = r#"{"api://AzureADTokenExchange":{"token":"service-account-token","expirationTimestamp":"2030-01-01T00:00:00Z"}}"#;

/// Kubernetes, Azure and the proxy, as a test sets them.
#[derive(Debug, Clone, Default)]
pub struct Played(pub Arc<Mutex<State>>);

#[derive(Debug, Default)]
pub struct State {
    /// Secrets by `NAMESPACE/NAME`.
    pub secrets: BTreeMap<String, StoredSecret>,
    /// Keys that Azure lists, the first one first, with their times.
    pub keys: Vec<(String, String)>,
    pub readers: Vec<String>,
    pub labels: Vec<String>,
    pub handler: String,
    pub place: CloudPlace,
    pub refuses_mounts: Option<String>,
    pub calls: Vec<String>,
}

impl Played {
    pub fn store(&self, name: &str, account: &str, key: &str) {
        let secret =
            StoredSecret { account: account.to_owned(), key: Some(key.to_owned().into()), token: None };
        self.0.lock().secrets.insert(name.to_owned(), secret);
    }

    pub fn take_calls(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().calls)
    }

    fn called(&self, call: String) {
        self.0.lock().calls.push(call);
    }

    fn listed(&self) -> Result<Vec<Key>, String> {
        let state = self.0.lock();
        if state.keys.is_empty() {
            return Err("cannot list the keys of account acc: AuthorizationFailed".to_owned());
        }
        let key = |(value, created): &(String, String)| Key {
            value: value.clone().into(),
            created: created.clone(),
        };
        Ok(state.keys.iter().map(key).collect())
    }
}

#[async_trait]
impl Cluster for Played {
    async fn secret(&self, name: &SecretName) -> Result<Option<StoredSecret>, String> {
        let name = format!("{}/{}", name.namespace, name.name);
        self.called(format!("secret {name}"));
        Ok(self.0.lock().secrets.get(&name).cloned())
    }

    async fn reader(&self, pod: &(String, String), secret: &SecretName) -> Result<Reader, String> {
        let user = format!("system:serviceaccount:{}:default", pod.0);
        let may_read = self.0.lock().readers.contains(&secret.name);
        Ok(Reader { user, may_read })
    }

    async fn runtime_handler(&self, _: &(String, String)) -> Result<String, String> {
        Ok(self.0.lock().handler.clone())
    }

    async fn has_label(&self, label: &str) -> Result<bool, String> {
        Ok(self.0.lock().labels.iter().any(|own| own == label))
    }
}

#[async_trait]
impl Azure for Played {
    async fn place(&self) -> CloudPlace {
        self.0.lock().place.clone()
    }

    async fn keys(&self, account: &AccountName) -> Result<Vec<Key>, String> {
        self.called(format!("keys {}/{}", account.group, account.name));
        self.listed()
    }

    async fn keys_by_token(
        &self,
        account: &AccountName,
        identity: &TokenIdentity,
    ) -> Result<Vec<Key>, String> {
        self.called(format!("keys of {} by {}", account.name, identity.client));
        self.listed()
    }

    async fn create_folder(&self, folder: &Folder) -> Result<(), String> {
        self.called(format!("folder {}/{}/{}", folder.account, folder.share, folder.path));
        Ok(())
    }
}

#[async_trait]
impl Proxy for Played {
    async fn mount(&self, mount: &ProxyMount) -> Result<(), String> {
        self.called(format!(
            "{} {} {} {}",
            mount.kind,
            mount.source,
            mount.target.display(),
            mount.options.join(",")
        ));
        self.0.lock().refuses_mounts.clone().map_or(Ok(()), Err)
    }
}

pub fn map(entries: &[(&str, &str)]) -> HashMap<String, String> {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub fn capability(mode: Mode, flags: &[&str], group: &str) -> VolumeCapability {
    let mount = MountVolume {
        mount_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        volume_mount_group: group.to_owned(),
        ..MountVolume::default()
    };
    VolumeCapability {
        access_type: Some(AccessType::Mount(mount)),
        access_mode: Some(AccessMode { mode: mode.into() }),
    }
}

pub fn stage(context: &[(&str, &str)]) -> NodeStageVolumeRequest {
    NodeStageVolumeRequest {
        volume_id: VOLUME.to_owned(),
        staging_target_path: STAGING.to_owned(),
        volume_capability: Some(capability(Mode::MultiNodeMultiWriter, &[], "")),
        volume_context: map(context),
        ..NodeStageVolumeRequest::default()
    }
}

pub fn publish(context: &[(&str, &str)], target: &str) -> NodePublishVolumeRequest {
    NodePublishVolumeRequest {
        volume_id: VOLUME.to_owned(),
        staging_target_path: STAGING.to_owned(),
        target_path: target.to_owned(),
        volume_capability: Some(capability(Mode::MultiNodeMultiWriter, &[], "")),
        volume_context: map(context),
        ..NodePublishVolumeRequest::default()
    }
}

pub struct World {
    pub machine: SimulatedMachine,
    pub played: Played,
    pub service: NodeService,
}

impl World {
    pub fn new() -> Self {
        Self::with(NodeOptions { node_id: "node-1".to_owned(), ..NodeOptions::default() })
    }

    /// A machine that reaches one account with one share, whose key is in the usual Secret.
    pub fn with(options: NodeOptions) -> Self {
        let machine = SimulatedMachine::new(Layout::ScsiWithLinks);
        machine.serve(HOST, FileService::new("acc", KEY, &["share", "other"]));
        let played = Played::default();
        played.store(SECRET, "acc", KEY);
        let outside = Outside {
            cluster: Some(Arc::new(played.clone())),
            azure: Some(Arc::new(played.clone())),
            proxy: Some(Arc::new(played.clone())),
        };
        let service = NodeService::new(options, Arc::new(machine.clone()), outside);
        Self { machine, played, service }
    }

    pub async fn stage(&self, request: NodeStageVolumeRequest) -> Result<(), Status> {
        self.service.node_stage_volume(Request::new(request)).await.map(drop)
    }

    pub async fn publish(&self, request: NodePublishVolumeRequest) -> Result<(), Status> {
        self.service.node_publish_volume(Request::new(request)).await.map(drop)
    }

    pub async fn unpublish(&self, target: &str) -> Result<(), Status> {
        let request =
            NodeUnpublishVolumeRequest { volume_id: VOLUME.to_owned(), target_path: target.to_owned() };
        self.service.node_unpublish_volume(Request::new(request)).await.map(drop)
    }

    pub async fn unstage(&self) -> Result<(), Status> {
        let (volume_id, staging_target_path) = (VOLUME.to_owned(), STAGING.to_owned());
        let request = NodeUnstageVolumeRequest { volume_id, staging_target_path };
        self.service.node_unstage_volume(Request::new(request)).await.map(drop)
    }

    /// The mount at a path, as `SOURCE OPTIONS`.
    pub fn mounted(&self, path: &str) -> Option<String> {
        let mounts = self.machine.mounts();
        let own = mounts.iter().rev().find(|mount| mount.split(' ').nth(1) == Some(path))?;
        let mut words = own.split(' ');
        Some(format!("{} {}", words.next().unwrap(), words.next_back().unwrap()))
    }
}

/// The call failed with this code and a message that contains these words.
#[track_caller]
pub fn fails(result: Result<(), Status>, code: Code, words: &str) {
    let status = result.expect_err(words);
    assert_eq!(status.code(), code, "{status}");
    assert!(status.message().contains(words), "{words} is missing in {}", status.message());
}
