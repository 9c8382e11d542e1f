//! Rights: what roles let those do who have them, and how the rest is refused.

use crate::common::*;
use azure_simulator::Options;
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

const READER: &str = "acdd72a7-3385-48ef-bd42-f606fba81ae7";
const CONTRIBUTOR: &str = "b24988ac-6180-42a0-ab88-20f7382dd24c";
const NETWORK_CONTRIBUTOR: &str = "4d97b98b-1d4f-4787-a291-c67834d212e7";
const OWNER: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const WORKER: &str = "aaaaaaaa-0000-4000-8000-000000000002";

fn token(object_id: &str) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    format!("Bearer {}.{}.", part(json!({})), part(json!({ "oid": object_id, "appid": "client" })))
}

/// An Azure that enforces rights: a group with a network, an owner, and a worker with this role on the group.
async fn enforced(role: Option<&str>) -> Client {
    let client = Client::with_group(Options { owners: vec![OWNER.into()], ..Options::default() }).await;
    client.network("10.0.0.0/16").await;
    client.public_ip("ip").await;
    if let Some(role) = role {
        client.azure.assign_role(&group(), role, WORKER).unwrap();
    }
    client.azure.enforce_authorization(true);
    client
}

fn group() -> ResourceId {
    ResourceId::group(SUBSCRIPTION, GROUP)
}

async fn ask(client: &Client, who: &str, method: &str, path: &str, body: Value) -> Reply {
    let compute = path.contains("Microsoft.Compute");
    let version = match path {
        _ if path.contains("Microsoft.Network") => NETWORK_VERSION,
        _ if path.contains("Microsoft.Authorization") => "2022-04-01",
        _ if compute => COMPUTE_VERSION,
        _ => "2021-04-01",
    };
    let token = token(who);
    let body = (!body.is_null()).then_some(body);
    client.send(method, &format!("{path}?api-version={version}"), body, &[("authorization", &token)]).await
}

