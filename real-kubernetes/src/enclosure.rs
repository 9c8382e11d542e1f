//! Namespaces in which nodes run, so that nothing remains of them: processes, mounts, network interfaces and files of
//! the system disappear with the process that created them, however it ends.
//!
//! ```text
//! the program ─▶ unshare ─▶ the program again, in namespaces of its own ─▶ servers, kubelets, containers
//! ```
//!
//! Control groups are not part of a namespace: those of containers that have not ended by themselves are removed
//! afterwards.

use std::fs;
use std::io::Read as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use crate::command::run;
use crate::containerd;
use crate::error::{StartError, failed};

/// Marks a program as running inside, and contains its folder.
const VARIABLE: &str = "CERULEAN_ENCLOSURE";

/// Folders that are empty inside: programs have files there whose path is not configurable.
const HIDDEN: [&str; 3] = ["/run", "/var/lib", "/var/log"];

/// The folder of control groups: with a folder for each hierarchy (version 1), or itself the only hierarchy (version
/// 2).
const CONTROL_GROUPS: &str = "/sys/fs/cgroup";

/// Attempts to remove a control group that is not empty yet.
const MAX_ATTEMPTS: u32 = 50;
const ATTEMPT_INTERVAL: Duration = Duration::from_millis(100);

/// The namespaces that this process runs in.
#[derive(Debug)]
pub struct Enclosure {
    folder: PathBuf,
    gateway: Ipv4Addr,
}

impl Enclosure {
    /// Runs `program` inside and waits for its end, with its files in `folder`, whose name must be unique.
    ///
    /// # Errors
    /// The program or the folder is in a hidden folder, or a control group cannot be removed.
    pub fn run(program: &Path, arguments: &[String], folder: &Path) -> Result<ExitStatus, StartError> {
        for path in [program, folder] {
            if let Some(hidden) = HIDDEN.iter().find(|hidden| path.starts_with(hidden)) {
                let path = path.display();
                return Err(StartError::NotEnclosed(format!(
                    "{path} cannot be seen where nodes run, which have a {hidden} of their own; put it elsewhere (TMPDIR, \
                     CARGO_TARGET_DIR)"
                )));
            }
        }
        let system = |source| StartError::System { what: "unshare".to_owned(), source };
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        command.args(["--propagation", "private"]);
        // The first process of a namespace ignores signals by default and must reap orphans: the shell does both well.
        command.args(["sh", "-c", "\"$@\"; exit $?", "sh"]).arg(program).args(arguments);
        let mut child = command.env(VARIABLE, folder).stdin(Stdio::piped()).spawn().map_err(system)?;
        // The program ends when this pipe closes: when this process ends for any reason.
        let input = child.stdin.take();
        let ended = child.wait().map_err(system);
        drop(input);
        clear(folder)?;
        ended
    }

    /// Prepares the namespaces in which [`Self::run`] started this process: files, and a network in which `gateway` and
    /// `more` are addresses of this process.
    ///
    /// # Errors
    /// The process was not started by [`Self::run`], or the system refuses.
    pub fn enter(gateway: Ipv4Addr, more: &[Ipv4Addr]) -> Result<Self, StartError> {
        let folder = std::env::var_os(VARIABLE).map(PathBuf::from).ok_or_else(|| {
            StartError::NotEnclosed(format!(
                "{VARIABLE} is not set: nodes run in namespaces of their own alone"
            ))
        })?;
        std::thread::spawn(|| {
            let mut input = std::io::stdin();
            while input.read(&mut [0; 64]).is_ok_and(|length| length > 0) {}
            // The process that waits for this one has ended.
            std::process::exit(1);
        });
        for hidden in HIDDEN {
            run(&["mount", "-t", "tmpfs", "none", hidden])?;
        }
        run(&["ip", "link", "set", "lo", "up"])?;
        for address in std::iter::once(&gateway).chain(more) {
            run(&["ip", "address", "add", &format!("{address}/32"), "dev", "lo"])?;
        }
        Ok(Self { folder, gateway })
    }

    /// The folder for all files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// This process' address in the network of the nodes, which is their default gateway.
    pub fn gateway(&self) -> Ipv4Addr {
        self.gateway
    }
}

/// Removes the control groups of containers that ran on the nodes of a folder. Their processes may take a moment to
/// end.
fn clear(folder: &Path) -> Result<(), StartError> {
    let root = Path::new(CONTROL_GROUPS);
    let hierarchies = entries(root).chain([root.to_owned()]);
    let containers: Vec<PathBuf> =
        entries(folder).flat_map(|node| entries(&containerd::running(&node))).collect();
    for all in
        hierarchies.map(|hierarchy| hierarchy.join(containerd::CONTROL_GROUP)).filter(|all| all.is_dir())
    {
        for group in containers.iter().filter_map(|container| Some(all.join(container.file_name()?))) {
            let mut attempts = 0;
            while group.is_dir() {
                match remove_group(&group) {
                    Err(error) if attempts == MAX_ATTEMPTS => return Err(failed(&group)(error)),
                    Err(_) => pause(),
                    Ok(()) => {}
                }
                attempts += 1;
            }
        }
        // Fails if another containerd on this machine has containers, which keep their groups.
        let _ = fs::remove_dir(all);
    }
    Ok(())
}

#[allow(
    clippy::disallowed_methods,
    reason = "no runtime runs where this waits, as it waits for the program before"
)]
fn pause() {
    std::thread::sleep(ATTEMPT_INTERVAL);
}

/// The entries of a folder; empty if it does not exist.
fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Removes a control group and its descendants. The kernel removes the files in it.
fn remove_group(group: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(group)?.flatten() {
        if entry.file_type()?.is_dir() {
            remove_group(&entry.path())?;
        }
    }
    fs::remove_dir(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_inside_is_refused_outside() {
        let seen = Path::new("/tmp/run-1");
        for hidden in ["/var/lib/jenkins/xtask", "/run/xtask"] {
            let refused = Enclosure::run(Path::new(hidden), &[], seen).unwrap_err().to_string();
            assert!(refused.starts_with(hidden) && refused.contains("TMPDIR"), "{refused}");
        }
    }
}
