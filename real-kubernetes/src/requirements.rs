//! Requirements of clusters with nodes.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::StartError;

/// The folders of container network plugins: of Debian's package, and of their own release.
const NETWORK_PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];

/// Required programs in `KUBEBUILDER_ASSETS`.
const ASSETS: [&str; 6] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kubectl"];

/// Required programs of the system, each with its Debian package.
const PROGRAMS: [(&str, &str); 8] = [
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("busybox", "busybox-static"),
    ("ip", "iproute2"),
    ("mount", "mount"),
    ("nsenter", "util-linux"),
    ("tar", "tar"),
    ("unshare", "util-linux"),
];

/// A missing requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lack {
    /// This process does not run as root, which namespaces with containers require.
    Root,
    /// The system does not allow this process to create namespaces, as in most containers.
    Namespaces,
    /// A program is missing in `KUBEBUILDER_ASSETS`.
    Asset(&'static str),
    /// A program of the system is missing, with the Debian package that contains it.
    Package(&'static str),
}

impl std::fmt::Display for Lack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => f.write_str("it is not run by root"),
            Self::Namespaces => {
                f.write_str("it may make no namespaces (unshare), as in a container without rights")
            }
            Self::Asset(name) => write!(f, "KUBEBUILDER_ASSETS has no {name}"),
            Self::Package(name) => write!(f, "the package {name} is not installed (apt-get install {name})"),
        }
    }
}

/// Returns the missing requirements of a cluster with nodes on this machine.
pub fn lacks(assets: &Path) -> Vec<Lack> {
    let folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let has = |program: &str| folders.iter().any(|folder| is_program(&folder.join(program)));
    let root = (!is_root()).then_some(Lack::Root);
    let assets = ASSETS.into_iter().filter(|name| !is_program(&assets.join(name))).map(Lack::Asset);
    let programs = PROGRAMS.into_iter().filter(|(program, _)| !has(program)).map(|(_, package)| package);
    let plugins = network_plugins().is_none().then_some("containernetworking-plugins");
    let mut packages: Vec<&str> = programs.chain(plugins).collect();
    packages.dedup();
    let namespaces = (root.is_none() && has("unshare") && !makes_namespaces()).then_some(Lack::Namespaces);
    let packages = packages.into_iter().map(Lack::Package);
    root.into_iter().chain(namespaces).chain(assets).chain(packages).collect()
}

/// Installs the packages among the missing requirements.
///
/// # Errors
/// The package manager's error.
pub fn install(lacks: &[Lack]) -> Result<(), StartError> {
    let packages: Vec<&str> = lacks
        .iter()
        .filter_map(|lack| if let Lack::Package(name) = lack { Some(*name) } else { None })
        .collect();
    if packages.is_empty() {
        return Ok(());
    }
    for arguments in
        [vec!["update"], [vec!["install", "--yes", "--no-install-recommends"], packages].concat()]
    {
        let command = || format!("apt-get {}", arguments.join(" "));
        let done = Command::new("apt-get")
            .arg("--quiet")
            .args(&arguments)
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .output()
            .map_err(|source| StartError::System { what: command(), source })?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            return Err(StartError::Command { command: command(), said });
        }
    }
    Ok(())
}

/// The folder with the container network plugins.
pub(crate) fn network_plugins() -> Option<&'static Path> {
    NETWORK_PLUGINS.into_iter().map(Path::new).find(|folder| is_program(&folder.join("ptp")))
}

/// The path of busybox.
pub(crate) fn busybox() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("busybox")).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

fn makes_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "true"]);
    let tried = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|it| it.uid() == 0)
}
