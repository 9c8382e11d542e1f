//! The group that owns what a volume has.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown};
use std::path::Path;

/// When the owner of a volume's files is changed (the member `fsGroupChangePolicy` of a pod).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerChange {
    /// With every mount.
    Always,
    /// If the volume's root is not the group's.
    OnRootMismatch,
}

/// What a group may do with files.
const FILE: u32 = 0o660;
/// What it may do with folders, whose new entries get its number.
const FOLDER: u32 = 0o2770;

/// Makes a folder and all below it a group's. Links are not followed.
pub(super) fn change(folder: &Path, group: u32, when: OwnerChange) -> io::Result<()> {
    let root = fs::symlink_metadata(folder)?;
    if when == OwnerChange::OnRootMismatch && is_of(&root, group) {
        return Ok(());
    }
    // The root comes last: where the work was interrupted, it is begun again.
    for entry in fs::read_dir(folder)? {
        below(&entry?.path(), group)?;
    }
    apply(folder, &root, group)
}

fn below(path: &Path, group: u32) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        // Another machine has removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            below(&entry?.path(), group)?;
        }
    }
    apply(path, &metadata, group)
}

fn wanted(metadata: &Metadata) -> u32 {
    if metadata.is_dir() { FOLDER } else { FILE }
}

fn is_of(metadata: &Metadata, group: u32) -> bool {
    let wanted = wanted(metadata);
    metadata.gid() == group && metadata.mode() & wanted == wanted
}

fn apply(path: &Path, metadata: &Metadata, group: u32) -> io::Result<()> {
    if metadata.gid() != group {
        lchown(path, None, Some(group))?;
    }
    if metadata.is_symlink() || metadata.mode() & wanted(metadata) == wanted(metadata) {
        return Ok(());
    }
    let mode = (metadata.mode() | wanted(metadata)) & 0o7777;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}
