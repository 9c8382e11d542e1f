//! From a command line to a driver: wiring, nothing else.

use std::sync::Arc;

use anyhow::Context as _;
use arm::CallObserver;
use command_line::StartRefusal;
use csi::endpoint::Endpoint;
use csi::identity::Plugin;
use csi::listener::Listener;
use csi::observed::Observer;
use csi::operation::Driver;
use csi::server::{serve, services};
use csi::v1::plugin_capability::{service, volume_expansion};
use kube::Client;
use manager::Calls;
use manager::configuration::Reading;
use manager::driver::Sources;
use manager::driver_connection::connect as connect_to_azure;
use program::environment::ProcessEnvironment;
use program::in_one_line;
use program::kubernetes::{self, Address};
use telemetry::metrics::{Build, MachineDiskMetrics, Metrics};
use telemetry::server::{self, Readers, metrics_router};
use tokio_util::sync::CancellationToken;

use crate::configuration::connection;
use crate::controller::{Azure, DiskController, KubernetesView};
use crate::flags::CommandLine;
use crate::node_role;

/// The name of the program, for logs, metrics and the Kubernetes API.
pub const PROGRAM: &str = "azuredisk-csi-driver";

/// A kubeconfig of this name means that there is no Kubernetes.
const NO_KUBECONFIG: &str = "no-need-kubeconfig";

/// Runs the driver until `stop`.
///
/// # Errors
/// One line that names the flag or address and the remedy, or [`StartRefusal`] with a line for each; the process should exit
/// with 1.
pub async fn run(
    line: CommandLine,
    environment: ProcessEnvironment,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    for (flags, reason) in &line.without_effect {
        tracing::warn!(flags = flags.join(","), reason, "Flags accepted without effect");
    }
    let problems: Vec<String> = line.problems().iter().map(ToString::to_string).collect();
    if !problems.is_empty() {
        return Err(StartRefusal::one("the command line", problems).into());
    }
    tracing::info!(version = %version::Version, name = line.flags.drivername, node = line.flags.nodeid, "Starting {PROGRAM}");
    let metrics =
        Metrics::of_program(Build { program: PROGRAM, version: version::RELEASE, commit: version::COMMIT });
    let Some(client) = stop.run_until_cancelled(connect(&line, &environment)).await else { return Ok(()) };
    let client = client?;
    if line.flags.pre_stop_hook {
        let hook = node_role::before_stop(&line, client, &environment);
        return stop.run_until_cancelled(hook).await.unwrap_or(Ok(()));
    }
    let sources = Sources {
        secret: Sources::secret_of(
            &line.flags.cloud_config_secret_namespace,
            &line.flags.cloud_config_secret_name,
        ),
        client: client.clone(),
        environment: environment.clone(),
        user_agent: line.user_agent(),
        observer: Arc::new(Calls::of(&metrics)) as Arc<dyn CallObserver>,
    };
    let opening = open(&line, sources, &metrics, &stop);
    let Some(azure) = stop.run_until_cancelled(opening).await else { return Ok(()) };
    let view = match &client {
        Some(client) if !line.is_node() => KubernetesView::watch(client, &line.flags.drivername, &stop),
        _ => KubernetesView::none(),
    };
    // Writes in progress end with the calls that wait for them.
    let writers = CancellationToken::new();
    let _stops_writers = writers.clone().drop_guard();
    let attaches = MachineDiskMetrics::of(&metrics);
    let controller = DiskController::new(azure?, view, line.controller(), attaches, writers);
    let node = node_role::service(&line, client.as_ref(), &stop).await?;
    serve_metrics(&line, &metrics, &stop).await?;
    // Checked before.
    let endpoint: Endpoint = line.flags.endpoint.parse().context("--endpoint")?;
    let listener = Listener::bind(&endpoint).await?;
    tracing::info!(address = %endpoint, "Serving the Container Storage Interface");
    let services = services(plugin(&line), controller, node, Observer::of(&metrics, Driver::Disk));
    serve(services, listener, stop).await.context("the server has failed")
}

/// What the driver says of itself (section 3.1 of the specification of the drivers).
fn plugin(line: &CommandLine) -> Plugin {
    let mut expansion = vec![volume_expansion::Type::Offline];
    if line.flags.enable_disk_online_resize {
        expansion.push(volume_expansion::Type::Online);
    }
    Plugin {
        name: line.flags.drivername.clone(),
        version: version::RELEASE.to_owned(),
        services: vec![service::Type::ControllerService, service::Type::VolumeAccessibilityConstraints],
        expansion,
    }
}

