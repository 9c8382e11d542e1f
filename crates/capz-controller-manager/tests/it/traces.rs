//! `--enable-tracing`: the traces that a collector gets, and the behaviour without one.

use std::time::Duration;

use azure_simulator::{LatencyProfile, Options};
use certificate_authority::CertificateAuthority;
use clock::Clock;
use kubernetes_simulator::Token;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use serde_json::{Value, json};
use simulated_cluster::{HostedAzure, HostedAzureOptions, Shape};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::collector::{Collector, texts};
use super::manager::free_port;
use super::place::{Place, core, infrastructure};
use super::simulated::{World, world_with};

const SECRET: &str = "of-the-test-of-traces";
/// Longer than any test.
const LATER: &str = "3600000";

async fn azure(folder: &std::path::Path, stop: &CancellationToken) -> HostedAzure {
    let options =
        Options { latency: LatencyProfile::instant(), start: Clock::system().now(), ..Options::default() };
    let options = HostedAzureOptions {
        client_secret: Some(Token::new(SECRET)),
        ..HostedAzureOptions::of(&Shape::default(), options, folder)
    };
    HostedAzure::start(options, stop).await.unwrap()
}

/// Creates a cluster whose identity exists in Azure.
async fn declare_cluster(place: &Place) -> Value {
    let shape = Shape::default();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "azure", "namespace": "default" },
        "stringData": { "clientSecret": SECRET },
    });
    place.create(secret).await.unwrap();
    let spec = json!({
        "type": "ServicePrincipal", "tenantID": shape.tenant, "clientID": shape.client_id, "allowedNamespaces": {},
        "clientSecret": { "name": "azure", "namespace": "default" },
    });
    place.create(infrastructure("AzureClusterIdentity", "azure", spec)).await.unwrap();
    let reference = json!({ "kind": "AzureCluster", "name": "c-1" });
    let owner =
        place.create(core("Cluster", "c-1", json!({ "infrastructureRef": reference }))).await.unwrap();
    let identity = json!({ "kind": "AzureClusterIdentity", "name": "azure" });
    let spec = json!({
        "location": "westeurope", "subscriptionID": shape.subscription, "identityRef": identity,
    });
    let mut object = infrastructure("AzureCluster", "c-1", spec);
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "c-1", "uid": owner["metadata"]["uid"],
    }]);
    object["metadata"]["labels"] = json!({ "cluster.x-k8s.io/cluster-name": "c-1" });
    place.create(object).await.unwrap()
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds().await {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(50)).await;
    }
}

fn parent<'a>(spans: &'a [Span], span: &Span) -> Option<&'a Span> {
    spans.iter().find(|other| other.span_id == span.parent_span_id && other.trace_id == span.trace_id)
}

/// Checks that lines have the format of Kubernetes' components, without spans.
fn assert_plain(log: &str) {
    for line in log.lines() {
        let (head, rest) = line.split_once("] \"").unwrap_or_else(|| panic!("{line}"));
        assert!(head.starts_with(['I', 'W', 'E']) && head.contains(".rs:"), "{line}");
        assert!(!rest.contains("controllers.Azure") && !rest.contains("otel."), "{line}");
    }
}

