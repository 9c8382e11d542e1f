//! The service on loop devices of this machine, as root, in a namespace of mounts of its own.
//!
//! A folder stands for the machine's `/dev` and `/sys`; links in it lead to loop devices, as udev's rules for Azure make them for
//! disks. Machines that do not allow this skip these tests, with a word that says why.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use azuredisk_csi_driver::node::{NodeOptions, NodeService};
use csi::v1::node_server::Node as _;
use csi::v1::volume_capability::AccessType;
use csi::v1::volume_capability::access_mode::Mode;
use csi::v1::{
    CapacityRange, NodeExpandVolumeRequest, NodeGetVolumeStatsRequest, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
};
use tempfile::TempDir;
use tonic::{Code, Request, Status};
use volumes_node::system::Kernel;

use crate::world::{capability, map, mounted, raw};

const INSIDE: &str = "CERULEAN_TEST_INSIDE";
const MIB: u64 = 1024 * 1024;

/// Runs a test of this name in a namespace of its own. Whether this process is in it, and so has to do the test's work.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let lacks = if !Path::new("/dev/loop-control").exists() {
        Some("this machine has no loop devices")
    } else if !Command::new("unshare")
        .args(["--mount", "losetup", "--find"])
        .output()
        .is_ok_and(|out| out.status.success())
    {
        Some("this process may not have mounts and loop devices of its own (it is not root)")
    } else if !has("mkfs.ext4") {
        Some("mkfs.ext4 is not installed")
    } else {
        None
    };
    if let Some(lacks) = lacks {
        eprintln!("skipped: {test}: {lacks}");
        return false;
    }
    let ended = Command::new("unshare")
        .args(["--mount", "--propagation", "private"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("loop_devices::{test}"), "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && text.contains("1 passed"), "{text}");
    text.lines().filter(|line| line.contains("skipped: ")).for_each(|line| eprintln!("{line}"));
    false
}

/// The kernel lets ext4 grow for processes with CAP_SYS_RESOURCE (bit 24) alone.
fn may_grow_ext() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let set = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    u64::from_str_radix(set.trim(), 16).unwrap() & (1 << 24) != 0
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok()
        || Command::new(program).arg("-V").output().is_ok()
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output =
        Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text.trim().to_owned()
}

/// A loop device over a sparse file, until it is dropped.
struct Disk {
    file: PathBuf,
    node: String,
}

impl Disk {
    fn new(folder: &Path, name: &str, bytes: u64) -> Self {
        let file = folder.join(name);
        fs::File::create(&file).unwrap().set_len(bytes).unwrap();
        let node = run("losetup", &["--find", "--show", file.to_str().unwrap()]);
        Self { file, node }
    }

    fn grow(&self, bytes: u64) {
        fs::File::options().write(true).open(&self.file).unwrap().set_len(bytes).unwrap();
        run("losetup", &["-c", &self.node]);
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = fs::read(&self.file).unwrap();
        bytes.truncate(2 * MIB as usize);
        bytes
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.node]).output();
    }
}

struct Machine {
    service: NodeService,
    folder: TempDir,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("root/dev/disk/azure/scsi1")).unwrap();
        fs::create_dir_all(folder.path().join("root/sys/class/block")).unwrap();
        let options = NodeOptions { device_root: folder.path().join("root"), ..NodeOptions::default() };
        let service = NodeService::new(options, Arc::new(Kernel), None, None);
        Self { service, folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// A disk at a LUN.
    fn attach(&self, lun: u8, bytes: u64) -> Disk {
        let disk = Disk::new(self.folder.path(), &format!("disk-{lun}"), bytes);
        symlink(&disk.node, self.path(&format!("root/dev/disk/azure/scsi1/lun{lun}"))).unwrap();
        disk
    }

    async fn stage(&self, lun: u8, access: AccessType) -> Result<(), Status> {
        let request = NodeStageVolumeRequest {
            volume_id: format!("volume-{lun}"),
            publish_context: map(&[("LUN", &lun.to_string())]),
            staging_target_path: self.text(&format!("staging-{lun}")),
            volume_capability: Some(capability(access, Mode::SingleNodeWriter)),
            ..NodeStageVolumeRequest::default()
        };
        self.service.node_stage_volume(Request::new(request)).await.map(drop)
    }

    async fn publish(
        &self,
        lun: u8,
        access: AccessType,
        target: &str,
        mode: Mode,
        readonly: bool,
    ) -> Result<(), Status> {
        let request = NodePublishVolumeRequest {
            volume_id: format!("volume-{lun}"),
            publish_context: map(&[("LUN", &lun.to_string())]),
            staging_target_path: self.text(&format!("staging-{lun}")),
            target_path: self.text(target),
            volume_capability: Some(capability(access, mode)),
            readonly,
            ..NodePublishVolumeRequest::default()
        };
        self.service.node_publish_volume(Request::new(request)).await.map(drop)
    }

    async fn unpublish(&self, lun: u8, target: &str) {
        let request =
            NodeUnpublishVolumeRequest { volume_id: format!("volume-{lun}"), target_path: self.text(target) };
        self.service.node_unpublish_volume(Request::new(request)).await.unwrap();
        assert!(!self.path(target).exists());
    }

    async fn unstage(&self, lun: u8) {
        let staging_target_path = self.text(&format!("staging-{lun}"));
        let request = NodeUnstageVolumeRequest { volume_id: format!("volume-{lun}"), staging_target_path };
        self.service.node_unstage_volume(Request::new(request)).await.unwrap();
    }

    async fn expand(&self, lun: u8, path: &str, bytes: u64) -> Result<i64, Status> {
        let mut request = Request::new(NodeExpandVolumeRequest {
            volume_id: format!("volume-{lun}"),
            volume_path: self.text(path),
            capacity_range: Some(CapacityRange { required_bytes: bytes.try_into().unwrap(), limit_bytes: 0 }),
            ..NodeExpandVolumeRequest::default()
        });
        // A device that has not grown is not waited for here.
        request.metadata_mut().insert("grpc-timeout", "1S".parse().unwrap());
        self.service.node_expand_volume(request).await.map(|answer| answer.into_inner().capacity_bytes)
    }

    async fn total(&self, lun: u8, path: &str) -> u64 {
        let request = NodeGetVolumeStatsRequest {
            volume_id: format!("volume-{lun}"),
            volume_path: self.text(path),
            ..NodeGetVolumeStatsRequest::default()
        };
        let answer = self.service.node_get_volume_stats(Request::new(request)).await.unwrap().into_inner();
        answer.usage[0].total.try_into().unwrap()
    }
}

