//! One Service at a time.

use cloud::{LogicalTime, ServiceError};
use serde_json::json;

use crate::world::*;

/// LB-051.
#[tokio::test(start_paused = true)]
async fn lb_051_a_public_service_gets_its_address_and_the_second_run_writes_nothing() {
    let world = World::new();
    let program = world.start();
    let ensured = world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(ensured.addresses.len(), 1);
    let public_ip = world.azure.document(&id("publicIPAddresses", "kube-aweb")).unwrap();
    assert_eq!(public_ip["properties"]["ipAddress"], ensured.addresses[0].to_string());
    assert_eq!(world.members("kube"), 3);
    let group = world.azure.document(&id("networkSecurityGroups", "nsg")).unwrap();
    let rule = &group["properties"]["securityRules"][0]["properties"];
    assert_eq!(rule["destinationAddressPrefix"], ensured.addresses[0].to_string());

    world.azure.clear_journal();
    let again = world.stored(&service("web", &[80]));
    assert_eq!(world.ensure(&program, &again).await.unwrap().addresses, ensured.addresses);
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

/// LB-045.
#[tokio::test(start_paused = true)]
async fn lb_045_a_deleted_service_leaves_nothing_and_the_second_deletion_writes_nothing() {
    let world = World::new();
    let before = world.normalised();
    let program = world.start();
    let web = service("web", &[80, 443]);
    world.serve(&program, web.clone()).await.unwrap();
    let stored = world.stored(&web);
    assert!(program.holds(&stored).await.unwrap());
    world.remove(&program, &web).await.unwrap();
    // An emptied list of pools may stay as an empty list.
    assert!(world.documents(LOAD_BALANCERS).is_empty());
    assert!(world.documents(PUBLIC_IPS).is_empty());
    assert_eq!(
        world.normalised().replace("\"loadBalancerBackendAddressPools\": [],", "").split_whitespace().count(),
        before.split_whitespace().count()
    );
    world.azure.clear_journal();
    assert!(!program.holds(&stored).await.unwrap());
    program.delete(&stored).await.unwrap();
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_internal_service_gets_an_address_of_the_subnet() {
    let world = World::new();
    let program = world.start();
    let ensured = world.serve(&program, internal(service("db", &[5432]))).await.unwrap();
    assert!(ensured.addresses[0].to_string().starts_with("10.240."), "{:?}", ensured.addresses);
    assert_eq!(world.members("kube-internal"), 3);
    assert!(world.documents(PUBLIC_IPS).is_empty());
    world.remove(&program, &service("db", &[5432])).await.unwrap();
    assert!(world.documents(LOAD_BALANCERS).is_empty());
}

/// LB-077, LB-078.
#[tokio::test(start_paused = true)]
async fn lb_077_lb_078_a_service_moves_between_the_load_balancers() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.azure.clear_journal();
    let ensured = world.serve(&program, internal(service("web", &[80]))).await.unwrap();
    assert!(ensured.addresses[0].to_string().starts_with("10.240."));
    assert!(world.load_balancer("kube").is_none(), "the emptied one is deleted");
    let writes = world.all_writes();
    let at = |text: &str| writes.iter().position(|write| write.contains(text)).unwrap();
    let (leaves, joins) = (at("DELETE /subscriptions"), at("/loadBalancers/kube-internal"));
    assert!(writes[leaves].contains("/loadBalancers/kube "), "{}", writes[leaves]);
    assert!(leaves < joins, "it leaves before it joins: {writes:#?}");
    assert!(world.documents(PUBLIC_IPS).is_empty());
    let ensured = world.serve(&program, service("web", &[80])).await.unwrap();
    assert!(!ensured.addresses[0].to_string().starts_with("10.240."));
    assert!(world.load_balancer("kube-internal").is_none());
    assert_eq!(world.members("kube"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_port_change_is_one_write_each() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.azure.clear_journal();
    world.serve(&program, service("web", &[8080])).await.unwrap();
    let writes = world.all_writes();
    assert_eq!(writes.len(), 2, "{writes:#?}");
    assert_eq!(world.writes(LOAD_BALANCERS), 1);
    assert_eq!(world.writes(SECURITY_GROUPS), 1);
}

#[tokio::test(start_paused = true)]
async fn a_second_service_joins_without_touching_machines_or_the_first() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("one", &[80])).await.unwrap();
    world.azure.clear_journal();
    world.serve(&program, service("two", &[80])).await.unwrap();
    let writes = world.all_writes();
    assert_eq!(writes.len(), 3, "{writes:#?}");
    world.azure.clear_journal();
    world.remove(&program, &service("two", &[80])).await.unwrap();
    assert_eq!(world.writes(SCALE_SETS) + world.writes(INSTANCES), 0);
    let balancer = world.load_balancer("kube").unwrap();
    assert_eq!(balancer["properties"]["frontendIPConfigurations"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn drift_is_repaired_when_the_service_is_looked_at_again() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    world
        .azure
        .edit(&id("loadBalancers", "kube"), |document| {
            document["properties"]["loadBalancingRules"] = json!([]);
        })
        .unwrap();
    let web = world.stored(&service("web", &[80]));
    world.ensure(&program, &web).await.unwrap();
    let balancer = world.load_balancer("kube").unwrap();
    assert_eq!(balancer["properties"]["loadBalancingRules"].as_array().unwrap().len(), 1);
}

/// LB-122, NODE-152.
#[tokio::test(start_paused = true)]
async fn lb_122_a_public_ip_that_is_still_in_use_does_not_hold_up_the_deletion() {
    let world = World::new();
    let program = world.start();
    let web = service("web", &[80]);
    world.serve(&program, web.clone()).await.unwrap();
    let fault = azure_simulator::FaultAction::Fail {
        status: 400,
        code: "PublicIPAddressCannotBeDeleted".into(),
        message: "Public IP address x can not be deleted since it is still allocated to resource y.".into(),
    };
    world.azure.inject(azure_simulator::Fault::new(fault).on_method("DELETE").on_type(PUBLIC_IPS));
    let stored = world.stored(&web);
    let notices = program.delete(&stored).await.unwrap();
    assert_eq!(notices.len(), 1);
    assert_eq!((notices[0].reason, notices[0].warning), ("DeletePublicIPAddress", true));
    assert!(notices[0].message.contains("still allocated"));
    assert!(world.documents(LOAD_BALANCERS).is_empty());
}

/// LB-123.
#[tokio::test(start_paused = true)]
async fn lb_123_the_frontend_goes_before_its_public_ip() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("stays", &[80])).await.unwrap();
    world.serve(&program, service("goes", &[80])).await.unwrap();
    world.azure.clear_journal();
    world.remove(&program, &service("goes", &[80])).await.unwrap();
    let writes = world.all_writes();
    let at = |text: &str| writes.iter().position(|write| write.contains(text)).unwrap();
    assert!(
        at(
            "PUT /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/rg/providers/Microsoft.Network/loadBalancers"
        ) < at("DELETE"),
        "{writes:#?}"
    );
    assert!(world.azure.document(&id("publicIPAddresses", "kube-agoes")).is_none());
}

/// LB-081.
#[tokio::test(start_paused = true)]
async fn lb_081_a_scale_set_that_still_refers_to_the_load_balancer_is_cleaned_and_the_deletion_repeated() {
    let world = World::new();
    let program = world.start();
    let web = service("web", &[80]);
    world.serve(&program, web.clone()).await.unwrap();
    // The model joins again right before the deletion, so that Azure refuses it.
    let set = id("virtualMachineScaleSets", "pool");
    let profile = || {
        world.azure.document(&set).unwrap()["properties"]["virtualMachineProfile"]["networkProfile"].clone()
    };
    let patch = json!({"properties": {"virtualMachineProfile": {"networkProfile": profile()}}});
    assert!(patch.to_string().contains("/loadBalancers/kube/"), "{patch}");
    let interferes = azure_simulator::FaultAction::Interfere { id: Some(set.clone()), patch };
    world
        .azure
        .inject(azure_simulator::Fault::new(interferes).on_method("DELETE").on_type(LOAD_BALANCERS).times(1));
    let stored = world.stored(&web);
    program.delete(&stored).await.unwrap();
    assert!(world.documents(LOAD_BALANCERS).is_empty());
    let deletions = world
        .azure
        .journal()
        .entries
        .iter()
        .filter(|entry| entry.method == "DELETE" && entry.resource_type.as_deref() == Some(LOAD_BALANCERS))
        .count();
    assert_eq!(deletions, 2);
    assert!(!profile().to_string().contains("/loadBalancers/"), "{}", profile());
}

/// LB-082.
#[tokio::test(start_paused = true)]
async fn lb_082_a_scale_set_of_another_group_is_named_and_left_alone() {
    let world = World::new();
    let program = world.start();
    let web = service("web", &[80]);
    world.serve(&program, web.clone()).await.unwrap();
    let set = id("virtualMachineScaleSets", "theirs").to_string().replace("/rg/", "/theirs/");
    let fault = azure_simulator::FaultAction::Fail {
        status: 400,
        code: "LoadBalancerInUseByVirtualMachineScaleSet".into(),
        message: format!(
            "Cannot delete load balancer {} since its child resources kube are in use by virtual machine scale set {set}.",
            id("loadBalancers", "kube")
        ),
    };
    world
        .azure
        .inject(azure_simulator::Fault::new(fault).on_method("DELETE").on_type(LOAD_BALANCERS).times(1));
    let stored = world.stored(&web);
    let error = program.delete(&stored).await.unwrap_err();
    let ServiceError::Retry { message, .. } = error else { panic!("{error:?}") };
    assert!(message.contains("resource group theirs") && message.contains("resource group rg"), "{message}");
    assert_eq!(world.documents(LOAD_BALANCERS).len(), 1);
}

/// LB-022.
#[tokio::test(start_paused = true)]
async fn lb_022_a_group_of_load_balancers_that_does_not_exist_holds_none() {
    let world = World::new();
    let program = world.start_configured(&json!({"loadBalancerResourceGroup": "absent"}));
    let web = std::sync::Arc::new(service("web", &[80]));
    assert!(!program.holds(&web).await.unwrap());
    program.delete(&web).await.unwrap();
    assert_eq!(world.all_writes(), Vec::<String>::new());
}

/// LB-033: one public IP of two is left. The Service still exists, or the address would never be released.
#[tokio::test(start_paused = true)]
async fn lb_033_a_service_exists_until_its_last_public_ip_is_gone() {
    let world = World::new();
    let left = json!({
        "location": "eastus", "sku": {"name": "Standard"},
        "tags": {"k8s-azure-service": "shop/web", "k8s-azure-cluster-name": "kube"},
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4"},
    });
    world.azure.put(&id("publicIPAddresses", "kube-aweb"), left).unwrap();
    let program = world.start();
    let mut web = service("web", &[80]);
    web.spec.ip_families = vec!["IPv4".to_owned(), "IPv6".to_owned()];
    let web = std::sync::Arc::new(web);
    assert!(program.holds(&web).await.unwrap());
    program.delete(&web).await.unwrap();
    assert!(world.documents(PUBLIC_IPS).is_empty());
    assert!(!program.holds(&web).await.unwrap());
}

/// LB-125: a frontend refers to the public IP as it was read after its write.
#[tokio::test(start_paused = true)]
async fn lb_125_a_public_ip_is_read_between_its_write_and_that_of_the_load_balancer() {
    let world = World::new();
    world.latency(5, 0, 0);
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let entries = world.azure.journal().entries;
    let at = |method: &str, part: &str, after: usize| {
        let rest = entries.iter().enumerate().skip(after);
        rest.filter(|(_, one)| one.method == method && one.path.to_lowercase().contains(part))
            .map(|(at, _)| at)
            .next()
            .unwrap_or_else(|| panic!("{method} {part} after {after}"))
    };
    let written = at("PUT", "/publicipaddresses/", 0);
    let read = at("GET", "/publicipaddresses", written);
    let used = at("PUT", "/loadbalancers/", 0);
    assert!(written < read && read < used, "{written}, {read}, {used}");
    let public_ip = world.azure.document(&id("publicIPAddresses", "kube-aweb")).unwrap();
    let frontend = &world.load_balancer("kube").unwrap()["properties"]["frontendIPConfigurations"][0];
    assert_eq!(frontend["properties"]["publicIPAddress"]["id"], public_ip["id"]);
}

/// LB-331.
#[tokio::test(start_paused = true)]
async fn lb_331_additional_addresses_stand_behind_those_of_frontends() {
    let world = World::new();
    let program = world.start();
    let more = annotated(service("web", &[80]), "azure-additional-public-ips", "20.9.9.2,20.9.9.1");
    let ensured = world.serve(&program, more.clone()).await.unwrap();
    let first = ensured.addresses[0];
    let told = |addresses: &[std::net::IpAddr]| addresses.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(told(&ensured.addresses), [first.to_string(), "20.9.9.2".into(), "20.9.9.1".into()]);
    let again = annotated(more, "azure-additional-public-ips", &format!("20.9.9.2,{first}"));
    let ensured = world.serve(&program, again).await.unwrap();
    assert_eq!(told(&ensured.addresses), [first.to_string(), "20.9.9.2".into()], "none is named twice");
}

/// LB-295.
#[tokio::test(start_paused = true)]
async fn without_a_security_group_the_service_waits_and_the_remedy_is_named() {
    let world = World::new();
    world
        .azure
        .edit(&id("virtualNetworks", "net"), |document| {
            document["properties"]["subnets"][0]["properties"]
                .as_object_mut()
                .unwrap()
                .remove("networkSecurityGroup");
        })
        .unwrap();
    world.azure.delete(&id("networkSecurityGroups", "nsg")).unwrap();
    let program = world.start();
    let error = world.serve(&program, service("web", &[80])).await.unwrap_err();
    let ServiceError::Retry { message, .. } = error else { panic!("{error:?}") };
    assert!(message.contains("securityGroupName"), "{message}");

    let program = world.start_configured(&json!({"securityGroupName": ""}));
    let error = world.serve(&program, service("web", &[80])).await.unwrap_err().to_string();
    assert!(error.contains("securityGroupName"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_tells_and_writes_nothing() {
    let world = World::new();
    let program = world.start();
    world.apply(&program, service("web", &[80]));
    let plan = program.provider.dry_run().await.unwrap();
    let text = plan.to_string();
    assert!(text.contains("load balancer kube"), "{text}");
    assert!(text.contains("shop/web"), "{text}");
    assert_eq!(world.all_writes(), Vec::<String>::new());
    world.serve(&program, service("web", &[80])).await.unwrap();
    let plan = program.provider.dry_run().await.unwrap();
    assert!(plan.plan.is_empty(), "{plan}");
}

/// LB-030, LB-031, LB-032, LB-034.
#[tokio::test(start_paused = true)]
async fn lb_030_lb_031_lb_032_lb_034_what_exists() {
    let world = World::new();
    let program = world.start();
    let web = world.apply(&program, service("web", &[80]));
    assert!(!program.holds(&web).await.unwrap(), "nothing yet");
    world.ensure(&program, &web).await.unwrap();
    assert!(program.holds(&web).await.unwrap(), "on the load balancer");
    let flipped = world.apply(&program, internal(service("web", &[80])));
    assert!(program.holds(&flipped).await.unwrap(), "on the other load balancer");
    let other = world.apply(&program, service("other", &[80]));
    world.ensure(&program, &other).await.unwrap();
    // Another client removed the frontend; the public IP is left.
    world
        .azure
        .edit(&id("loadBalancers", "kube"), |document| {
            let properties = &mut document["properties"];
            for list in ["frontendIPConfigurations", "loadBalancingRules", "probes"] {
                let items = properties[list].as_array_mut().unwrap();
                items.retain(|item| !item["name"].as_str().unwrap().starts_with("aweb"));
            }
        })
        .unwrap();
    assert!(program.holds(&web).await.unwrap(), "by its public IP");
    world.azure.delete(&id("publicIPAddresses", "kube-aweb")).unwrap();
    assert!(!program.holds(&web).await.unwrap());
}

/// LB-094.
#[tokio::test(start_paused = true)]
async fn lb_094_a_shared_public_ip_stays_with_the_others() {
    let world = World::new();
    let program = world.start();
    let first = world.serve(&program, service("first", &[80])).await.unwrap();
    let second = annotated(service("second", &[443]), "azure-pip-name", "kube-afirst");
    let shared = world.serve(&program, second.clone()).await.unwrap();
    assert_eq!(shared.addresses, first.addresses);
    let tag = |world: &World| world.documents(PUBLIC_IPS)[0]["tags"]["k8s-azure-service"].clone();
    assert_eq!(tag(&world), "shop/first,shop/second");
    world.remove(&program, &second).await.unwrap();
    assert_eq!(tag(&world), "shop/first");
    world.remove(&program, &service("first", &[80])).await.unwrap();
    assert!(world.documents(PUBLIC_IPS).is_empty());
    assert!(world.documents(LOAD_BALANCERS).is_empty());
}

/// LB-093.
#[tokio::test(start_paused = true)]
async fn lb_093_a_public_ip_that_somebody_brought_along_is_used_and_kept() {
    let world = World::new();
    let own =
        json!({ "sku": { "name": "Standard" }, "properties": { "publicIPAllocationMethod": "Static" } });
    let before = world.azure.put(&id("publicIPAddresses", "own"), own).unwrap();
    let program = world.start();
    let web = annotated(service("web", &[80]), "azure-pip-name", "own");
    let ensured = world.serve(&program, web.clone()).await.unwrap();
    assert_eq!(before["properties"]["ipAddress"], ensured.addresses[0].to_string());
    world.remove(&program, &web).await.unwrap();
    assert_eq!(world.documents(PUBLIC_IPS).len(), 1);
    assert_eq!(world.writes(PUBLIC_IPS), 0);
}

/// The public IP was created after the list of public IPs was read, and before the Service that asks for it.
#[tokio::test(start_paused = true)]
async fn a_public_ip_that_was_made_a_moment_ago_is_found_at_once() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("zero", &[80])).await.unwrap();
    let own =
        json!({ "sku": { "name": "Standard" }, "properties": { "publicIPAllocationMethod": "Static" } });
    let own = world.azure.put(&id("publicIPAddresses", "own2"), own).unwrap();
    let address = own["properties"]["ipAddress"].as_str().unwrap();
    let web = world.apply(&program, annotated(service("web", &[81]), "azure-load-balancer-ipv4", address));
    let event = program.provider.state().service(&web.key()).unwrap().stamp;
    let ensured = program.provider.ensure(&web, event).await.unwrap();
    assert_eq!(ensured.addresses[0].to_string(), address);
    assert_eq!(ensured.notices, []);
}

/// A private address of an interface: once the interface is deleted the Service gets it, without being changed.
#[tokio::test(start_paused = true)]
async fn an_address_that_an_interface_held_is_taken_when_it_is_free() {
    let world = World::new();
    let program = world.start();
    let nic = id("networkInterfaces", "other");
    let subnet = id("virtualNetworks", "net").child("subnets", &shape().subnet);
    let holder = json!({"location": "eastus", "properties": {"ipConfigurations": [{"name": "one", "properties": {
        "subnet": {"id": subnet}, "privateIPAllocationMethod": "Static", "privateIPAddress": "10.240.0.77"}}]}});
    world.azure.put(&nic, holder).unwrap();
    let db = annotated(internal(service("db", &[5432])), "azure-load-balancer-ipv4", "10.240.0.77");
    let error = world.serve(&program, db.clone()).await.unwrap_err();
    assert!(
        matches!(&error, ServiceError::Retry { message, .. } if message.contains("10.240.0.77")),
        "it may pass: {error:?}"
    );
    world.azure.delete(&nic).unwrap();
    let ensured = world.ensure(&program, &world.stored(&db)).await.unwrap();
    assert_eq!(ensured.addresses[0].to_string(), "10.240.0.77");
}

/// LB-102.
#[tokio::test(start_paused = true)]
async fn lb_102_a_public_ip_that_has_to_be_created_again_is() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let tagged = annotated(service("web", &[80]), "azure-pip-ip-tags", "RoutingPreference=Internet");
    let second = world.serve(&program, tagged).await.unwrap();
    let deleted = world
        .all_writes()
        .iter()
        .filter(|write| write.contains("DELETE") && write.contains("kube-aweb"))
        .count();
    assert_eq!(deleted, 1, "of the version that the load balancer has let go: {:#?}", world.all_writes());
    let public_ips = world.documents(PUBLIC_IPS);
    assert_eq!(public_ips.len(), 1);
    assert_eq!(public_ips[0]["properties"]["ipTags"][0]["tag"], "Internet");
    let group = world.documents(SECURITY_GROUPS).remove(0);
    assert!(group.to_string().contains(&second.addresses[0].to_string()));
}

/// LB-120.
#[tokio::test(start_paused = true)]
async fn lb_120_a_public_ip_in_another_resource_group_is_found_and_the_old_one_released() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let moved = annotated(service("web", &[80]), "azure-load-balancer-resource-group", "addresses");
    let group = azure_types::ResourceId::group(SUBSCRIPTION, "addresses");
    world.azure.put(&group, json!({ "location": "eastus" })).unwrap();
    world.serve(&program, moved.clone()).await.unwrap();
    let public_ips = world.documents(PUBLIC_IPS);
    assert_eq!(public_ips.len(), 1, "{public_ips:#?}");
    assert!(public_ips[0]["id"].as_str().unwrap().contains("/addresses/"));
    // Another Service joins it by name.
    let second = annotated(service("second", &[443]), "azure-load-balancer-resource-group", "addresses");
    let second = annotated(second, "azure-pip-name", "kube-aweb");
    let shared = world.serve(&program, second.clone()).await.unwrap();
    assert_eq!(public_ips[0]["properties"]["ipAddress"], shared.addresses[0].to_string());
    world.remove(&program, &second).await.unwrap();
    world.remove(&program, &moved).await.unwrap();
    assert!(world.documents(PUBLIC_IPS).is_empty());
    assert!(world.documents(LOAD_BALANCERS).is_empty());
}

