//! Cases of `docs/rules`: names, frontends and whole load balancers.

use std::net::IpAddr;

use serde_json::json;

use super::*;
use crate::model::Flavor;
use crate::outcome::{Action, PortHolder};
use crate::resources::load_balancer::{
    ClusterFacts, LoadBalancerIntent, LoadBalancerPlan, plan, services_named_in,
};
use crate::service::ServiceRemoval;

fn web() -> Svc {
    svc("test1").tcp(80)
}

fn internal() -> Svc {
    web().internal()
}

fn frontend_of(lb: &LoadBalancer, name: &str) -> Value {
    let frontends = &lb.properties.as_ref().unwrap().frontend_ip_configurations;
    let found = frontends.iter().flatten().find(|frontend| frontend.name.as_deref() == Some(name));
    serde_json::to_value(found.unwrap_or_else(|| panic!("no {name}"))).unwrap()
}

fn after(service: &Svc) -> Azure {
    let mut azure = Azure::new();
    azure.converge(&[service.arc()], &[]);
    azure
}

/// The frontend of the only internal Service that a plan writes.
fn planned_frontend(azure: &Azure, service: &Svc, name: &str) -> Value {
    let planned = azure.plan(&[service.arc()], &[]);
    let step =
        planned.plan.steps.iter().find(|step| matches!(step.document, Some(Document::LoadBalancer(_))));
    frontend_of(load_balancer_of(step.unwrap_or_else(|| panic!("{}", planned.plan))), name)
}

fn with(azure: &mut Azure, change: impl FnOnce(&mut Value)) {
    let mut document = serde_json::to_value(&azure.observed.load_balancers[0]).unwrap();
    change(&mut document);
    azure.observed.load_balancers[0] = Arc::new(serde_json::from_value(document).unwrap());
}

/// LB-012, LB-013, LB-018.
#[test]
fn lb_012_lb_013_lb_018_names_of_load_balancers() {
    let plain = cluster();
    assert_eq!(plain.placement(Flavor::External).name, "testCluster");
    assert_eq!(plain.placement(Flavor::Internal).name, "testCluster-internal");
    let custom = cluster_with(json!({"loadBalancerName": "custom"}));
    assert_eq!(custom.placement(Flavor::External).name, "custom");
    assert_eq!(custom.placement(Flavor::Internal).name, "custom-internal");
    assert_eq!(
        custom.pool_name(crate::model::Family::V6),
        "testCluster-IPv6",
        "pools keep the cluster's name"
    );
    // The mode annotation of Basic load balancers has no effect, and the owner is informed.
    let mode = web().annotate("azure-load-balancer-mode", "__auto__").intent(&plain);
    assert_eq!(mode.notices[0].reason, "AnnotationIgnored");
    assert_eq!(ServiceIntent { notices: Vec::new(), ..(*mode).clone() }, *web().intent(&plain));
}

/// LB-024.
#[test]
fn lb_024_a_configured_name_is_found_and_foreign_rules_are_kept() {
    let cluster = cluster_with(json!({"loadBalancerName": "custom"}));
    let mut azure = Azure::of(cluster);
    azure.converge(&[web().arc()], &[]);
    with(&mut azure, |lb| {
        lb["etag"] = json!("theirs");
        let mut rule = lb["properties"]["loadBalancingRules"][0].clone();
        rule["name"] = json!("foreign");
        rule["properties"]["frontendPort"] = json!(9999);
        lb["properties"]["loadBalancingRules"].as_array_mut().unwrap().push(rule);
    });
    let planned = azure.plan(&[web().tcp(443).arc()], &[]);
    let step = &planned.plan.steps[0];
    assert_eq!((step.action, step.if_match.as_deref()), (Action::Update, Some("theirs")));
    assert_eq!(step.target.name(), "custom");
    assert_eq!(rule_names(load_balancer_of(step)), ["atest1-TCP-80", "foreign", "atest1-TCP-443"]);
}

/// LB-007, LB-008.
#[test]
fn lb_007_lb_008_names_by_family() {
    let names = |azure: &Azure| {
        let lb = azure.load_balancer(Flavor::External).unwrap();
        let pools = lb.properties.as_ref().unwrap().backend_address_pools.as_ref().unwrap();
        let pools: Vec<String> = pools.iter().map(|pool| pool.name.clone().unwrap()).collect();
        let ips: Vec<String> = azure.observed.public_ips.iter().map(|ip| ip.name.clone().unwrap()).collect();
        let owned = |list: Vec<&str>| list.into_iter().map(str::to_owned).collect::<Vec<_>>();
        [owned(frontend_names(lb)), owned(rule_names(lb)), pools, ips]
    };
    let v6 = names(&after(&web().families(&["IPv6"])));
    assert_eq!(v6, [["atest1"], ["atest1-TCP-80"], ["testCluster-IPv6"], ["testCluster-atest1"]]);
    let dual = names(&after(&web().dual()));
    assert_eq!(
        dual,
        [
            ["atest1", "atest1-IPv6"],
            ["atest1-TCP-80", "atest1-TCP-80-IPv6"],
            ["testCluster", "testCluster-IPv6"],
            ["testCluster-atest1", "testCluster-atest1-IPv6"],
        ]
    );
}