/// Section 3.14: growth online, once the disk has grown.
async fn grows(machine: &Machine, disk: &Disk, lun: u8) {
    let before = machine.total(lun, "pods/1").await;
    let status = machine.expand(lun, "pods/1", 800 * MIB).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable, "{status}");
    disk.grow(800 * MIB);
    assert_eq!(machine.expand(lun, "pods/1", 800 * MIB).await.unwrap(), 800 * MIB as i64);
    assert!(machine.total(lun, "pods/1").await > before + 300 * MIB, "it has not grown");
}

/// Section 3.14 on real disks: the whole life of a volume with each file system, growth online included.
#[tokio::test]
async fn a_volume_lives_with_each_file_system() {
    if !is_inside("a_volume_lives_with_each_file_system") {
        return;
    }
    for (lun, kind, tool, grower) in [
        (1, "ext4", "mkfs.ext4", "resize2fs"),
        (2, "ext3", "mkfs.ext3", "resize2fs"),
        (3, "xfs", "mkfs.xfs", "xfs_growfs"),
        (4, "btrfs", "mkfs.btrfs", "btrfs"),
    ] {
        if !has(tool) || !has(grower) {
            eprintln!("skipped: {kind}: {tool} or {grower} is not installed");
            continue;
        }
        let machine = Machine::new();
        let access = || mounted(kind, &["noatime", "nosuid"]);
        let disk = machine.attach(lun, 400 * MIB);
        for _ in 0..10 {
            machine.stage(lun, access()).await.unwrap();
            machine.publish(lun, access(), "pods/1", Mode::SingleNodeWriter, false).await.unwrap();
            machine.publish(lun, access(), "pods/2", Mode::SingleNodeWriter, true).await.unwrap();
        }
        fs::write(machine.path("pods/1/data"), "kept").unwrap();
        assert_eq!(fs::read_to_string(machine.path("pods/2/data")).unwrap(), "kept");
        assert!(fs::write(machine.path("pods/2/data"), "x").is_err(), "{kind}: it is read only");

        if !kind.starts_with("ext") || may_grow_ext() {
            grows(&machine, &disk, lun).await;
        } else {
            eprintln!("skipped: growth of {kind}: root has no CAP_SYS_RESOURCE on this machine");
        }
        for _ in 0..10 {
            machine.unpublish(lun, "pods/1").await;
            machine.unpublish(lun, "pods/2").await;
        }
        for _ in 0..10 {
            machine.unstage(lun).await;
        }
        machine.stage(lun, access()).await.unwrap();
        assert_eq!(fs::read_to_string(machine.path(&format!("staging-{lun}/data"))).unwrap(), "kept");
        machine.unstage(lun).await;
        let other = if kind == "ext4" { "xfs" } else { "ext4" };
        let status = machine.stage(lun, mounted(other, &[])).await.unwrap_err();
        assert!(status.message().contains(&format!("contains {kind} (found by blkid)")), "{status}");
    }
}

