//! From a command line to running controllers: wiring, nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use cloud::{ClusterState, ServiceError};
use controllers::leader_election::{self, Elector};
use controllers::{HealthCheck, HealthChecks};
use k8s::{EndpointSlice, Namespace, Node, Service};
use kube::api::ListParams;
use kube::{Api, Client};
use manager::DelegatedAuthorizer;
use manager::reload::follow;
use planner::{Cluster, ClusterPlan};
use program::kubernetes::RequestObserver;
use provider::Provider;
use telemetry::health::{Check, Health};
use telemetry::metrics::{HealthMetrics, Metrics};
use telemetry::server::{self, Readers, metrics_router};
use telemetry::tls::{Certificate, TlsOptions};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::configuration::sources::{self, Reading, Sources};
use crate::configuration::{self, Generation, Reloader};
use crate::environment::ProcessEnvironment;
use crate::flags::ranges::Ranges;
use crate::flags::{CommandLine, Flags};
use crate::observe::Meter;
use crate::{azure, in_one_line, kubernetes};
use command_line::{InputRefusal, StartRefusal};

/// Runs the program until `stop`, or, with `--dry-run`, returns the plan as text.
///
/// # Errors
/// One line that names the flag, key or address and the remedy, or [`StartRefusal`] with a line for each; the process
/// should exit with 1.
pub async fn run(
    line: CommandLine,
    environment: ProcessEnvironment,
    stop: CancellationToken,
) -> anyhow::Result<Option<String>> {
    for (flags, reason) in &line.without_effect {
        tracing::warn!(flags = flags.join(","), reason, "Flags accepted without effect");
    }
    judge(&line, &environment)?;
    tracing::info!(version = %version::Version, "Starting azure-cloud-controller-manager");
    // No lease is held and nothing was written yet: the program may be stopped at any point here.
    let Some(started) = stop.run_until_cancelled(connect(&line, &environment)).await else {
        return Ok(None);
    };
    let Started { client, reading, generation, meter } = started?;
    if line.flags.dry_run {
        let plan = stop.run_until_cancelled(dry_run(&client, generation)).await;
        return plan.transpose();
    }

    for warning in &generation.warnings {
        tracing::warn!("{warning}");
    }
    let checks = HealthChecks::default();
    serve(&line.flags, &client, health_of(&checks), meter.metrics.clone(), &stop).await?;
    let host = environment.host_name();
    let (next, generations) = watch::channel(Arc::new(generation));
    let reloader = Reloader {
        line: line.clone(),
        sources: Sources::of(&line.flags),
        client: client.clone(),
        environment,
        meter: Arc::clone(&meter),
        generations: next,
    };
    let _until_the_end = AbortOnDropHandle::new(tokio::spawn(follow(reloader, Some(reading))));
    let lead = {
        let (client, line) = (client.clone(), &line);
        let options = {
            let (checks, meter, host) = (checks.clone(), Arc::clone(&meter), host.clone());
            move |generation: &Generation| {
                options(line, &generation.ranges, &checks, Arc::clone(&meter), &host)
            }
        };
        async move |stop: CancellationToken| {
            configuration::serve(client, line, generations, options, stop).await
        }
    };
    if !line.flags.leader_elect {
        lead(stop).await?;
        return Ok(None);
    }
    let election = line.election(leader_election::identity(&host));
    let elector = Elector::new(client, election, controllers::Clock::system(), meter)?;
    checks.add(elector.health_check());
    elector.run(stop, lead).await?.transpose()?;
    Ok(None)
}

