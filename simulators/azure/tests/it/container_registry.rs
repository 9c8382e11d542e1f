//! Registries over Resource Manager, and the service under their hosts that knows them.

use crate::common::*;
use azure_simulator::Options;
use serde_json::{Value, json};

const V: &str = "api-version=2023-07-01";

fn path(rest: &str) -> String {
    format!("{}/providers/Microsoft.ContainerRegistry/{rest}?{V}", group_path())
}

fn registry(sku: &str, properties: Value) -> Value {
    json!({ "location": "eastus", "sku": { "name": sku }, "properties": properties })
}

async fn with_registry(name: &str, sku: &str, properties: Value) -> Client {
    let client = Client::with_group(Options::default()).await;
    let made =
        client.send("PUT", &path(&format!("registries/{name}")), Some(registry(sku, properties)), &[]).await;
    made.expect(200);
    client
}

#[tokio::test(start_paused = true)]
async fn a_registry_is_there_at_once_with_azures_defaults() {
    let client = Client::with_group(Options::default()).await;
    let body = json!({ "location": "eastus", "sku": { "name": "standard" } });
    let made = client.send("PUT", &path("registries/Shelf1"), Some(body), &[]).await.expect(200);
    assert!(made.header("azure-asyncoperation").is_none() && made.header("location").is_none());
    assert_eq!(made.body["sku"], json!({ "name": "Standard", "tier": "Standard" }));
    for (at, value) in [
        ("/properties/loginServer", json!("shelf1.azurecr.io")),
        ("/properties/provisioningState", json!("Succeeded")),
        ("/properties/adminUserEnabled", json!(false)),
        ("/properties/policies/trustPolicy", json!({ "type": "Notary", "status": "disabled" })),
        ("/properties/policies/retentionPolicy/days", json!(7)),
        ("/properties/policies/exportPolicy/status", json!("enabled")),
        ("/properties/encryption", json!({ "status": "disabled" })),
        ("/properties/dataEndpointHostNames", json!([])),
        ("/properties/publicNetworkAccess", json!("Enabled")),
    ] {
        assert_eq!(made.body.pointer(at), Some(&value), "{at}");
    }
    let patch = json!({ "properties": { "adminUserEnabled": true }, "sku": { "name": "Premium" } });
    let changed = client.send("PATCH", &path("registries/shelf1"), Some(patch), &[]).await.expect(200).body;
    assert_eq!(
        (&changed["sku"]["tier"], &changed["properties"]["adminUserEnabled"]),
        (&json!("Premium"), &json!(true))
    );
    let usages = client.send("GET", &path("registries/shelf1/listUsages"), None, &[]).await.expect(200).body;
    assert_eq!(usages["value"][1]["limit"], 500);
    client.send("DELETE", &path("registries/shelf1"), None, &[]).await.expect(200);
    client.send("DELETE", &path("registries/shelf1"), None, &[]).await.expect(204);
}

