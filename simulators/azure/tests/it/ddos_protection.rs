//! DDoS protection plans: the resources that reference them, and that they stay while referenced.

use crate::common::*;
use azure_simulator::Options;
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_plan_shows_the_networks_that_name_it_and_stays_as_long() {
    let client = Client::with_group(Options::default()).await;
    let (plan, net) = (network_id("ddosProtectionPlans/p"), network_id("virtualNetworks/net"));
    let network = |named: bool| {
        let mut body = json!({ "location": "eastus", "properties": {
            "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] } }});
        if named {
            body["properties"]["ddosProtectionPlan"] = json!({ "id": plan });
            body["properties"]["enableDdosProtection"] = json!(true);
        }
        body
    };
    client.put(&net, network(true)).await.refused(400, "InvalidResourceReference");
    let made = client.create(&plan, json!({ "location": "eastus", "properties": {} })).await;
    assert!(made["properties"]["resourceGuid"].is_string());
    assert!(made["properties"].get("virtualNetworks").is_none());
    client.create(&net, network(true)).await;
    assert_eq!(client.get(&plan).await.body["properties"]["virtualNetworks"], json!([{ "id": net }]));
    client.delete(&plan).await.refused(400, "InUseDdosProtectionPlanCannotBeDeleted");
    client.create(&net, network(false)).await;
    let gone = client.delete(&plan).await.expect(202);
    client.wait(&gone).await;
    client.get(&plan).await.refused(404, "ResourceNotFound");
}
