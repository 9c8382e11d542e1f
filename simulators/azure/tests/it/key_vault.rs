//! Vaults: what may be written, what is left of a deleted one, and the secrets and keys under their hosts.

use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use axum::body::Body;
use azure_simulator::entra::{Application, Entra, EntraOptions};
use azure_simulator::{Azure, Options};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const V: &str = "api-version=2024-11-01";
const DAY: Duration = Duration::from_secs(24 * 3_600);

fn path(rest: &str) -> String {
    format!("{}/providers/Microsoft.KeyVault/{rest}?{V}", group_path())
}

fn in_subscription(rest: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.KeyVault/{rest}?{V}")
}

fn vault(properties: Value) -> Value {
    let mut body = json!({ "location": "eastus", "properties": {
        "tenantId": "00000000-0000-0000-0000-00000000000a",
        "sku": { "family": "A", "name": "standard" },
        "accessPolicies": [],
    }});
    for (member, value) in properties.as_object().unwrap() {
        body["properties"][member] = value.clone();
    }
    body
}

/// One request to a vault's host.
async fn ask(
    azure: &Azure,
    method: &str,
    url: &str,
    token: Option<&str>,
    body: Value,
) -> (u16, Value, String) {
    let (host, path) = url.split_once('/').unwrap();
    let sign = if path.contains('?') { '&' } else { '?' };
    let mut request =
        Request::builder().method(method).uri(format!("/{path}{sign}api-version=7.5")).header("host", host);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    let response = azure.router().oneshot(request.body(body).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let challenge =
        response.headers().get("www-authenticate").map(|value| value.to_str().unwrap().to_owned());
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default(), challenge.unwrap_or_default())
}

async fn with_vault(name: &str, properties: Value) -> Client {
    let client = Client::with_group(Options::default()).await;
    client.send("PUT", &path(&format!("vaults/{name}")), Some(vault(properties)), &[]).await.expect(200);
    client
}

#[tokio::test(start_paused = true)]
async fn a_vault_has_what_was_said_and_azures_defaults() {
    let client = Client::with_group(Options::default()).await;
    let made = client.send("PUT", &path("vaults/First-1"), Some(vault(json!({}))), &[]).await.expect(200);
    assert!(made.header("azure-asyncoperation").is_none() && made.header("location").is_none());
    assert_eq!(made.body["properties"]["provisioningState"], "RegisteringDns");
    let read = client.send("GET", &path("vaults/first-1"), None, &[]).await.expect(200).body;
    for (member, value) in [
        ("enableSoftDelete", json!(true)),
        ("softDeleteRetentionInDays", json!(90)),
        ("publicNetworkAccess", json!("Enabled")),
        ("vaultUri", json!("https://first-1.vault.azure.net/")),
        ("provisioningState", json!("Succeeded")),
        ("enabledForDeployment", json!(false)),
        ("enablePurgeProtection", Value::Null),
        ("createMode", Value::Null),
    ] {
        assert_eq!(read["properties"][member], value, "{member}");
    }
    assert_eq!(read["systemData"]["createdByType"], "User");
    // A list ends with an empty page.
    let list = client.send("GET", &path("vaults"), None, &[]).await.expect(200);
    assert_eq!(list.body["value"].as_array().map(Vec::len), Some(1));
    let next = list.body["nextLink"].as_str().unwrap().to_owned();
    let last = client.send("GET", &next, None, &[]).await.expect(200);
    assert_eq!(last.body, json!({ "value": [] }));
}

