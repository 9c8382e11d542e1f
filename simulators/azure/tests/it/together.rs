//! Resource Manager, Entra, managed identity and the page on one listener, as a program serves them.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use azure_simulator::entra::{Application, Entra, EntraOptions};
use azure_simulator::imds::{self, MachineIdentities, ManagedIdentity};
use azure_simulator::packet::AlwaysHealthy;
use azure_simulator::page::{self, AzurePage};
use azure_simulator::{Azure, Options};
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

const CLIENT: &str = "6c11a2b3-0000-4000-8000-000000000002";

fn prepared() -> (Azure, Router) {
    let azure = Azure::new(Options::default());
    let mut options = EntraOptions::new(azure.options().tenant.clone(), azure.clock());
    options.applications.push(Application::new(CLIENT, "object").with_secret("open~sesame"));
    let entra = Entra::new(options).unwrap();
    azure.set_verifier(Arc::new(entra.clone()));
    let identity = ManagedIdentity { client_id: "own".into(), object_id: "o".into(), resource_id: None };
    let machine = MachineIdentities { entra: entra.clone(), identities: vec![identity] };
    let router = azure
        .router()
        .merge(entra.router())
        .merge(imds::router(machine.clone()))
        .merge(imds::app_service_router(machine, "header"))
        .merge(imds::MetadataService::new(azure.clone()).with_tokens(entra).routes())
        .merge(page::router(Arc::new(AzurePage::new(azure.clone(), AlwaysHealthy))));
    (azure, router)
}

async fn send(router: &Router, request: Request<Body>) -> (StatusCode, http::HeaderMap, Value) {
    let response = router.clone().oneshot(request).await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, headers, serde_json::from_slice(&body).unwrap_or_default())
}

fn groups(azure: &Azure, bearer: Option<&str>) -> Request<Body> {
    let path =
        format!("/subscriptions/{}/resourcegroups?api-version=2021-04-01", azure.options().subscription);
    let request = Request::get(path);
    match bearer {
        Some(bearer) => request.header("authorization", format!("Bearer {bearer}")),
        None => request,
    }
    .body(Body::empty())
    .unwrap()
}

#[tokio::test]
async fn resource_manager_accepts_the_tokens_of_its_own_directory_alone() {
    let (azure, router) = prepared();
    let form = format!(
        "grant_type=client_credentials&client_id={CLIENT}&client_secret=open~sesame\
         &scope=https%3A%2F%2Fmanagement.azure.com%2F.default"
    );
    let request =
        Request::post(format!("/{}/oauth2/v2.0/token", azure.options().tenant)).body(Body::from(form));
    let (status, _, by_secret) = send(&router, request.unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{by_secret}");
    let request = Request::get(
        "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://management.core.windows.net/",
    )
    .header("metadata", "true")
    .body(Body::empty());
    let (status, _, by_machine) = send(&router, request.unwrap()).await;
    assert_eq!(status, StatusCode::OK, "{by_machine}");
    for token in [&by_secret, &by_machine] {
        let bearer = token["access_token"].as_str().unwrap();
        let (status, _, body) = send(&router, groups(&azure, Some(bearer))).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }

    let stranger = Entra::new(EntraOptions::new(azure.options().tenant.clone(), azure.clock())).unwrap();
    let foreign =
        stranger.issue(CLIENT, "object", stranger.home_tenant(), "https://management.azure.com/").unwrap();
    for (bearer, code) in
        [(None, "AuthenticationFailed"), (Some(foreign.token.secret()), "InvalidAuthenticationToken")]
    {
        let (status, headers, body) = send(&router, groups(&azure, bearer)).await;
        assert_eq!(
            (status, body["error"]["code"].as_str()),
            (StatusCode::UNAUTHORIZED, Some(code)),
            "{body}"
        );
        let challenge = headers["www-authenticate"].to_str().unwrap();
        assert!(challenge.starts_with("Bearer authorization_uri=\"https://"), "{challenge}");
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_end_with_the_simulated_clock() {
    let (azure, router) = prepared();
    let request = Request::get("/msi/token?api-version=2019-08-01&resource=https://management.azure.com/")
        .header("x-identity-header", "header")
        .body(Body::empty());
    let (_, _, token) = send(&router, request.unwrap()).await;
    let bearer = token["access_token"].as_str().unwrap();
    assert_eq!(send(&router, groups(&azure, Some(bearer))).await.0, StatusCode::OK);
    tokio::time::advance(std::time::Duration::from_secs(86_400)).await;
    let (status, _, body) = send(&router, groups(&azure, Some(bearer))).await;
    assert_eq!(
        (status, body["error"]["code"].as_str()),
        (StatusCode::UNAUTHORIZED, Some("ExpiredAuthenticationToken"))
    );
}

#[tokio::test]
async fn the_page_stands_beside_resource_manager() {
    let (_, router) = prepared();
    for path in [
        "/_cerulean/",
        "/_cerulean/topology",
        "/_cerulean/journal",
        "/metadata/endpoints?api-version=2019-05-01",
    ] {
        let (status, _, _) = send(&router, Request::get(path).body(Body::empty()).unwrap()).await;
        assert_eq!(status, StatusCode::OK, "{path}");
    }
    let versions = Request::get("/metadata/versions").header("metadata", "true").body(Body::empty()).unwrap();
    assert_eq!(send(&router, versions).await.0, StatusCode::OK);
}