/// LB-073.
#[tokio::test(start_paused = true)]
async fn lb_073_a_frontend_that_others_use_stays() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let frontend = id("loadBalancers", "kube").child("frontendIPConfigurations", "aweb");
    let pool = id("loadBalancers", "kube").child("backendAddressPools", "kube");
    world
        .azure
        .edit(&id("loadBalancers", "kube"), |document| {
            let rule = json!({ "name": "mine", "properties": {
                "frontendIPConfiguration": { "id": frontend }, "backendAddressPool": { "id": pool },
                "protocol": "Tcp", "frontendPort": 9, "backendPort": 9, "enableFloatingIP": true,
            }});
            document["properties"]["loadBalancingRules"].as_array_mut().unwrap().push(rule);
        })
        .unwrap();
    let web = world.stored(&service("web", &[80]));
    let notices = program.delete(&web).await.unwrap();
    assert!(notices.iter().any(|notice| notice.reason == "DeletingFrontendIPConfiguration"), "{notices:?}");
    let balancer = world.load_balancer("kube").unwrap();
    let rules = balancer["properties"]["loadBalancingRules"].as_array().unwrap();
    assert_eq!(rules.len(), 1);
    assert_eq!(rules[0]["name"], "mine");
    assert_eq!(world.members("kube"), 3);
}