/// Section 3.14: a raw device, its growth, and one writer alone.
#[tokio::test]
async fn a_raw_device_lives_as_it_is() {
    if !is_inside("a_raw_device_lives_as_it_is") {
        return;
    }
    let machine = Machine::new();
    let disk = machine.attach(5, 64 * MIB);
    for _ in 0..10 {
        machine.stage(5, raw()).await.unwrap();
        machine.publish(5, raw(), "pods/1", Mode::SingleNodeSingleWriter, false).await.unwrap();
    }
    let status = machine.publish(5, raw(), "pods/2", Mode::SingleNodeSingleWriter, false).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    assert!(!machine.path("pods/2").exists());
    fs::OpenOptions::new().write(true).open(machine.path("pods/1")).unwrap();
    assert_eq!(machine.total(5, "pods/1").await, 64 * MIB);
    disk.grow(128 * MIB);
    assert_eq!(machine.expand(5, "pods/1", 128 * MIB).await.unwrap(), 128 * MIB as i64);
    machine.unpublish(5, "pods/1").await;
    machine.publish(5, raw(), "pods/2", Mode::SingleNodeSingleWriter, false).await.unwrap();
    machine.unpublish(5, "pods/2").await;
    machine.unstage(5).await;
}

/// Section 3.14, FIX: one writer of a file system, found in the table of mounts by a process that knows nothing.
#[tokio::test]
async fn one_writer_has_a_file_system_alone() {
    if !is_inside("one_writer_has_a_file_system_alone") {
        return;
    }
    let mut machine = Machine::new();
    let _disk = machine.attach(6, 64 * MIB);
    machine.stage(6, mounted("ext4", &[])).await.unwrap();
    let mode = Mode::SingleNodeSingleWriter;
    machine.publish(6, mounted("ext4", &[]), "pods/1", mode, false).await.unwrap();
    let options = NodeOptions { device_root: machine.path("root"), ..NodeOptions::default() };
    machine.service = NodeService::new(options, Arc::new(Kernel), None, None);
    let status = machine.publish(6, mounted("ext4", &[]), "pods/2", mode, false).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
    machine.unpublish(6, "pods/1").await;
    machine.publish(6, mounted("ext4", &[]), "pods/2", mode, false).await.unwrap();
    machine.unpublish(6, "pods/2").await;
    machine.unstage(6).await;
}

/// Section 3.14, step 6, on real signatures: nothing that has one is formatted, and not a byte of it changes.
#[tokio::test]
async fn no_signature_is_overwritten() {
    if !is_inside("no_signature_is_overwritten") {
        return;
    }
    let machine = Machine::new();
    let write = |disk: &Disk, at: u64, bytes: &[u8]| {
        use std::os::unix::fs::FileExt as _;
        let file = fs::File::options().write(true).open(&disk.node).unwrap();
        file.write_all_at(bytes, at).unwrap();
        file.sync_all().unwrap();
    };
    type Make<'a> = (&'a str, Box<dyn Fn(&Disk) + 'a>);
    let cases: Vec<Make<'_>> = vec![
        (
            "dos",
            Box::new(|disk| {
                // A partition of type 83 at sector 2048, and the end of a boot sector.
                write(disk, 446, &[0, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0x40, 0, 0]);
                write(disk, 510, &[0x55, 0xAA]);
            }),
        ),
        ("LUKS", Box::new(|disk| write(disk, 0, b"LUKS\xBA\xBE\x00\x01aes"))),
        (
            "ext4",
            Box::new(|disk| {
                run("mkfs.ext4", &["-q", "-F", &disk.node]);
            }),
        ),
        (
            "destroyed superblock",
            Box::new(|disk| {
                run("mkfs.ext4", &["-q", "-F", &disk.node]);
                write(disk, 0, &[0; 4096]);
            }),
        ),
        (
            "swap",
            Box::new(|disk| {
                run("mkswap", &[&disk.node]);
            }),
        ),
        ("a database", Box::new(|disk| write(disk, 4_096, b"rows without a signature"))),
    ];
    for (number, (name, make)) in cases.into_iter().enumerate() {
        let lun = 10 + u8::try_from(number).unwrap();
        let disk = machine.attach(lun, 64 * MIB);
        make(&disk);
        run("blockdev", &["--flushbufs", &disk.node]);
        let before = disk.bytes();
        let wanted = if name == "ext4" { "ext3" } else { "ext4" };
        let answer = machine.stage(lun, mounted(wanted, &[])).await;
        run("blockdev", &["--flushbufs", &disk.node]);
        assert!(disk.bytes() == before, "{name} has changed: {answer:?}");
        let status = answer.unwrap_err();
        assert!(
            status.message().contains("is not formatted") || status.message().contains("failed"),
            "{name}: {status}"
        );
    }
}

/// Section 3.14, FIX: a link that comes later ends the wait by its event.
#[tokio::test]
async fn a_link_that_comes_later_is_waited_for() {
    if !is_inside("a_link_that_comes_later_is_waited_for") {
        return;
    }
    let machine = Machine::new();
    let attach = async {
        // The service has looked and waits now.
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        machine.attach(7, 64 * MIB)
    };
    let (staged, _disk) = tokio::join!(machine.stage(7, raw()), attach);
    staged.unwrap();
}