#[tokio::test(start_paused = true)]
async fn who_has_no_role_may_do_nothing_and_an_owner_everything() {
    let client = enforced(None).await;
    let subscription = ResourceId::subscription(SUBSCRIPTION);
    let network = network_id("virtualNetworks/net");
    let machine = compute_id("virtualMachines/absent");
    for (method, path, action) in [
        ("GET", network.to_string(), "Microsoft.Network/virtualNetworks/read"),
        (
            "GET",
            network.child("subnets", "nodes").to_string(),
            "Microsoft.Network/virtualNetworks/subnets/read",
        ),
        ("DELETE", network.to_string(), "Microsoft.Network/virtualNetworks/delete"),
        (
            "GET",
            format!("{}/providers/Microsoft.Network/virtualNetworks", group()),
            "Microsoft.Network/virtualNetworks/read",
        ),
        ("POST", format!("{machine}/start"), "Microsoft.Compute/virtualMachines/start/action"),
        ("GET", format!("{machine}/instanceView"), "Microsoft.Compute/virtualMachines/instanceView/read"),
        (
            "GET",
            format!("{subscription}/resourceGroups"),
            "Microsoft.Resources/subscriptions/resourceGroups/read",
        ),
        ("GET", group().to_string(), "Microsoft.Resources/subscriptions/resourceGroups/read"),
        (
            "GET",
            format!("{}/resources", group()),
            "Microsoft.Resources/subscriptions/resourceGroups/resources/read",
        ),
        (
            "GET",
            format!("{subscription}/providers/Microsoft.Compute"),
            "Microsoft.Resources/subscriptions/providers/read",
        ),
        (
            "POST",
            format!("{subscription}/providers/Microsoft.Compute/register"),
            "Microsoft.Compute/register/action",
        ),
        ("GET", format!("{subscription}/providers/Microsoft.Compute/skus"), "Microsoft.Compute/skus/read"),
        (
            "GET",
            format!("{network}/providers/Microsoft.Resources/tags/default"),
            "Microsoft.Resources/tags/read",
        ),
        (
            "GET",
            format!("{subscription}/providers/Microsoft.Network/locations/eastus/operations/x"),
            "Microsoft.Network/locations/operations/read",
        ),
    ] {
        let reply =
            ask(&client, WORKER, method, &path, Value::Null).await.refused(403, "AuthorizationFailed");
        let message = reply.body["error"]["message"].as_str().unwrap();
        let sentence = format!(
            "The client 'client' with object id '{WORKER}' does not have authorization to perform action '{action}' over scope '/"
        );
        assert!(message.starts_with(&sentence), "{message}");
        let allowed = ask(&client, OWNER, method, &path, Value::Null).await;
        assert_ne!(allowed.status, 403, "{method} {path}");
    }
    // Without a token a request is refused; what every caller may read needs no right.
    client.get(&network).await.refused(401, "AuthenticationFailed");
    ask(&client, WORKER, "GET", "/subscriptions", Value::Null).await.expect(200);
    client.azure.enforce_authorization(false);
    // The owner has deleted it.
    client.get(&network).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn roles_reach_down_from_where_they_were_assigned() {
    let client = enforced(Some(READER)).await;
    let network = network_id("virtualNetworks/net");
    ask(&client, WORKER, "GET", network.as_str(), Value::Null).await.expect(200);
    ask(&client, WORKER, "DELETE", network.as_str(), Value::Null).await.refused(403, "AuthorizationFailed");
    let all = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/virtualNetworks");
    ask(&client, WORKER, "GET", &all, Value::Null).await.refused(403, "AuthorizationFailed");
    client.azure.assign_role(&network.child("subnets", "nodes"), CONTRIBUTOR, WORKER).unwrap();
    let tagged = json!({ "location": "eastus", "tags": { "a": "b" }, "properties": {
        "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] } } });
    ask(&client, WORKER, "PUT", network.as_str(), tagged).await.refused(403, "AuthorizationFailed");
    let subnet = network.child("subnets", "nodes");
    let body = json!({ "properties": { "addressPrefix": "10.0.0.0/16" } });
    let put = ask(&client, WORKER, "PUT", subnet.as_str(), body).await.expect(200);
    // Its operation lies in the subscription, where the role is not.
    let status = put.header("azure-asyncoperation").unwrap().replace("http://azure.test", "");
    let token = token(WORKER);
    client.send("GET", &status, None, &[("authorization", &token)]).await.expect(200);
    // A contributor cannot assign roles.
    let role =
        format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/{READER}");
    let id = subnet.resource("Microsoft.Authorization", "roleAssignments", OWNER);
    let body =
        json!({ "properties": { "roleDefinitionId": role, "principalId": WORKER, "principalType": "User" } });
    ask(&client, WORKER, "PUT", id.as_str(), body.clone()).await.refused(403, "AuthorizationFailed");
    ask(&client, OWNER, "PUT", id.as_str(), body).await.expect(201);
    let permissions = format!("{network}/providers/Microsoft.Authorization/permissions");
    let shown = ask(&client, WORKER, "GET", &permissions, Value::Null).await.expect(200);
    assert_eq!(shown.body["value"][0]["actions"], json!(["*"]), "tokens are not verified here");
}

#[tokio::test(start_paused = true)]
async fn what_is_used_must_be_joined() {
    let client = enforced(Some(NETWORK_CONTRIBUTOR)).await;
    // The same name elsewhere: a group in which the worker has no role.
    let elsewhere = ResourceId::group(SUBSCRIPTION, "elsewhere");
    let foreign = elsewhere.resource("Microsoft.Network", "publicIPAddresses", "ip");
    client.azure.put(&foreign, public_ip()).unwrap();
    let balancer = network_id("loadBalancers/lb");
    let reply =
        ask(&client, WORKER, "PUT", balancer.as_str(), load_balancer(&balancer, &foreign, &[80])).await;
    let reply = reply.refused(403, "LinkedAuthorizationFailed");
    let message = reply.body["error"]["message"].as_str().unwrap();
    for part in [
        "has permission to perform action 'Microsoft.Network/loadBalancers/write' on scope '",
        "perform action(s) 'Microsoft.Network/publicIPAddresses/join/action' on the linked scope(s) '",
        foreign.as_str(),
    ] {
        assert!(message.contains(part), "{message}");
    }
    let own = network_id("publicIPAddresses/ip");
    ask(&client, WORKER, "PUT", balancer.as_str(), load_balancer(&balancer, &own, &[80])).await.expect(201);
    // Sets need the right on pools, subnets and identities.
    let subnet = network_id("virtualNetworks/net").child("subnets", "nodes");
    let pool = balancer.child("backendAddressPools", "p");
    let set = compute_id("virtualMachineScaleSets/set");
    ask(&client, WORKER, "PUT", set.as_str(), scale_set(1, &subnet, &[pool]))
        .await
        .refused(403, "AuthorizationFailed");
    let identity = elsewhere.resource("Microsoft.ManagedIdentity", "userAssignedIdentities", "worker");
    client.azure.put(&identity, json!({})).unwrap();
    let mut model = scale_set(1, &subnet, &[]);
    model["identity"] =
        json!({ "type": "UserAssigned", "userAssignedIdentities": { (identity.as_str()): {} } });
    client.azure.assign_role(&group(), CONTRIBUTOR, WORKER).unwrap();
    let reply = ask(&client, WORKER, "PUT", set.as_str(), model.clone()).await;
    assert!(reply.refused(403, "LinkedAuthorizationFailed").body.to_string().contains("assign/action"));
    client.azure.assign_role(&identity, "f1a07417-d97a-45cb-824c-7a7467783830", WORKER).unwrap();
    ask(&client, WORKER, "PUT", set.as_str(), model).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn the_control_api_turns_it_on_and_off() {
    let client = Client::with_group(Options::default()).await;
    let headers = [("content-type", "application/json")];
    for enforced in [true, false] {
        let body = json!({ "enforced": enforced });
        client.send("PUT", "/_cerulean/authorization", Some(body.clone()), &headers).await.expect(204);
        let shown = client.send("GET", "/_cerulean/authorization", None, &[]).await.expect(200).body;
        assert_eq!(shown, body);
        let status = client.get(&network_id("virtualNetworks/net")).await.status;
        assert_eq!(status, if enforced { 401 } else { 404 });
    }
    let wrong = client.send("PUT", "/_cerulean/authorization", Some(json!({ "on": true })), &headers).await;
    assert_eq!(wrong.status, 400);
}