/// LB-049, LB-050.
#[tokio::test(start_paused = true)]
async fn lb_049_lb_050_public_ips_are_read_again_only_when_a_public_frontend_changed() {
    let world = World::new();
    let program = world.start();
    let lists = |world: &World| {
        let journal = world.azure.journal();
        journal
            .entries
            .iter()
            .filter(|entry| entry.method == "GET" && entry.path.ends_with("/publicIPAddresses"))
            .count()
    };
    world.serve(&program, service("web", &[80])).await.unwrap();
    world.serve(&program, internal(service("db", &[80]))).await.unwrap();
    // A new internal frontend: the public IPs have not changed.
    world.azure.clear_journal();
    world.serve(&program, internal(service("db2", &[80]))).await.unwrap();
    assert_eq!(lists(&world), 0);
    // The cached state is valid: only the new public IP is read.
    world.serve(&program, service("web2", &[80])).await.unwrap();
    assert_eq!(lists(&world), 1);
    // The new public frontend gave its public IP a new version, which the next Service has to know.
    world.azure.clear_journal();
    world.serve(&program, service("web3", &[80])).await.unwrap();
    assert_eq!(lists(&world), 2);
    // Only rules change: the cached public IPs stay valid for the next Service.
    world.serve(&program, service("web3", &[80, 81])).await.unwrap();
    world.azure.clear_journal();
    world.serve(&program, service("web4", &[80])).await.unwrap();
    assert_eq!(lists(&world), 1);
}