/// LB-005, LB-060.
#[test]
fn lb_005_lb_060_a_new_external_frontend() {
    // The subnet annotation is for internal Services.
    let azure = after(&web().annotate("azure-load-balancer-internal-subnet", "other"));
    let frontend = frontend_of(azure.load_balancer(Flavor::External).unwrap(), "atest1");
    let id = azure.cluster.public_ip_id("rg", "testCluster-atest1");
    assert_eq!(frontend["properties"]["publicIPAddress"]["id"], json!(id));
    assert_eq!(frontend.get("zones"), None);
}

/// LB-061, LB-062.
#[test]
fn lb_061_lb_062_a_new_internal_frontend() {
    let azure = Azure::new();
    let frontend = planned_frontend(&azure, &internal(), "atest1");
    assert_eq!(frontend["zones"], json!(["1", "2", "3"]));
    assert_eq!(
        frontend["properties"],
        json!({
            "privateIPAllocationMethod": "Dynamic",
            "subnet": {"id": azure.cluster.subnet_id("subnet"), "name": "subnet"},
        })
    );
    let edge = cluster_with(json!({"extendedLocationName": "edge", "extendedLocationType": "EdgeZone"}));
    let without = Cluster { region_zones: Vec::new(), ..cluster() };
    for cluster in [edge, without] {
        let frontend = planned_frontend(&Azure::of(cluster), &internal(), "atest1");
        assert_eq!(frontend.get("zones"), None);
    }
}

/// LB-063, LB-064.
#[test]
fn lb_063_lb_064_a_frontend_that_moves_keeps_its_zones() {
    for zones in [Some(json!(["1"])), None] {
        let mut azure = after(&internal());
        with(&mut azure, |lb| {
            let frontend = &mut lb["properties"]["frontendIPConfigurations"][0];
            match &zones {
                Some(zones) => frontend["zones"] = zones.clone(),
                None => {
                    frontend.as_object_mut().unwrap().remove("zones");
                }
            }
        });
        let moved = internal().annotate("azure-load-balancer-internal-subnet", "other");
        let frontend = planned_frontend(&azure, &moved, "atest1-other");
        assert_eq!(frontend.get("zones").cloned(), zones);
        azure.converge(&[moved.arc()], &[]);
        let lb = azure.load_balancer(Flavor::Internal).unwrap();
        assert_eq!(frontend_names(lb), ["atest1-other"]);
        assert_eq!(rule_names(lb), ["atest1-other-TCP-80"]);
    }
}

/// LB-065, LB-066, LB-067, LB-412.
#[test]
fn lb_065_lb_066_lb_067_lb_412_requested_private_addresses() {
    let asks = |address: &str| internal().change(|s| s.spec.load_balancer_ip = address.into());
    let mut azure = Azure::new();
    let frontend = planned_frontend(&azure, &asks("10.0.0.8"), "atest1");
    assert_eq!(frontend["properties"]["privateIPAddress"], "10.0.0.8");
    assert_eq!(frontend["properties"]["privateIPAllocationMethod"], "Static");
    azure.converge(&[asks("10.0.0.8").arc()], &[]);
    assert!(azure.plan(&[internal().arc()], &[]).plan.is_empty(), "no longer asked for: kept");
    let planned = azure.plan(&[asks("10.0.0.9").arc()], &[]);
    let moved = Change::FrontendAddress {
        frontend: "atest1".to_owned(),
        from: Some("10.0.0.8".to_owned()),
        to: "10.0.0.9".parse().unwrap(),
    };
    assert_eq!(planned.plan.steps[0].changes[0], moved);
    azure.converge(&[asks("10.0.0.9").arc()], &[]);
    assert_eq!(rule_names(azure.load_balancer(Flavor::Internal).unwrap()), ["atest1-TCP-80"]);
    // An address outside of the subnet is refused, and nothing changes.
    let planned = azure.plan(&[asks("10.9.0.9").arc()], &[]);
    assert!(
        matches!(planned.refused[..], [(_, Refusal::AddressOutsideSubnet { .. })]),
        "{:?}",
        planned.refused
    );
    assert!(planned.plan.is_empty(), "{}", planned.plan);
}

/// LB-068, LB-069.
#[test]
fn lb_068_lb_069_the_published_address_is_kept_where_the_subnet_holds_it() {
    let mut azure = Azure::new();
    azure.observed.subnets[0] = subnet(&azure.cluster, "subnet", &["9.9.9.0/24", "1.2.3.4/31"]);
    let frontend = planned_frontend(&azure, &internal().published(&["1.2.3.4"]), "atest1");
    assert_eq!(frontend["properties"]["privateIPAddress"], "1.2.3.4");
    assert_eq!(frontend["properties"]["privateIPAllocationMethod"], "Static");
    let frontend = planned_frontend(&azure, &internal().published(&["1.2.3.6"]), "atest1");
    assert_eq!(frontend["properties"]["privateIPAllocationMethod"], "Dynamic");
    assert_eq!(frontend["properties"].get("privateIPAddress"), None);
}

