//! Machines that users manage themselves in a cluster that Azure manages: an AzureMachinePool whose control plane is an
//! AzureManagedControlPlane.

use serde_json::{Value, json};

use super::{CONTROL_PLANE, ask, begin_end, end, is_down, ready};
use crate::pool_world::{Core, INSTANCE, POOL};
use crate::world::{NAMESPACE, World};

const SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";

fn own_pool(world: &World) {
    crate::pool_world::ask_in(world, "aks", "own", 2, json!({}));
    world.provisioned("aks");
}

fn own_set(world: &World) -> Option<Value> {
    let sets = world.azure.documents_of_type(SETS);
    sets.into_iter().find(|set| set["name"] == "own")
}

/// CAPZ-156: the pool waits for its cluster; its scale set is in the nodes' resource group, in the cluster's subnet, and
/// behind the load balancer that Azure has created for outbound traffic. It grows, is deleted alone, and its cluster
/// stays.
#[tokio::test(start_paused = true)]
async fn a_pool_of_the_users_own_joins_a_managed_cluster() {
    let (mut world, core) = (World::new(), Core::new(1, 0));
    ask(&world, json!({}));
    own_pool(&world);
    world.start();
    ready(&world, "aks").await;
    let settled = |world: &World, count: usize| {
        core.borrow_mut().look_in(world, "aks");
        let pool = world.get(POOL, "own").unwrap();
        pool["status"]["ready"] == true
            && pool["status"]["replicas"] == count
            && pool["spec"]["providerIDList"].as_array().map_or(0, Vec::len) == count
            && world.kubernetes.list(INSTANCE).len() == count
    };
    world.until("its machines", |world| settled(world, 2)).await;
    let set = own_set(&world).unwrap();
    let id = set["id"].as_str().unwrap().to_lowercase();
    assert!(id.contains("/resourcegroups/mc_aks_aks_eastus/"), "{id}");
    let interfaces =
        &set["properties"]["virtualMachineProfile"]["networkProfile"]["networkInterfaceConfigurations"];
    let configuration = &interfaces[0]["properties"]["ipConfigurations"][0]["properties"];
    let subnet = configuration["subnet"]["id"].as_str().unwrap().to_lowercase();
    assert!(
        subnet.ends_with("/resourcegroups/aks/providers/microsoft.network/virtualnetworks/aks/subnets/aks"),
        "{subnet}"
    );
    let pools = configuration["loadBalancerBackendAddressPools"].as_array().unwrap();
    let pool = pools[0]["id"].as_str().unwrap().to_lowercase();
    assert!(pool.ends_with("/loadbalancers/kubernetes/backendaddresspools/aksoutboundbackendpool"), "{pool}");
    assert!(pool.contains("/resourcegroups/mc_aks_aks_eastus/"), "{pool}");
    assert!(world.secret("own-azure-json", "worker-node-azure.json").is_some());

    // Neither is taken for the other.
    assert_eq!(
        world.get(super::POOL, "pool1").unwrap()["spec"]["providerIDList"].as_array().unwrap().len(),
        2
    );
    super::change(&world, "MachinePool", "own", json!({ "replicas": 3 }));
    world.until("three", |world| settled(world, 3)).await;
    world.delete(POOL, "own");
    world
        .until("gone", |world| {
            core.borrow_mut().look_in(world, "aks");
            world.get(POOL, "own").is_none()
        })
        .await;
    assert_eq!(own_set(&world), None);
    assert!(world.is_ready(CONTROL_PLANE, "aks"));
    end(&world, NAMESPACE, "aks").await;
    assert_eq!(world.azure.documents(), Vec::<Value>::new());
}

/// The pool is deleted with its cluster, and nothing is left.
#[tokio::test(start_paused = true)]
async fn a_pool_of_the_users_own_goes_with_its_managed_cluster() {
    let (mut world, core) = (World::new(), Core::new(1, 0));
    ask(&world, json!({}));
    own_pool(&world);
    world.start();
    world
        .until("ready", |world| {
            core.borrow_mut().look_in(world, "aks");
            world.is_ready(POOL, "own") && world.kubernetes.list(INSTANCE).len() == 2
        })
        .await;
    begin_end(&world, NAMESPACE, "aks");
    world.delete(POOL, "own");
    world
        .until("the pool", |world| {
            core.borrow_mut().look_in(world, "aks");
            world.get(POOL, "own").is_none()
        })
        .await;
    world.until("the end", |world| is_down(world, NAMESPACE, "aks")).await;
    assert_eq!(world.azure.documents(), Vec::<Value>::new());
    assert!(world.kubernetes.list(INSTANCE).is_empty());
}