/// The reconcile that creates a cluster, its steps, and the calls of each; buffered spans are sent at SIGTERM.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_is_traced_with_its_steps_and_calls() {
    arm::install_crypto_provider();
    let (folder, stop) = (tempfile::tempdir().unwrap(), CancellationToken::new());
    let azure = azure(folder.path(), &stop).await;
    let authority = CertificateAuthority::generate().unwrap();
    let collector = Collector::start(0, Some(&authority)).await;
    let bundle = folder.path().join("authorities.pem");
    let of_azure = std::fs::read_to_string(&azure.certificate_authority).unwrap();
    std::fs::write(&bundle, of_azure + authority.certificate_pem()).unwrap();
    let variables = [
        ("AZURE_RESOURCE_MANAGER_ENDPOINT", azure.https.clone()),
        ("AZURE_AUTHORITY_HOST", azure.authority.clone()),
        ("SSL_CERT_FILE", bundle.to_str().unwrap().to_owned()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.clone()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=mine".to_owned()),
        ("OTEL_RESOURCE_ATTRIBUTES", "k8s.pod.name=capz-0".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", LATER.to_owned()),
    ];
    let World { place, manager, folder: _folder, _stop } =
        world_with(&["--enable-tracing"], &variables).await;
    let object = declare_cluster(&place).await;
    until("the cluster is not ready", async || {
        place.get(&object).await.is_some_and(|object| object["status"]["ready"] == true)
    })
    .await;
    let log = manager.log();
    let end = manager.stop().await;
    assert_eq!(end, Some(0), "{log}");
    assert_plain(&log);

    let (headers, request) = collector.requests().swap_remove(0);
    assert_eq!(headers["x-tenant"], "mine");
    let resource = request.resource_spans[0].resource.clone().unwrap();
    let resource = texts(&resource.attributes);
    assert_eq!((resource["service.name"].as_str(), resource["exporter"].as_str()), ("capz", "otlp"));
    assert_eq!(resource["k8s.pod.name"], "capz-0");

    let spans = collector.spans();
    let group = format!("/subscriptions/{}/resourceGroups/c-1", Shape::default().subscription);
    let network = format!("{group}/providers/Microsoft.Network/virtualNetworks/c-1-vnet");
    let put = spans
        .iter()
        .find(|span| {
            span.name == "HTTP PUT" && texts(&span.attributes)["url.path"].eq_ignore_ascii_case(&network)
        })
        .unwrap_or_else(|| panic!("{:?}", spans.iter().map(|span| &span.name).collect::<Vec<_>>()));
    let call = texts(&put.attributes);
    assert_eq!(put.kind(), SpanKind::Client);
    assert_eq!((call["http.method"].as_str(), call["http.status_code"].as_str()), ("PUT", "number 201"));
    assert_eq!(call["net.peer.name"], "127.0.0.1");
    assert!(call["http.url"].eq_ignore_ascii_case(&format!("{}{network}", azure.https)), "{call:?}");
    assert!(!call["az.service_request_id"].is_empty());

    let step = parent(&spans, put).unwrap();
    assert_eq!(step.name, "async.Service.CreateOrUpdateResource");
    let about = texts(&step.attributes);
    assert_eq!((about["service"].as_str(), about["resource"].as_str()), ("virtualnetworks", "c-1-vnet"));
    assert!(step.start_time_unix_nano <= put.start_time_unix_nano);
    assert!(step.end_time_unix_nano >= put.end_time_unix_nano);

    let reconcile = parent(&spans, step).unwrap();
    assert_eq!(reconcile.name, "controllers.AzureClusterReconciler.Reconcile");
    assert!(reconcile.parent_span_id.is_empty());
    let about = texts(&reconcile.attributes);
    assert_eq!(
        [&about["namespace"], &about["name"], &about["kind"], &about["result"]],
        ["default", "c-1", "AzureCluster", "success"]
    );
    let correlation = "x-ms-correlation-request-id";
    assert_eq!(about[correlation], call[correlation]);

    // No query, and no credential.
    let all = format!("{:?}", collector.requests());
    for secret in [SECRET, "Bearer", "api-version", "eyJ"] {
        assert!(!all.contains(secret), "{secret}");
    }
}

/// The manager works without its collector, and reports that once; it also reports that the collector is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_collector_the_manager_works_and_says_so_once() {
    let port = free_port().await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://127.0.0.1:{port}")),
        ("OTEL_BSP_SCHEDULE_DELAY", "50".to_owned()),
    ];
    let World { place, manager, folder: _folder, _stop } =
        world_with(&["--enable-tracing"], &variables).await;
    // Its identity does not exist, so that it is retried again and again.
    let reference = json!({ "kind": "AzureCluster", "name": "c-1" });
    let owner =
        place.create(core("Cluster", "c-1", json!({ "infrastructureRef": reference }))).await.unwrap();
    let mut object = super::place::cluster("c-1");
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "name": "c-1", "uid": owner["metadata"]["uid"],
    }]);
    place.create(object).await.unwrap();
    let lost = "Traces cannot be sent";
    until("it is not reported", async || manager.log().contains(lost)).await;
    let failed = async || {
        let metrics = manager.metrics().await;
        let line = "controller_runtime_reconcile_total{controller=\"azurecluster\",result=\"error\"} ";
        let count = metrics.lines().find_map(|metric| metric.strip_prefix(line)?.parse::<u64>().ok());
        count.unwrap_or_default()
    };
    let before = failed().await;
    until("it is not tried again", async || failed().await > before).await;
    let collector = Collector::start(port, None).await;
    until("no spans arrive", async || !collector.spans().is_empty()).await;
    until("it is not reported", async || manager.log().contains("Traces are sent again")).await;
    let log = manager.log();
    assert_eq!(log.matches(lost).count(), 1, "{log}");
    assert_plain(&log);
    assert!(collector.spans().iter().all(|span| span.name.starts_with("controllers.")));
    // Log lines of that time are attached to it.
    let words = "there is no AzureClusterIdentity default/identity";
    until("no span has the log lines", async || {
        let spans = collector.spans();
        let mut values = spans.iter().flat_map(|span| &span.events).flat_map(|event| &event.attributes);
        values.any(|attribute| format!("{:?}", attribute.value).contains(words))
    })
    .await;
    assert_eq!(manager.stop().await, Some(0));
}

/// An invalid collector is reported at once.
#[tokio::test]
async fn a_collector_that_cannot_be_is_refused() {
    let (code, text) = super::manager::run_with(
        &["--enable-tracing"],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://me:secret@ not a host".to_owned())],
    )
    .await;
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("no traces can be sent to http://") && text.contains("OTEL_EXPORTER_OTLP"),
        "{text}"
    );
}
