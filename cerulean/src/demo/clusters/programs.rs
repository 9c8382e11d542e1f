//! Our programs in the demo of clusters, which run in this process as they do in production.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use capz_controller_manager::flags::{self, Start};
use cloud_controller_manager::environment::ProcessEnvironment;
use serde_json::Value;
use tokio::time::Instant;

use crate::demo::programs::Programs;
use crate::management::{ClusterName, Management, workload_kubeconfig, write_secret};

/// The time limit for the manager to serve its webhooks.
const READY_TIMEOUT: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The key of azure.json in the Secret for machines of a control plane.
const AZURE_JSON: &str = "control-plane-azure.json";

/// A program's environment: Azure under its own names, and the manager's variables that `has` selects. The certificate
/// authority is passed directly: its variable would apply to the whole process.
fn environment(management: &Management, has: fn(&str) -> bool) -> anyhow::Result<ProcessEnvironment> {
    let mut variables = management.variables();
    variables.retain(|(name, _)| *name != "SSL_CERT_FILE" && has(name));
    let mut environment = ProcessEnvironment::with_variables(move |name| {
        let known = variables.iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| value.clone())
    });
    let authority = &management.hosted.azure.certificate_authority;
    environment.extra_roots = vec![std::fs::read_to_string(authority)?];
    environment.redirects = vec![("169.254.169.254".to_owned(), management.hosted.metadata.clone())];
    Ok(environment)
}

/// Starts `capz-controller-manager` with the command line of its manifest, and waits until it serves its webhooks.
pub async fn start_manager(management: &Management, programs: &mut Programs) -> anyhow::Result<()> {
    let mut arguments = vec!["capz-controller-manager".to_owned()];
    arguments.extend(management.arguments());
    let quick = [
        "--health-addr=0",
        "--diagnostics-address=0",
        "--debouncing-timer=1s",
        "--reconciler-requeue=2s",
        "--sync-period=10s",
    ];
    arguments.extend(quick.map(str::to_owned));
    let line = match flags::parse(arguments.into_iter().map(Into::into)) {
        Ok(Start::Manager(line)) => *line,
        Ok(Start::MigrateAsoCrds | Start::PrintVersion) => bail!("the manager of clusters was not started"),
        Err(instead) => bail!("the manager of clusters refuses its command line: {instead:?}"),
    };
    let run =
        capz_controller_manager::run::run(line, environment(management, |_| true)?, programs.stop_token());
    programs.start("manager of clusters", run);
    management.register_webhooks().await?;
    let deadline = Instant::now() + READY_TIMEOUT;
    while !management.webhooks.listens().await {
        programs.check().await?;
        ensure!(Instant::now() < deadline, "the webhooks of the manager of clusters do not answer");
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}

/// The azure.json for a cluster's control plane; `None` until it is written.
pub fn azure_json(management: &Management, cluster: &ClusterName) -> anyhow::Result<Option<Value>> {
    let of = |kind: &str, namespace: &Value, name: &Value| {
        let objects = management.list(kind);
        objects
            .into_iter()
            .find(|it| it["metadata"]["name"] == *name && it["metadata"]["namespace"] == *namespace)
    };
    let namespace = &Value::from(cluster.namespace.as_str());
    let Some(found) = of("Cluster", namespace, &cluster.name.as_str().into()) else { return Ok(None) };
    let plane = of("KubeadmControlPlane", namespace, &found["spec"]["controlPlaneRef"]["name"]);
    let plane = plane.unwrap_or_default();
    // Its location differs between the versions of the kind.
    let template =
        ["/spec/machineTemplate/spec/infrastructureRef/name", "/spec/machineTemplate/infrastructureRef/name"];
    let Some(template) = template.iter().find_map(|pointer| plane.pointer(pointer)?.as_str()) else {
        return Ok(None);
    };
    let Some(secret) = of("Secret", namespace, &format!("{template}-azure-json").into()) else {
        return Ok(None);
    };
    let data = STANDARD.decode(secret["data"][AZURE_JSON].as_str().unwrap_or_default())?;
    let document = serde_json::from_slice(&data);
    Ok(Some(document.with_context(|| format!("Secret {template}-azure-json, {AZURE_JSON}"))?))
}

/// Starts `azure-cloud-controller-manager` for a cluster whose kubeconfig is written.
pub fn start_cloud_controller_manager(
    management: &Management,
    directory: &Path,
    cluster: &ClusterName,
    azure_json: &Value,
    programs: &mut Programs,
) -> anyhow::Result<()> {
    let path = directory.join(format!("{}.azure.json", cluster.file()));
    write_secret(&path, &azure_json.to_string())?;
    let arguments = [
        "azure-cloud-controller-manager".to_owned(),
        format!("--cloud-config={}", path.display()),
        format!("--kubeconfig={}", workload_kubeconfig(directory, cluster).display()),
        format!("--cluster-name={}", cluster.name),
        "--secure-port=0".to_owned(),
        "--node-monitor-period=1s".to_owned(),
        // There is no other candidate, and a busy machine may not answer for ten seconds.
        "--leader-elect=false".to_owned(),
    ];
    let line = cloud_controller_manager::flags::parse(arguments.map(Into::into));
    let line = line.map_err(|instead| match instead {
        cloud_controller_manager::flags::EarlyExit::Print(text)
        | cloud_controller_manager::flags::EarlyExit::Refuse(text) => anyhow::anyhow!(text),
    })?;
    // Its credentials are only in azure.json.
    let environment = environment(management, |name| !name.starts_with("AZURE_"))?;
    let run = cloud_controller_manager::run::run(line, environment, programs.stop_token());
    programs.start("cloud controller manager", async move { run.await.map(|_| ()) });
    Ok(())
}
