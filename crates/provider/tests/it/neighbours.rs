//! Resources of others in the same Azure are kept: a second cluster's, and those that a user created by hand.

use std::collections::BTreeSet;
use std::sync::Arc;

use cloud::{Ensured, LogicalTime};
use k8s::Node;
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape};

use crate::world::*;

/// The addresses for which the security group allows traffic from anywhere.
fn open(world: &World) -> BTreeSet<String> {
    let group = &world.documents(SECURITY_GROUPS)[0];
    let rules = group["properties"]["securityRules"].as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let destinations = |rule: &Value| {
        let p = &rule["properties"];
        let several = p["destinationAddressPrefixes"].as_array().cloned().unwrap_or_default();
        several.iter().chain([&p["destinationAddressPrefix"]]).filter_map(text).collect::<Vec<_>>()
    };
    rules.iter().flat_map(destinations).collect()
}

fn addresses(ensured: &Ensured) -> BTreeSet<String> {
    ensured.addresses.iter().map(ToString::to_string).collect()
}

/// S8, LB-293: two clusters share one security group, and rules for the same traffic. Neither closes what the other one
/// opened: when Services are created, changed and deleted, when nodes change, and after a restart.
#[tokio::test(start_paused = true)]
async fn lb_293_two_clusters_share_one_security_group() {
    let here = World::new();
    let there = here.second();
    let (first, second) = (here.start(), there.start_named("there"));
    let web = here.serve(&first, service("web", &[80])).await.unwrap();
    let at_nodes = annotated(service("direct", &[81]), "azure-disable-load-balancer-floating-ip", "true");
    here.serve(&first, at_nodes.clone()).await.unwrap();
    let ours = open(&here);
    assert!(ours.is_superset(&addresses(&web)) && ours.len() == 4, "{ours:?}");

    let same = addresses(&there.serve(&second, service("shop", &[80])).await.unwrap());
    let other = addresses(&there.serve(&second, service("cart", &[8080])).await.unwrap());
    let theirs = &same | &other;
    assert_eq!(open(&here), &ours | &theirs);

    // The first cluster changes, restarts and changes again.
    here.serve(&first, service("api", &[443])).await.unwrap();
    here.remove(&first, &service("api", &[443])).await.unwrap();
    assert_eq!(open(&here), &ours | &theirs);
    first.provider.update_nodes(LogicalTime::now()).await.unwrap();
    let first = here.start();
    here.serve(&first, service("api", &[80])).await.unwrap();
    here.remove(&first, &service("api", &[80])).await.unwrap();
    first.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!(open(&here), &ours | &theirs);
    here.remove(&first, &service("web", &[80])).await.unwrap();
    here.remove(&first, &at_nodes).await.unwrap();
    assert_eq!(open(&here), theirs, "what was ours is closed");

    // So does the second.
    let web = addresses(&here.serve(&first, service("web", &[80])).await.unwrap());
    let second = there.start_named("there");
    there.remove(&second, &service("cart", &[8080])).await.unwrap();
    assert_eq!(open(&here), &web | &same);
    there.remove(&second, &service("shop", &[80])).await.unwrap();
    assert_eq!(open(&here), web);
}

fn public_ip(world: &World, name: &str, tags: Value) -> Value {
    let document = json!({
        "location": "eastus", "sku": {"name": "Standard"}, "tags": tags,
        "properties": {"publicIPAllocationMethod": "Static"},
    });
    world.azure.put(&id("publicIPAddresses", name), document).unwrap()
}

/// D14, LB-454: a Service whose public IP is in use elsewhere is refused, and nothing is open for that address, also
/// when a tag on it names the Service, and after a restart.
#[tokio::test(start_paused = true)]
async fn lb_454_nothing_is_open_at_an_address_that_is_used_elsewhere() {
    for tags in [json!({}), json!({"k8s-azure-service": "shop/web", "k8s-azure-cluster-name": "kube"})] {
        let world = World::new();
        let own = public_ip(&world, "own", tags);
        let elsewhere = json!({
            "location": "eastus", "sku": {"name": "Standard"},
            "properties": {"frontendIPConfigurations": [
                {"name": "theirs", "properties": {"publicIPAddress": {"id": own["id"]}}},
            ]},
        });
        world.azure.put(&id("loadBalancers", "theirs"), elsewhere).unwrap();
        let mut program = world.start();
        let other = addresses(&world.serve(&program, service("other", &[81])).await.unwrap());
        let web = annotated(service("web", &[80]), "azure-pip-name", "own");
        for _ in 0..2 {
            world.serve(&program, web.clone()).await.unwrap_err();
            assert_eq!(open(&world), other);
            program = world.start();
        }
        // A provisioned Service keeps its rules when it asks for such an address.
        let served = addresses(&world.serve(&program, service("web", &[80])).await.unwrap());
        world.serve(&program, web).await.unwrap_err();
        assert_eq!(open(&world), &other | &served);
    }
}