/// LB-070.
#[test]
fn lb_070_a_missing_subnet_is_named() {
    let planned =
        Azure::new().plan(&[internal().annotate("azure-load-balancer-internal-subnet", "gone").arc()], &[]);
    let refusal = Refusal::SubnetNotFound { network: "vnet".into(), subnet: "gone".into() };
    assert_eq!(planned.refused[0].1, refusal);
    assert!(planned.plan.is_empty());
}

/// LB-071, LB-072.
#[test]
fn lb_071_lb_072_the_public_ip_changes_in_place() {
    let mut azure = after(&web());
    azure.observed.public_ips.push(Arc::new(public_ip(&azure.cluster, "mine", Some("20.7.7.7"), json!({}))));
    let named = web().annotate("azure-pip-name", "mine");
    let planned = azure.plan(&[named.arc()], &[]);
    let redirected = Change::FrontendPublicIp {
        frontend: "atest1".to_owned(),
        from: "testCluster-atest1".to_owned(),
        to: "mine".to_owned(),
    };
    assert_eq!(planned.plan.steps[0].changes, [redirected]);
    azure.converge(&[named.arc()], &[]);
    let names: Vec<_> = azure.observed.public_ips.iter().map(|ip| ip.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["mine"], "the Service's own is released");

    let mut bare = after(&web());
    with(&mut bare, |lb| {
        let properties =
            lb["properties"]["frontendIPConfigurations"][0]["properties"].as_object_mut().unwrap();
        properties.remove("publicIPAddress");
    });
    let planned = bare.plan(&[web().arc()], &[]);
    assert_eq!(planned.refused, [], "{}", planned.plan);
    let writes_lb = planned.plan.steps.iter().any(|step| step.target.name() == "testCluster");
    assert!(!writes_lb, "{}", planned.plan);
}

/// LB-073, LB-074, LB-075.
#[test]
fn lb_073_lb_074_lb_075_frontends_that_others_use_stay() {
    let id = cluster().frontend_id(&cluster().placement(Flavor::External), "atest1");
    let one = json!({"id": id});
    for (kind, properties) in [
        (
            "loadBalancingRules",
            json!({"frontendIPConfiguration": one, "protocol": "Tcp", "frontendPort": 9999}),
        ),
        ("outboundRules", json!({"frontendIPConfigurations": [one]})),
        ("inboundNatRules", json!({"frontendIPConfiguration": one, "protocol": "Tcp", "frontendPort": 9999})),
        ("inboundNatPools", json!({"frontendIPConfiguration": one, "protocol": "Tcp"})),
    ] {
        let mut azure = after(&web());
        with(&mut azure, |lb| {
            let member = json!({"name": "theirs", "properties": properties});
            match lb["properties"][kind].as_array_mut() {
                Some(list) => list.push(member),
                None => lb["properties"][kind] = json!([member]),
            }
        });
        let planned = azure.plan(&[web().deleting().arc()], &[]);
        let lb = load_balancer_of(&planned.plan.steps[0]);
        assert_eq!(frontend_names(lb), ["atest1"], "{kind}");
        assert!(!rule_names(lb).contains(&"atest1-TCP-80"));
        let notice = &planned.notices[0];
        assert_eq!(notice.reason, "DeletingFrontendIPConfiguration");
        assert!(notice.warning && notice.message.contains("atest1") && notice.message.contains("theirs"));
    }
    let mut azure = after(&web());
    azure.converge(&[web().deleting().arc()], &[]);
    assert!(azure.observed.load_balancers.is_empty() && azure.observed.public_ips.is_empty());
}

/// LB-073: the first of the Services that share a frontend leaves. Nothing has to be done, so the event is no warning.
/// A frontend that a foreign rule uses, with or without theirs, concerns the owner.
#[test]
fn lb_073_a_frontend_that_services_share_stays_without_a_warning() {
    let uid = |number: u32| format!("{number:08}-0000-4000-8000-000000000000");
    let named = |name: &str, number: u32| {
        let service =
            svc(name).tcp(80 + i32::try_from(number).unwrap()).annotate("azure-pip-name", "brought");
        service.change(|service| service.metadata.uid = Some(uid(number)))
    };
    let (first, second) = (named("first", 1), named("second", 2));
    let mut azure = Azure::new();
    azure.observed.public_ips.push(Arc::new(public_ip(
        &azure.cluster,
        "brought",
        Some("20.1.0.1"),
        json!({}),
    )));
    azure.converge(&[first.clone().arc(), second.clone().arc()], &[]);
    let said = |azure: &Azure| {
        let planned = azure.plan(&[first.clone().deleting().arc(), second.clone().arc()], &[]);
        let about =
            planned.notices.iter().filter(|notice| notice.reason == "DeletingFrontendIPConfiguration");
        about.map(|notice| (notice.warning, notice.message.clone())).collect::<Vec<_>>()
    };
    let shared = said(&azure);
    assert_eq!(shared.len(), 1, "{shared:?}");
    assert!(!shared[0].0 && shared[0].1.contains("another Service uses it"), "{shared:?}");
}

