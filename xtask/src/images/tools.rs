//! The layer with the programs of others that make, check, grow and mount file systems: packages of Debian, of which the listed programs
//! and the libraries are taken. A list in `deploy/images` names each package with its version and checksum, so that equal lists
//! give equal bytes; `scripts/image_packages.sh` writes it.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::layer::{File, Files};
use super::layout::sha256;
use super::platform::Platform;
use crate::program::{output, root};

/// The programs of an image, and the packages that they come from.
#[derive(Debug, PartialEq, Eq)]
pub struct Tools {
    /// The list of packages.
    list: &'static str,
    /// The programs that are taken.
    programs: &'static [&'static [&'static str]],
    /// Some with arguments by which they do nothing, for the check of an image.
    pub tried: &'static [&'static [(&'static str, &'static str)]],
}

/// Of file systems on devices and in images. `sh` is for `fsck.xfs`, which is a script.
const FILE_SYSTEMS: &[&str] = &[
    "blkid",
    "blockdev",
    "dash",
    "e2fsck",
    "findmnt",
    "fsck",
    "fsck.ext2",
    "fsck.ext3",
    "fsck.ext4",
    "fsck.xfs",
    "mke2fs",
    "mkfs.ext2",
    "mkfs.ext3",
    "mkfs.ext4",
    "mkfs.xfs",
    "mount",
    "mountpoint",
    "resize2fs",
    "sh",
    "tune2fs",
    "umount",
    "wipefs",
    "xfs_growfs",
    "xfs_repair",
];

/// `fsck.btrfs` is a script, too.
const BTRFS: &[&str] = &["btrfs", "fsck.btrfs", "mkfs.btrfs"];

/// Of shares, over SMB and NFS: `mount` and `umount` start them.
const NETWORK: &[&str] =
    &["losetup", "mount.cifs", "mount.nfs", "mount.nfs4", "mount.smb3", "umount.nfs", "umount.nfs4"];

/// Programs of file systems with an argument by which they say their version: their libraries are there.
const TRIED_FILE_SYSTEMS: &[(&str, &str)] = &[
    ("/usr/sbin/blkid", "-V"),
    ("/usr/sbin/fsck", "--version"),
    ("/usr/sbin/mke2fs", "-V"),
    ("/usr/sbin/mkfs.xfs", "-V"),
    ("/usr/sbin/wipefs", "-V"),
    ("/usr/sbin/xfs_growfs", "-V"),
    ("/usr/sbin/xfs_repair", "-V"),
];

/// Those of the driver for disks.
pub static DISKS: Tools = Tools {
    list: "deploy/images/node-tools.txt",
    programs: &[FILE_SYSTEMS, BTRFS],
    tried: &[TRIED_FILE_SYSTEMS, &[("/usr/sbin/mkfs.btrfs", "--version"), ("/usr/bin/btrfs", "--version")]],
};

/// Those of the driver for file shares.
pub static SHARES: Tools = Tools {
    list: "deploy/images/share-tools.txt",
    programs: &[FILE_SYSTEMS, NETWORK],
    // mount.cifs asks for capabilities first, which a check does not give.
    tried: &[TRIED_FILE_SYSTEMS, &[("/usr/sbin/mount.nfs", "-V")]],
};

/// Folders that are links into `usr`, as on a machine with Debian.
const MERGED: [&str; 4] = ["bin", "lib", "lib64", "sbin"];

/// A package of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The architecture, as Debian and the Image Specification call it.
    pub architecture: String,
    /// The SHA-256 of the package.
    pub sum: String,
}

impl Tools {
    /// The packages for a platform.
    ///
    /// # Errors
    /// The list cannot be read, or has none for this platform.
    pub fn packages(&self, platform: &Platform) -> anyhow::Result<Vec<Package>> {
        let path = root().join(self.list);
        let text =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let packages = parse(&text, platform.architecture).with_context(|| self.list)?;
        ensure!(!packages.is_empty(), "{} has no packages for {}", self.list, platform.name);
        Ok(packages)
    }