#[tokio::test(start_paused = true)]
async fn what_a_registry_cannot_be_is_refused() {
    let client = with_registry("taken", "Basic", json!({})).await;
    let other =
        "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/other?api-version=2021-04-01";
    client.send("PUT", other, Some(json!({ "location": "eastus" })), &[]).await.expect(201);
    let elsewhere = path("registries/Taken").replace(&format!("/{GROUP}/"), "/other/");
    let dear = |member: &'static str| Some((400, "SkuNotSupported", member));
    for (url, sku, properties, refused) in [
        (path("registries/abcd"), "Basic", json!({}), Some((400, "InvalidResourceName", "between 5 and 50"))),
        (
            path("registries/with-line"),
            "Basic",
            json!({}),
            Some((400, "InvalidResourceName", "alphanumeric")),
        ),
        (elsewhere, "Basic", json!({}), Some((409, "AlreadyInUse", "taken.azurecr.io"))),
        (path("registries/other"), "Gold", json!({}), Some((400, "InvalidSku", "Gold"))),
        (
            path("registries/other"),
            "Standard",
            json!({ "publicNetworkAccess": "Disabled" }),
            dear("publicNetworkAccess"),
        ),
        (
            path("registries/other"),
            "Standard",
            json!({ "zoneRedundancy": "enabled" }),
            dear("zoneRedundancy"),
        ),
        (
            path("registries/other"),
            "Standard",
            json!({ "networkRuleSet": { "defaultAction": "Deny" } }),
            dear("networkRuleSet"),
        ),
        (
            path("registries/other"),
            "Basic",
            json!({ "anonymousPullEnabled": true }),
            dear("anonymousPullEnabled"),
        ),
        (path("registries/other"), "Standard", json!({ "anonymousPullEnabled": true }), None),
        (path("registries/other"), "Premium", json!({ "dataEndpointEnabled": true }), None),
    ] {
        let what = format!("{url} {sku} {properties}");
        check(client.send("PUT", &url, Some(registry(sku, properties)), &[]).await, refused, &what);
    }
    let read = client.send("GET", &path("registries/other"), None, &[]).await.expect(200).body;
    assert_eq!(read["properties"]["dataEndpointHostNames"], json!(["other.eastus.data.azurecr.io"]));
    let ask = format!(
        "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.ContainerRegistry/checkNameAvailability?{V}"
    );
    for (name, free, reason) in [
        ("free1", true, Value::Null),
        ("TAKEN", false, json!("AlreadyExists")),
        ("a-b", false, json!("Invalid")),
    ] {
        let body = json!({ "name": name, "type": "Microsoft.ContainerRegistry/registries" });
        let said = client.send("POST", &ask, Some(body), &[]).await.expect(200).body;
        assert_eq!((&said["nameAvailable"], &said["reason"]), (&json!(free), &reason), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_administrator_has_two_passwords_that_change_alone() {
    let client = with_registry("guarded", "Basic", json!({})).await;
    let list = path("registries/guarded/listCredentials");
    let regenerate = path("registries/guarded/regenerateCredential");
    client.send("POST", &list, None, &[]).await.refused(400, "UnAuthorizedForCredentialOperations");
    let patch = json!({ "properties": { "adminUserEnabled": true } });
    client.send("PATCH", &path("registries/guarded"), Some(patch), &[]).await.expect(200);
    let first = client.send("POST", &list, None, &[]).await.expect(200).body;
    assert_eq!(first["username"], "guarded");
    let value = |body: &Value, at: usize| body["passwords"][at]["value"].as_str().unwrap().to_owned();
    assert_ne!(value(&first, 0), value(&first, 1));
    assert_eq!(client.send("POST", &list, None, &[]).await.expect(200).body, first);
    let anew =
        client.send("POST", &regenerate, Some(json!({ "name": "password2" })), &[]).await.expect(200).body;
    assert_eq!(value(&anew, 0), value(&first, 0));
    assert_ne!(value(&anew, 1), value(&first, 1));
    client
        .send("POST", &regenerate, Some(json!({ "name": "third" })), &[])
        .await
        .refused(400, "InvalidPasswordName");
    let told = serde_json::to_string(&client.azure.journal()).unwrap();
    assert!(!told.contains(&value(&anew, 1)), "{told}");
}

#[tokio::test(start_paused = true)]
async fn an_import_is_followed_by_its_location() {
    let client = with_registry("import", "Standard", json!({})).await;
    let url = path("registries/import/importImage");
    let body = json!({ "source": { "registryUri": "docker.io", "sourceImage": "library/nginx" } });
    let begun = client.send("POST", &url, Some(body), &[]).await.expect(202);
    assert!(begun.header("azure-asyncoperation").is_none());
    assert_eq!(client.wait(&begun).await, json!({ "status": "Succeeded" }));
    client.send("POST", &url, Some(json!({})), &[]).await.refused(400, "InvalidImportSource");
}

/// The service under the registry's host knows what was made over Resource Manager.
mod served {
    use std::sync::Arc;

    use axum::body::Body;
    use azure_simulator::Azure;
    use azure_simulator::entra::{Application, Entra, EntraOptions};
    use azure_simulator::registry::{Registries, Registry};
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use http::Request;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    const CLIENT_ID: &str = "6c11a2b3-0000-4000-8000-000000000002";
    const OBJECT_ID: &str = "6c11a2b3-0000-4000-8000-000000000003";
    const HOST: &str = "shelf1.azurecr.io";
    const ACR_PULL: &str = "7f951dda-4ed3-4680-a7ca-43fe172d538d";
    const ACR_PUSH: &str = "8311e382-0749-4cb8-b61a-304f252e45ec";

    async fn ask(azure: &Azure, method: &str, path: &str, authorization: &str, form: &str) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("host", HOST);
        let request = request.header("authorization", authorization);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let response =
            azure.router().oneshot(request.body(Body::from(form.to_owned())).unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    #[tokio::test]
    async fn who_has_the_role_pulls_and_so_does_the_administrator() {
        let client = with_registry("Shelf1", "Standard", json!({ "adminUserEnabled": true })).await;
        let azure = client.azure.clone();
        let entra = Entra::new(EntraOptions::new(azure.options().tenant.clone(), azure.clock())).unwrap();
        entra.register(Application::new(CLIENT_ID, OBJECT_ID).with_secret("s"));
        entra.look_up_in(Arc::new(azure.clone()));
        let registries = Registries::new(entra.clone()).unwrap();
        let manifest = json!({ "schemaVersion": 2, "layers": [] });
        registries.add(Registry::new(HOST).with_image("team/app", "v1", &manifest, &[]));
        registries.serve_those_of(&azure);
        azure.serve_hosts(registries.hosts());

        let tenant = &azure.options().tenant;
        let issued =
            entra.issue(CLIENT_ID, OBJECT_ID, tenant, "https://containerregistry.azure.net").unwrap();
        let exchange =
            format!("grant_type=access_token&service={HOST}&access_token={}", issued.token.secret());
        assert_eq!(ask(&azure, "POST", "/oauth2/exchange", "", &exchange).await.0, 401, "without a role");
        let registry = path("registries/shelf1").split('?').next().unwrap().to_owned();
        let role = format!(
            "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{ACR_PULL}"
        );
        let url = format!(
            "{registry}/providers/Microsoft.Authorization/roleAssignments/11111111-0000-4000-8000-000000000001\
             ?api-version=2022-04-01"
        );
        let body = json!({ "properties": {
            "roleDefinitionId": role, "principalId": OBJECT_ID, "principalType": "ServicePrincipal" } });
        client.send("PUT", &url, Some(body), &[]).await.expect(201);
        let (status, refresh) = ask(&azure, "POST", "/oauth2/exchange", "", &exchange).await;
        assert_eq!(status, 200, "{refresh}");
        let refresh = refresh["refresh_token"].as_str().unwrap().to_owned();

        let credentials =
            client.send("POST", &super::path("registries/shelf1/listCredentials"), None, &[]).await.body;
        let password = |at: usize| credentials["passwords"][at]["value"].as_str().unwrap().to_owned();
        let scope = "repository:team/app:pull";
        let basic =
            |user: &str, password: &str| format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        let by_query = format!("/oauth2/token?service={HOST}&scope={scope}");
        let by_refresh = format!("grant_type=refresh_token&refresh_token={refresh}&scope={scope}");
        for (what, (status, token)) in [
            ("the role", ask(&azure, "POST", "/oauth2/token", "", &by_refresh).await),
            ("a password", ask(&azure, "GET", &by_query, &basic("shelf1", &password(0)), "").await),
            ("the other", ask(&azure, "GET", &by_query, &basic("Shelf1", &password(1)), "").await),
        ] {
            assert_eq!(status, 200, "{what}: {token}");
            let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap());
            let (status, pulled) = ask(&azure, "GET", "/v2/team/app/manifests/v1", &bearer, "").await;
            assert_eq!((status, &pulled["schemaVersion"]), (200, &json!(2)), "{what}");
        }
        assert_eq!(ask(&azure, "GET", &by_query, &basic("shelf1", "wrong"), "").await.0, 401);
        client.send("DELETE", &url, None, &[]).await.expect(200);
        assert_eq!(
            ask(&azure, "POST", "/oauth2/token", "", &by_refresh).await.0,
            401,
            "the role was taken away"
        );
        client.send("DELETE", &super::path("registries/shelf1"), None, &[]).await.expect(200);
        assert_eq!(
            ask(&azure, "GET", &by_query, &basic("shelf1", &password(0)), "").await.0,
            401,
            "no registry"
        );
    }

    /// One who pulls or pushes, with what the token service gives.
    struct Pusher {
        azure: Azure,
        bearer: String,
    }

    struct Reply {
        status: u16,
        headers: http::HeaderMap,
        body: Value,
    }

    impl Pusher {
        async fn send(&self, method: &str, path: &str, media_type: &str, body: &[u8]) -> Reply {
            let request = Request::builder().method(method).uri(path).header("host", HOST);
            let request = request.header("authorization", &self.bearer).header("content-type", media_type);
            let response =
                self.azure.router().oneshot(request.body(Body::from(body.to_vec())).unwrap()).await.unwrap();
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            Reply { status, headers, body: serde_json::from_slice(&bytes).unwrap_or_default() }
        }

        async fn upload(&self, parts: &[&[u8]], digest: &str) -> Reply {
            let begun = self.send("POST", "/v2/team/app/blobs/uploads/", "", b"").await;
            assert_eq!(begun.status, 202, "{}", begun.body);
            let at = begun.headers["location"].to_str().unwrap().to_owned();
            let (last, first) = parts.split_last().unwrap();
            let mut length = 0;
            for part in first {
                length += part.len();
                let taken = self.send("PATCH", &at, "application/octet-stream", part).await;
                assert_eq!(taken.status, 202, "{}", taken.body);
                assert_eq!(taken.headers["range"].to_str().unwrap(), format!("0-{}", length - 1));
            }
            let url = format!("{at}?digest={digest}");
            let ended = self.send("PUT", &url, "application/octet-stream", last).await;
            let again = self.send("PUT", &url, "application/octet-stream", last).await;
            assert_eq!(
                (again.status, &again.body["errors"][0]["code"]),
                (404, &json!("BLOB_UPLOAD_UNKNOWN"))
            );
            ended
        }
    }

    fn digest(content: &[u8]) -> String {
        let hash = ring::digest::digest(&ring::digest::SHA256, content);
        format!("sha256:{}", hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }

    #[tokio::test]
    async fn an_image_is_pushed_by_its_parts_and_by_who_may() {
        let client = with_registry("Shelf1", "Standard", json!({ "adminUserEnabled": true })).await;
        let azure = client.azure.clone();
        let entra = Entra::new(EntraOptions::new(azure.options().tenant.clone(), azure.clock())).unwrap();
        entra.register(Application::new(CLIENT_ID, OBJECT_ID).with_secret("s"));
        entra.look_up_in(Arc::new(azure.clone()));
        let registries = Registries::new(entra).unwrap();
        registries.serve_those_of(&azure);
        azure.serve_hosts(registries.hosts());
        let credentials = path("registries/shelf1/listCredentials");
        let credentials = client.send("POST", &credentials, None, &[]).await.expect(200).body;
        let password = credentials["passwords"][0]["value"].as_str().unwrap().to_owned();
        let sign_in = async |user: &str, password: &str, actions: &str| {
            let basic = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
            let url = format!("/oauth2/token?service={HOST}&scope=repository:team/app:{actions}");
            let (status, token) = ask(&azure, "GET", &url, &basic, "").await;
            let bearer = format!("Bearer {}", token["access_token"].as_str().unwrap_or_default());
            (status, Pusher { azure: azure.clone(), bearer })
        };
        let registry = path("registries/shelf1").split('?').next().unwrap().to_owned();
        let assign = async |number: u8, role: &str| {
            let url = format!(
                "{registry}/providers/Microsoft.Authorization/roleAssignments/11111111-0000-4000-8000-00000000000{number}\
                 ?api-version=2022-04-01"
            );
            let role = format!(
                "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{role}"
            );
            let body = json!({ "properties": {
                "roleDefinitionId": role, "principalId": OBJECT_ID, "principalType": "ServicePrincipal" } });
            client.send("PUT", &url, Some(body), &[]).await.expect(201);
        };

        // Who may pull alone gets no more, and is sent to sign in when he pushes.
        assign(1, ACR_PULL).await;
        assert_eq!(sign_in(CLIENT_ID, "s", "push").await.0, 401);
        let (status, puller) = sign_in(CLIENT_ID, "s", "pull,push").await;
        assert_eq!(status, 200);
        let begun = puller.send("POST", "/v2/team/app/blobs/uploads/", "", b"").await;
        let challenge = begun.headers["www-authenticate"].to_str().unwrap();
        assert_eq!(begun.status, 401);
        assert!(challenge.ends_with("scope=\"repository:team/app:pull,push\""), "{challenge}");

        assign(2, ACR_PUSH).await;
        let (_, application) = sign_in(CLIENT_ID, "s", "pull,push").await;
        let (_, administrator) = sign_in("shelf1", &password, "pull,push").await;
        let (layer, config) = (&b"a layer"[..], &b"{}"[..]);
        let manifest = |layer: &str| {
            let blob = |digest: &str| json!({ "digest": digest });
            json!({ "schemaVersion": 2, "config": blob(&digest(config)), "layers": [blob(layer)] })
        };
        let wrong = application.upload(&[b"another"], &digest(layer)).await;
        assert_eq!((wrong.status, &wrong.body["errors"][0]["code"]), (400, &json!("DIGEST_INVALID")));
        let made = application.upload(&[b"a ", b"lay", b"er"], &digest(layer)).await;
        assert_eq!(
            (made.status, made.headers["docker-content-digest"].to_str().unwrap()),
            (201, &*digest(layer))
        );
        let made = administrator.upload(&[config], &digest(config)).await;
        assert_eq!(
            made.headers["location"].to_str().unwrap(),
            format!("/v2/team/app/blobs/{}", digest(config))
        );

        const OCI: &str = "application/vnd.oci.image.manifest.v1+json";
        let (at, good) = ("/v2/team/app/manifests/v1", manifest(&digest(layer)).to_string());
        for (body, code) in [
            (manifest(&digest(b"absent")).to_string(), "MANIFEST_BLOB_UNKNOWN"),
            ("no JSON".to_owned(), "MANIFEST_INVALID"),
        ] {
            let refused = application.send("PUT", at, OCI, body.as_bytes()).await;
            assert_eq!((refused.status, &refused.body["errors"][0]["code"]), (400, &json!(code)));
        }
        assert_eq!(puller.send("PUT", at, OCI, good.as_bytes()).await.status, 401);
        assert_eq!(puller.send("GET", at, "", b"").await.status, 404, "nothing is tagged yet");
        let made = application.send("PUT", at, OCI, good.as_bytes()).await;
        let name = digest(good.as_bytes());
        assert_eq!((made.status, made.headers["docker-content-digest"].to_str().unwrap()), (201, &*name));

        // What runtimes look at before they pull, and what they pull.
        for reference in ["v1", &name] {
            let head = puller.send("HEAD", &format!("/v2/team/app/manifests/{reference}"), "", b"").await;
            let text = |header: &str| head.headers[header].to_str().unwrap().to_owned();
            let expected = (200, good.len().to_string(), OCI.to_owned(), name.clone());
            let seen =
                (head.status, text("content-length"), text("content-type"), text("docker-content-digest"));
            assert_eq!(seen, expected, "{reference}");
        }
        let pulled = puller.send("GET", at, "", b"").await;
        assert_eq!(pulled.body, manifest(&digest(layer)));
        let blob = puller.send("GET", &format!("/v2/team/app/blobs/{}", digest(layer)), "", b"").await;
        assert_eq!((blob.status, blob.headers["content-length"].to_str().unwrap()), (200, "7"));
    }
}