/// LB-076: incomplete documents are no reason to remove a frontend that is in use, nor to fail.
#[test]
fn lb_076_a_frontend_without_an_id_stays_for_whoever_names_it() {
    let id = cluster().frontend_id(&cluster().placement(Flavor::External), "atest1");
    let mut azure = after(&web());
    with(&mut azure, |lb| {
        lb["properties"]["frontendIPConfigurations"][0].as_object_mut().unwrap().remove("id");
        let theirs = json!({"name": "theirs", "properties": {"frontendIPConfigurations": [{"id": id}, {}]}});
        lb["properties"]["outboundRules"] = json!([theirs, {}]);
    });
    let planned = azure.plan(&[web().deleting().arc()], &[]);
    assert_eq!(frontend_names(load_balancer_of(&planned.plan.steps[0])), ["atest1"]);

    let mut azure = Azure::new();
    let balancer = cluster().load_balancer_id(&cluster().placement(Flavor::External));
    let empty = json!({"id": balancer, "name": "testCluster"});
    azure.observed.load_balancers.push(Arc::new(serde_json::from_value(empty).unwrap()));
    azure.converge(&[web().arc()], &[]);
    assert_eq!(frontend_names(azure.load_balancer(Flavor::External).unwrap()), ["atest1"]);
}

/// LB-077, LB-078.
#[test]
fn lb_077_lb_078_a_service_that_changes_sides_leaves_nothing_behind() {
    for value in ["true", "True"] {
        let inside = web().annotate("azure-load-balancer-internal", value);
        let mut azure = after(&web());
        azure.converge(&[inside.arc()], &nodes([node("alpha", 0)]));
        assert_eq!(azure.load_balancer(Flavor::External), None);
        assert_eq!(frontend_names(azure.load_balancer(Flavor::Internal).unwrap()), ["atest1"]);
        assert!(azure.observed.public_ips.is_empty());
        azure.converge(&[web().arc()], &nodes([node("alpha", 0)]));
        assert_eq!(azure.load_balancer(Flavor::Internal), None);
        assert_eq!(frontend_names(azure.load_balancer(Flavor::External).unwrap()), ["atest1"]);
        assert_eq!(azure.observed.public_ips.len(), 1);
    }
}

/// LB-079.
#[test]
fn lb_079_a_family_that_is_given_up_goes_with_all_its_parts() {
    let mut azure = after(&web().dual());
    assert_eq!(frontend_names(azure.load_balancer(Flavor::External).unwrap()), ["atest1", "atest1-IPv6"]);
    azure.converge(&[web().arc()], &[]);
    let lb = azure.load_balancer(Flavor::External).unwrap();
    assert_eq!(frontend_names(lb), ["atest1"]);
    assert_eq!(rule_names(lb), ["atest1-TCP-80"]);
    assert_eq!(probe_names(lb), ["atest1-TCP-80"]);
    assert_eq!(azure.observed.public_ips.len(), 1);
}

/// LB-080.
#[test]
fn lb_080_machines_leave_before_the_load_balancer_goes() {
    let mut azure = Azure::new();
    let nodes = nodes([node("alpha", 0), node("beta", 1)]);
    azure.converge(&[web().arc()], &nodes);
    let planned = azure.plan(&[web().deleting().arc()], &nodes);
    let order: Vec<String> = planned
        .plan
        .steps
        .iter()
        .map(|step| format!("{:?} {}", step.action, step.target.type_and_name_pairs().last().unwrap().1))
        .collect();
    assert_eq!(
        order,
        [
            "Update alpha",
            "Update 0",
            "Update beta",
            "Update 1",
            "Delete testCluster",
            "Update nsg",
            "Delete testCluster-atest1"
        ]
    );
    azure.apply(&planned.plan);
    assert!(azure.observed.load_balancers.is_empty());
}

/// LB-083.
#[test]
fn lb_083_a_load_balancer_with_preconfigured_pools_is_not_deleted() {
    let mut azure = Azure::of(cluster_with(json!({"preConfiguredBackendPoolLoadBalancerTypes": "all"})));
    azure.converge(&[web().arc()], &[]);
    azure.converge(&[web().deleting().arc()], &[]);
    let lb = azure.load_balancer(Flavor::External).expect("stays");
    assert!(frontend_names(lb).is_empty() && rule_names(lb).is_empty(), "but is empty");
    assert!(azure.observed.public_ips.is_empty());
}