    /// The files of the packages, which are downloaded by `apt-get` and kept in the cache.
    ///
    /// # Errors
    /// A package cannot be had, or is not the one of the list.
    pub fn files(&self, packages: &[Package]) -> anyhow::Result<Files> {
        let cache = cache()?;
        let mut files = links();
        for package in packages {
            let archive = fetch(package, &cache)?;
            let unpacked = Command::new("dpkg-deb").arg("--fsys-tarfile").arg(&archive).output();
            let unpacked = unpacked.context("cannot start dpkg-deb, which unpacks the packages")?;
            ensure!(unpacked.status.success(), "dpkg-deb does not unpack {}", archive.display());
            files.extend(self.chosen(&unpacked.stdout).with_context(|| package.name.clone())?);
        }
        let programs = self.programs.iter().copied().flatten();
        let missing: Vec<&str> = programs.copied().filter(|program| !has(&files, program)).collect();
        ensure!(missing.is_empty(), "the packages of {} lack {}", self.list, missing.join(", "));
        Ok(files)
    }

    /// What is taken of a package's archive.
    fn chosen(&self, archive: &[u8]) -> anyhow::Result<Files> {
        let mut files = Files::new();
        for entry in tar::Archive::new(archive).entries()? {
            let mut entry = entry?;
            let path = merged(&entry.path()?.display().to_string());
            if !self.is_chosen(&path) {
                continue;
            }
            let leads_to = entry.link_name()?.map(|target| target.display().to_string());
            let file = match (entry.header().entry_type(), leads_to) {
                (tar::EntryType::Symlink, Some(target)) => File::link(target),
                // Names of one file: the others lead to the first.
                (tar::EntryType::Link, Some(target)) => File::link(format!("/{}", merged(&target))),
                (tar::EntryType::Regular, _) => {
                    let mut bytes = Vec::new();
                    entry.read_to_end(&mut bytes)?;
                    // Without the bit that gives its owner's rights: only root uses the programs here.
                    File { mode: entry.header().mode()? & 0o755, bytes, target: None }
                }
                _ => continue,
            };
            files.insert(path, file);
        }
        Ok(files)
    }

    fn is_chosen(&self, path: &str) -> bool {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        match folder {
            "usr/bin" | "usr/sbin" => self.programs.iter().any(|some| some.contains(&name)),
            // How mke2fs makes file systems.
            "etc" => name == "mke2fs.conf",
            _ if folder.starts_with("usr/share/doc/") => name == "copyright",
            // Directly in the folder of libraries: below it are plug-ins of the C library for other encodings.
            _ => {
                let is_library = name.contains(".so");
                let below = folder.strip_prefix("usr/lib").unwrap_or("/no/library");
                is_library && below.matches('/').count() <= 1
            }
        }
    }
}

fn parse(text: &str, architecture: &str) -> anyhow::Result<Vec<Package>> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let package = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, version, architecture, sum] = words[..] else { bail!("not a package: {line:?}") };
        let [name, version, architecture, sum] = [name, version, architecture, sum].map(str::to_owned);
        Ok(Package { name, version, architecture, sum })
    };
    let all: anyhow::Result<Vec<Package>> = lines.map(package).collect();
    Ok(all?.into_iter().filter(|package| package.architecture == architecture).collect())
}

fn has(files: &Files, program: &str) -> bool {
    ["usr/bin", "usr/sbin"].iter().any(|folder| files.contains_key(&format!("{folder}/{program}")))
}

fn cache() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let base = variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    let folder = base.context("HOME is not set")?.join("cerulean/debian");
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// The file of a package, by its checksum.
fn fetch(package: &Package, cache: &Path) -> anyhow::Result<PathBuf> {
    let kept = cache.join(format!("{}.deb", package.sum));
    if !kept.exists() {
        let Package { name, version, architecture, .. } = package;
        let scratch = tempfile::tempdir_in(cache).context("cannot make a folder in the cache")?;
        let wanted = format!("{name}:{architecture}={version}");
        output(Command::new("apt-get").args(["download", "-qq", &wanted]).current_dir(scratch.path()))
            .with_context(|| {
                format!(
                    "{wanted} cannot be had: run scripts/image_tools.sh node-tools, or \
                     scripts/image_packages.sh if Debian has a newer version"
                )
            })?;
        let mut entries = std::fs::read_dir(scratch.path())?;
        let downloaded = entries.next().context("apt-get has downloaded nothing")??.path();
        std::fs::rename(&downloaded, &kept)?;
    }
    let found = sha256(&std::fs::read(&kept).with_context(|| format!("cannot read {}", kept.display()))?);
    ensure!(found == package.sum, "{} {}: the checksum is {found}", package.name, package.version);
    Ok(kept)
}

