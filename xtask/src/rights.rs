//! Roles compared with what an API server has logged.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use rights::audit::Audit;
use serde_json::Value;

use crate::print;
use crate::program::root;

/// The shipped roles.
const SHIPPED: [&str; 2] = ["deploy/rights/kubernetes", "deploy/capz/parts/40-rights.yaml"];

/// What to do.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Find denied requests and unused rights in audit logs of kube-apiserver; fails if a request was denied.
    Audit(Arguments),
}

/// Which logs and roles.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Audit logs of JSON lines, as kube-apiserver writes them with deploy/rights/audit-policy.yaml.
    #[arg(required = true, value_name = "FILE")]
    logs: Vec<PathBuf>,
    /// Manifests with roles and bindings, or folders of them; by default those that are shipped. Repeatable.
    #[arg(long, value_name = "FILE")]
    roles: Vec<PathBuf>,
    /// A service account as NAMESPACE/NAME, or another user; by default all that the bindings name. Repeatable.
    #[arg(long = "user", value_name = "USER")]
    users: Vec<String>,
}

/// Prints what was denied, and what was not used.
///
/// # Errors
/// A file cannot be read, no request was logged, or a request was denied.
pub fn run(command: &Command) -> anyhow::Result<()> {
    let Command::Audit(arguments) = command;
    let audit = examine(&arguments.logs, &arguments.roles, &arguments.users)?;
    print::line(audit.to_string().trim_end());
    ensure!(audit.denied.is_empty(), "requests were denied");
    Ok(())
}

/// Compares logs with roles, by default with the shipped ones.
///
/// # Errors
/// A file cannot be read, or no request of the users was logged.
pub fn examine(logs: &[PathBuf], roles: &[PathBuf], users: &[String]) -> anyhow::Result<Audit> {
    let shipped = || SHIPPED.iter().map(|path| root().join(path)).collect();
    let roles = if roles.is_empty() { shipped() } else { roles.to_owned() };
    let mut objects = Vec::new();
    for path in &roles {
        read_objects(path, &mut objects)?;
    }
    let mut text = String::new();
    for path in logs {
        let log = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        text.push_str(&String::from_utf8_lossy(&log));
        text.push('\n');
    }
    let audit = rights::audit::audit(text.lines(), users, &objects);
    ensure!(audit.requests > 0, "the logs have no request of these users");
    Ok(audit)
}

/// The objects of a manifest, or of all manifests below a folder.
fn read_objects(path: &Path, objects: &mut Vec<Value>) -> anyhow::Result<()> {
    let failed = || format!("cannot read {}", path.display());
    if !path.is_dir() {
        let text = std::fs::read_to_string(path).with_context(failed)?;
        let read: Vec<Value> = serde_saphyr::from_multiple(&text).with_context(failed)?;
        objects.extend(read);
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).with_context(failed)? {
        entries.push(entry.with_context(failed)?.path());
    }
    entries.sort();
    let is_manifest = |path: &&PathBuf| path.is_dir() || path.extension().is_some_and(|it| it == "yaml");
    entries.iter().filter(is_manifest).try_for_each(|path| read_objects(path, objects))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "crates/rights/tests/it/audit.log";

    fn audit(users: &[&str]) -> anyhow::Result<()> {
        let users = users.iter().map(|user| (*user).to_owned()).collect();
        run(&Command::Audit(Arguments { logs: vec![root().join(LOG)], roles: Vec::new(), users }))
    }

    #[test]
    fn denied_requests_are_a_failure_and_so_is_a_log_without_requests() {
        let said = |users: &[&str]| audit(users).unwrap_err().to_string();
        assert_eq!(said(&["kube-system/cloud-controller-manager"]), "requests were denied");
        assert_eq!(said(&["kube-system/other"]), "the logs have no request of these users");
    }

    #[test]
    fn the_shipped_roles_bind_the_accounts_of_our_programs() {
        let mut objects = Vec::new();
        for path in SHIPPED {
            read_objects(&root().join(path), &mut objects).unwrap();
        }
        let text = std::fs::read_to_string(root().join(LOG)).unwrap();
        let audit = rights::audit::audit(text.lines(), &[], &objects);
        assert!(audit.requests > 0 && audit.unused.len() > 50, "{audit}");
        let roles: Vec<&str> = audit.unused.iter().map(|(role, _)| role.as_str()).collect();
        for role in ["cloud-controller-manager-routes", "cloud-node-manager-node", "capz-base-manager-role"] {
            assert!(roles.contains(&role), "{role}: {roles:?}");
        }
    }
}