/// LB-084.
#[test]
fn lb_084_zones_are_kept_family_by_family() {
    let dual = internal().dual();
    let mut azure = after(&dual);
    with(&mut azure, |lb| {
        let frontends = lb["properties"]["frontendIPConfigurations"].as_array_mut().unwrap();
        frontends[0]["zones"] = json!(["1"]);
        frontends[1]["zones"] = json!(["2"]);
        frontends[1]["name"] = json!("atest1-old-IPv6");
        frontends[1].as_object_mut().unwrap().remove("id");
    });
    let planned = azure.plan(&[dual.arc()], &[]);
    let lb = load_balancer_of(&planned.plan.steps[0]);
    assert_eq!(frontend_of(lb, "atest1")["zones"], json!(["1"]));
    assert_eq!(frontend_of(lb, "atest1-IPv6")["zones"], json!(["2"]));
    assert_eq!(frontend_names(lb), ["atest1", "atest1-IPv6"]);
}

/// Joined by address or by name, with the primary Service leaving first or last.
#[test]
fn services_share_a_frontend_until_the_last_one_goes() {
    let primary = svc("a1").uid("257b9655-5137-4ad2-b091-ef3f07043ad3").tcp(80);
    let mut azure = Azure::new();
    azure.converge(&[primary.arc()], &[]);
    let address = azure.observed.public_ips[0].properties.as_ref().unwrap().ip_address.clone().unwrap();
    let second = svc("b1").tcp(443).change(|s| s.spec.load_balancer_ip = address.clone());
    azure.converge(&[primary.arc(), second.arc()], &[]);
    let lb = azure.load_balancer(Flavor::External).unwrap();
    assert_eq!(frontend_names(lb), ["a257b965551374ad2b091ef3f07043ad"]);
    assert_eq!(rule_names(lb), ["a257b965551374ad2b091ef3f07043ad-TCP-80", "ab1-TCP-443"]);
    let tag =
        |azure: &Azure| azure.observed.public_ips[0].tags.as_ref().unwrap()["k8s-azure-service"].clone();
    assert_eq!(tag(&azure), "default/a1,default/b1");

    let published = second.published(&[&address]);
    azure.converge(&[primary.clone().deleting().arc(), published.arc()], &[]);
    let lb = azure.load_balancer(Flavor::External).unwrap();
    assert_eq!(
        (frontend_names(lb), rule_names(lb)),
        (vec!["a257b965551374ad2b091ef3f07043ad"], vec!["ab1-TCP-443"])
    );
    assert_eq!(tag(&azure), "default/b1");
    azure.converge(&[published.deleting().arc()], &[]);
    assert!(azure.observed.load_balancers.is_empty() && azure.observed.public_ips.is_empty());
}

#[test]
fn services_share_a_private_address() {
    let asks = |svc: Svc| svc.internal().change(|s| s.spec.load_balancer_ip = "10.0.0.8".into());
    let (a, b) = (asks(svc("a1").tcp(80)), asks(svc("b1").tcp(443)));
    let mut azure = Azure::new();
    azure.converge(&[b.arc(), a.arc()], &[]);
    assert_eq!(frontend_names(azure.load_balancer(Flavor::Internal).unwrap()), ["aa1"]);
    let clash = asks(svc("c1").tcp(80));
    let planned = azure.plan(&[a.arc(), b.arc(), clash.arc()], &[]);
    assert_eq!(planned.refused.len(), 1);
    let Refusal::PortTaken { holder, .. } = &planned.refused[0].1 else { panic!() };
    assert_eq!(**holder, PortHolder::Rule("aa1-TCP-80".into()));
    azure.converge(&[a.deleting().arc(), b.deleting().arc()], &[]);
    assert!(azure.observed.load_balancers.is_empty());
}

/// LB-332.
#[test]
fn lb_332_addresses_for_the_status() {
    let service = web().dual().annotate("azure-additional-public-ips", "1.2.3.4, 5.6.7.8");
    let azure = after(&service);
    let lb = azure.load_balancer(Flavor::External).unwrap();
    let removal = ServiceRemoval::of(&azure.cluster, &service.0);
    let balancer = azure.cluster.placement(Flavor::External);
    let owned = crate::resources::load_balancer::frontend::frontends_of(
        &azure.cluster,
        &balancer,
        &Arc::new(lb.clone()).into(),
        &removal,
        &Default::default(),
    );
    assert_eq!(owned.iter().map(|f| f.family).collect::<Vec<_>>(), crate::model::Family::BOTH);
    let intent = service.intent(&azure.cluster);
    let additional: Vec<String> = intent.additional_addresses().iter().map(IpAddr::to_string).collect();
    assert_eq!(additional, ["1.2.3.4", "5.6.7.8"]);
    let refusal = web().annotate("azure-additional-public-ips", "1.2.3.4,x").refusal();
    assert!(matches!(refusal, Refusal::InvalidAdditionalAddress { item, .. } if item == "x"));
}

