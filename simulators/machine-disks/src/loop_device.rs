//! Loop devices, by `losetup` and the kernel's description of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::HardwareError;

/// The kernel's block devices.
const BLOCK: &str = "/sys/block";

/// A loop device.
#[derive(Debug, Clone)]
pub(crate) struct LoopDevice {
    /// Such as `loop3`.
    name: String,
    /// Its major and minor number.
    pub(crate) numbers: (u32, u32),
}

impl LoopDevice {
    /// Attaches a free one to a file.
    pub(crate) fn attach(file: &Path) -> Result<Self, HardwareError> {
        let printed = losetup(["--find".as_ref(), "--show".as_ref(), file.as_os_str()])?;
        let name = printed.trim().trim_start_matches("/dev/").to_owned();
        Self::named(name)
    }

    fn named(name: String) -> Result<Self, HardwareError> {
        let path = Path::new(BLOCK).join(&name).join("dev");
        let text = fs::read_to_string(&path).map_err(HardwareError::of_file(&path))?;
        let numbers = text.trim().split_once(':');
        let numbers = numbers.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let unknown = || HardwareError::LoopDevices { reason: format!("{} is {text:?}", path.display()) };
        Ok(Self { numbers: numbers.ok_or_else(unknown)?, name })
    }

    /// Whether it is attached to a file at this path, or at one below it. The file may be deleted.
    pub(crate) fn is_attached_to(&self, path: &Path) -> bool {
        let file = fs::read_to_string(Path::new(BLOCK).join(&self.name).join("loop/backing_file"));
        file.is_ok_and(|file| Path::new(file.trim().trim_end_matches(" (deleted)")).starts_with(path))
    }

    /// Detaches it now, or, where it is open, once it is closed.
    pub(crate) fn detach(&self) -> Result<(), HardwareError> {
        losetup(["--detach".as_ref(), self.node().as_os_str()]).map(drop)
    }

    /// Makes it as large as its file is now.
    pub(crate) fn take_size(&self) -> Result<(), HardwareError> {
        losetup(["--set-capacity".as_ref(), self.node().as_os_str()]).map(drop)
    }

    /// Those that are attached to a file in a folder.
    pub(crate) fn all_of(folder: &Path) -> Vec<Self> {
        let entries = fs::read_dir(BLOCK).into_iter().flatten().filter_map(Result::ok);
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let devices = names.filter(|name| name.starts_with("loop")).filter_map(|name| Self::named(name).ok());
        devices.filter(|device| device.is_attached_to(folder)).collect()
    }

    fn node(&self) -> PathBuf {
        Path::new("/dev").join(&self.name)
    }
}

fn losetup<const N: usize>(arguments: [&std::ffi::OsStr; N]) -> Result<String, HardwareError> {
    let output = Command::new("losetup").args(arguments).stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| HardwareError::LoopDevices { reason: format!("losetup: {error}") })?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(HardwareError::LoopDevices { reason });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
