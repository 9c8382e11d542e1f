//! Machine pools: what the planner makes of one. There are no controllers of pools yet that would apply it.

use std::collections::BTreeMap;

use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_machine_pool::AzureMachinePoolSpec;
use capz_planner::pool::{self, Making, Owner, PoolScope};
use capz_planner::sku::{Skus, VIRTUAL_MACHINES};
use capz_planner::{Observed, Scope};
use cloud_config::Secret;
use serde_json::{Value, json};

use super::stage::{VERSION, text};
use crate::world::{SUBSCRIPTION, World};

/// The document of the scale set of a pool in a cluster of the world. `machine_pool` is what its MachinePool says.
pub fn scale_set(world: &World, cluster: &str, object: &Value, machine_pool: &Value) -> Value {
    let azure_cluster = world.get("AzureCluster", cluster).unwrap();
    let spec: AzureClusterSpec = serde_json::from_value(azure_cluster["spec"].clone()).unwrap();
    let zones: Vec<String> = ["1", "2", "3"].map(str::to_owned).to_vec();
    let scope = Scope {
        cluster,
        name: cluster,
        spec: &spec,
        subscription: SUBSCRIPTION,
        api_server_port: None,
        zones: &zones,
        dns_suffix: "cloudapp.azure.com",
        gates: capz_api::Gates::default(),
    };
    let mut spec: AzureMachinePoolSpec = serde_json::from_value(object["spec"].clone()).unwrap();
    pool::complete(&mut spec, scope).unwrap();
    let size = text(&object["spec"]["template"]["vmSize"]);
    let capabilities = [("vCPUs", "2"), ("MemoryGB", "8"), ("CpuArchitectureType", "x64")]
        .map(|(name, value)| json!({ "name": name, "value": value }));
    let sku = json!({ "name": size, "resourceType": VIRTUAL_MACHINES, "capabilities": capabilities,
        "locationInfo": [{ "location": "eastus", "zones": zones }] });
    let skus = Skus::read("eastus", &[sku]);
    let failure_domains: Vec<String> =
        serde_json::from_value(machine_pool["failureDomains"].clone()).unwrap_or_default();
    let none = BTreeMap::new();
    let pool = PoolScope {
        cluster: scope,
        name: object["metadata"]["name"].as_str().unwrap(),
        spec: &spec,
        annotations: &none,
        owner: Owner {
            version: Some(machine_pool["template"]["spec"]["version"].as_str().unwrap_or(VERSION)),
            replicas: machine_pool["replicas"].as_u64().unwrap_or(1).try_into().unwrap(),
            failure_domains: &failure_domains,
            annotations: &none,
        },
    };
    let (bootstrap, password) = (Secret::new("Ym9vdA=="), Secret::new("correct horse"));
    let making = Making {
        bootstrap: &bootstrap,
        password: &password,
        image: &pool.image().unwrap(),
        size: skus.get(&size, VIRTUAL_MACHINES).unwrap(),
        skus: &skus,
    };
    let goals = pool::goals(&pool, &making, &Observed::default(), None).unwrap();
    let mut document = goals[0].document.clone();
    document["id"] = json!(goals[0].id.as_str());
    document
}
