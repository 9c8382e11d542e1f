//! Formatting, which happens to empty devices alone.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::simulated::{Contents, Fault, Health, Layout, SimulatedMachine};

const DEVICE: &str = "/dev/sdc";

fn machine(contents: Contents) -> SimulatedMachine {
    let machine = SimulatedMachine::new(Layout::ScsiWithLinks);
    machine.attach(0, contents, 8);
    machine
}

fn file_systems(machine: &SimulatedMachine) -> FileSystems {
    FileSystems::new(Arc::new(machine.clone()), FormatLimits::new(2, Duration::from_secs(300)))
}

async fn prepare(
    machine: &SimulatedMachine,
    wanted: FileSystem,
    is_read_only: bool,
) -> Result<Prepared, FileSystemError> {
    file_systems(machine).prepare(Path::new(DEVICE), wanted, is_read_only).await
}

fn contents() -> impl Strategy<Value = Contents> {
    let kinds = ["ext2", "ext3", "ext4", "xfs", "btrfs", "LVM2_member", "crypto_LUKS", "ntfs", "swap"];
    let health = prop_oneof![Just(Health::Clean), Just(Health::Repairable), Just(Health::Broken)];
    prop_oneof![
        2 => Just(Contents::Blank),
        4 => (prop::sample::select(kinds.to_vec()), health)
            .prop_map(|(kind, health)| Contents::FileSystem { kind: kind.to_owned(), data: 4_711, health }),
        1 => prop::sample::select(vec!["gpt", "dos"]).prop_map(|table| Contents::PartitionTable(table.to_owned())),
        1 => Just(Contents::SpareSuperblock),
        1 => Just(Contents::Hidden("zfs_member".to_owned())),
        1 => Just(Contents::Ambivalent),
        1 => Just(Contents::Raw),
    ]
}

fn wanted() -> impl Strategy<Value = FileSystem> {
    use FileSystem::{Btrfs, Ext2, Ext3, Ext4, Xfs};
    prop::sample::select(vec![Ext2, Ext3, Ext4, Xfs, Btrfs])
}

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(future)
}

proptest! {
    /// Whatever a device contains, whichever check is missing, fails or ends the process: what was not blank is as it was, or
    /// repaired, and never formatted.
    #[test]
    fn what_has_a_signature_is_never_formatted(
        before in contents(),
        wanted in wanted(),
        is_read_only: bool,
        is_readable: bool,
        step in 0_u64..8,
        fault in prop::sample::select(vec![None, Some(Fault::Fail), Some(Fault::FailAfter), Some(Fault::DieBefore), Some(Fault::DieAfter)]),
        missing in prop::option::of(prop::sample::select(vec!["blkid", "wipefs", "fsck"])),
    ) {
        run(async {
            let machine = machine(before.clone());
            if !is_readable {
                machine.set_unreadable(0);
            }
            if let Some(program) = missing {
                machine.remove_program(program);
            }
            if let Some(fault) = fault {
                machine.plan(step, fault);
            }
            for _ in 0..3 {
                tokio::select! {
                    _ = prepare(&machine, wanted, is_read_only) => {}
                    () = machine.death() => machine.heal(),
                }
            }
            let after = machine.contents(0);
            let may_format = before == Contents::Blank && is_readable && !is_read_only && missing.is_none();
            match (&before, &after) {
                (Contents::Blank, Contents::Blank) => {}
                (Contents::Blank, _) => assert!(may_format, "{after:?}"),
                (Contents::FileSystem { kind, data, health: Health::Repairable }, after) => {
                    let repaired = Contents::file_system(kind, *data);
                    assert!(*after == before || *after == repaired, "{after:?}");
                }
                _ => assert_eq!(after, before),
            }
            let formatted = machine.take_journal().iter().filter(|line| line.starts_with("mkfs")).count();
            assert!(formatted == 0 || may_format);
        });
    }
}

