//! Requests for hosts of their own: who answers them, and that faults, latencies and the journal know them.

use std::time::Duration;

use axum::body::Body;
use azure_simulator::entra::{Entra, EntraOptions};
use azure_simulator::registry::{Registries, Registry};
use azure_simulator::{Azure, Fault, FaultAction, LatencyProfile, LatencyRule, Options};
use http::Request;
use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

const TYPE: &str = "Microsoft.ContainerRegistry/registries";

fn with_registries() -> Azure {
    let azure = Azure::new(Options::default());
    let entra = Entra::new(EntraOptions::new(azure.options().tenant.clone(), azure.clock())).unwrap();
    let registries = Registries::new(entra).unwrap();
    registries.add(Registry::new("foo.azurecr.io").with_anonymous_pull());
    azure.serve_hosts(registries.hosts());
    azure
}

async fn get(azure: &Azure, host: &str, path: &str) -> (u16, String) {
    let request = Request::get(path).header("host", host).body(Body::empty()).unwrap();
    let response = azure.router().oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let Ok(body) = response.into_body().collect().await else { return (0, String::new()) };
    (status, String::from_utf8(body.to_bytes().to_vec()).unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_host_decides_who_answers() {
    let azure = with_registries();
    for (host, path, status, says) in [
        ("foo.azurecr.io", "/v2/", 401, "UNAUTHORIZED"),
        ("FOO.azurecr.io:8443", "/v2/", 401, "UNAUTHORIZED"),
        // Paths that mean something elsewhere mean nothing here.
        ("foo.azurecr.io", "/metadata/endpoints", 404, ""),
        ("foo.azurecr.io", "/_cerulean/journal", 404, ""),
        ("azurecr.io", "/v2/", 404, "InvalidRequestPath"),
        ("fooazurecr.io", "/v2/", 404, "InvalidRequestPath"),
        ("localhost", "/v2/", 404, "InvalidRequestPath"),
    ] {
        let (got, body) = get(&azure, host, path).await;
        assert_eq!(got, status, "{host}{path}: {body}");
        assert!(body.contains(says), "{host}{path}: {body}");
    }
    assert!(azure.host_suffixes().contains(&"azurecr.io".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn faults_latencies_and_the_journal_know_requests_for_other_hosts() {
    let azure = with_registries();
    let fail = FaultAction::Fail { status: 503, code: "UNAVAILABLE".into(), message: "not now".into() };
    azure.inject(Fault::new(fail).on_type(TYPE).on_resource("foo").times(1).named("registry down"));
    azure.inject(Fault::new(FaultAction::DropAnswer).on_method("GET").on_type(TYPE).after(1).times(1));
    let rule =
        LatencyRule { method: "GET".into(), resource_type: TYPE.into(), ms: 700, ..Default::default() };
    azure.set_latency(LatencyProfile { answers: vec![rule], ..LatencyProfile::instant() });
    let begin = tokio::time::Instant::now();
    let (status, body) = get(&azure, "foo.azurecr.io", "/v2/").await;
    assert_eq!((status, body.contains("not now")), (503, true), "{body}");
    assert_eq!(begin.elapsed(), Duration::from_millis(700));
    assert_eq!(get(&azure, "foo.azurecr.io", "/v2/").await.0, 0, "the answer is lost");
    assert_eq!(get(&azure, "foo.azurecr.io", "/v2/").await.0, 401);
    let journal = azure.journal();
    let entries: Vec<_> = journal.entries.iter().map(|e| (e.path.as_str(), e.status)).collect();
    let path = "https://foo.azurecr.io/v2/";
    assert_eq!(entries, [(path, 503), (path, 401), (path, 401)]);
    let first = &journal.entries[0];
    assert_eq!((first.resource_type.as_deref(), first.fault.as_deref()), (Some(TYPE), Some("registry down")));
    assert_eq!((first.code.as_deref(), first.answer_ms), (Some("UNAVAILABLE"), Some(700)));
}