/// S10: a public IP with a tag that a user set, as release 1.20 did: the Service uses it, it is not written, and it
/// stays when the Service is deleted. An event says so.
#[tokio::test(start_paused = true)]
async fn lb_602_what_a_user_tagged_is_used_and_stays() {
    for key in ["service", "k8s-azure-service"] {
        let world = World::new();
        let before = public_ip(&world, "mine", json!({key: "shop/web", "team": "net"}));
        public_ip(&world, "stray", json!({key: "shop/plain"}));
        let mut program = world.start();
        let web = annotated(service("web", &[80]), "azure-pip-name", "mine");
        let ensured = world.serve(&program, web.clone()).await.unwrap();
        assert_eq!(before["properties"]["ipAddress"], ensured.addresses[0].to_string());
        world.serve(&program, service("plain", &[81])).await.unwrap();
        for _ in 0..2 {
            let tags = world.azure.document(&id("publicIPAddresses", "mine")).unwrap()["tags"].clone();
            assert_eq!(tags, before["tags"]);
            program = world.start();
            world.serve(&program, web.clone()).await.unwrap();
        }
        let stored = world.stored(&web);
        let notices = program.delete(&stored).await.unwrap();
        let kept = notices.iter().filter(|notice| notice.message.contains("public IP mine stays"));
        assert_eq!(kept.count(), 1, "{notices:?}");
        world.remove(&program, &web).await.unwrap();
        world.remove(&program, &service("plain", &[81])).await.unwrap();
        let names: Vec<Value> = world.documents(PUBLIC_IPS).iter().map(|one| one["name"].clone()).collect();
        assert_eq!(names, ["mine", "stray"]);
        assert!(open(&world).is_empty());
    }
}

/// S10: a second cluster of the same name, in a resource group of its own, has a Service of the same name and keeps its
/// public IPs in the same group: they are neither deleted nor do they lose their user.
#[tokio::test(start_paused = true)]
async fn lb_604_a_cluster_of_the_same_name_keeps_its_public_ips() {
    let world = World::new();
    let tags = json!({"k8s-azure-service": "shop/web", "k8s-azure-cluster-name": "kube"});
    let theirs = public_ip(&world, "kube-a257b965551374ad2b091ef3f07043ad", tags.clone());
    let mut program = world.start();
    for _ in 0..2 {
        world.serve(&program, service("web", &[80])).await.unwrap();
        world.remove(&program, &service("web", &[80])).await.unwrap();
        assert_eq!(world.documents(PUBLIC_IPS), std::slice::from_ref(&theirs));
        program = world.start();
    }
}