/// Fails with all problems of the command line, and those of azure.json if they can be seen without a Secret.
fn judge(line: &CommandLine, environment: &ProcessEnvironment) -> anyhow::Result<()> {
    let problems: Vec<String> = line.problems().iter().map(ToString::to_string).collect();
    let Sources { file, secret } = Sources::of(&line.flags);
    let of_file = || {
        if file.is_empty() || secret.is_some() {
            return Ok(());
        }
        let config = sources::read(&file, environment)?;
        Generation::check(line, &line.cluster(config))
    };
    if problems.is_empty() {
        return of_file();
    }
    let mut refused = StartRefusal::one("the command line", problems);
    if let Err(error) = of_file() {
        match error.downcast::<StartRefusal>() {
            Ok(also) => refused.inputs.extend(also.inputs),
            Err(error) => {
                refused.inputs.push(InputRefusal { name: file.clone(), problems: vec![in_one_line(&error)] })
            }
        }
    }
    Err(refused.into())
}

/// The clients and facts of a started program.
struct Started {
    client: Client,
    reading: Reading,
    generation: Generation,
    meter: Arc<Meter>,
}

/// Runs before any election: a replica with wrong credentials reports that at once, not when it is needed.
async fn connect(line: &CommandLine, environment: &ProcessEnvironment) -> anyhow::Result<Started> {
    let sources = Sources::of(&line.flags);
    let meter = Arc::new(Meter::default());
    let requests: Arc<dyn RequestObserver> = meter.clone();
    let client = kubernetes::connect(&line.flags, &environment.proxy()?, Some(&requests)).await?;
    kubernetes::check_selector(&client, &line.flags.node_filter_requirements).await?;
    let reading = sources.read(&client, environment).await?;
    if sources.secret.is_some() {
        sources.warn(&reading);
    }
    let generation =
        Generation::prepare(1, line, line.cluster(reading.config.clone()), environment, &meter).await?;
    generation.show(&meter);
    Ok(Started { client, reading, generation, meter })
}

async fn dry_run(client: &Client, generation: Generation) -> anyhow::Result<String> {
    let Generation { azure, cluster, ranges, warnings, .. } = generation;
    azure::check_resource_groups(&azure, &cluster.config).await?;
    let region_zones = azure::region_zones(&azure, &cluster.config).await?;
    let cluster = Cluster { region_zones, ..cluster };
    let with_namespaces = cluster.config.follows_namespace_labels();
    let with_endpoints = cluster.has_local_pools();
    let options = provider::Options { cluster_ranges: ranges.cluster, ..provider::Options::default() };
    let provider = Provider::new(cluster, azure, ClusterState::default(), options);
    list_everything(client, provider.state(), with_namespaces).await?;
    if with_endpoints {
        list_endpoints(client, provider.state()).await?;
    }
    Ok(preview(&provider, ranges.routes, warnings).await?.to_string())
}

/// The writes to Azure for everything in the provider's state, with routes if they are requested, and with the earlier
/// `warnings`. Writes nothing.
///
/// # Errors
/// Azure cannot be read.
pub async fn preview(
    provider: &Provider,
    with_routes: bool,
    warnings: Vec<String>,
) -> Result<ClusterPlan, ServiceError> {
    let mut plan = provider.dry_run().await?;
    plan.warnings.extend(warnings);
    if !with_routes {
        return Ok(plan);
    }
    let due =
        controllers::routes_due(provider, provider, provider.state(), provider.cluster_ranges()).await?;
    let routes = provider.preview_routes(&due.wanted, &due.unwanted).await?;
    Ok(plan.with_routes(routes, due.refused, due.problems))
}

/// Serves the checks of the controllers and of leader election.
fn health_of(checks: &HealthChecks) -> Health {
    let checks = checks.clone();
    let all = move || {
        let check = |check: HealthCheck| Check {
            name: check.name().to_owned(),
            run: Arc::new(move || check.check()),
        };
        checks.all().into_iter().map(check).collect()
    };
    Health::new(all, &["leaderElection"])
}

