//! The real kernel of this machine.

use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rustix::ffi::CString;
use rustix::mount::{self, MountFlags, UnmountFlags};

use super::blocking::{FILE_LIMIT, MOUNT_LIMIT, blocking};
use super::changes::{Changes, KernelChanges};
use super::command::{Command, Output, RunError};
use super::file_kind::{DeviceNumber, FileKind};
use super::mount_call::MountCall;
use super::ownership::{self, OwnerChange};
use super::seam::System;
use super::statistics::{Amount, Statistics};
use super::{network, private_file, programs};

/// How much of a device is its beginning.
const START: u64 = 1024 * 1024;

/// The kernel of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Kernel;

#[async_trait]
impl System for Kernel {
    async fn run(&self, command: &Command) -> Result<Output, RunError> {
        programs::run(command).await
    }

    async fn entries(&self, folder: &Path, most: usize) -> io::Result<Vec<String>> {
        let folder = folder.to_owned();
        let list = move || {
            let entries = fs::read_dir(folder)?.take(most);
            let name =
                |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
            let mut names = entries.map(name).collect::<io::Result<Vec<_>>>()?;
            names.sort_unstable();
            Ok(names)
        };
        blocking(FILE_LIMIT, list).await
    }

    async fn read(&self, file: &Path) -> io::Result<String> {
        let file = file.to_owned();
        blocking(FILE_LIMIT, move || Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned())).await
    }

    async fn write(&self, file: &Path, text: &str) -> io::Result<()> {
        let (file, text) = (file.to_owned(), text.to_owned());
        let write = move || fs::OpenOptions::new().write(true).open(file)?.write_all(text.as_bytes());
        blocking(FILE_LIMIT, write).await
    }

    async fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        let path = path.to_owned();
        blocking(FILE_LIMIT, move || fs::canonicalize(path)).await
    }

    async fn kind(&self, path: &Path) -> io::Result<FileKind> {
        let path = path.to_owned();
        let kind = move || {
            let metadata = fs::metadata(path)?;
            let (kind, number) = (metadata.file_type(), metadata.rdev());
            Ok(match kind {
                kind if kind.is_dir() => FileKind::Folder,
                kind if kind.is_block_device() => FileKind::BlockDevice(DeviceNumber {
                    major: rustix::fs::major(number),
                    minor: rustix::fs::minor(number),
                }),
                _ => FileKind::File,
            })
        };
        blocking(FILE_LIMIT, kind).await
    }

    async fn create_folder(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        blocking(FILE_LIMIT, move || fs::DirBuilder::new().recursive(true).mode(0o755).create(path)).await
    }

    async fn create_file(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        let create = move || {
            let mut options = fs::OpenOptions::new();
            options.create(true).append(true).mode(0o640).open(path).map(drop)
        };
        blocking(FILE_LIMIT, create).await
    }

    async fn remove(&self, path: &Path) -> io::Result<()> {
        let path = path.to_owned();
        let remove = move || {
            let removed = match fs::symlink_metadata(&path) {
                Ok(metadata) if metadata.is_dir() => fs::remove_dir(path),
                Ok(_) => fs::remove_file(path),
                Err(error) => Err(error),
            };
            match removed {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed,
            }
        };
        blocking(FILE_LIMIT, remove).await
    }

    async fn size(&self, device: &Path) -> io::Result<u64> {
        let device = device.to_owned();
        blocking(FILE_LIMIT, move || fs::File::open(device)?.seek(SeekFrom::End(0))).await
    }

    async fn starts_with_zeros(&self, device: &Path) -> io::Result<bool> {
        let device = device.to_owned();
        let read = move || {
            let mut bytes = Vec::new();
            fs::File::open(device)?.take(START).read_to_end(&mut bytes)?;
            Ok(bytes.iter().all(|byte| *byte == 0))
        };
        blocking(FILE_LIMIT, read).await
    }

    async fn mount(&self, call: &MountCall) -> io::Result<()> {
        let call = call.clone();
        let mount = move || {
            let data = CString::new(call.data)?;
            let data = (!data.is_empty()).then_some(data.as_c_str());
            Ok(mount::mount(&call.source, &call.target, call.file_system.as_str(), call.flags, data)?)
        };
        blocking(MOUNT_LIMIT, mount).await
    }

    async fn bind(&self, source: &Path, target: &Path) -> io::Result<()> {
        let (source, target) = (source.to_owned(), target.to_owned());
        blocking(MOUNT_LIMIT, move || Ok(mount::mount_bind(source, target)?)).await
    }

    async fn remount_bind(&self, target: &Path, flags: MountFlags) -> io::Result<()> {
        let target = target.to_owned();
        blocking(MOUNT_LIMIT, move || Ok(mount::mount_remount(target, flags | MountFlags::BIND, "")?)).await
    }

    async fn unmount(&self, target: &Path) -> io::Result<()> {
        let target = target.to_owned();
        blocking(MOUNT_LIMIT, move || Ok(mount::unmount(target, UnmountFlags::NOFOLLOW)?)).await
    }

    async fn is_plain_file(&self, path: &Path) -> io::Result<bool> {
        let path = path.to_owned();
        blocking(FILE_LIMIT, move || Ok(fs::symlink_metadata(path)?.is_file())).await
    }

    async fn write_private(&self, file: &Path, text: &str) -> io::Result<()> {
        let (file, text) = (file.to_owned(), text.to_owned());
        blocking(FILE_LIMIT, move || private_file::write(&file, &text)).await
    }

    async fn permissions(&self, path: &Path) -> io::Result<u32> {
        let path = path.to_owned();
        blocking(FILE_LIMIT, move || Ok(fs::metadata(path)?.mode() & 0o7777)).await
    }

    async fn set_permissions(&self, path: &Path, mode: u32) -> io::Result<()> {
        let path = path.to_owned();
        blocking(FILE_LIMIT, move || fs::set_permissions(path, fs::Permissions::from_mode(mode))).await
    }

    async fn change_group(&self, folder: &Path, group: u32, when: OwnerChange) -> io::Result<()> {
        let folder = folder.to_owned();
        blocking(MOUNT_LIMIT, move || ownership::change(&folder, group, when)).await
    }

    async fn resolve(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        network::resolve(host).await
    }

    async fn reach(&self, address: SocketAddr) -> io::Result<()> {
        network::reach(address).await
    }

    async fn statistics(&self, path: &Path) -> io::Result<Statistics> {
        let path = path.to_owned();
        let statistics = move || {
            let answer = rustix::fs::statvfs(path)?;
            let bytes = |blocks: u64| blocks.saturating_mul(answer.f_frsize);
            let used = |total: u64, free: u64| total.saturating_sub(free);
            Ok(Statistics {
                space: Amount {
                    total: bytes(answer.f_blocks),
                    available: bytes(answer.f_bavail),
                    used: bytes(used(answer.f_blocks, answer.f_bfree)),
                },
                inodes: Amount {
                    total: answer.f_files,
                    available: answer.f_favail,
                    used: used(answer.f_files, answer.f_ffree),
                },
            })
        };
        blocking(FILE_LIMIT, statistics).await
    }

    async fn changes(&self, folders: &[PathBuf]) -> io::Result<Box<dyn Changes>> {
        Ok(Box::new(KernelChanges::subscribe(folders)?))
    }
}
