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
use csi::v1::plugin_capability::service;
use kube::Client;
use manager::Calls;
use manager::configuration::Reading;
use manager::driver::Sources;
use manager::driver_connection::connect as connect_to_azure;
use program::environment::ProcessEnvironment;
use program::kubernetes::{self, Address};
use telemetry::metrics::{Build, Metrics};
use telemetry::server::{self, Readers, metrics_router};
use tokio_util::sync::CancellationToken;
use volumes_node::system::Kernel;

use crate::configuration::connection;
use crate::controller::{Azure as ControllerAzure, Secrets, ShareController};
use crate::flags::CommandLine;
use crate::node::kubernetes::Kubernetes;
use crate::node::proxy::GrpcProxy;
use crate::node::{Azure, Cluster, NodeAzure, NodeService, Outside, Proxy};

/// The name of the program, for logs, metrics and the Kubernetes API.
pub const PROGRAM: &str = "azurefile-csi-driver";

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
    let opening = open(&line, sources.clone(), &metrics, &stop);
    let Some(azure) = stop.run_until_cancelled(opening).await else { return Ok(()) };
    let secrets = Secrets::new(client.clone(), &line.flags.drivername);
    let controller = ShareController::new(azure?, secrets, line.controller());
    let node = NodeService::new(line.node(), Arc::new(Kernel), outside(&line, client, sources)?);
    serve_metrics(&line, &metrics, &stop).await?;
    // Checked before.
    let endpoint: Endpoint = line.flags.endpoint.parse().context("--endpoint")?;
    let listener = Listener::bind(&endpoint).await?;
    tracing::info!(address = %endpoint, "Serving the Container Storage Interface");
    let services = services(plugin(&line), controller, node, Observer::of(&metrics, Driver::File));
    serve(services, listener, stop).await.context("the server has failed")
}

/// What the driver says of itself (section 4.1 of the specification of the drivers).
fn plugin(line: &CommandLine) -> Plugin {
    Plugin {
        name: line.flags.drivername.clone(),
        version: version::RELEASE.to_owned(),
        services: vec![service::Type::ControllerService],
        expansion: Vec::new(),
    }
}

/// Opens the connection of the controller to Azure. A node opens its own with the first call that needs it, and its controller has
/// none.
async fn open(
    line: &CommandLine,
    sources: Sources,
    metrics: &Metrics,
    stop: &CancellationToken,
) -> anyhow::Result<ControllerAzure> {
    if line.is_node() {
        return Ok(ControllerAzure::default());
    }
    let azure = ControllerAzure::default();
    let opened = azure.clone();
    let connected = move |reading: &Reading, client| opened.replace(connection(reading, client));
    connect_to_azure(sources, line.flags.allow_empty_cloud_config, metrics, connected, stop).await?;
    Ok(azure)
}

/// What the node asks beside the machine.
fn outside(line: &CommandLine, client: Option<Client>, sources: Sources) -> anyhow::Result<Outside> {
    let proxy = match line.flags.enable_azurefile_proxy {
        true => {
            let endpoint =
                line.flags.azurefile_proxy_endpoint.parse().context("--azurefile-proxy-endpoint")?;
            Some(Arc::new(GrpcProxy::new(endpoint)) as Arc<dyn Proxy>)
        }
        false => None,
    };
    let cluster =
        client.map(|client| Arc::new(Kubernetes::new(client, &line.flags.nodeid)) as Arc<dyn Cluster>);
    let azure = Some(Arc::new(NodeAzure::new(sources)) as Arc<dyn Azure>);
    Ok(Outside { cluster, azure, proxy })
}

/// The connection to Kubernetes; `None` outside of a pod without a kubeconfig.
async fn connect(line: &CommandLine, environment: &ProcessEnvironment) -> anyhow::Result<Option<Client>> {
    let kubeconfig = line.flags.kubeconfig.as_str();
    let in_pod = environment.variable("KUBERNETES_SERVICE_HOST").is_some();
    if kubeconfig == NO_KUBECONFIG || (kubeconfig.is_empty() && !in_pod) {
        tracing::warn!(
            "Kubernetes is not asked: Secrets with keys and the cloud configuration are unknown (name a kubeconfig with --kubeconfig)"
        );
        return Ok(None);
    }
    let address = Address { kubeconfig, master: "", agent: PROGRAM, waits: true, observer: None };
    kubernetes::connect(&address, &environment.proxy()?).await.map(Some)
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
    use telemetry::metrics::catalogue::assert_documented;

    use super::*;

    /// Uses every metric of the program once, and compares what a scrape shows with `docs/metrics.md`.
    #[test]
    fn the_page_lists_the_metrics_that_the_program_serves() {
        let metrics = Metrics::of_program(Build { program: PROGRAM, version: "1", commit: "c" });
        let took = Duration::from_millis(1);
        let operations = OperationMetrics::of(&metrics, Driver::File.metrics_prefix());
        let labels = [("protocol", "smb".to_owned()), ("storage_account_type", "Premium_LRS".to_owned())];
        operations.completed(Operation::CreateVolume.label(), true, took, &labels);
        let scrapes = ScrapeMetrics::of(&metrics);
        scrapes.received();
        scrapes.answered(200);
        let calls = Calls::of(&metrics);
        let call = CallRecord {
            method: "POST",
            resource_type: "Microsoft.Storage/storageAccounts",
            resource_name: "a",
            subscription: "s",
            resource_group: Some("rg"),
            purpose: Purpose::Action,
            class: Class::Create,
            status: Some(200),
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
        assert_documented(&metrics, "file");
    }
}