/// F1: `first` is external, `second` shares its address. `first` changes to internal and back: both are listed on the
/// address again. No deletion is sent for the address while one of them uses it, and it is deleted with the last one.
#[tokio::test(start_paused = true)]
async fn lb_603_who_uses_an_address_is_listed_on_it_however_it_was_found() {
    for restarts in [false, true] {
        let world = World::new();
        let mut program = world.start();
        let mut first = service("first", &[80]);
        first.metadata.uid = Some("257b9655-5137-4ad2-b091-ef3f07043ad3".to_owned());
        let address = world.serve(&program, first.clone()).await.unwrap().addresses[0].to_string();
        let second = annotated(service("second", &[443]), "azure-load-balancer-ipv4", &address);
        let users = || world.documents(PUBLIC_IPS)[0]["tags"]["k8s-azure-service"].clone();
        world.serve(&program, second.clone()).await.unwrap();
        assert_eq!(users(), "shop/first,shop/second");
        for wanted in [internal(first.clone()), first.clone()] {
            if restarts {
                program = world.start();
            }
            world.serve(&program, wanted).await.unwrap();
            world.serve(&program, second.clone()).await.unwrap();
        }
        assert_eq!(users(), "shop/second,shop/first");
        world.azure.clear_journal();
        world.remove(&program, &second).await.unwrap();
        assert_eq!(users(), "shop/first");
        assert!(world.all_writes().iter().all(|one| !one.starts_with("DELETE")), "{:?}", world.all_writes());
        // The tag was changed by hand: the deletion of the listed Service does not delete what another one uses.
        world.serve(&program, second.clone()).await.unwrap();
        let pip = world.documents(PUBLIC_IPS)[0]["id"].as_str().unwrap().parse().unwrap();
        let by_hand = |document: &mut Value| document["tags"]["k8s-azure-service"] = "shop/second".into();
        world.azure.edit(&pip, by_hand).unwrap();
        program = world.start();
        world.azure.clear_journal();
        world.remove(&program, &second).await.unwrap();
        assert!(world.all_writes().iter().all(|one| !one.starts_with("DELETE")), "{:?}", world.all_writes());
        world.serve(&program, first.clone()).await.unwrap();
        assert_eq!(users(), "shop/first");
        // The Service that it was created for is deleted first.
        world.serve(&program, second.clone()).await.unwrap();
        world.remove(&program, &first).await.unwrap();
        assert_eq!(users(), "shop/second");
        world.remove(&program, &second).await.unwrap();
        assert!(world.documents(PUBLIC_IPS).is_empty() && world.documents(LOAD_BALANCERS).is_empty());
    }
}

/// S9: two scale sets in one group produce equal computer names, one of them for another cluster. Nodes join when they
/// have their provider IDs; machines that joined by name before leave, model and instances.
#[tokio::test(start_paused = true)]
async fn lb_606_equal_computer_names_bring_no_foreign_machine_into_the_pool() {
    let pools = vec![NodePool::new("pool", "node", 2), NodePool::new("theirs", "node", 2)];
    let world = World::of(&Shape { pools, ..shape() });
    let ours: Vec<Arc<Node>> =
        world.nodes.lock().iter().filter(|n| n.spec.provider_id.contains("/pool/")).cloned().collect();
    assert_eq!(ours.len(), 2);
    let without_id = |node: &Arc<Node>| {
        let mut node = Node::clone(node);
        node.spec.provider_id.clear();
        Arc::new(node)
    };
    *world.nodes.lock() = ours.iter().map(without_id).collect();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let refers = |set: &str| {
        let set = id("virtualMachineScaleSets", set);
        let model = world.azure.document(&set).unwrap();
        let instances =
            (0..2).map(|n| world.azure.document(&set.child("virtualMachines", &n.to_string())).unwrap());
        let names_pool = |document: &Value| document.to_string().contains("backendAddressPools/kube");
        std::iter::once(model.clone()).chain(instances).filter(names_pool).count()
    };
    assert_eq!((refers("pool"), refers("theirs")), (0, 0), "no machine is known yet");
    // Earlier, a program ran that joins machines by their names.
    let pool = id("loadBalancers", "kube").child("backendAddressPools", "kube");
    let join = |interfaces: &mut Value| {
        let first = &mut interfaces["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"][0];
        first["properties"]["loadBalancerBackendAddressPools"] = json!([{"id": pool}]);
    };
    let theirs = id("virtualMachineScaleSets", "theirs");
    let model = |set: &mut Value| join(&mut set["properties"]["virtualMachineProfile"]["networkProfile"]);
    world.azure.edit(&theirs, model).unwrap();
    for number in ["0", "1"] {
        let machine = theirs.child("virtualMachines", number);
        let instance = |one: &mut Value| join(&mut one["properties"]["networkProfileConfiguration"]);
        world.azure.edit(&machine, instance).unwrap();
    }
    assert_eq!(refers("theirs"), 3);
    for node in &ours {
        program.provider.state().apply_node(Arc::clone(node));
    }
    program.provider.update_nodes(LogicalTime::now()).await.unwrap();
    assert_eq!((refers("pool"), refers("theirs")), (3, 0));
}
