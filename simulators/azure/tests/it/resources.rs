//! `Microsoft.Resources`: groups, lists, providers, regions, tags, several subscriptions.

use crate::common::*;
use azure_simulator::Options;
use serde_json::{Value, json};

const OTHER: &str = "22222222-0000-4000-8000-000000000000";
const V: &str = "api-version=2021-04-01";

fn options() -> Options {
    Options { more_subscriptions: vec![OTHER.into()], ..Options::default() }
}

async fn ask(client: &Client, method: &str, path: &str, body: Value) -> Reply {
    let body = (!body.is_null()).then_some(body);
    let join = if path.contains('?') { '&' } else { '?' };
    client.send(method, &format!("{path}{join}{V}"), body, &[]).await
}

fn names(reply: &Reply) -> Vec<&str> {
    reply.body["value"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn groups_are_filtered_paged_patched_and_known_by_subscription() {
    let client = Client::new(options());
    let at = |name: &str| format!("/subscriptions/{SUBSCRIPTION}/resourcegroups/{name}");
    for (name, team) in [("a", "Red"), ("b", "blue"), ("c", "red")] {
        let body = json!({ "location": "East US", "tags": { "Team": team } });
        ask(&client, "PUT", &at(name), body).await.expect(201);
    }
    let group = json!({ "location": "westus" });
    ask(&client, "PUT", &format!("/subscriptions/{OTHER}/resourcegroups/a"), group).await.expect(201);

    let list = format!("/subscriptions/{SUBSCRIPTION}/resourcegroups");
    let filter = "%24filter=tagName%20eq%20%27team%27%20and%20tagValue%20eq%20%27red%27";
    assert_eq!(names(&ask(&client, "GET", &format!("{list}?{filter}"), Value::Null).await), ["a", "c"]);
    let bad = ask(&client, "GET", &format!("{list}?%24filter=tagName%20eq"), Value::Null).await;
    bad.refused(400, "InvalidFilterInQueryString");

    let first = ask(&client, "GET", &format!("{list}?%24top=2"), Value::Null).await.expect(200);
    assert_eq!(names(&first), ["a", "b"]);
    let next = first.body["nextLink"].as_str().unwrap();
    let next = &next[next.find("/subscriptions").unwrap()..];
    let second = client.send("GET", next, None, &[]).await.expect(200);
    assert_eq!((names(&second), second.body.get("nextLink")), (vec!["c"], None));

    let patched = ask(&client, "PATCH", &at("b"), json!({ "tags": { "x": "y" } })).await.expect(200);
    assert_eq!(patched.body["tags"], json!({ "x": "y" }));
    ask(&client, "HEAD", &at("B"), Value::Null).await.expect(204);
    ask(&client, "HEAD", &at("none"), Value::Null).await.expect(404);
    let moved = ask(&client, "PUT", &at("b"), json!({ "location": "westus" })).await;
    moved.refused(409, "InvalidResourceGroupLocation");
}

#[tokio::test(start_paused = true)]
async fn resources_are_listed_across_types_and_known_by_their_id() {
    let client = Client::with_group(Options::default()).await;
    let prefix = client.public_ip("one").await;
    let network = network_id("virtualNetworks/vn");
    let body = json!({ "location": "eastus", "tags": { "env": "test" }, "properties": {
        "addressSpace": { "addressPrefixes": ["10.0.0.0/16"] }, "subnets": [],
    }});
    client.create(&network, body).await;
    let list = format!("/subscriptions/{SUBSCRIPTION}/resources");
    for (filter, expected) in [
        ("", vec!["one", "vn"]),
        ("resourceType eq 'microsoft.network/VIRTUALNETWORKS'", vec!["vn"]),
        ("tagName eq 'env' and tagValue eq 'test'", vec!["vn"]),
        ("resourceGroup eq 'RG' and name ne 'vn'", vec!["one"]),
        ("location eq 'westus'", vec![]),
    ] {
        let filter = filter.replace(' ', "%20").replace('\'', "%27");
        let reply = ask(&client, "GET", &format!("{list}?%24filter={filter}"), Value::Null).await.expect(200);
        assert_eq!(names(&reply), expected, "{filter}");
    }
    let plain = ask(&client, "GET", &list, Value::Null).await;
    assert!(plain.body["value"][0].get("createdTime").is_none());
    let wide =
        ask(&client, "GET", &format!("{list}?%24expand=createdTime,provisioningState"), Value::Null).await;
    assert_eq!(wide.body["value"][0]["provisioningState"], "Succeeded");
    assert!(wide.body["value"][0]["createdTime"].is_string());
    ask(&client, "HEAD", prefix.as_str(), Value::Null).await.expect(204);
    ask(&client, "HEAD", &format!("{prefix}x"), Value::Null).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn tags_are_a_resource_of_every_scope() {
    let client = Client::with_group(Options::default()).await;
    let address = client.public_ip("one").await;
    let subscription = format!("/subscriptions/{SUBSCRIPTION}");
    let tags = |tags: Value| json!({ "properties": { "tags": tags } });
    for scope in
        [subscription.clone(), group_path().split('?').next().unwrap().to_owned(), address.to_string()]
    {
        let at = format!("{scope}/providers/Microsoft.Resources/tags/default");
        let empty = ask(&client, "GET", &at, Value::Null).await.expect(200);
        assert_eq!(empty.body["properties"]["tags"], json!({}), "{scope}");
        let put = ask(&client, "PUT", &at, tags(json!({ "a": "1", "b": "2" }))).await.expect(200);
        assert_eq!(put.body["type"], "Microsoft.Resources/tags");
        for (operation, given, left) in [
            ("Merge", json!({ "A": "3" }), json!({ "A": "3", "b": "2" })),
            ("Delete", json!({ "b": "other" }), json!({ "A": "3", "b": "2" })),
            ("Delete", json!({ "b": "2" }), json!({ "A": "3" })),
            ("Replace", json!({ "c": "4" }), json!({ "c": "4" })),
        ] {
            let mut body = tags(given);
            body["operation"] = operation.into();
            let patched = ask(&client, "PATCH", &at, body).await.expect(200);
            assert_eq!(patched.body["properties"]["tags"], left, "{operation} at {scope}");
        }
        let document = ask(&client, "GET", &scope, Value::Null).await.expect(200);
        assert_eq!(document.body["tags"], json!({ "c": "4" }), "{scope}");
    }
    let at = format!("{address}/providers/Microsoft.Resources/tags/default");
    ask(&client, "DELETE", &at, Value::Null).await.expect(200);
    assert!(client.get(&address).await.body.get("tags").is_none());
    let missing = format!("{address}x/providers/Microsoft.Resources/tags/default");
    ask(&client, "GET", &missing, Value::Null).await.refused(404, "ResourceNotFound");
    let many: serde_json::Map<String, Value> = (0..51).map(|n| (format!("t{n}"), "v".into())).collect();
    ask(&client, "PUT", &at, tags(Value::Object(many))).await.refused(400, "TooManyTags");
}

#[tokio::test(start_paused = true)]
async fn a_provider_is_used_by_those_who_registered() {
    let client = Client::with_group(Options::default()).await;
    let at = |rest: &str| format!("/subscriptions/{SUBSCRIPTION}/providers/microsoft.network{rest}");
    let state = |reply: &Reply| reply.body["registrationState"].as_str().unwrap().to_owned();
    assert_eq!(state(&ask(&client, "GET", &at(""), Value::Null).await), "Registered");
    let gone = ask(&client, "POST", &at("/unregister"), Value::Null).await.expect(200);
    assert_eq!(state(&gone), "Unregistering");
    assert_eq!(state(&ask(&client, "GET", &at(""), Value::Null).await), "NotRegistered");
    let address = network_id("publicIPAddresses/one");
    let refused = client.put(&address, public_ip()).await.refused(409, "MissingSubscriptionRegistration");
    assert!(refused.message().contains("'Microsoft.Network'"));
    let coming = ask(&client, "POST", &at("/register"), Value::Null).await.expect(200);
    assert_eq!(state(&coming), "Registering");
    assert_eq!(state(&ask(&client, "GET", &at(""), Value::Null).await), "Registered");
    client.create(&address, public_ip()).await;
    ask(&client, "POST", &at("/unregister"), Value::Null).await.refused(409, "CannotUnregisterProvider");
    let unknown = format!("/subscriptions/{SUBSCRIPTION}/providers/Contoso.Nothing/register");
    ask(&client, "POST", &unknown, Value::Null).await.refused(404, "InvalidResourceNamespace");
}

#[tokio::test(start_paused = true)]
async fn providers_regions_tenants_and_subscriptions_are_described() {
    let tenant = "33333333-0000-4000-8000-000000000000";
    let others = [(OTHER.to_owned(), tenant.to_owned())].into();
    let client = Client::new(Options { subscription_tenants: others, ..options() });
    let compute = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute");
    let record = ask(&client, "GET", &compute, Value::Null).await.expect(200);
    let types = record.body["resourceTypes"].as_array().unwrap();
    let machines = types.iter().find(|kind| kind["resourceType"] == "virtualMachines").unwrap();
    let zones = machines["zoneMappings"].as_array().unwrap();
    let own = zones.iter().find(|zone| zone["location"] == "East US").unwrap();
    assert_eq!(own["zones"].as_array().unwrap().len(), 3);
    assert!(!machines["apiVersions"].as_array().unwrap().is_empty());

    let list = format!("/subscriptions/{SUBSCRIPTION}/locations");
    let regions = ask(&client, "GET", &list, Value::Null).await.expect(200);
    let region = |name: &str| {
        let all = regions.body["value"].as_array().unwrap();
        all.iter().find(|region| region["name"] == name).cloned().unwrap()
    };
    assert_eq!(region("eastus")["availabilityZoneMappings"][0]["physicalZone"], "eastus-az1");
    assert_eq!(region("westus")["metadata"]["pairedRegion"][0]["name"], "eastus");
    assert!(region("westus").get("availabilityZoneMappings").is_none());

    let subscriptions = ask(&client, "GET", "/subscriptions", Value::Null).await.expect(200);
    assert_eq!(subscriptions.body["value"][1]["tenantId"], tenant);
    let tenants = ask(&client, "GET", "/tenants", Value::Null).await.expect(200);
    assert_eq!(tenants.body["value"].as_array().unwrap().len(), 2);
    let whole = ask(&client, "GET", "/providers/Microsoft.Network", Value::Null).await.expect(200);
    assert!(whole.body.get("registrationState").is_none());
}

#[tokio::test(start_paused = true)]
async fn the_cloud_describes_itself_in_every_form() {
    let client = Client::new(Options { authority: "https://sts.example".into(), ..Options::default() });
    let form = |version: &'static str| format!("/metadata/endpoints?api-version={version}");
    let list = client.send("GET", &form("2019-05-01"), None, &[]).await.expect(200);
    assert_eq!(list.body[0]["authentication"]["loginEndpoint"], "https://sts.example/");
    for version in ["1.0", "2015-01-01"] {
        let old = client.send("GET", &form(version), None, &[]).await.expect(200);
        assert_eq!(old.body["authentication"]["loginEndpoint"], "https://sts.example/", "{version}");
        assert!(old.body["portalEndpoint"].is_string());
    }
    let one = client.send("GET", &form("2022-09-01"), None, &[]).await.expect(200);
    assert_eq!(one.body["name"], "AzureCloud");
    assert_eq!(one.body["suffixes"]["storage"], "core.windows.net");
}