/// The connection to Kubernetes; `None` outside of a pod without a kubeconfig.
async fn connect(line: &CommandLine, environment: &ProcessEnvironment) -> anyhow::Result<Option<Client>> {
    let kubeconfig = line.flags.kubeconfig.as_str();
    let in_pod = environment.variable("KUBERNETES_SERVICE_HOST").is_some();
    if kubeconfig == NO_KUBECONFIG || (kubeconfig.is_empty() && !in_pod) {
        tracing::warn!(
            "Kubernetes is not asked: LUNs in use on nodes, the readiness of nodes and the Secret with the cloud configuration \
             are unknown (name a kubeconfig with --kubeconfig)"
        );
        return Ok(None);
    }
    let address = Address { kubeconfig, master: "", agent: PROGRAM, waits: true, observer: None };
    kubernetes::connect(&address, &environment.proxy()?).await.map(Some)
}

/// Opens the connection to Azure: at once in the controller, with the first call that needs it on a node.
async fn open(
    line: &CommandLine,
    sources: Sources,
    metrics: &Metrics,
    stop: &CancellationToken,
) -> anyhow::Result<Azure> {
    if line.is_node() {
        return Ok(Azure::lazy(move || {
            let sources = sources.clone();
            Box::pin(async move {
                let opened = sources.open().await.map_err(|error| in_one_line(&error))?;
                let (reading, client) = opened.ok_or("there is no cloud configuration")?;
                Ok(connection(&reading, client))
            })
        }));
    }
    let azure = Azure::new(None);
    let opened = azure.clone();
    let connected = move |reading: &Reading, client| opened.replace(connection(reading, client));
    connect_to_azure(sources, line.flags.allow_empty_cloud_config, metrics, connected, stop).await?;
    Ok(azure)
}

async fn serve_metrics(
    line: &CommandLine,
    metrics: &Metrics,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    // Validated before.
    let Ok(Some(address)) = line.metrics_address() else { return Ok(()) };
    let router = metrics_router(metrics.clone(), Readers::Everyone);
    let listening = server::serve(router, (address, "--metrics-address"), None, stop.clone()).await?;
    tracing::info!(address = %listening.address, "Serving metrics");
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use arm::{CallRecord, Class, Purpose};
    use csi::operation::Operation;
    use telemetry::metrics::OperationMetrics;
    use telemetry::metrics::ScrapeMetrics;
    use telemetry::metrics::azure::{Budget, Closed, ConfigMetrics, register_budgets};
    use telemetry::metrics::catalogue::assert_documented;

    use super::*;

    /// Uses every metric of the program once, and compares what a scrape shows with `docs/metrics.md`.
    #[test]
    fn the_page_lists_the_metrics_that_the_program_serves() {
        let metrics = Metrics::of_program(Build { program: PROGRAM, version: "1", commit: "c" });
        let took = Duration::from_millis(1);
        let operations = OperationMetrics::of(&metrics, Driver::Disk.metrics_prefix());
        let label = [("storage_account_type", "Premium_LRS".to_owned())];
        operations.completed(Operation::CreateVolume.label(), true, took, &label);
        let disks = MachineDiskMetrics::of(&metrics);
        disks.refused_as_full();
        disks.written(1, took, true);
        let _configuration = ConfigMetrics::of(&metrics);
        let scrapes = ScrapeMetrics::of(&metrics);
        scrapes.received();
        scrapes.answered(200);
        let calls = Calls::of(&metrics);
        let call = CallRecord {
            method: "PUT",
            resource_type: "Microsoft.Compute/disks",
            resource_name: "a",
            subscription: "s",
            resource_group: Some("rg"),
            purpose: Purpose::Write,
            class: Class::Create,
            status: Some(201),
            duration: took,
            waited: took,
            attempt: 1,
            reason: None,
            request_id: None,
            throttled: false,
        };
        calls.on_call(&call);
        calls.on_call(&CallRecord { reason: Some("Conflict"), status: Some(409), ..call.clone() });
        calls.on_call(&CallRecord { throttled: true, status: Some(429), ..call.clone() });
        calls.on_limited(&call);
        register_budgets(&metrics, || {
            let closed = vec![Closed { namespace: String::new(), remaining: Duration::ZERO }];
            vec![Budget {
                subscription: "s".into(),
                group: "writes",
                remaining: Some(17.0),
                capacity: 200.0,
                closed,
                waiting: vec![("create", 1)],
            }]
        });
        assert_documented(&metrics, "disk");
    }
}
