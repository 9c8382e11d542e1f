//! Traces of the program: from the queue to the requests to Azure.

#[path = "../../../capz-controller-manager/tests/it/collector.rs"]
mod collector;

use std::process::Stdio;
use std::time::Duration;

use azure_simulator::Options;
use collector::{Collector, texts};
use k8s::Service;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::json;
use simulated_cluster::{HostedCluster, HostedOptions, Shape};
use tokio::process::Command;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The timeout of each step on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

fn parent<'a>(spans: &'a [Span], span: &Span) -> Option<&'a Span> {
    spans.iter().find(|other| other.span_id == span.parent_span_id && other.trace_id == span.trace_id)
}

/// The load balancer of a Service: its reconcile, the turn of the writer, and the request with Azure's id.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_is_traced_from_its_queue_to_azures_request_id() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let start = jiff::Timestamp::from_second(1_760_000_000).unwrap();
    let azure = Options { seed: 7, start, ..Options::default() };
    let cluster =
        HostedCluster::start(HostedOptions::of(Shape::default(), azure, folder.path()), &stop).await.unwrap();
    let collector = Collector::start(0, None).await;
    let mut program = Command::new(env!("CARGO_BIN_EXE_azure-cloud-controller-manager"))
        .arg(format!("--cloud-config={}", cluster.files.azure_json.display()))
        .arg(format!("--kubeconfig={}", cluster.files.kubeconfig.display()))
        .args(["--secure-port=0", "--leader-elect=false"])
        .env_clear()
        .env("SSL_CERT_FILE", &cluster.files.certificate_authority)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url)
        // Later than this test: the spans come at the end of the program.
        .env("OTEL_BSP_SCHEDULE_DELAY", "3600000")
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let api: Api<Service> = Api::namespaced(cluster.client.clone(), "default");
    let service: Service = serde_json::from_value(json!({
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "type": "LoadBalancer", "ports": [{ "port": 80 }] },
    }))
    .unwrap();
    api.create(&PostParams::default(), &service).await.unwrap();
    let served = |service: Option<&Service>| {
        service.is_some_and(|service| !service.status.load_balancer.ingress.is_empty())
    };
    timeout(STEP_TIMEOUT, await_condition(api, "web", served)).await.unwrap().unwrap();
    let id = program.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().await.unwrap().success());
    assert!(timeout(STEP_TIMEOUT, program.wait()).await.unwrap().unwrap().success());

    let spans = collector.spans();
    let names = || spans.iter().map(|span| &span.name).collect::<Vec<_>>();
    let put = spans
        .iter()
        .find(|span| {
            span.name == "HTTP PUT" && texts(&span.attributes)["url.path"].contains("/loadBalancers/")
        })
        .unwrap_or_else(|| panic!("{:?}", names()));
    let call = texts(&put.attributes);
    assert!(!call["az.service_request_id"].is_empty(), "{call:?}");
    let client_id = &call["x-ms-client-request-id"];
    let journal = cluster.azure.journal().entries;
    let seen = journal.iter().find(|entry| entry.client_request_id.as_ref() == Some(client_id));
    assert!(seen.is_some(), "Azure has not got {client_id}");

    let write = parent(&spans, put).unwrap_or_else(|| panic!("{put:?}"));
    assert_eq!(write.name, "Write");
    assert!(texts(&write.attributes)["resource"].contains("load balancer"), "{write:?}");
    let reconcile = parent(&spans, write).unwrap_or_else(|| panic!("{write:?}"));
    assert_eq!(reconcile.name, "Reconcile service");
    let about = texts(&reconcile.attributes);
    assert_eq!((about["object"].as_str(), about["next"].as_str()), ("default/web", "done"));
    assert!(reconcile.parent_span_id.is_empty());
    stop.cancel();
}