fn links() -> Files {
    let folders = MERGED.map(|name| (name.to_owned(), File::link(format!("usr/{name}"))));
    // Where tools look for what is mounted.
    let mounted = ("etc/mtab".to_owned(), File::link("/proc/self/mounts"));
    folders.into_iter().chain([("usr/bin/sh".to_owned(), File::link("dash")), mounted]).collect()
}

/// A path below `usr`, where older packages have files beside it.
fn merged(path: &str) -> String {
    let path = path.trim_start_matches("./").trim_start_matches('/');
    let first = path.split('/').next().unwrap_or_default();
    if MERGED.contains(&first) { format!("usr/{path}") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::layer;
    use super::super::platform::{AMD64, ARM64};
    use super::*;

    #[test]
    fn programs_libraries_and_licences_are_taken_and_nothing_else() {
        let taken = [
            ("./sbin/mkfs.xfs", "usr/sbin/mkfs.xfs"),
            ("./usr/bin/btrfs", "usr/bin/btrfs"),
            ("./lib/x86_64-linux-gnu/libblkid.so.1.1.0", "usr/lib/x86_64-linux-gnu/libblkid.so.1.1.0"),
            ("./lib64/ld-linux-x86-64.so.2", "usr/lib64/ld-linux-x86-64.so.2"),
            ("./etc/mke2fs.conf", "etc/mke2fs.conf"),
            ("./usr/share/doc/xfsprogs/copyright", "usr/share/doc/xfsprogs/copyright"),
        ];
        for (path, expected) in taken {
            assert_eq!(merged(path), expected);
            assert!(DISKS.is_chosen(expected), "{path}");
        }
        let left = [
            "usr/bin/nsenter",
            "usr/sbin/xfs_spaceman",
            "usr/lib/x86_64-linux-gnu/gconv/UTF-16.so",
            "usr/share/man/man8/fsck.8.gz",
            "usr/share/doc/xfsprogs/README",
            "etc/pam.d/su",
            "usr/lib/udev/rules.d/64-btrfs.rules",
        ];
        assert!(left.iter().all(|path| !DISKS.is_chosen(path) && !SHARES.is_chosen(path)));
    }

    #[test]
    fn links_stay_links_and_other_names_of_a_file_lead_to_it() {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o4755);
        header.set_size(4);
        builder.append_data(&mut header, "./sbin/mke2fs", &b"tool"[..]).unwrap();
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Link);
        header.set_size(0);
        builder.append_link(&mut header, "./sbin/mkfs.ext4", "./sbin/mke2fs").unwrap();
        let files = DISKS.chosen(&builder.into_inner().unwrap()).unwrap();
        assert_eq!(files["usr/sbin/mke2fs"], File::program("tool"));
        assert_eq!(files["usr/sbin/mkfs.ext4"], File::link("/usr/sbin/mke2fs"));
        let mut all = links();
        all.extend(files);
        let bytes = layer::archive(&all, 0).unwrap();
        let mut archive = tar::Archive::new(&bytes[..]);
        let entries: Vec<_> = archive.entries().unwrap().map(Result::unwrap).collect();
        let link = |path: &str| {
            let found = entries.iter().find(|entry| entry.path().unwrap().display().to_string() == path);
            found.unwrap().link_name().unwrap().map(|target| target.display().to_string())
        };
        assert_eq!(link("sbin").as_deref(), Some("usr/sbin"));
        assert_eq!(link("usr/bin/sh").as_deref(), Some("dash"));
        assert_eq!(link("usr/sbin/mke2fs"), None);
    }

    #[test]
    fn the_list_has_each_package_for_both_architectures_with_its_checksum() {
        let names = |tools: &Tools, platform| {
            let packages = tools.packages(platform).unwrap();
            assert!(packages.iter().all(|package| package.sum.len() == 64), "{packages:?}");
            packages.into_iter().map(|package| package.name).collect::<Vec<_>>()
        };
        let expected: [(&Tools, &[&str]); 2] = [
            (&DISKS, &["btrfs-progs", "e2fsprogs", "util-linux", "xfsprogs"]),
            (&SHARES, &["cifs-utils", "nfs-common", "e2fsprogs", "util-linux", "xfsprogs"]),
        ];
        for (tools, packages) in expected {
            assert_eq!(names(tools, &AMD64), names(tools, &ARM64));
            for name in packages {
                assert!(names(tools, &AMD64).iter().any(|one| one == name), "{name}");
            }
        }
        assert!(parse("fsck 1.0 amd64", "amd64").is_err());
    }
}
