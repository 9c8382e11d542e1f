//! Microsoft Graph as clients of Resource Manager ask it: whose ids role assignments name.

use std::sync::Arc;

use axum::body::Body;
use azure_simulator::entra::{Application, Entra, EntraOptions};
use azure_simulator::{Azure, Options};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const CLIENT: &str = "6c11a2b3-0000-4000-8000-000000000002";
const OBJECT: &str = "0b1ec700-0000-4000-8000-000000000003";
const IDENTITY: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/\
                        Microsoft.ManagedIdentity/userAssignedIdentities/crew";
const DISKS: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg";

struct World {
    azure: Azure,
    entra: Entra,
}

impl World {
    fn new() -> Self {
        let azure = Azure::new(Options { require_auth: false, ..Options::default() });
        let mut options = EntraOptions::new(azure.options().tenant.clone(), azure.clock());
        options.applications.push(Application::new(CLIENT, OBJECT).named("ship's cook"));
        let entra = Entra::new(options).unwrap();
        entra.look_up_in(Arc::new(azure.clone()));
        Self { azure, entra }
    }

    fn token(&self, audience: &str) -> String {
        let tenant = self.entra.home_tenant();
        let issued = self.entra.issue(CLIENT, OBJECT, tenant, audience).unwrap();
        format!("Bearer {}", issued.token.secret())
    }

    async fn ask(&self, method: &str, path: &str, body: Option<Value>, authorization: &str) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        let request =
            if authorization.is_empty() { request } else { request.header("authorization", authorization) };
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let router = self.entra.router().merge(self.azure.router());
        let response = router.oneshot(request.body(body).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn graph(&self, path: &str) -> (u16, Value) {
        self.ask("GET", path, None, &self.token("https://graph.microsoft.com/")).await
    }

    async fn with_identity() -> (Self, String, String) {
        let world = Self::new();
        let put = |path: &str| format!("{path}?api-version=2023-01-31");
        let group = json!({ "location": "westeurope" });
        world.ask("PUT", &put(DISKS), Some(group.clone()), "").await;
        let (status, made) = world.ask("PUT", &put(IDENTITY), Some(group), "").await;
        assert_eq!(status, 201, "{made}");
        let of = |name: &str| made["properties"][name].as_str().unwrap().to_owned();
        let (client, principal) = (of("clientId"), of("principalId"));
        (world, client, principal)
    }
}

fn filtered(set: &str, filter: &str) -> String {
    let query: String = url::form_urlencoded::byte_serialize(filter.as_bytes()).collect();
    format!("/v1.0/{set}?$filter={query}")
}

fn names(list: &Value) -> Vec<&str> {
    list["value"].as_array().unwrap().iter().map(|entry| entry["displayName"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn applications_and_identities_are_found_by_their_client_ids() {
    let (world, client, principal) = World::with_identity().await;
    for (id, name, object, kind) in [
        (CLIENT, "ship's cook", OBJECT, "Application"),
        (client.as_str(), "crew", principal.as_str(), "ManagedIdentity"),
    ] {
        let path = filtered("servicePrincipals", &format!("servicePrincipalNames/any(c:c eq '{id}')"));
        let (status, found) = world.graph(&path).await;
        assert_eq!((status, names(&found)), (200, vec![name]));
        assert_eq!(
            (&found["value"][0]["id"], &found["value"][0]["servicePrincipalType"]),
            (&json!(object), &json!(kind))
        );
        let (status, one) = world.graph(&format!("/v1.0/servicePrincipals/{object}")).await;
        assert_eq!((status, &one["appId"]), (200, &json!(id)));
    }
    let (_, all) = world.graph("/v1.0/servicePrincipals").await;
    assert_eq!(names(&all), ["ship's cook", "crew"]);
    let (_, found) = world.graph(&filtered("servicePrincipals", "displayName eq 'ship''s cook'")).await;
    assert_eq!(names(&found), ["ship's cook"]);
}

#[tokio::test(start_paused = true)]
async fn ids_of_objects_are_told_without_those_that_are_not_there() {
    let (world, _, principal) = World::with_identity().await;
    let token = world.token("https://graph.microsoft.com");
    let ask = |types: Value| json!({ "ids": [principal, OBJECT, "00000000-0000-4000-8000-00000000dead"], "types": types });
    let path = "/v1.0/directoryObjects/getByIds";
    let (status, found) =
        world.ask("POST", path, Some(ask(json!(["user", "servicePrincipal"]))), &token).await;
    assert_eq!((status, names(&found)), (200, vec!["ship's cook", "crew"]));
    assert_eq!(found["value"][0]["@odata.type"], "#microsoft.graph.servicePrincipal");
    let (_, found) = world.ask("POST", path, Some(ask(json!(["user", "group"]))), &token).await;
    assert_eq!(found["value"], json!([]));
    let (status, refused) = world.ask("POST", path, Some(json!({ "ids": "x" })), &token).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("BadRequest")));
}

#[tokio::test(start_paused = true)]
async fn there_are_no_users_and_no_groups() {
    let world = World::new();
    for set in ["users", "groups"] {
        let (status, found) = world.graph(&filtered(set, "displayName eq 'x'")).await;
        assert_eq!((status, &found["value"]), (200, &json!([])));
        let (status, refused) = world.graph(&format!("/v1.0/{set}/somebody")).await;
        assert_eq!((status, &refused["error"]["code"]), (404, &json!("Request_ResourceNotFound")));
    }
    assert_eq!(world.graph("/v1.0/me").await.0, 400);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_graphs() {
    let world = World::new();
    let graph = world.token("https://graph.microsoft.com");
    let wrong = world.token("https://management.azure.com/");
    let odd = filtered("servicePrincipals", "appId ne 'x'");
    for (path, token, status, code, text) in [
        ("/v1.0/servicePrincipals", "", 401, "InvalidAuthenticationToken", "empty"),
        ("/v1.0/servicePrincipals", wrong.as_str(), 401, "InvalidAuthenticationToken", "audience"),
        ("/v1.0/servicePrincipals/nobody", &graph, 404, "Request_ResourceNotFound", "'nobody'"),
        (&odd, &graph, 400, "Request_UnsupportedQuery", "appId ne"),
        ("/v1.0/devices/x", &graph, 400, "BadRequest", "'devices'"),
    ] {
        let (got, refused) = world.ask("GET", path, None, token).await;
        assert_eq!((got, &refused["error"]["code"]), (status, &json!(code)), "{path}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(text), "{refused}");
        assert!(refused["error"]["innerError"]["request-id"].is_string());
    }
}
