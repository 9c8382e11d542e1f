//! The service on this machine, as root, in a namespace of mounts of its own: the helpers are played, and the shares are those of a
//! simulated Azure. Machines that do not allow this skip these tests, with a word that says why.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use azurefile_csi_driver::node::{NodeOptions, NodeService, Outside};
use csi::v1::node_server::Node as _;
use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::{
    NodeGetVolumeStatsRequest, NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest,
    NodeUnstageVolumeRequest,
};
use machine_shares::MachineShares;
use machine_shares::helper::{Helper, mount};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};
use volumes_node::system::Kernel;

use crate::world::{Played, capability, map};

const INSIDE: &str = "CERULEAN_TEST_INSIDE";
const HELPER: &str = "CERULEAN_TEST_HELPER";

/// Runs a test of this name in a namespace of its own. The folder of the shares, if this process is in it and so has to do the test's
/// work.
fn inside(test: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(INSIDE) {
        return Some(folder.into());
    }
    let can_mount = Command::new("unshare").args(["--mount", "--net", "true"]).output();
    if !can_mount.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {test}: this process may not have mounts of its own (it is not root)");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join("programs");
    let shares = folder.path().join("shares");
    fs::create_dir_all(&programs).unwrap();
    let own = std::env::current_exe().unwrap();
    for name in ["mount.cifs", "mount.nfs"] {
        let path = programs.join(name);
        let script = format!(
            "#!/bin/sh\nexport {HELPER}={name} {HELPER}_ARGUMENTS=\"$(printf '%s\\n' \"$@\")\"\nexec {} --exact shares::as_helper --nocapture\n",
            own.display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let ended = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--net"])
        .arg(own)
        .args(["--exact", &format!("shares::{test}"), "--nocapture"])
        .env(INSIDE, &shares)
        .env("PATH", path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
    None
}

/// Not a test: what the scripts in the place of `mount.cifs` and `mount.nfs` run.
#[test]
fn as_helper() {
    let Ok(name) = std::env::var(HELPER) else { return };
    let arguments = std::env::var(format!("{HELPER}_ARGUMENTS")).unwrap();
    let arguments: Vec<String> = arguments.lines().map(str::to_owned).collect();
    let helper = if name == "mount.cifs" { Helper::Cifs } else { Helper::Nfs };
    let password = std::env::var("PASSWD").ok();
    let folder = std::env::var(INSIDE).unwrap();
    let ended = mount(helper, &arguments, password.as_deref(), Path::new(&folder));
    eprintln!("{}", ended.words);
    std::process::exit(ended.code);
}

struct Machine {
    azure: Azure,
    shares: MachineShares,
    service: NodeService,
    folder: PathBuf,
    _stop: tokio_util::sync::DropGuard,
}

impl Machine {
    /// An account with a share for each protocol.
    fn new(folder: &Path) -> Self {
        let stop = CancellationToken::new();
        let azure = Azure::new(Options::default());
        let account = account();
        let document = json!({
            "location": "eastus", "kind": "FileStorage", "sku": { "name": "Premium_LRS" },
            "properties": { "supportsHttpsTrafficOnly": false },
        });
        azure.put(&account, document).unwrap();
        let service = account.child("fileServices", "default");
        for (name, protocol) in [("files", "SMB"), ("data", "NFS")] {
            let document = json!({ "properties": { "shareQuota": 100, "enabledProtocols": protocol } });
            azure.put(&service.child("shares", name), document).unwrap();
        }
        let shares = MachineShares::start(&azure, folder, &stop).unwrap();
        let played = Played::default();
        let outside =
            Outside { cluster: Some(Arc::new(played.clone())), azure: Some(Arc::new(played)), proxy: None };
        let service = NodeService::new(NodeOptions::default(), Arc::new(Kernel), outside);
        let folder = folder.parent().unwrap().join("kubelet");
        Self { azure, shares, service, folder, _stop: stop.drop_guard() }
    }

    fn text(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn key(&self) -> String {
        self.azure.file_accounts()[0].keys[0].clone()
    }

    fn stage(&self, share: &str, context: &[(&str, &str)]) -> NodeStageVolumeRequest {
        NodeStageVolumeRequest {
            volume_id: format!("g#acc#{share}###"),
            staging_target_path: self.text("staging"),
            volume_capability: Some(capability(Mode::MultiNodeMultiWriter, &[], "")),
            volume_context: map(context),
            secrets: map(&[("azurestorageaccountname", "acc"), ("azurestorageaccountkey", &self.key())]),
            ..NodeStageVolumeRequest::default()
        }
    }

    async fn staged(&self, request: NodeStageVolumeRequest) -> Result<(), Status> {
        self.service.node_stage_volume(Request::new(request)).await.map(drop)
    }

    async fn publish(&self, share: &str, target: &str, readonly: bool) {
        let request = NodePublishVolumeRequest {
            volume_id: format!("g#acc#{share}###"),
            staging_target_path: self.text("staging"),
            target_path: self.text(target),
            volume_capability: Some(capability(Mode::MultiNodeMultiWriter, &[], "")),
            readonly,
            ..NodePublishVolumeRequest::default()
        };
        self.service.node_publish_volume(Request::new(request)).await.unwrap();
    }

    async fn end(&self, share: &str, targets: &[&str]) {
        let volume_id = format!("g#acc#{share}###");
        for target in targets {
            let request =
                NodeUnpublishVolumeRequest { volume_id: volume_id.clone(), target_path: self.text(target) };
            self.service.node_unpublish_volume(Request::new(request)).await.unwrap();
        }
        let request = NodeUnstageVolumeRequest { volume_id, staging_target_path: self.text("staging") };
        self.service.node_unstage_volume(Request::new(request)).await.unwrap();
        assert!(!self.folder.join("staging").exists());
    }
}

fn account() -> ResourceId {
    let options = Options::default();
    ResourceId::group(&options.subscription, "g").resource("Microsoft.Storage", "storageAccounts", "acc")
}

/// FILE-133. Sections 4.7 and 6, for both protocols: what a pod writes is in the share, a reader cannot write, statistics are given, and
/// nothing is left.
#[tokio::test]
async fn pods_use_a_share_of_each_protocol() {
    let Some(folder) = inside("pods_use_a_share_of_each_protocol") else { return };
    let machine = Machine::new(&folder);
    for (share, context) in
        [("files", &[][..]), ("data", &[("protocol", "nfs"), ("mountPermissions", "0755")])]
    {
        for _ in 0..2 {
            machine.staged(machine.stage(share, context)).await.unwrap();
        }
        machine.publish(share, "writer", false).await;
        machine.publish(share, "reader", true).await;
        fs::write(machine.folder.join("writer/note"), share).unwrap();
        assert_eq!(fs::read_to_string(machine.folder.join("reader/note")).unwrap(), share);
        assert_eq!(fs::read_to_string(machine.shares.share("acc", share).join("note")).unwrap(), share);
        assert!(fs::write(machine.folder.join("reader/other"), "").is_err());
        let request = NodeGetVolumeStatsRequest {
            volume_id: format!("g#acc#{share}###"),
            volume_path: machine.text("writer"),
            ..NodeGetVolumeStatsRequest::default()
        };
        let usage =
            machine.service.node_get_volume_stats(Request::new(request)).await.unwrap().into_inner().usage;
        assert!(usage[0].total > 0);
        machine.end(share, &["writer", "reader"]).await;
    }
    assert_eq!(fs::read_to_string(machine.shares.share("acc", "files").join("note")).unwrap(), "files");
    let root = fs::metadata(machine.shares.share("acc", "data")).unwrap();
    assert_eq!(root.permissions().mode() & 0o777, 0o755);
}

/// FILE-100, FILE-134. The helpers' words are in the message, the key is not, and a failed mount leaves no folder. (Which cause is found depends on the
/// kernel and the network of the machine that runs this test.)
#[tokio::test]
async fn a_refused_mount_leaves_nothing() {
    let Some(folder) = inside("a_refused_mount_leaves_nothing") else { return };
    let machine = Machine::new(&folder);
    let mut wrong = machine.stage("files", &[]);
    wrong.secrets = map(&[("azurestorageaccountname", "acc"), ("azurestorageaccountkey", "d3Jvbmc=")]);
    let absent = machine.stage("files", &[("shareName", "absent")]);
    let nfs = machine.stage("files", &[("protocol", "nfs")]);
    for (request, words) in
        [(wrong, "mount error(13)"), (absent, "mount error(2)"), (nfs, "reason given by server")]
    {
        let status = machine.staged(request).await.unwrap_err();
        assert!(status.message().contains(words), "{status}");
        assert!(!status.message().contains("d3Jvbmc="), "{status}");
        assert!(!machine.folder.join("staging").exists());
    }
    machine.shares.close_ports(&[445]).unwrap();
    let status = machine.staged(machine.stage("files", &[])).await.unwrap_err();
    assert!(status.message().contains("mount error(115)"), "{status}");
}
