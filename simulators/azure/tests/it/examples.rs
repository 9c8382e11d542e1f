//! Each type of the providers has an example, and Azure takes all of them.

use crate::common::{Client, SUBSCRIPTION, group_path};
use azure_simulator::{ExampleRequest, ExampleScope, Options, examples};
use azure_types::ResourceId;
use serde_json::Value;

fn requests() -> Vec<ExampleRequest> {
    let scope = ExampleScope {
        group: ResourceId::parse(&group_path()).unwrap(),
        tenant: Options::default().tenant,
        principal: "10000000-0000-4000-8000-000000000001".into(),
    };
    examples(&scope).unwrap()
}

#[test]
fn each_type_that_clients_can_create_has_an_example() {
    let requests = requests();
    for provider in azure_providers::all() {
        for resource_type in provider.resource_types.iter().filter(|one| one.protocol().creatable) {
            let name = resource_type.name();
            let is_put = |request: &ExampleRequest| request.method == "PUT" && request.resource_type == name;
            assert!(requests.iter().any(is_put), "{name} has no example: see CONTRIBUTING.md");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn azure_takes_each_example() {
    let client = Client::with_group(Options::default()).await;
    let requests = requests();
    for request in &requests {
        let url = format!("{}?api-version={}", request.path, request.api_version);
        let body = Some(request.body.clone()).filter(|body| !body.is_null());
        let reply = client.send(&request.method, &url, body, &[]).await;
        assert!(reply.status < 300, "{} {url}: {} {}", request.method, reply.status, reply.body);
        if reply.header("azure-asyncoperation").or(reply.header("location")).is_some() && reply.status != 200
        {
            client.wait(&reply).await;
        } else {
            tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        }
        if request.method == "PUT" && !request.path.contains("/secrets/") {
            let shown = client.send("GET", &url, None, &[]).await.expect(200).body;
            let state = &shown["properties"]["provisioningState"];
            assert!(state.is_null() || state == "Succeeded", "{url}: {shown}");
        }
    }
    // Whatever was made can be listed with its group.
    let url = format!("/subscriptions/{SUBSCRIPTION}/resources?api-version=2021-04-01");
    let listed = client.send("GET", &url, None, &[]).await.expect(200).body;
    let count = listed["value"].as_array().map_or(0, Vec::len);
    assert!(count > 30, "{count} resources: {}", Value::from(count));
}
