//! Each mistake has its own message: one line on standard error, a non-zero exit code, no panic.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::manager::{self, BINARY};
use crate::print;
use crate::program::Built;

/// Runs the controller manager with one mistake at a time.
pub async fn check(built: &Built, directory: &Path, cluster: &Cluster) -> anyhow::Result<()> {
    let good: Value = serde_json::from_str(&std::fs::read_to_string(cluster.files.join("azure.json"))?)?;
    let with = |name: &str, change: Value| -> anyhow::Result<String> {
        let mut document = good.clone();
        if let (Some(members), Some(changes)) = (document.as_object_mut(), change.as_object()) {
            members.extend(changes.clone());
        }
        let path = directory.join(name);
        std::fs::write(&path, document.to_string())?;
        Ok(format!("--cloud-config={}", path.display()))
    };
    let broken = directory.join("broken.json");
    std::fs::write(&broken, "{\"cloud\": ")?;
    let kubeconfig = directory.join("nobody.kubeconfig");
    let file = std::fs::read_to_string(cluster.files.join("kubeconfig"))?;
    std::fs::write(&kubeconfig, replace_server(&file))?;

    let cases = [
        ("an unknown flag", vec!["--no-such-flag".to_owned()], "  --no-such-flag: "),
        ("a missing file", vec!["--cloud-config=/nowhere/azure.json".to_owned()], "/nowhere/azure.json"),
        (
            "a broken file",
            vec![format!("--cloud-config={}", broken.display())],
            "neither valid YAML nor JSON",
        ),
        (
            "an invalid value",
            vec![with("invalid.json", json!({"maximumLoadBalancerRuleCount": "many"}))?],
            "  maximumLoadBalancerRuleCount=\"many\": ",
        ),
        (
            "what this release does not do",
            vec![with("unsupported.json", json!({"cloud": "AzureStackCloud"}))?],
            "  cloud=AzureStackCloud: not supported",
        ),
        (
            "a wrong secret",
            vec![with("wrong-secret.json", json!({"aadClientSecret": "not-the-secret"}))?],
            "AADSTS7000215",
        ),
        (
            "an unreachable API, without patience",
            vec![format!("--kubeconfig={}", kubeconfig.display()), "--dry-run".to_owned()],
            "cannot be reached",
        ),
        (
            "a wrong duration",
            vec!["--node-monitor-period=often".to_owned()],
            "  --node-monitor-period=often: `often` is no duration",
        ),
    ];
    for (what, flags, word) in cases {
        let output = tokio::task::spawn_blocking({
            let mut command = manager::command(built, cluster);
            // The last flag of a name applies.
            command.args(&flags);
            move || run_briefly(command)
        })
        .await?
        .with_context(|| what.to_owned())?;
        let text = String::from_utf8_lossy(&output.stderr);
        // One sentence; faults of the configuration follow, one on each line.
        let mut said = text.lines().skip_while(|line| !line.starts_with(BINARY));
        let first = said.next().unwrap_or_default();
        let more: Vec<&str> = said.clone().take_while(|line| line.starts_with("  ")).collect();
        let is_once = !said.any(|line| line.starts_with(BINARY));
        let names_it = first.contains(word) || more.iter().any(|line| line.starts_with(word));
        if output.status.code() != Some(1) || !is_once || !names_it {
            bail!("{what}: ended with {}, and said:\n{text}", output.status);
        }
        if text.contains("not-the-secret") || text.contains("panicked") {
            bail!("{what}: a secret or a panic in\n{text}");
        }
        print::line(format_args!("  ok  {what}: {first}"));
    }
    Ok(())
}

/// Runs a command that must end within a minute.
fn run_briefly(command: Command) -> anyhow::Result<Output> {
    let mut limited = Command::new("timeout");
    limited.arg("60").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            limited.env(name, value);
        }
    }
    Ok(limited.output()?)
}

/// The kubeconfig, with a server that does not run.
fn replace_server(kubeconfig: &str) -> String {
    let servers = kubeconfig.lines().filter_map(|line| line.split_once("https://127.0.0.1:"));
    let port: String = servers
        .map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect())
        .next()
        .unwrap_or_default();
    kubeconfig.replace(&format!("127.0.0.1:{port}"), "127.0.0.1:1")
}