/// LB-119: an address is searched in a list that is as new as the event that asks for it; a missing one is named.
#[tokio::test(start_paused = true)]
async fn lb_119_an_address_that_came_since_the_last_list_is_found() {
    let world = World::new();
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    // Read after the last write that concerned it.
    world.serve(&program, service("web", &[80, 443])).await.unwrap();
    let own =
        json!({ "sku": { "name": "Standard" }, "properties": { "publicIPAllocationMethod": "Static" } });
    let made = world.azure.put(&id("publicIPAddresses", "own"), own).unwrap();
    let address = made["properties"]["ipAddress"].as_str().unwrap();
    let asking = annotated(service("asking", &[81]), "azure-load-balancer-ipv4", address);
    let asking = world.apply(&program, asking);
    let ensured = program.provider.ensure(&asking, LogicalTime::now()).await.unwrap();
    assert_eq!(ensured.addresses[0].to_string(), address);
    let missing = annotated(service("missing", &[82]), "azure-load-balancer-ipv4", "20.1.2.3");
    world.azure.clear_journal();
    let missing = world.apply(&program, missing);
    let error = program.provider.ensure(&missing, LogicalTime::now()).await.unwrap_err().to_string();
    assert!(error.contains("20.1.2.3") && error.contains("resource group rg"), "{error}");
    let journal = world.azure.journal();
    let lists = journal.entries.iter().filter(|entry| entry.path.ends_with("/publicIPAddresses"));
    assert_eq!(lists.count(), 1, "{journal:?}");
}

