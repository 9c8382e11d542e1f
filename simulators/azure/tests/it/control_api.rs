//! The control API from outside: the hosts it answers, and the form of its errors.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use azure_simulator::packet::AlwaysHealthy;
use azure_simulator::page::{self, AzurePage};
use azure_simulator::{Azure, Options};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

fn router() -> Router {
    let azure = Azure::new(Options::default());
    azure.router().merge(page::router(Arc::new(AzurePage::new(azure.clone(), AlwaysHealthy))))
}

/// The status, and the error if the answer is JSON with one.
async fn ask(router: &Router, request: http::request::Builder, body: &str) -> (u16, Option<Value>) {
    let answer = router.clone().oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let json = answer.headers().get("content-type").is_some_and(|kind| kind == "application/json");
    if !json {
        return (status, None);
    }
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice::<Value>(&body).unwrap().get("error").cloned())
}

#[tokio::test]
async fn page_and_control_api_refuse_hosts_with_names_of_their_own() {
    let router = router();
    for (host, status) in [
        ("127.0.0.1:8080", 200),
        ("localhost:8080", 200),
        ("LocalHost", 200),
        ("[::1]:8080", 200),
        ("192.0.2.1", 200),
        ("rebound.example", 403),
        ("rebound.example:8080", 403),
        ("localhost.rebound.example", 403),
        ("127.0.0.1.rebound.example", 403),
        ("[::1].rebound.example:8080", 403),
        ("", 403),
    ] {
        for path in
            ["/_cerulean/", "/_cerulean/journal", "/_cerulean/topology", "/_cerulean/metadata-addresses"]
        {
            let request = Request::get(path).header("host", host);
            let (answered, error) = ask(&router, request, "").await;
            assert_eq!(answered, status, "{path} of {host}");
            assert_eq!(error.is_some(), status == 403, "{path} of {host}");
            if let Some(error) = error {
                assert_eq!(error["code"], "ForeignHost");
                assert!(error["message"].as_str().unwrap().contains(&format!("'{host}'")), "{error}");
            }
        }
    }
    let revoke = || Request::post("/_cerulean/tokens/revoke").header("content-type", "application/json");
    assert_eq!(ask(&router, revoke().header("host", "rebound.example"), "{}").await.0, 403);
    assert_eq!(ask(&router, revoke().header("host", "localhost"), "{}").await.0, 204);
    // HTTP/2 names the host in the URI.
    assert_eq!(ask(&router, Request::get("http://rebound.example/_cerulean/journal"), "").await.0, 403);
    // Resource Manager answers under whatever name its clients use.
    let groups =
        format!("/subscriptions/{}/resourcegroups?api-version=2021-04-01", Options::default().subscription);
    assert_eq!(ask(&router, Request::get(groups).header("host", "management.example"), "").await.0, 200);
}

#[tokio::test]
async fn every_error_of_the_control_api_is_json() {
    let router = router();
    let json_type = "application/json";
    for (method, path, kind, body, status, code, word) in [
        ("GET", "nothing", json_type, "", 404, "NotFound", "/_cerulean/nothing"),
        ("PATCH", "journal", json_type, "", 405, "MethodNotAllowed", "takes no PATCH"),
        ("DELETE", "actors/nobody", json_type, "", 404, "NotFound", "actors/nobody"),
        ("DELETE", "scheduled-events/none", json_type, "", 404, "NotFound", "scheduled-events/none"),
        ("POST", "faults", json_type, "{", 400, "InvalidRequestContent", "JSON"),
        ("POST", "faults", "text/plain", "{}", 415, "UnsupportedMediaType", "application/json"),
        ("PUT", "limits", json_type, "[]", 400, "InvalidRequestContent", "expected a map"),
        ("POST", "tokens/revoke", json_type, r#"{"who": 1}"#, 400, "InvalidRequestContent", "who"),
        ("GET", "journal?after=x", json_type, "", 400, "InvalidParameter", "after"),
        ("GET", "packet?to=here", json_type, "", 400, "InvalidPacket", "here"),
        ("POST", "packet", "text/plain", "{}", 400, "InvalidPacket", "application/json"),
    ] {
        let request = Request::builder().method(method).uri(format!("/_cerulean/{path}"));
        let (answered, error) = ask(&router, request.header("content-type", kind), body).await;
        let error = error.unwrap_or_else(|| panic!("{method} {path} has no error as JSON"));
        assert_eq!((answered, &error["code"]), (status, &json!(code)), "{method} {path}: {error}");
        assert!(error["message"].as_str().unwrap().contains(word), "{method} {path}: {error}");
    }
    let (status, error) = ask(&router, Request::get("/_cerulean"), "").await;
    assert_eq!((status, &error.unwrap()["code"]), (404, &json!("NotFound")));
}