/// The options of the controllers, from the flags.
fn options(
    line: &CommandLine,
    ranges: &Ranges,
    checks: &HealthChecks,
    meter: Arc<Meter>,
    host: &str,
) -> controllers::Options {
    let flags = &line.flags;
    let controllers = controllers::Controllers {
        service: line.enabled("service-lb-controller"),
        cloud_node: line.enabled("cloud-node-controller"),
        cloud_node_lifecycle: line.enabled("cloud-node-lifecycle-controller"),
        route: ranges.routes,
        node_ipam: ranges.ipam.is_some(),
    };
    controllers::Options {
        controllers,
        node_monitor_period: flags.node_monitor_period,
        route_reconciliation_period: flags.route_reconciliation_period,
        ranges: ranges.ipam.clone(),
        node_status_update_frequency: flags.node_status_update_frequency,
        azure_resync_period: flags.azure_resync_period,
        node_selector: Some(flags.node_filter_requirements.clone()).filter(|selector| !selector.is_empty()),
        host: host.to_owned(),
        health: checks.clone(),
        observer: meter,
        ..controllers::Options::default()
    }
}

/// Serves health checks and metrics, unless the port is 0.
async fn serve(
    flags: &Flags,
    client: &Client,
    health: Health,
    metrics: Metrics,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    if flags.secure_port == 0 {
        return Ok(());
    }
    let certificate = if flags.tls_cert_file.is_empty() {
        Certificate::SelfSigned
    } else {
        Certificate::Files {
            certificate: flags.tls_cert_file.clone().into(),
            key: flags.tls_private_key_file.clone().into(),
        }
    };
    let tls = TlsOptions {
        certificate,
        only_tls13: flags.tls_min_version == "VersionTLS13",
        http2: !flags.disable_http2_serving,
        ..TlsOptions::default()
    };
    let readers = Readers::Authorized(Arc::new(DelegatedAuthorizer::new(client)));
    let health = health.counted(HealthMetrics::of(&metrics));
    let router = metrics_router(metrics, readers).merge(health.router());
    let address = SocketAddr::new(flags.bind_address, flags.secure_port);
    let asked = (address, "--secure-port or --bind-address");
    let listening = server::serve(router, asked, Some(&tls), stop.clone()).await?;
    tracing::info!(address = %listening.address, "Serving health checks and metrics");
    Ok(())
}

/// The timeout for listing the objects of a plan.
const LIST_TIMEOUT: Duration = Duration::from_secs(60);

/// Lists EndpointSlices once.
async fn list_endpoints(client: &Client, state: &ClusterState) -> anyhow::Result<()> {
    let of_services = ListParams::default().labels(k8s::names::LABEL_SERVICE_NAME);
    let slices = Api::<EndpointSlice>::all(client.clone());
    let slices = tokio::time::timeout(LIST_TIMEOUT, slices.list(&of_services))
        .await
        .context("the Kubernetes API did not list EndpointSlices within a minute")?
        .context("cannot list EndpointSlices")?;
    for slice in &slices.items {
        state.apply_endpoint_slice(slice);
    }
    state.endpoints_are_synced();
    Ok(())
}

/// Lists Services and Nodes once, and Namespaces if their labels matter: the inputs of a plan.
async fn list_everything(client: &Client, state: &ClusterState, with_namespaces: bool) -> anyhow::Result<()> {
    let list = async {
        let everything = ListParams::default();
        let services = Api::<Service>::all(client.clone()).list(&everything).await?;
        let nodes = Api::<Node>::all(client.clone()).list(&everything).await?;
        services.items.into_iter().for_each(|service| state.apply_service(Arc::new(service)));
        nodes.items.into_iter().for_each(|node| state.apply_node(Arc::new(node)));
        if with_namespaces {
            for namespace in Api::<Namespace>::all(client.clone()).list(&everything).await? {
                state
                    .apply_namespace(namespace.name(), namespace.metadata.labels.clone().unwrap_or_default());
            }
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(LIST_TIMEOUT, list)
        .await
        .context("the Kubernetes API did not list Services and Nodes within a minute")?
        .context("cannot list Services and Nodes")?;
    state.services_are_synced();
    state.nodes_are_synced();
    Ok(())
}