#[tokio::test(start_paused = true)]
async fn what_a_vault_cannot_be_is_refused() {
    let client = with_vault("taken", json!({ "enablePurgeProtection": true })).await;
    let other =
        "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/other?api-version=2021-04-01";
    client.send("PUT", other, Some(json!({ "location": "eastus" })), &[]).await.expect(201);
    let elsewhere = path("vaults/taken").replace(&format!("/{GROUP}/"), "/other/");
    let bad = Some((400, "BadRequest", ""));
    for (url, properties, refused) in [
        (path("vaults/a"), json!({}), Some((400, "VaultNameNotValid", "3-24"))),
        (path("vaults/1abc"), json!({}), Some((400, "VaultNameNotValid", "letter"))),
        (path("vaults/ab--c"), json!({}), Some((400, "VaultNameNotValid", "hyphens"))),
        (elsewhere, json!({}), Some((409, "VaultAlreadyExists", "globally unique"))),
        (path("vaults/new"), json!({ "tenantId": "" }), bad),
        (path("vaults/new"), json!({ "sku": { "name": "gold" } }), bad),
        (path("vaults/new"), json!({ "enableSoftDelete": false }), bad),
        (path("vaults/new"), json!({ "enablePurgeProtection": false }), bad),
        (path("vaults/new"), json!({ "accessPolicies": [{ "tenantId": "t" }] }), bad),
        (
            path("vaults/new"),
            json!({ "accessPolicies": [{ "tenantId": "t", "objectId": "o", "permissions": { "secrets": ["eat"] } }] }),
            bad,
        ),
        (path("vaults/new"), json!({ "networkAcls": { "ipRules": [{ "value": "300.1.1.1" }] } }), bad),
        (path("vaults/new"), json!({ "networkAcls": { "virtualNetworkRules": [{ "id": "x" }] } }), bad),
        (path("vaults/new"), json!({ "createMode": "recover" }), Some((404, "DeletedVaultNotFound", "new"))),
        (path("vaults/taken"), json!({ "softDeleteRetentionInDays": 7 }), bad),
        (path("vaults/taken"), json!({ "softDeleteRetentionInDays": 90 }), None),
        (path("vaults/new"), json!({ "softDeleteRetentionInDays": 7 }), None),
        (path("vaults/newer"), json!({ "networkAcls": { "ipRules": [{ "value": "1.2.3.0/24" }] } }), None),
    ] {
        let what = format!("{url} {properties}");
        check(client.send("PUT", &url, Some(vault(properties)), &[]).await, refused, &what);
    }
    for (name, free, reason) in [
        ("free", true, Value::Null),
        ("Taken", false, json!("AlreadyExists")),
        ("-", false, json!("AccountNameInvalid")),
    ] {
        let body = json!({ "name": name, "type": "Microsoft.KeyVault/vaults" });
        let said =
            client.send("POST", &in_subscription("checkNameAvailability"), Some(body), &[]).await.expect(200);
        assert_eq!((&said.body["nameAvailable"], &said.body["reason"]), (&json!(free), &reason), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn policies_are_added_replaced_and_removed() {
    let client = with_vault("policies", json!({})).await;
    let of = |who: &str, secrets: Value| {
        json!({ "properties": { "accessPolicies": [
            { "tenantId": "t", "objectId": who, "permissions": { "secrets": secrets } },
        ]}})
    };
    for (change, body, expected) in [
        ("add", of("a", json!(["get"])), json!([["a", ["get"]]])),
        ("add", of("A", json!(["get", "list"])), json!([["a", ["get", "list"]]])),
        ("add", of("b", json!(["all"])), json!([["a", ["get", "list"]], ["b", ["all"]]])),
        ("remove", of("a", json!([])), json!([["b", ["all"]]])),
        ("replace", of("c", json!(["set"])), json!([["c", ["set"]]])),
    ] {
        let url = path(&format!("vaults/policies/accessPolicies/{change}"));
        let reply = client.send("PUT", &url, Some(body), &[]).await.expect(200);
        let shown = reply.body["properties"]["accessPolicies"].as_array().unwrap().iter();
        let shown: Vec<Value> = shown.map(|p| json!([p["objectId"], p["permissions"]["secrets"]])).collect();
        assert_eq!(json!(shown), expected, "{change}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_deleted_vault_is_recovered_with_what_it_held_or_purged() {
    let client = with_vault("keep", json!({ "softDeleteRetentionInDays": 10 })).await;
    let secret = json!({ "properties": { "value": "hush" } });
    client.send("PUT", &path("vaults/keep/secrets/one"), Some(secret), &[]).await.expect(200);
    client.send("DELETE", &path("vaults/keep"), None, &[]).await.expect(200);
    client.send("GET", &path("vaults/keep"), None, &[]).await.refused(404, "ResourceNotFound");
    let deleted = in_subscription("locations/eastus/deletedVaults/keep");
    let shown = client.send("GET", &deleted, None, &[]).await.expect(200).body;
    assert!(shown["id"].as_str().unwrap().ends_with("/locations/eastus/deletedVaults/keep"), "{shown}");
    assert!(shown["properties"]["vaultId"].as_str().unwrap().ends_with("/vaults/keep"));
    let all = client.send("GET", &in_subscription("deletedVaults"), None, &[]).await.expect(200);
    assert_eq!(all.body["value"], json!([shown]));
    assert_eq!(ask(&client.azure, "GET", "keep.vault.azure.net/secrets/one", None, Value::Null).await.0, 404);
    client.send("PUT", &path("vaults/keep"), Some(vault(json!({}))), &[]).await.refused(409, "ConflictError");

    let recover = vault(json!({ "createMode": "recover" }));
    client.send("PUT", &path("vaults/keep"), Some(recover), &[]).await.expect(200);
    client.send("GET", &deleted, None, &[]).await.refused(404, "DeletedVaultNotFound");
    let read = client.send("GET", &path("vaults/keep"), None, &[]).await.expect(200);
    assert_eq!(read.body["properties"]["softDeleteRetentionInDays"], 10);
    let (status, value, _) =
        ask(&client.azure, "GET", "keep.vault.azure.net/secrets/one", None, Value::Null).await;
    assert_eq!((status, &value["value"]), (200, &json!("hush")));

    // With its group it is only deleted, too; its purge can be asked for in any location, once.
    let group = format!("{}?api-version=2021-04-01", group_path());
    let gone = client.send("DELETE", &group, None, &[]).await.expect(202);
    client.wait(&gone).await;
    let purge = in_subscription("locations/westus/deletedVaults/keep/purge");
    let begun = client.send("POST", &purge, None, &[]).await.expect(202);
    assert!(begun.header("azure-asyncoperation").is_none());
    client.wait(&begun).await;
    client.send("POST", &purge, None, &[]).await.refused(404, "DeletedVaultNotFound");
    client.send("PUT", &group, Some(json!({ "location": "eastus" })), &[]).await.expect(201);
    client.send("PUT", &path("vaults/keep"), Some(vault(json!({}))), &[]).await.expect(200);
    assert_eq!(ask(&client.azure, "GET", "keep.vault.azure.net/secrets/one", None, Value::Null).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn what_was_deleted_goes_by_itself_when_its_time_is_over() {
    let client =
        with_vault("later", json!({ "softDeleteRetentionInDays": 7, "enablePurgeProtection": true })).await;
    let host = "later.vault.azure.net";
    ask(&client.azure, "PUT", &format!("{host}/secrets/one"), None, json!({ "value": "x" })).await;
    let (status, gone, _) =
        ask(&client.azure, "DELETE", &format!("{host}/secrets/one"), None, Value::Null).await;
    assert_eq!((status, &gone["attributes"]["recoveryLevel"]), (200, &json!("CustomizedRecoverable")));
    assert_eq!(
        gone["scheduledPurgeDate"].as_i64().unwrap() - gone["deletedDate"].as_i64().unwrap(),
        7 * 24 * 3_600
    );
    let (status, refused, _) =
        ask(&client.azure, "DELETE", &format!("{host}/deletedsecrets/one"), None, Value::Null).await;
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("Forbidden")));
    tokio::time::sleep(DAY * 6).await;
    assert_eq!(
        ask(&client.azure, "GET", &format!("{host}/deletedsecrets/one"), None, Value::Null).await.0,
        200
    );
    client.send("DELETE", &path("vaults/later"), None, &[]).await.expect(200);
    let purge = in_subscription("locations/eastus/deletedVaults/later/purge");
    client.send("POST", &purge, None, &[]).await.refused(405, "MethodNotAllowed");
    tokio::time::sleep(DAY * 8).await;
    let deleted = in_subscription("locations/eastus/deletedVaults/later");
    client.send("GET", &deleted, None, &[]).await.refused(404, "DeletedVaultNotFound");
}

#[tokio::test(start_paused = true)]
async fn secrets_live_under_the_vaults_host() {
    let client = with_vault("mine", json!({})).await;
    let azure = &client.azure;
    let one = "mine.vault.azure.net/secrets/one";
    let set = |value: &str| json!({ "value": value, "contentType": "text", "tags": { "a": "b" } });
    let (status, first, _) = ask(azure, "PUT", one, None, set("first")).await;
    assert_eq!((status, &first["value"]), (200, &json!("first")));
    assert_eq!(first["attributes"]["recoveryLevel"], "Recoverable+Purgeable");
    let id = first["id"].as_str().unwrap().to_owned();
    let old = id.rsplit('/').next().unwrap().to_owned();
    assert!(id.starts_with(&format!("https://{one}/")) && old.len() == 32, "{id}");
    tokio::time::sleep(Duration::from_secs(5)).await;
    ask(azure, "PUT", one, None, json!({ "value": "second" })).await;
    assert_eq!(ask(azure, "GET", &format!("{one}/"), None, Value::Null).await.1["value"], "second");
    assert_eq!(ask(azure, "GET", &format!("{one}/{old}"), None, Value::Null).await.1["value"], "first");
    let (_, versions, _) = ask(azure, "GET", &format!("{one}/versions"), None, Value::Null).await;
    assert_eq!(versions["value"].as_array().map(Vec::len), Some(2));
    // Lists never show values.
    assert!(!versions.to_string().contains("second"), "{versions}");

    let off = json!({ "attributes": { "enabled": false }, "contentType": "other" });
    let (status, changed, _) = ask(azure, "PATCH", &format!("{one}/{old}"), None, off).await;
    assert_eq!((status, &changed["contentType"], &changed["tags"]["a"]), (200, &json!("other"), &json!("b")));
    assert!(changed.get("value").is_none());
    let (status, refused, _) = ask(azure, "GET", &format!("{one}/{old}"), None, Value::Null).await;
    assert_eq!((status, &refused["error"]["innererror"]["code"]), (403, &json!("SecretDisabled")));

    for number in 0..30 {
        ask(azure, "PUT", &format!("mine.vault.azure.net/secrets/n{number:02}"), None, set("x")).await;
    }
    let (_, page, _) = ask(azure, "GET", "mine.vault.azure.net/secrets", None, Value::Null).await;
    let next = page["nextLink"].as_str().unwrap().split_once("://").unwrap().1.to_owned();
    let (_, rest, _) = ask(azure, "GET", &next, None, Value::Null).await;
    let count = |page: &Value| page["value"].as_array().unwrap().len();
    assert_eq!((count(&page), count(&rest), &rest["nextLink"]), (25, 6, &Value::Null));

    let gone = "mine.vault.azure.net/deletedsecrets/one";
    let (status, deleted, _) = ask(azure, "DELETE", one, None, Value::Null).await;
    assert_eq!((status, &deleted["recoveryId"]), (200, &json!(format!("https://{gone}"))));
    for (method, url, body, status, code) in [
        ("GET", one, Value::Null, 404, "SecretNotFound"),
        ("GET", gone, Value::Null, 200, ""),
        ("PUT", one, set("third"), 409, "Conflict"),
        ("POST", "mine.vault.azure.net/deletedsecrets/one/recover", Value::Null, 200, ""),
        ("GET", gone, Value::Null, 404, "SecretNotFound"),
        ("GET", one, Value::Null, 200, ""),
        ("DELETE", one, Value::Null, 200, ""),
        ("DELETE", gone, Value::Null, 204, ""),
        ("DELETE", gone, Value::Null, 404, "SecretNotFound"),
        ("PUT", one, set("fourth"), 200, ""),
        ("PUT", "mine.vault.azure.net/secrets/a_b", set("x"), 400, "BadParameter"),
        ("PUT", one, json!({ "value": "x".repeat(25 * 1_024 + 1) }), 400, "BadParameter"),
        ("PUT", one, json!({}), 400, "BadParameter"),
        ("GET", "mine.vault.azure.net/secrets?maxresults=26", Value::Null, 400, "BadParameter"),
        ("GET", "mine.vault.azure.net/certificates", Value::Null, 404, "NotFound"),
        ("GET", "nobodys.vault.azure.net/secrets", Value::Null, 404, "VaultNotFound"),
        ("TRACE", one, Value::Null, 405, "MethodNotAllowed"),
    ] {
        let (got, answer, _) = ask(azure, method, url, None, body).await;
        let said = answer["error"]["code"].as_str().unwrap_or_default();
        assert_eq!((got, said), (status, code), "{method} {url}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_secrets_value_is_in_no_journal_and_no_resource() {
    let client = with_vault("quiet", json!({})).await;
    let hidden = "correct-horse-battery";
    let value = json!({ "value": hidden });
    ask(&client.azure, "PUT", "quiet.vault.azure.net/secrets/one", None, value.clone()).await;
    let over = client
        .send("PUT", &path("vaults/quiet/secrets/two"), Some(json!({ "properties": value })), &[])
        .await;
    assert!(!over.body.to_string().contains(hidden), "{}", over.body);
    let broken = format!("{{\"value\": \"{hidden}\"");
    let request = Request::put("/secrets/one?api-version=7.5").header("host", "quiet.vault.azure.net");
    let response = client.azure.router().oneshot(request.body(Body::from(broken)).unwrap()).await.unwrap();
    assert_eq!(response.status(), 400);
    let told = [
        serde_json::to_string(&client.azure.journal()).unwrap(),
        serde_json::to_string(&client.azure.documents()).unwrap(),
        format!("{:?}", client.azure.journal()),
    ];
    for text in told {
        assert!(!text.contains(hidden), "{text}");
    }
    let journal = client.azure.journal();
    let set = journal.entries.iter().find(|entry| entry.path.contains("/secrets/one")).unwrap();
    assert_eq!(set.changes, ["secrets/one: set"]);
    assert_eq!(set.resource_type.as_deref(), Some("Microsoft.KeyVault/vaults/secrets"));
}

#[tokio::test(start_paused = true)]
async fn keys_have_versions_and_a_public_part() {
    let client = with_vault("locks", json!({})).await;
    let azure = &client.azure;
    let host = "locks.vault.azure.net";
    for (name, body, status, member) in [
        ("rsa", json!({ "kty": "RSA", "key_size": 3072 }), 200, "n"),
        ("rsa", json!({ "kty": "RSA" }), 200, "e"),
        ("ec", json!({ "kty": "EC", "crv": "P-384", "attributes": { "enabled": true } }), 200, "y"),
        ("odd", json!({ "kty": "RSA", "key_size": 1024 }), 400, ""),
        ("odd", json!({ "kty": "oct" }), 400, ""),
        ("odd", json!({ "kty": "EC", "crv": "X" }), 400, ""),
    ] {
        let (got, key, _) = ask(azure, "POST", &format!("{host}/keys/{name}/create"), None, body).await;
        assert_eq!(got, status, "{name}: {key}");
        assert!(status != 200 || key["key"][member].is_string(), "{key}");
    }
    let (_, versions, _) = ask(azure, "GET", &format!("{host}/keys/rsa/versions"), None, Value::Null).await;
    assert_eq!(versions["value"].as_array().map(Vec::len), Some(2));
    assert!(versions["value"][0]["kid"].is_string() && versions["value"][0].get("key").is_none());
    // Resource Manager creates a key once, and knows those of the host.
    let over = |rest: &str| path(&format!("vaults/locks/keys{rest}"));
    let body = json!({ "properties": { "kty": "RSA", "keySize": 2048 } });
    let made = client.send("PUT", &over("/arm"), Some(body.clone()), &[]).await.expect(200).body;
    assert_eq!(client.send("PUT", &over("/arm"), Some(body), &[]).await.expect(200).body, made);
    assert_eq!(made["properties"]["keySize"], 2048);
    let uri = made["properties"]["keyUriWithVersion"].as_str().unwrap().strip_prefix("https://").unwrap();
    assert_eq!(ask(azure, "GET", uri, None, Value::Null).await.0, 200);
    let listed = client.send("GET", &over(""), None, &[]).await.expect(200).body;
    assert_eq!(listed["value"].as_array().map(Vec::len), Some(3));
    let of_rsa = client.send("GET", &over("/rsa/versions"), None, &[]).await.expect(200).body;
    assert_eq!(of_rsa["value"].as_array().map(Vec::len), Some(2));
    client.send("GET", &over("/none"), None, &[]).await.refused(404, "ResourceNotFound");
}

#[tokio::test]
async fn tokens_are_for_vaults_and_policies_say_what_they_may() {
    const CLIENT_ID: &str = "6c11a2b3-0000-4000-8000-000000000002";
    const OBJECT_ID: &str = "6c11a2b3-0000-4000-8000-000000000003";
    let azure = Azure::new(Options::default());
    let options = EntraOptions::new(azure.options().tenant.clone(), azure.clock());
    let entra = Entra::new(options).unwrap();
    entra.register(Application::new(CLIENT_ID, OBJECT_ID).with_secret("s"));
    azure.set_verifier(Arc::new(entra.clone()));
    let token = |scope: &str| {
        let (entra, scope) = (entra.clone(), scope.to_owned());
        let tenant = azure.options().tenant.clone();
        async move {
            let form =
                format!("grant_type=client_credentials&client_id={CLIENT_ID}&client_secret=s&scope={scope}");
            let request = Request::post(format!("/{tenant}/oauth2/v2.0/token"))
                .header("host", "login.microsoftonline.com")
                .header("content-type", "application/x-www-form-urlencoded");
            let response = entra.router().oneshot(request.body(Body::from(form)).unwrap()).await.unwrap();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            let body: Value = serde_json::from_slice(&bytes).unwrap();
            body["access_token"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
        }
    };
    let manager = token("https://management.azure.com/.default").await;
    let reader = token("https://vault.azure.net/.default").await;
    let client = Client::of(azure.clone());
    let bearer = format!("Bearer {manager}");
    let headers = [("authorization", bearer.as_str())];
    let group = format!("{}?api-version=2021-04-01", group_path());
    client.send("PUT", &group, Some(json!({ "location": "eastus" })), &headers).await.expect(201);
    let policies = json!([{ "tenantId": azure.options().tenant, "objectId": OBJECT_ID,
        "permissions": { "secrets": ["Set", "list"] } }]);
    let body = vault(json!({ "accessPolicies": policies }));
    let made = client.send("PUT", &path("vaults/guarded"), Some(body), &headers).await.expect(200);
    assert_eq!(made.body["systemData"]["createdBy"], CLIENT_ID);

    let one = "guarded.vault.azure.net/secrets/one";
    let (status, refused, challenge) = ask(&azure, "GET", one, None, Value::Null).await;
    assert_eq!((status, &refused["error"]["code"]), (401, &json!("Unauthorized")));
    assert!(challenge.starts_with("Bearer authorization=\"https://"), "{challenge}");
    assert!(challenge.contains("resource=\"https://vault.azure.net\""), "{challenge}");
    assert_eq!(ask(&azure, "GET", one, Some(&manager), Value::Null).await.0, 401);
    assert_eq!(ask(&azure, "PUT", one, Some(&reader), json!({ "value": "x" })).await.0, 200);
    let (status, refused, _) = ask(&azure, "GET", one, Some(&reader), Value::Null).await;
    assert_eq!((status, &refused["error"]["innererror"]["code"]), (403, &json!("AccessDenied")));
    assert!(refused["error"]["message"].as_str().unwrap().contains("secrets get permission"), "{refused}");
    assert_eq!(
        ask(&azure, "GET", "guarded.vault.azure.net/secrets", Some(&reader), Value::Null).await.0,
        200
    );

    // A vault that goes by roles looks at policies no more, and at roles where these are enforced.
    let roles = json!({ "properties": { "enableRbacAuthorization": true } });
    client.send("PATCH", &path("vaults/guarded"), Some(roles), &headers).await.expect(200);
    assert_eq!(ask(&azure, "GET", one, Some(&reader), Value::Null).await.0, 200);
    azure.enforce_authorization(true);
    let (status, refused, _) = ask(&azure, "GET", one, Some(&reader), Value::Null).await;
    assert_eq!((status, &refused["error"]["innererror"]["code"]), (403, &json!("ForbiddenByRbac")));
    assert!(refused["error"]["message"].as_str().unwrap().contains("secrets/getSecret/action"), "{refused}");
    azure.enforce_authorization(false);
    let user = "4633458b-17de-408a-b874-0445c86b69e6";
    let assignment = format!(
        "{}/providers/Microsoft.KeyVault/vaults/guarded/providers/Microsoft.Authorization/roleAssignments/\
         11111111-0000-4000-8000-000000000001?api-version=2022-04-01",
        group_path()
    );
    let role =
        format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{user}");
    let body = json!({ "properties": { "roleDefinitionId": role, "principalId": OBJECT_ID } });
    client.send("PUT", &assignment, Some(body), &headers).await.expect(201);
    azure.enforce_authorization(true);
    assert_eq!(ask(&azure, "GET", one, Some(&reader), Value::Null).await.0, 200);
    assert_eq!(ask(&azure, "DELETE", one, Some(&reader), Value::Null).await.0, 403);
}

#[tokio::test(start_paused = true)]
async fn a_saved_state_keeps_what_vaults_hold() {
    let client = with_vault("saved", json!({})).await;
    ask(&client.azure, "PUT", "saved.vault.azure.net/secrets/one", None, json!({ "value": "kept" })).await;
    let saved = client.azure.save().unwrap();
    let other = Azure::new(Options::default());
    other.restore(saved).unwrap();
    let (_, read, _) = ask(&other, "GET", "saved.vault.azure.net/secrets/one", None, Value::Null).await;
    assert_eq!(read["value"], "kept");
}