/// Section 3.14, step 6: what each content leads to, and the check that is named.
#[tokio::test(start_paused = true)]
async fn each_content_is_served_or_refused_by_name() {
    use FileSystem::{Ext4, Xfs};
    let broken = Contents::FileSystem { kind: "ext4".into(), data: 1, health: Health::Broken };
    let repairable = Contents::FileSystem { kind: "ext4".into(), data: 1, health: Health::Repairable };
    for (contents, wanted, is_read_only, expected) in [
        (Contents::Blank, Ext4, false, Ok(Prepared::Formatted)),
        (Contents::Blank, Ext4, true, Err("is not formatted, and the volume is to be read only")),
        (Contents::file_system("ext4", 1), Ext4, false, Ok(Prepared::Existing)),
        (
            Contents::file_system("ext4", 1),
            Xfs,
            false,
            Err("contains ext4 (found by blkid), and xfs is wanted"),
        ),
        (repairable, Ext4, false, Ok(Prepared::Existing)),
        (broken.clone(), Ext4, false, Err("has errors that fsck does not correct by itself (exit code 4")),
        (broken, Ext4, true, Ok(Prepared::Existing)),
        (
            Contents::PartitionTable("gpt".into()),
            Ext4,
            false,
            Err("unknown data: a partition table of type gpt"),
        ),
        (Contents::SpareSuperblock, Ext4, false, Err("(found by fsck -n)")),
        (Contents::Hidden("zfs_member".into()), Ext4, false, Err("contains zfs_member (found by wipefs)")),
        (
            Contents::Raw,
            Ext4,
            false,
            Err("unknown data: bytes other than zero, without a signature (found by a read"),
        ),
        (
            Contents::Ambivalent,
            Ext4,
            false,
            Err("the check of the content by blkid failed (blkid -p -s TYPE"),
        ),
    ] {
        let machine = machine(contents.clone());
        let result = prepare(&machine, wanted, is_read_only).await.map_err(|error| error.to_string());
        match (result, expected) {
            (Ok(prepared), expected) => assert_eq!(Ok(prepared), expected, "{contents:?}"),
            (Err(error), Err(words)) => assert!(error.contains(words), "{words} is missing in {error}"),
            (Err(error), Ok(_)) => panic!("{contents:?}: {error}"),
        }
    }
}

/// Section 3.14, step 6: a missing fsck is an error, and so is a device that cannot be read, which blkid takes for blank.
#[tokio::test(start_paused = true)]
async fn nothing_is_formatted_without_all_checks() {
    for program in ["blkid", "fsck", "wipefs"] {
        let machine = machine(Contents::Blank);
        machine.remove_program(program);
        let error = prepare(&machine, FileSystem::Ext4, false).await.unwrap_err().to_string();
        assert_eq!(error, format!("program {program} is not installed; use an image that has it"));
        assert_eq!(machine.contents(0), Contents::Blank);
    }
    let machine = machine(Contents::Blank);
    machine.set_unreadable(0);
    let error = prepare(&machine, FileSystem::Ext4, false).await.unwrap_err().to_string();
    assert!(error.contains("cannot read /dev/sdc") && error.contains("it is not formatted"), "{error}");
}

/// Section 3.14, step 6: the programs and their arguments.
#[tokio::test(start_paused = true)]
async fn a_file_system_is_made_by_its_program() {
    for (kind, command) in [
        (FileSystem::Ext2, "mkfs.ext2 /dev/sdc"),
        (FileSystem::Ext3, "mkfs.ext3 -F -m0 /dev/sdc"),
        (FileSystem::Ext4, "mkfs.ext4 -F -m0 /dev/sdc"),
        (FileSystem::Xfs, "mkfs.xfs -f /dev/sdc"),
        (FileSystem::Btrfs, "mkfs.btrfs /dev/sdc"),
    ] {
        let machine = machine(Contents::Blank);
        prepare(&machine, kind, false).await.unwrap();
        assert_eq!(
            machine.take_journal(),
            [
                "blkid -p -s TYPE -s PTTYPE -o export /dev/sdc",
                "fsck -n /dev/sdc",
                "wipefs --no-act --output TYPE --noheadings /dev/sdc",
                command,
                "fsck -a /dev/sdc",
            ]
        );
    }
}

/// Section 3.14, step 7: growth by file system; ext2 does not grow.
#[tokio::test(start_paused = true)]
async fn a_file_system_grows_by_its_program() {
    for (kind, expected) in [
        (FileSystem::Ext3, Some("resize2fs /dev/sdc")),
        (FileSystem::Ext4, Some("resize2fs /dev/sdc")),
        (FileSystem::Xfs, Some("xfs_growfs -d /staging")),
        (FileSystem::Btrfs, Some("btrfs filesystem resize max /staging")),
        (FileSystem::Ext2, None),
    ] {
        let machine = machine(Contents::file_system(kind.name(), 1));
        let mounts = crate::mounts::Mounts::new(Arc::new(machine.clone()));
        let (device, staging) = (Path::new(DEVICE), Path::new("/staging"));
        mounts.prepare_folder(staging).await.unwrap();
        mounts.mount(device, staging, kind.name(), &Default::default()).await.unwrap();
        let grown = file_systems(&machine).grow(device, staging, kind).await;
        match expected {
            Some(command) => {
                grown.unwrap();
                assert_eq!(machine.take_journal(), [command]);
            }
            None => assert!(grown.unwrap_err().to_string().contains("ext2 on /dev/sdc cannot grow")),
        }
    }
}

/// A system on which formatting takes as long as a test wants, and that counts.
mod slow {
    use std::io;
    use std::net::{IpAddr, SocketAddr};
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;

    use super::*;
    use crate::system::{
        Changes, Command, FileKind, MountCall, MountFlags, Output, OwnerChange, RunError, Statistics, System,
    };

    #[derive(Debug)]
    pub struct Slow {
        pub inner: SimulatedMachine,
        pub takes: Duration,
        pub running: AtomicUsize,
        pub most: AtomicUsize,
    }

