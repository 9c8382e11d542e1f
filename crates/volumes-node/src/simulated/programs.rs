//! The programs beside the kernel, as their manuals say.

use std::path::Path;

use super::disk::{Contents, Health};
use super::file_service;
use super::mounted::{Mount, Mounted};
use super::state::State;
use crate::system::{Command, Output, RunError};

const NO_SUPERBLOCK: &str =
    "The superblock could not be read or does not describe a valid ext2/ext3/ext4\nfilesystem.";

fn ended(code: i32, stdout: impl Into<String>) -> Output {
    Output { code: Some(code), stdout: stdout.into(), stderr: String::new() }
}

/// Runs a program on the state.
pub(super) fn run(state: &mut State, command: &Command) -> Result<Output, RunError> {
    let program = command.program.as_str();
    if state.missing_programs.contains(program) {
        return Err(RunError::Missing(program.to_owned()));
    }
    let arguments: Vec<_> = command.arguments.iter().map(|argument| argument.to_string_lossy()).collect();
    let words: Vec<String> = arguments.iter().map(|argument| argument.clone().into_owned()).collect();
    let last = arguments.last().map(|argument| Path::new(argument.as_ref()).to_owned()).unwrap_or_default();
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    Ok(match program {
        "blkid" => blkid(state, &last),
        "wipefs" => wipefs(state, &last),
        "fsck" if has("-n") => examine(state, &last),
        "fsck" => repair(state, &last),
        "mount.cifs" => return file_service::mount_cifs(state, command, &words),
        "mount.nfs" => return file_service::mount_nfs(state, command, &words),
        "mount" => file_service::mount_image(state, &words),
        "azfilesauthmanager" => {
            let host = words.get(1).and_then(|url| url.strip_prefix("https://")).unwrap_or_default();
            state.tickets.insert(host.to_owned());
            ended(0, "")
        }
        "resize2fs" | "xfs_growfs" | "btrfs" => grow(state, program, &last),
        _ => match program.strip_prefix("mkfs.") {
            Some(kind) => make(state, kind, &last, has("-F") || has("-f")),
            None => return Err(RunError::Missing(program.to_owned())),
        },
    })
}

fn blkid(state: &mut State, device: &Path) -> Output {
    let Ok(disk) = state.disk(device) else { return ended(2, "") };
    match &disk.contents {
        _ if !disk.is_readable => ended(2, ""),
        Contents::FileSystem { kind, .. } => ended(0, format!("DEVNAME={}\nTYPE={kind}\n", device.display())),
        Contents::PartitionTable(table) => {
            ended(0, format!("DEVNAME={}\nPTTYPE={table}\n", device.display()))
        }
        Contents::Ambivalent => ended(8, ""),
        Contents::Blank | Contents::SpareSuperblock | Contents::Hidden(_) | Contents::Raw => ended(2, ""),
    }
}

fn wipefs(state: &mut State, device: &Path) -> Output {
    let Ok(disk) = state.disk(device) else { return ended(1, "no such device") };
    match &disk.contents {
        _ if !disk.is_readable => ended(1, "input/output error"),
        Contents::FileSystem { kind, .. } => ended(0, format!("{kind}\n")),
        Contents::PartitionTable(name) | Contents::Hidden(name) => ended(0, format!("{name}\n")),
        Contents::Ambivalent => ended(0, "ext4\nxfs\n"),
        Contents::Blank | Contents::SpareSuperblock | Contents::Raw => ended(0, ""),
    }
}

fn examine(state: &mut State, device: &Path) -> Output {
    let Ok(disk) = state.disk(device) else { return ended(8, "no such device") };
    match &disk.contents {
        _ if !disk.is_readable => ended(8, "input/output error"),
        Contents::FileSystem { health: Health::Clean, .. } => ended(0, "clean"),
        Contents::FileSystem { .. } | Contents::SpareSuperblock => ended(4, "IGNORED."),
        _ => ended(8, NO_SUPERBLOCK),
    }
}

fn repair(state: &mut State, device: &Path) -> Output {
    let is_mounted = |number| {
        let own =
            |mount: &Mount| matches!(mount.what, Mounted::FileSystem { device, .. } if device == number);
        state.mounts.iter().any(own)
    };
    if state.device_number(device).is_ok_and(is_mounted) {
        return ended(8, format!("{} is mounted. Cannot continue, aborting.", device.display()));
    }
    let Ok(disk) = state.disk(device) else { return ended(8, "no such device") };
    match &mut disk.contents {
        Contents::FileSystem { health, .. } => match health {
            Health::Clean => ended(0, "clean"),
            Health::Repairable => {
                *health = Health::Clean;
                ended(1, "recovering journal")
            }
            Health::Broken => ended(4, "UNEXPECTED INCONSISTENCY; RUN fsck MANUALLY."),
        },
        _ => ended(8, NO_SUPERBLOCK),
    }
}

fn make(state: &mut State, kind: &str, device: &Path, is_forced: bool) -> Output {
    let data = state.next_data;
    state.next_data += 1;
    let Ok(disk) = state.disk(device) else { return ended(1, "no such device") };
    if !disk.is_readable {
        return ended(1, "input/output error");
    }
    if disk.contents != Contents::Blank && !is_forced {
        return ended(1, "appears to contain an existing filesystem");
    }
    disk.contents = Contents::file_system(kind, data);
    disk.file_system_bytes = disk.bytes;
    ended(0, "done")
}

fn grow(state: &mut State, program: &str, at: &Path) -> Output {
    let disk = if program == "resize2fs" { state.disk(at).ok() } else { state.file_system(at) };
    let fits = |kind: &str| match program {
        "resize2fs" => ["ext3", "ext4"].contains(&kind),
        "xfs_growfs" => kind == "xfs",
        _ => kind == "btrfs",
    };
    match disk {
        Some(disk) if matches!(&disk.contents, Contents::FileSystem { kind, .. } if fits(kind)) => {
            disk.file_system_bytes = disk.file_system_bytes.max(disk.bytes);
            ended(0, "done")
        }
        _ => ended(1, "no file system that it knows"),
    }
}
