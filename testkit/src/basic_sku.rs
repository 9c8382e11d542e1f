//! A cluster with load balancers of SKU Basic.

use azure_simulator::Azure;
use serde_json::json;

/// Turns load balancers and public IPs into those of SKU Basic, as if they had been created so, which Azure no longer
/// allows. Addresses of public IPs are released with their frontends (`Dynamic`).
pub fn make_basic(azure: &Azure) {
    let mut saved = azure.save().expect("what Azure holds can be saved");
    for resource in saved["resources"].as_array_mut().into_iter().flatten() {
        let id = resource["id"].as_str().unwrap_or_default().to_ascii_lowercase();
        let body = &mut resource["body"];
        if id.contains("/loadbalancers/") {
            body["sku"]["name"] = json!("Basic");
            let rules = body["properties"]["loadBalancingRules"].as_array_mut();
            rules.into_iter().flatten().for_each(|rule| rule["properties"]["enableTcpReset"] = json!(false));
        } else if id.contains("/publicipaddresses/") {
            body["sku"]["name"] = json!("Basic");
            body["properties"]["publicIPAllocationMethod"] = json!("Dynamic");
            body.as_object_mut().expect("it is a document").remove("zones");
            body["properties"].as_object_mut().expect("they are members").remove("ddosSettings");
        }
    }
    azure.restore(saved).expect("Azure takes up what it saved");
}