    #[async_trait]
    impl System for Slow {
        async fn run(&self, command: &Command) -> Result<Output, RunError> {
            if command.program.starts_with("mkfs") {
                let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
                self.most.fetch_max(running, Ordering::SeqCst);
                tokio::time::sleep(self.takes).await;
                self.running.fetch_sub(1, Ordering::SeqCst);
            }
            self.inner.run(command).await
        }
        async fn entries(&self, folder: &Path, most: usize) -> io::Result<Vec<String>> {
            self.inner.entries(folder, most).await
        }
        async fn read(&self, file: &Path) -> io::Result<String> {
            self.inner.read(file).await
        }
        async fn write(&self, file: &Path, text: &str) -> io::Result<()> {
            self.inner.write(file, text).await
        }
        async fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
            self.inner.canonical(path).await
        }
        async fn kind(&self, path: &Path) -> io::Result<FileKind> {
            self.inner.kind(path).await
        }
        async fn create_folder(&self, path: &Path) -> io::Result<()> {
            self.inner.create_folder(path).await
        }
        async fn create_file(&self, path: &Path) -> io::Result<()> {
            self.inner.create_file(path).await
        }
        async fn remove(&self, path: &Path) -> io::Result<()> {
            self.inner.remove(path).await
        }
        async fn size(&self, device: &Path) -> io::Result<u64> {
            self.inner.size(device).await
        }
        async fn starts_with_zeros(&self, device: &Path) -> io::Result<bool> {
            self.inner.starts_with_zeros(device).await
        }
        async fn mount(&self, call: &MountCall) -> io::Result<()> {
            self.inner.mount(call).await
        }
        async fn bind(&self, source: &Path, target: &Path) -> io::Result<()> {
            self.inner.bind(source, target).await
        }
        async fn remount_bind(&self, target: &Path, flags: MountFlags) -> io::Result<()> {
            self.inner.remount_bind(target, flags).await
        }
        async fn unmount(&self, target: &Path) -> io::Result<()> {
            self.inner.unmount(target).await
        }
        async fn statistics(&self, path: &Path) -> io::Result<Statistics> {
            self.inner.statistics(path).await
        }
        async fn is_plain_file(&self, path: &Path) -> io::Result<bool> {
            self.inner.is_plain_file(path).await
        }
        async fn write_private(&self, file: &Path, text: &str) -> io::Result<()> {
            self.inner.write_private(file, text).await
        }
        async fn permissions(&self, path: &Path) -> io::Result<u32> {
            self.inner.permissions(path).await
        }
        async fn set_permissions(&self, path: &Path, mode: u32) -> io::Result<()> {
            self.inner.set_permissions(path, mode).await
        }
        async fn change_group(&self, folder: &Path, group: u32, when: OwnerChange) -> io::Result<()> {
            self.inner.change_group(folder, group, when).await
        }
        async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
            self.inner.resolve(host).await
        }
        async fn reach(&self, address: SocketAddr) -> io::Result<()> {
            self.inner.reach(address).await
        }
        async fn changes(&self, folders: &[PathBuf]) -> io::Result<Box<dyn Changes>> {
            self.inner.changes(folders).await
        }
    }
}

/// Section 3.14, step 6: `--max-concurrent-format` and `--concurrent-format-timeout`.
#[tokio::test(start_paused = true)]
async fn not_too_many_file_systems_are_made_at_a_time() {
    use std::sync::atomic::Ordering;
    for (takes, limit, expected_most, expected_seconds) in [
        (10, 2, 2, 30),
        (10, 1, 1, 60),
        (10, 0, 6, 10),
        // Slow ones go on without their slots.
        (1_000, 2, 6, 1_600),
    ] {
        let machine = SimulatedMachine::new(Layout::ScsiWithLinks);
        (0..6).for_each(|lun| machine.attach(lun, Contents::Blank, 8));
        let system = Arc::new(slow::Slow {
            inner: machine,
            takes: Duration::from_secs(takes),
            running: Default::default(),
            most: Default::default(),
        });
        let limits = FormatLimits::new(limit, Duration::from_secs(300));
        let file_systems = FileSystems::new(system.clone(), limits);
        let begun = tokio::time::Instant::now();
        let all = ["/dev/sdc", "/dev/sdd", "/dev/sde", "/dev/sdf", "/dev/sdg", "/dev/sdh"].map(|device| {
            let file_systems = file_systems.clone();
            tokio::spawn(
                async move { file_systems.prepare(Path::new(device), FileSystem::Ext4, false).await },
            )
        });
        for one in all {
            one.await.unwrap().unwrap();
        }
        assert_eq!(system.most.load(Ordering::SeqCst), expected_most, "{takes} s, {limit} at a time");
        assert_eq!(begun.elapsed().as_secs(), expected_seconds, "{takes} s, {limit} at a time");
    }
}