/// LB-330, LB-079.
#[tokio::test(start_paused = true)]
async fn lb_330_lb_079_two_families_and_then_one() {
    let world = World::new();
    let program = world.start();
    let mut web = service("web", &[80]);
    web.spec.ip_families = vec!["IPv4".into(), "IPv6".into()];
    let ensured = world.serve(&program, web).await.unwrap();
    assert_eq!(ensured.addresses.len(), 2);
    assert!(ensured.addresses[0].is_ipv4() && ensured.addresses[1].is_ipv6());
    let ensured = world.serve(&program, service("web", &[80])).await.unwrap();
    assert_eq!(ensured.addresses.len(), 1);
    assert_eq!(world.documents(PUBLIC_IPS).len(), 1);
    let balancer = world.load_balancer("kube").unwrap();
    assert_eq!(balancer["properties"]["frontendIPConfigurations"].as_array().unwrap().len(), 1);
    assert_eq!(balancer["properties"]["loadBalancingRules"].as_array().unwrap().len(), 1);
}

/// LB-041.
#[tokio::test(start_paused = true)]
async fn lb_041_what_another_component_may_have_written_is_read_again() {
    for (forget, first_answer) in [(false, 412), (true, 200)] {
        let world = World::new();
        let program = world.start();
        // The second time, the first write's result is read.
        world.serve(&program, service("web", &[80])).await.unwrap();
        world.serve(&program, service("web", &[80])).await.unwrap();
        let edit = |document: &mut serde_json::Value| document["tags"] = json!({"written-by": "another"});
        world.azure.edit(&id("loadBalancers", "kube"), edit).unwrap();
        world.azure.clear_journal();
        if forget {
            program.provider.forget_observed();
        }
        // An event that is older than all data read so far.
        let api = world.apply(&program, service("api", &[443]));
        program.provider.ensure(&api, LogicalTime::BEGINNING).await.unwrap();
        assert_eq!(world.puts(LOAD_BALANCERS)[0], first_answer, "forgotten: {forget}");
        assert_eq!(world.load_balancer("kube").unwrap()["tags"]["written-by"], "another");
    }
}
