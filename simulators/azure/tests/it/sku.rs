//! The catalogue of sizes, and what a region has left.

use std::collections::BTreeMap;

use crate::common::{Client, SUBSCRIPTION, compute_id, scale_set};
use azure_simulator::Options;
use serde_json::Value;

async fn read(client: &Client, rest: &str) -> Value {
    let path = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/{rest}");
    client.send("GET", &path, None, &[]).await.expect(200).body
}

fn usage<'a>(usages: &'a Value, name: &str) -> &'a Value {
    usages["value"].as_array().unwrap().iter().find(|usage| usage["name"]["value"] == name).unwrap()
}

#[tokio::test(start_paused = true)]
async fn sizes_have_capabilities_zones_and_restrictions() {
    let restricted_sizes = BTreeMap::from([
        ("Standard_D4s_v5".to_owned(), vec!["2".to_owned()]),
        ("Standard_F2s_v2".to_owned(), vec![]),
    ]);
    let client = Client::with_group(Options { restricted_sizes, ..Options::default() }).await;
    let skus = read(&client, "skus?api-version=2021-07-01&$filter=location%20eq%20'eastus'").await;
    let find = |kind: &str, name: &str| {
        let all = skus["value"].as_array().unwrap();
        all.iter().find(|sku| sku["resourceType"] == kind && sku["name"] == name).unwrap().clone()
    };
    let size = find("virtualMachines", "Standard_D2s_v3");
    assert_eq!(size["locationInfo"][0]["zones"], serde_json::json!(["1", "2", "3"]));
    let capability = |name: &str| {
        let list = size["capabilities"].as_array().unwrap();
        list.iter().find(|one| one["name"] == name).unwrap()["value"].clone()
    };
    assert_eq!((capability("vCPUs"), capability("MaxDataDiskCount")), ("2".into(), "4".into()));
    let modern = find("virtualMachines", "Standard_D4s_v5");
    assert_eq!(
        modern["locationInfo"][0]["zoneDetails"],
        serde_json::json!([{ "name": ["1", "2", "3"], "capabilities": [{ "name": "UltraSSDAvailable", "value": "True" }] }])
    );
    assert!(
        !modern["capabilities"].to_string().contains("UltraSSDAvailable"),
        "the entries of the zones have it"
    );
    assert_eq!(size["locationInfo"][0]["zoneDetails"], serde_json::json!([]));
    assert_eq!(modern["restrictions"][0]["type"], "Zone");
    assert_eq!(find("virtualMachines", "Standard_F2s_v2")["restrictions"][0]["type"], "Location");
    find("disks", "PremiumV2_LRS");
    let subnet = client.network("10.1.0.0/24").await;
    let mut body = scale_set(1, &subnet, &[]);
    for (size, zones, taken) in [
        ("Standard_D4s_v5", serde_json::json!(["1"]), true),
        ("Standard_D4s_v5", serde_json::json!(["1", "2"]), false),
        ("Standard_F2s_v2", serde_json::json!(["1"]), false),
    ] {
        body["sku"]["name"] = size.into();
        body["zones"] = zones;
        let set = compute_id(&format!("virtualMachineScaleSets/set-{}", u8::from(taken)));
        let reply = client.put(&set, body.clone()).await;
        match taken {
            true => drop(reply.expect(201)),
            false => drop(reply.refused(409, "SkuNotAvailable")),
        }
    }
    assert!(
        !read(&client, "locations/eastus/vmSizes?api-version=2021-07-01").await["value"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn cores_are_counted_and_limited() {
    let limits =
        BTreeMap::from([("compute.coresPerRegion".to_owned(), 10), ("compute.coresPerFamily".to_owned(), 8)]);
    let client = Client::with_group(Options { limits, ..Options::default() }).await;
    let subnet = client.network("10.1.0.0/24").await;
    let set = compute_id("virtualMachineScaleSets/set");
    client.create(&set, scale_set(3, &subnet, &[])).await;
    let usages = read(&client, "locations/eastus/usages?api-version=2021-07-01").await;
    assert_eq!(
        (&usage(&usages, "cores")["currentValue"], &usage(&usages, "cores")["limit"]),
        (&6.into(), &10.into())
    );
    assert_eq!(usage(&usages, "standardDSv3Family")["currentValue"], 6);
    let refused = client.put(&set, scale_set(5, &subnet, &[])).await.refused(409, "OperationNotAllowed");
    assert!(refused.message().contains("standardDSv3Family Cores quota"), "{}", refused.message());
    client.create(&set, scale_set(4, &subnet, &[])).await;
    let other = compute_id("virtualMachineScaleSets/other");
    let mut body = scale_set(1, &subnet, &[]);
    body["sku"]["name"] = "Standard_E4s_v5".into();
    let refused = client.put(&other, body).await.refused(409, "OperationNotAllowed");
    assert!(refused.message().contains("Total Regional Cores quota"), "{}", refused.message());
}

#[tokio::test(start_paused = true)]
async fn catalogues_are_of_regions_that_there_are() {
    let unzoned = Client::with_group(Options { zones: Vec::new(), ..Options::default() }).await;
    for (region, some) in [("eastus", true), ("West%20Europe", true), ("moonbase", false)] {
        let path = format!("skus?api-version=2021-07-01&$filter=location%20eq%20'{region}'");
        let skus = read(&unzoned, &path).await;
        assert_eq!(!skus["value"].as_array().unwrap().is_empty(), some, "{region}");
    }
    let skus = read(&unzoned, "skus?api-version=2021-07-01").await;
    let modern =
        skus["value"].as_array().unwrap().iter().find(|sku| sku["name"] == "Standard_D4s_v5").unwrap();
    assert_eq!(modern["locationInfo"][0]["zoneDetails"], serde_json::json!([]));
    let ultra = serde_json::json!({ "name": "UltraSSDAvailable", "value": "True" });
    assert!(modern["capabilities"].as_array().unwrap().contains(&ultra));
}