#[test]
fn tags_of_the_configuration_are_written_once() {
    let mut azure = Azure::of(cluster_with(json!({"tags": "team=net"})));
    azure.converge(&[web().arc()], &[]);
    let lb = azure.load_balancer(Flavor::External).unwrap();
    assert_eq!(lb.tags.as_ref().unwrap()["team"], "net");
}

fn intent_of(service: &Svc) -> LoadBalancerIntent {
    LoadBalancerIntent::Present {
        service: service.intent(&cluster()),
        public_ips: [(
            crate::model::Family::V4,
            cluster().public_ip_id("rg", &format!("pip-{}", service.0.key().name)),
        )]
        .into(),
        subnet: None,
    }
}

#[test]
fn blame_finds_the_services_that_an_error_names() {
    let batch =
        [intent_of(&svc("a1").tcp(80)), intent_of(&svc("b1").tcp(80)), intent_of(&svc("b10").tcp(80))];
    let names = |text: &str| {
        services_named_in(text, &batch).iter().map(|key| key.name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("Rule /x/loadBalancingRules/AA1-TCP-80 is invalid."), ["a1"]);
    assert_eq!(names("/publicIPAddresses/pip-b1 is not provisioned"), ["b1"]);
    assert_eq!(names("Another operation is in progress"), Vec::<String>::new());
}

/// One bad Service in a batch does not block the write of the others, and is left unchanged itself.
#[test]
fn one_refused_service_does_not_stop_the_batch() {
    let cluster = cluster();
    let inside = |name: &str, subnet: Option<Arc<Subnet>>| LoadBalancerIntent::Present {
        service: svc(name).tcp(80).internal().intent(&cluster),
        public_ips: Default::default(),
        subnet,
    };
    let batch = [inside("a1", Some(subnet(&cluster, "subnet", &["10.0.0.0/24"]))), inside("b1", None)];
    let internal = cluster.placement(Flavor::Internal);
    let LoadBalancerPlan { step, refused, .. } =
        plan(&cluster, &internal, None, &batch, ClusterFacts::default());
    assert_eq!((step.unwrap().on_behalf_of.len(), refused.len()), (1, 1), "b1 has no subnet");
}

/// A public IP to be recreated is released by the load balancer first; then everything is created again.
///
/// LB-123.
#[test]
fn lb_123_an_address_in_use_is_let_go_before_it_is_deleted() {
    let mut azure = after(&web());
    let tagged = web().annotate("azure-pip-ip-tags", "FirstPartyUsage=/x");
    let first = azure.plan(&[tagged.arc()], &[]);
    let told: Vec<String> =
        first.plan.steps.iter().map(|step| format!("{:?} {}", step.action, step.target.name())).collect();
    let expected = [
        "Update testCluster",
        "Delete testCluster-atest1",
        "Create testCluster-atest1",
        "Update testCluster",
        "Update nsg",
    ];
    assert_eq!(told, expected);
    azure.converge(&[tagged.arc()], &[]);
    let lb = azure.load_balancer(Flavor::External).unwrap();
    assert_eq!((frontend_names(lb), rule_names(lb)), (vec!["atest1"], vec!["atest1-TCP-80"]));
    let tags = azure.observed.public_ips[0].properties.as_ref().unwrap().ip_tags.as_ref().unwrap();
    assert_eq!(tags[0].tag.as_deref(), Some("/x"));
}

/// A frontend that a foreign outbound rule uses stays, and the Service's owner is informed of the reason.
#[test]
fn a_dual_stack_frontend_that_others_use_stays_beside_the_new_one() {
    let mut azure = after(&web().dual());
    let id = cluster().frontend_id(&cluster().placement(Flavor::External), "atest1-IPv6");
    with(&mut azure, |lb| {
        lb["properties"]["outboundRules"] =
            json!([{"name": "theirs", "properties": {"frontendIPConfigurations": [{"id": id}]}}]);
    });
    let planned = azure.plan(&[web().arc()], &[]);
    assert_eq!(frontend_names(load_balancer_of(&planned.plan.steps[0])), ["atest1", "atest1-IPv6"]);
    assert!(planned.notices[0].message.contains("outbound rule theirs"), "{:?}", planned.notices);
}

/// The basis of group commit: any number of Services needs one write of each shared resource.
#[test]
fn two_hundred_services_need_one_write_of_each_shared_resource() {
    let services: Vec<_> = (0..200)
        .map(|n| svc("s").tcp(80).tcp(443).change(|s| s.metadata.name = Some(format!("s{n}"))))
        .map(|s| {
            let name = s.0.metadata.name.clone().unwrap();
            s.change(|s| s.metadata.uid = Some(format!("uid-{name}-")))
        })
        .collect();
    let mut azure = Azure::new();
    let all: Vec<_> = services.iter().map(Svc::arc).collect();
    let kinds = |planned: &crate::outcome::ClusterPlan| {
        let mut counts = std::collections::BTreeMap::new();
        for step in &planned.plan.steps {
            *counts.entry(step.target.type_and_name_pairs()[0].0.to_owned()).or_insert(0) += 1;
        }
        counts
    };
    let first = azure.plan(&all, &[]);
    assert_eq!((kinds(&first)["publicIPAddresses"], kinds(&first)["loadBalancers"]), (200, 1));
    azure.apply(&first.plan);
    let second = azure.plan(&all, &[]);
    assert_eq!(kinds(&second), [("networkSecurityGroups".to_owned(), 1)].into());
    azure.apply(&second.plan);
    assert!(azure.plan(&all, &[]).plan.is_empty());
}

/// A shared frontend is named after the Service that came first. When that Service is deleted and the last other one
/// moves away, the frontend is removed too; while any Service of that name exists, it stays.
#[test]
fn a_shared_frontend_goes_with_the_last_service_that_uses_it() {
    let uid = |number: u32| format!("{number:08}-0000-4000-8000-000000000000");
    let named = |name: &str, number: u32| {
        svc(name).tcp(80 + i32::try_from(number).unwrap()).change(|s| s.metadata.uid = Some(uid(number)))
    };
    let sharing = |service: Svc| service.annotate("azure-pip-name", "brought");
    let mut azure = Azure::new();
    azure.observed.public_ips.push(Arc::new(public_ip(
        &azure.cluster,
        "brought",
        Some("20.1.0.1"),
        json!({}),
    )));
    let (first, second) = (named("first", 1), named("second", 2));
    azure.converge(&[sharing(first.clone()).arc(), sharing(second.clone()).arc()], &[]);
    azure.converge(&[sharing(first.clone()).deleting().arc(), sharing(second.clone()).arc()], &[]);
    let frontends = |azure: &Azure| frontend_names(azure.load_balancer(Flavor::External).unwrap()).len();
    assert_eq!(frontends(&azure), 1, "the second still uses the first one's frontend");
    azure.converge(&[second.arc()], &[]);
    let lb = azure.load_balancer(Flavor::External).unwrap();
    assert_eq!(frontend_names(lb), [names::base_name(&uid(2)).unwrap()]);
}

/// Places are promised before addresses are bought, and released again.
#[test]
fn places_on_a_load_balancer_are_promised_up_to_azures_limit() {
    let cluster = cluster();
    let balancer = cluster.placement(Flavor::External);
    let mut occupancy = crate::resources::load_balancer::Occupancy::default();
    let intents: Vec<_> = (0..601).map(|n| svc(&format!("s{n}")).tcp(80).intent(&cluster)).collect();
    for intent in &intents[..600] {
        occupancy.reserve(&balancer, None, intent).unwrap();
        occupancy.reserve(&balancer, None, intent).unwrap();
    }
    let refusal = occupancy.reserve(&balancer, None, &intents[600]).unwrap_err();
    assert_eq!(
        refusal,
        Refusal::LoadBalancerFull { load_balancer: "testCluster".into(), what: "frontends", limit: 600 }
    );
    assert!(!refusal.is_terminal());
    occupancy.release(&intents[7].key);
    occupancy.reserve(&balancer, None, &intents[600]).unwrap();
}

/// LB-020.
#[test]
fn lb_020_the_cluster_has_the_pair_of_its_name_in_any_case() {
    let named = |name: &str| LoadBalancer {
        id: Some(cluster().network_group("rg").resource("Microsoft.Network", "loadBalancers", name)),
        name: Some(name.to_owned()),
        ..Default::default()
    };
    let all = ["testCluster", "TestCluster-Internal", "other", "lb2"].map(|name| Arc::new(named(name)));
    let own: Vec<String> =
        cluster().own_load_balancers(all, &[]).iter().map(|(_, one)| one.name.clone().unwrap()).collect();
    assert_eq!(own, ["testCluster", "TestCluster-Internal"]);
}

/// LB-452: a Service that shares another's public address and becomes internal, and one that shares a private address
/// and becomes external, ask for an address that the other flavor cannot have: they are refused, keep what they have,
/// and can be deleted.
#[test]
fn lb_452_whoever_changes_sides_with_a_shared_address_is_refused_and_stays() {
    for turns_internal in [true, false] {
        let of_kind = |service: Svc, internal: bool| if internal { service.internal() } else { service };
        let flavor = if turns_internal { Flavor::External } else { Flavor::Internal };
        let first = of_kind(svc("a1").tcp(80), !turns_internal);
        let mut azure = after(&first);
        let address = match turns_internal {
            true => azure.observed.public_ips[0].properties.as_ref().unwrap().ip_address.clone().unwrap(),
            false => {
                let frontend = frontend_of(azure.load_balancer(flavor).unwrap(), "aa1");
                frontend["properties"]["privateIPAddress"].as_str().unwrap().to_owned()
            }
        };
        let second = svc("b1").tcp(443).change(|s| s.spec.load_balancer_ip = address.clone());
        let stays = of_kind(second.clone(), !turns_internal).published(&[&address]);
        azure.converge(&[first.arc(), stays.arc()], &[]);
        assert_eq!(rule_names(azure.load_balancer(flavor).unwrap()), ["aa1-TCP-80", "ab1-TCP-443"]);

        let turned = of_kind(second, turns_internal).published(&[&address]);
        let planned = azure.plan(&[first.arc(), turned.arc()], &[]);
        let [(_, refusal)] = &planned.refused[..] else { panic!("{:?}", planned.refused) };
        let outside = matches!(refusal, Refusal::AddressOutsideSubnet { .. });
        assert!(outside == turns_internal && refusal.to_string().contains(&address), "{refusal}");
        assert!(planned.plan.is_empty(), "{}", planned.plan);
        azure.converge(&[first.arc(), turned.deleting().arc()], &[]);
        assert_eq!(rule_names(azure.load_balancer(flavor).unwrap()), ["aa1-TCP-80"]);
    }
}

/// A frontend that is named after a Service which is served elsewhere is removed with the last Service that shared it.
#[test]
fn a_shared_frontend_goes_with_its_last_user_although_its_first_one_lives_elsewhere() {
    let (first, other) = (svc("a1").tcp(80), svc("c1").tcp(81).internal());
    let mut azure = after(&first.clone().internal());
    let address = frontend_of(azure.load_balancer(Flavor::Internal).unwrap(), "aa1");
    let address = address["properties"]["privateIPAddress"].as_str().unwrap().to_owned();
    let second = svc("b1").tcp(443);
    let sharing = second
        .clone()
        .internal()
        .change(|s| s.spec.load_balancer_ip = address.clone())
        .published(&[&address]);
    let names = |azure: &Azure| {
        let balancer = azure.load_balancer(Flavor::Internal).unwrap();
        let frontends = &json!(balancer)["properties"]["frontendIPConfigurations"];
        let all = frontends.as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    azure.converge(&[first.clone().internal().arc(), sharing.arc(), other.arc()], &[]);
    azure.converge(&[first.arc(), sharing.arc(), other.arc()], &[]);
    assert_eq!(names(&azure), ["aa1", "ac1"]);
    azure.converge(&[first.arc(), second.arc(), other.arc()], &[]);
    assert_eq!(names(&azure), ["ac1"]);
}

/// Azure's limits of frontends and rules, for a Service that comes and for one that is there.
#[test]
fn a_full_load_balancer_takes_no_more() {
    let cluster = cluster();
    let balancer = cluster.placement(Flavor::External);
    let others = |kind: &str, count: usize| -> Vec<Value> {
        (0..count)
            .map(|number| {
                json!({"name": format!("theirs-{number}"), "id":
            cluster.load_balancer_id(&balancer).child(kind, &format!("theirs-{number}")), "properties": {}})
            })
            .collect()
    };
    let service = svc("test1").tcp(80).tcp(81);
    let address = cluster.public_ip_id("rg", "testCluster-atest1");
    let intent = LoadBalancerIntent::Present {
        service: service.intent(&cluster),
        public_ips: [(crate::model::Family::V4, address)].into(),
        subnet: None,
    };
    let run = |document: &LoadBalancer| {
        let batch = std::slice::from_ref(&intent);
        plan(&cluster, &balancer, Some(document), batch, ClusterFacts::default())
    };
    for (frontends, rules, nat_rules, full) in [
        (599, 0, 0, None),
        (600, 0, 0, Some("frontends")),
        (700, 0, 0, Some("frontends")),
        (0, 1498, 0, None),
        (0, 1499, 0, Some("rules")),
        (0, 1000, 498, None),
        (0, 1000, 499, Some("rules")),
    ] {
        let document: LoadBalancer = serde_json::from_value(json!({
            "id": cluster.load_balancer_id(&balancer), "name": balancer.name, "etag": "l0", "sku": {"name": "Standard"},
            "properties": {
                "frontendIPConfigurations": others("frontendIPConfigurations", frontends),
                "loadBalancingRules": others("loadBalancingRules", rules),
                "inboundNatRules": others("inboundNatRules", nat_rules),
            },
        }))
        .unwrap();
        let planned = run(&document);
        let why = match planned.refused.as_slice() {
            [] => None,
            [(_, Refusal::LoadBalancerFull { what, .. })] => Some(*what),
            other => panic!("{other:?}"),
        };
        assert_eq!(why, full, "{frontends} {rules} {nat_rules}");
        // Once it is there, it stays, whatever others add.
        let Some(step) = planned.step else { continue };
        let mut there = load_balancer_of(&step).clone();
        let properties = there.properties.as_mut().unwrap();
        let more =
            |kind: &str| others(kind, 1600).into_iter().map(|one| serde_json::to_string(&one).unwrap());
        let frontends = more("frontendIPConfigurations").map(|one| serde_json::from_str(&one).unwrap());
        properties.frontend_ip_configurations.get_or_insert_default().extend(frontends);
        let rules = more("loadBalancingRules").map(|one| serde_json::from_str(&one).unwrap());
        properties.load_balancing_rules.get_or_insert_default().extend(rules);
        assert!(run(&there).refused.is_empty());
    }
}
