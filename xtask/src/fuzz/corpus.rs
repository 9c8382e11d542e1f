//! Valid requests, which are then mutated.

use azure_simulator::{ExampleScope, Options, examples};
use azure_types::ResourceId;
use serde_json::{Value, json};

/// One request.
#[derive(Debug, Clone, Default)]
pub struct FuzzRequest {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

fn request(method: &str, path: String, body: &Value) -> FuzzRequest {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    FuzzRequest { method: method.to_owned(), path, headers: Vec::new(), body }
}

/// The requests, in an order in which nearly all of them succeed: the examples of all types, and what else Azure answers.
///
/// # Errors
/// A type's example is no object of requests.
pub fn requests() -> serde_json::Result<Vec<FuzzRequest>> {
    let options = Options::default();
    let group = ResourceId::group(&options.subscription, "fuzz");
    let subscription = ResourceId::subscription(&options.subscription);
    let scope = ExampleScope {
        group: group.clone(),
        tenant: options.tenant,
        principal: "10000000-0000-4000-8000-000000000001".to_owned(),
    };
    let group_url = format!("{group}?api-version=2021-04-01");
    let mut all = vec![request("PUT", group_url.clone(), &json!({"location": "eastus", "tags": {"a": "b"}}))];
    let (puts, actions): (Vec<_>, Vec<_>) =
        examples(&scope)?.into_iter().partition(|example| example.method == "PUT");
    let url = |path: &str, version: &str| format!("{path}?api-version={version}");
    for put in &puts {
        all.push(request("PUT", url(&put.path, put.api_version), &put.body));
    }
    for put in &puts {
        let list = put.path.rsplit_once('/').map_or(put.path.as_str(), |(list, _)| list);
        all.push(request("GET", url(&put.path, put.api_version) + "&$expand=instanceView", &Value::Null));
        let options = "&$top=3&$filter=name%20eq%20'x'";
        all.push(request("GET", url(list, put.api_version) + options, &Value::Null));
        let changed = json!({"tags": {"changed": "yes"}, "properties": put.body["properties"]});
        all.push(request("PATCH", url(&put.path, put.api_version), &changed));
    }
    for action in &actions {
        all.push(request("POST", url(&action.path, action.api_version), &action.body));
    }
    let register = format!("{subscription}/providers/Microsoft.Network/register");
    all.push(request("POST", url(&register, "2021-04-01"), &Value::Null));
    let (net, comp) = ("2025-05-01", "2025-04-01");
    let uniform = format!("{group}/providers/Microsoft.Compute/virtualMachineScaleSets/uniform");
    let lb = format!("{group}/providers/Microsoft.Network/loadBalancers/lb");
    for path in [
        format!("{uniform}/virtualMachines?api-version={comp}&$expand=instanceView"),
        format!(
            "{uniform}/virtualMachines/0/networkInterfaces/nic/ipconfigurations/c/publicipaddresses/p?api-version=2018-10-01"
        ),
        format!("{uniform}/networkInterfaces?api-version=2018-10-01"),
        format!("{uniform}/skus?api-version={comp}"),
        format!("{lb}/backendAddressPools/p?api-version={net}"),
        format!("{subscription}?api-version=2021-04-01"),
        format!("{subscription}/locations?api-version=2021-04-01"),
        format!("{subscription}/resources?api-version=2021-04-01&$filter=tagName%20eq%20'a'"),
        format!("{subscription}/providers?api-version=2021-04-01"),
        format!(
            "{subscription}/providers/Microsoft.Compute/skus?api-version=2021-07-01&$filter=location%20eq%20'eastus'"
        ),
        format!("{subscription}/providers/Microsoft.Compute/locations/eastus/usages?api-version={comp}"),
        format!(
            "{subscription}/providers/Microsoft.Network/locations/eastus/operations/00000000-0000-0000-0000-000000000000?api-version={net}"
        ),
        "/subscriptions?api-version=2021-04-01".to_owned(),
        "/metadata/endpoints?api-version=2023-01-01".to_owned(),
        "/_cerulean/journal?after=3&format=lines".to_owned(),
        "/_cerulean/budgets".to_owned(),
    ] {
        all.push(request("GET", path, &Value::Null));
    }
    let fault = json!({"name": "f", "method": "PUT", "count": 1, "action": {"do": "fail", "status": 400, "code": "X"}});
    all.push(request("POST", "/_cerulean/faults".to_owned(), &fault));
    all.push(request("PUT", "/_cerulean/latency".to_owned(), &json!({"otherwiseMs": 5})));
    all.push(request("PUT", "/_cerulean/budgets".to_owned(), &json!({"reads": 1000.0})));
    for put in puts.iter().filter(|put| put.resource_type.starts_with("Microsoft.Compute/")) {
        all.push(request("DELETE", url(&put.path, put.api_version), &Value::Null));
    }
    all.push(request("DELETE", group_url, &Value::Null));
    for request in &mut all {
        if request.path.starts_with("/_cerulean/") || !request.body.is_empty() {
            request.headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
    }
    Ok(all)
}
