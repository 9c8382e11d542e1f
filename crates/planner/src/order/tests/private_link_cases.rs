//! Cases of `docs/rules/private-link-services.md`.

use azure_types::PrivateLinkService;
use serde_json::json;

use super::*;
use crate::outcome::{Action, Plan, PrivateLinkRefusal, Purpose};
use crate::resources::private_link;

const NAME: &str = "pls-atest1";

fn web() -> Svc {
    svc("test1").tcp(80).internal()
}

fn linked() -> Svc {
    web().annotate("azure-pls-create", "true")
}

fn link_of(step: &Step) -> &PrivateLinkService {
    match &step.document {
        Some(Document::PrivateLink(document)) => document,
        other => panic!("no private link service: {other:?}"),
    }
}

/// The steps for private link services and their subnets.
fn steps(plan: &Plan) -> Vec<&Step> {
    let is_about = |step: &&Step| {
        matches!(step.document, Some(Document::PrivateLink(_) | Document::Subnet(_)))
            || step.target.as_str().contains("/privateLinkServices/")
    };
    plan.steps.iter().filter(is_about).collect()
}

/// Azure with this Service served.
fn served(service: &Svc) -> Azure {
    let mut azure = Azure::new();
    azure.converge(&[service.arc()], &[]);
    azure
}

/// The steps for private link services after these Services change, where another Service, or an earlier version of
/// this one, was served.
fn change(azure: &Azure, services: &[Svc]) -> Vec<Step> {
    let services: Vec<_> = services.iter().map(Svc::arc).collect();
    steps(&azure.plan(&services, &[]).plan).into_iter().cloned().collect()
}

fn refusal(azure: &Azure, services: &[Svc]) -> Refusal {
    let services: Vec<_> = services.iter().map(Svc::arc).collect();
    let planned = azure.plan(&services, &[]);
    planned.refused.into_iter().next().expect("a refusal").1
}

/// The IP configurations as `name method address`, with `*` before the primary one.
fn addresses(link: &PrivateLinkService) -> Vec<String> {
    let all = link.properties.as_ref().unwrap().ip_configurations.as_ref().unwrap();
    all.iter()
        .map(|configuration| {
            let p = configuration.properties.as_ref().unwrap();
            assert!(p.private_ip_address_version.as_ref().unwrap().is("IPv4"));
            let primary = if p.primary == Some(true) { "*" } else { "" };
            let method = p.private_ip_allocation_method.as_ref().unwrap();
            let address = p.private_ip_address.as_deref().unwrap_or("-");
            format!("{primary}{} {method} {address}", configuration.name.as_deref().unwrap())
        })
        .collect()
}

fn private_link(azure: &mut Azure) -> &mut PrivateLinkService {
    std::sync::Arc::make_mut(&mut azure.observed.private_links[0])
}

fn edit(azure: &mut Azure, change: impl FnOnce(&mut serde_json::Value)) {
    let link = private_link(azure);
    let mut document = serde_json::to_value(&*link).unwrap();
    change(&mut document);
    *link = serde_json::from_value(document).unwrap();
}

/// LB-310.
#[test]
fn lb_310_a_new_private_link_service_offers_the_frontend() {
    let azure = Azure::new();
    let planned = azure.plan(&[linked().arc()], &[]).plan;
    let own = steps(&planned);
    let [subnet, link] = own.as_slice() else { panic!("{planned}") };
    let last: Vec<&Step> = planned.steps.iter().rev().take(2).rev().collect();
    assert_eq!(last, own, "after the frontend that it offers");
    let Some(Document::Subnet(document)) = &subnet.document else { panic!("{subnet:?}") };
    let properties = document.properties.as_ref().unwrap();
    assert!(properties.private_link_service_network_policies.as_ref().unwrap().is("Disabled"));
    assert_eq!(properties.address_prefixes.as_ref().unwrap().len(), 2, "the rest is as it was");
    assert_eq!(link.action, Action::Create);
    assert_eq!(link.target, azure.cluster.private_link_id("rg", NAME));
    let document = link_of(link);
    assert_eq!(addresses(document), ["*subnet-pls-atest1-dynamic-0 Dynamic -"]);
    let tags = document.tags.as_ref().unwrap();
    assert_eq!(tags["k8s-azure-cluster-name"], "testCluster");
    assert_eq!(tags["k8s-azure-owner-service"], "default/test1");
    assert_eq!(document.location.as_deref(), Some("westus"));
    let offered = document.properties.as_ref().unwrap().load_balancer_frontend_ip_configurations.as_ref();
    let balancer = azure.cluster.placement(crate::model::Flavor::Internal);
    assert_eq!(offered.unwrap()[0].id, Some(azure.cluster.frontend_id(&balancer, "atest1")));
    let edge =
        Azure::of(cluster_with(json!({"extendedLocationName": "z", "extendedLocationType": "edgezone",
        "privateLinkServiceResourceGroup": "links", "tags": "a=b"})));
    let planned = edge.plan(&[linked().arc()], &[]).plan;
    let link = *steps(&planned).last().unwrap();
    assert_eq!(link.target, edge.cluster.private_link_id("links", NAME));
    assert!(link_of(link).extended_location.is_some() && link_of(link).tags.as_ref().unwrap()["a"] == "b");
}

/// LB-311: for an external Service, packets have to arrive at the nodes' own addresses.
#[test]
fn lb_311_an_external_service_has_one_without_floating_ip_only() {
    let outside = svc("test1").tcp(80).annotate("azure-pls-create", " True ");
    assert_eq!(outside.refusal(), PrivateLinkRefusal::FloatsOutside.into());
    let without = outside.annotate("azure-disable-load-balancer-floating-ip", "true");
    let azure = served(&without);
    assert_eq!(azure.observed.private_links.len(), 1);
    assert_eq!(change(&azure, &[without]), []);
}

/// LB-312.
#[test]
fn lb_312_only_a_frontend_of_ipv4_is_offered() {
    assert_eq!(linked().families(&["IPv6"]).refusal(), PrivateLinkRefusal::NoIpv4.into());
    for service in [linked().dual(), linked().families(&["IPv6", "IPv4"])] {
        let azure = served(&service);
        let names: Vec<_> =
            azure.observed.private_links.iter().map(|link| private_link::name_of(link)).collect();
        assert_eq!(names, [NAME]);
    }
}

/// LB-313, LB-441: with another cluster's tag or with none, it is not changed, also when the Service is removed.
#[test]
fn lb_313_somebody_elses_private_link_service_is_refused() {
    for tags in
        [json!({}), json!({"k8s-azure-cluster-name": "other", "k8s-azure-owner-service": "default/test1"})]
    {
        let mut azure = served(&linked());
        edit(&mut azure, |document| document["tags"] = tags.clone());
        let found = refusal(&azure, &[linked()]);
        assert!(matches!(found, Refusal::PrivateLink(PrivateLinkRefusal::Unmanaged { .. })), "{found}");
        assert!(!found.is_terminal());
        assert_eq!(change(&azure, &[web()]), []);
        // The frontend that it offers stays, and the owner is informed of the private link service.
        let planned = azure.plan(&[linked().deleting().arc()], &[]);
        assert_eq!(steps(&planned.plan), Vec::<&Step>::new());
        let notice = &planned.notices[0].message;
        assert!(
            notice.contains("frontend atest1") && notice.contains("private link service pls-atest1"),
            "{notice}"
        );
        azure.apply(&planned.plan);
        let balancer = azure.load_balancer(crate::model::Flavor::Internal).unwrap();
        assert_eq!(frontend_names(balancer), ["atest1"]);
        assert!(rules(balancer).is_empty());
    }
}

/// Two Services on one frontend; the first created its private link service.
fn shared(second: Svc) -> (Azure, [Svc; 2]) {
    let at = |service: Svc| service.annotate("azure-load-balancer-ipv4", "10.0.0.100");
    let first = at(linked());
    let mut azure = served(&first);
    let second = at(second.tcp(443).internal());
    azure.converge(&[first.arc(), second.arc()], &[]);
    (azure, [first, second])
}

/// LB-314.
#[test]
fn lb_314_the_private_link_service_of_a_shared_frontend_is_shared() {
    let (azure, services) = shared(svc("test2").annotate("azure-pls-create", "true"));
    assert_eq!(azure.observed.private_links.len(), 1);
    assert_eq!(change(&azure, &services), []);
    // It is not the second Service's to remove, and it stays as long as the frontend does.
    let [first, second] = services;
    assert_eq!(change(&azure, &[first.clone(), second.clone().deleting()]), []);
    assert_eq!(change(&azure, &[first.deleting(), second]), []);
}

/// Services that are created together and share a frontend ask for one private link service, whichever comes first.
#[test]
fn services_that_come_together_share_a_private_link_service() {
    let at = |service: Svc| service.annotate("azure-load-balancer-ipv4", "10.0.0.100");
    let services = [at(web()), at(svc("test2").tcp(443).internal())];
    let mut azure = Azure::new();
    azure.converge(&[services[0].arc()], &[]);
    azure.converge(&[services[0].arc(), services[1].arc()], &[]);
    let both = services.map(|service| service.annotate("azure-pls-create", "true"));
    let planned = change(&azure, &both);
    let created = planned.iter().filter(|step| step.action == Action::Create).count();
    assert_eq!(created, 1, "{planned:#?}");
    azure.converge(&both.map(|service| service.arc()), &[]);
    assert_eq!(azure.observed.private_links.len(), 1);
}

/// LB-315.
#[test]
fn lb_315_only_its_owner_sets_anything_of_a_shared_one() {
    for (key, value) in
        [("azure-pls-fqdns", "a.example"), ("azure-pls-proxy-protocol", "false"), ("azure-pls-name", "x")]
    {
        let (azure, services) =
            shared(svc("test2").annotate("azure-pls-create", "true").annotate(key, value));
        match refusal(&azure, &services) {
            Refusal::PrivateLink(PrivateLinkRefusal::OwnedByOther { owner, key: named, .. }) => {
                assert_eq!(owner, "default/test1");
                assert!(named.ends_with(key), "{named}");
            }
            other => panic!("{other}"),
        }
    }
}

/// LB-316.
#[test]
fn lb_316_a_private_link_service_keeps_its_name() {
    let azure = served(&linked());
    let renamed = linked().annotate("azure-pls-name", "other");
    let expected = PrivateLinkRefusal::NameFixed { existing: NAME.into(), wanted: "other".into() };
    assert_eq!(refusal(&azure, std::slice::from_ref(&renamed)), expected.into());
    assert_eq!(change(&azure, &[linked().annotate("azure-pls-name", " PLS-atest1 ")]), []);
    let named = served(&renamed);
    assert_eq!(private_link::name_of(&named.observed.private_links[0]), "other");
    assert_eq!(change(&named, &[linked()]), [], "without the annotation it keeps it, too");
}

/// LB-446: of two Services that ask for one name in a group, one gets it. An unmanaged private link service of that
/// name is left unchanged.
#[test]
fn lb_446_a_name_belongs_to_one_private_link_service_of_a_group() {
    let linked = |name: &str| svc(name).tcp(80).internal().annotate("azure-pls-create", "true");
    let named = |name: &str| linked(name).annotate("azure-pls-name", "shop");
    let is_link = |step: &&Step| matches!(step.document, Some(Document::PrivateLink(_)));
    let azure = served(&named("test1"));
    let both = [named("test1"), named("test2")];
    let expected = PrivateLinkRefusal::NameTaken { name: "shop".into(), group: "rg".into() };
    assert_eq!(refusal(&azure, &both), expected.clone().into());
    assert!(!Refusal::from(expected.clone()).is_terminal());
    let elsewhere = both[1].clone().annotate("azure-pls-resource-group", "links");
    assert_eq!(change(&azure, &[both[0].clone(), elsewhere]).iter().filter(is_link).count(), 1);
    let planned = Azure::new().plan(&both.clone().map(|service| service.arc()), &[]);
    assert_eq!(planned.refused, [(both[1].0.key(), expected.into())]);
    assert_eq!(planned.plan.steps.iter().filter(is_link).count(), 1);
}

/// LB-317: the first named address is the primary one; Azure chooses the rest.
#[test]
fn lb_317_chosen_addresses_come_first() {
    let chosen = linked()
        .annotate("azure-pls-ip-configuration-ip-address", "10.0.0.4  10.0.0.5 10.0.0.4")
        .annotate("azure-pls-ip-configuration-ip-address-count", "3");
    let mut azure = served(&chosen);
    let expected = [
        "*subnet-pls-atest1-static-10.0.0.4 Static 10.0.0.4",
        "subnet-pls-atest1-static-10.0.0.5 Static 10.0.0.5",
        "subnet-pls-atest1-dynamic-0 Dynamic -",
    ];
    assert_eq!(addresses(private_link(&mut azure)), expected);
    for (key, value) in [
        ("azure-pls-ip-configuration-ip-address", "10.0.0.5 10.0.0.4"),
        ("azure-pls-ip-configuration-ip-address", "10.0.0.4 10.0.0.6"),
        ("azure-pls-ip-configuration-ip-address", "10.0.0.4"),
        ("azure-pls-ip-configuration-ip-address-count", "2"),
        ("azure-pls-ip-configuration-subnet", "other"),
    ] {
        let changed = chosen.clone().annotate(key, value);
        let found = change(&azure, std::slice::from_ref(&changed));
        let write = found.last().unwrap_or_else(|| panic!("{key} {value}"));
        assert_eq!(write.if_match, azure.observed.private_links[0].etag);
        assert_eq!(
            found.len() == 2,
            value == "other",
            "a subnet's policies are written where they need to be"
        );
        let mut after = served(&chosen);
        after.converge(&[changed.arc()], &[]);
    }
    let name = crate::model::names::with_suffix(&"x".repeat(90), "-dynamic-0");
    assert!(name.len() == 80 && name.ends_with("x-dynamic-0"));
}

/// LB-318: the texts are tested with all others (`refusal/tests.rs`).
#[test]
fn lb_318_counts_and_addresses_are_checked() {
    let count = |value: &str| linked().annotate("azure-pls-ip-configuration-ip-address-count", value);
    let addresses =
        |service: Svc, value: &str| service.annotate("azure-pls-ip-configuration-ip-address", value);
    for (service, expected) in [
        (count("0"), PrivateLinkRefusal::CountOutOfRange { count: 0 }),
        (count("9"), PrivateLinkRefusal::CountOutOfRange { count: 9 }),
        (
            addresses(count("1"), "10.0.0.4 10.0.0.5"),
            PrivateLinkRefusal::TooManyAddresses { count: 1, addresses: 2 },
        ),
        (addresses(linked(), "fd00::1"), PrivateLinkRefusal::AddressOfIpv6 { value: "fd00::1".into() }),
        (addresses(linked(), "10.0.0"), PrivateLinkRefusal::InvalidAddress { value: "10.0.0".into() }),
    ] {
        let found = service.refusal();
        assert!(found.is_terminal());
        assert_eq!(found, expected.into());
    }
    assert!(matches!(count("two").refusal(), Refusal::NotAWholeNumber { .. }));
    count(" 8 ").intent(&cluster());
    let azure = Azure::new();
    let nowhere = linked().annotate("azure-pls-ip-configuration-subnet", "nowhere");
    let found = refusal(&azure, &[nowhere]);
    assert!(matches!(found, Refusal::PrivateLink(PrivateLinkRefusal::SubnetNotFound { .. })), "{found}");
}

/// LB-319.
#[test]
fn lb_319_one_star_stands_for_all_subscriptions() {
    let service =
        linked().annotate("azure-pls-visibility", "sub1 *").annotate("azure-pls-auto-approval", "sub1 sub2");
    let mut azure = served(&service);
    let properties = private_link(&mut azure).properties.clone().unwrap();
    assert_eq!(properties.visibility.unwrap().subscriptions.unwrap(), ["*"]);
    assert_eq!(properties.auto_approval.unwrap().subscriptions.unwrap(), ["sub1", "sub2"]);
}

/// LB-319: a list inside one item is refused before Azure is called, in each list of names.
#[test]
fn lb_319_a_list_of_names_is_separated_by_spaces() {
    for key in ["azure-pls-visibility", "azure-pls-auto-approval", "azure-pls-fqdns"] {
        for (value, item) in
            [("sub1,sub2", "sub1,sub2"), ("sub1, sub2", "sub1,"), ("* sub1;sub2", "sub1;sub2")]
        {
            let full = crate::model::annotation_keys::full_key(key);
            let expected = PrivateLinkRefusal::ListInAnItem { key: full, item: item.to_owned() };
            assert_eq!(linked().annotate(key, value).refusal(), expected.into(), "{key}={value}");
        }
    }
}

/// LB-320: regardless of Azure's order and spelling; members set by others stay.
#[test]
fn lb_320_nothing_is_written_without_a_difference_and_others_members_stay() {
    let service = linked()
        .annotate("azure-pls-fqdns", "a.example b.example")
        .annotate("azure-pls-proxy-protocol", " TRUE ")
        .annotate("azure-pls-visibility", "sub1 sub2");
    let mut azure = served(&service);
    edit(&mut azure, |document| {
        document["unknown"] = json!(1);
        document["tags"]["theirs"] = json!("x");
        let properties = &mut document["properties"];
        properties["accessMode"] = json!("Default");
        properties["fqdns"] = json!(["b.example", "a.example"]);
        properties["visibility"]["subscriptions"] = json!(["sub2", "sub1"]);
        properties["autoApproval"] = json!({"subscriptions": []});
        properties["provisioningState"] = json!("Succeeded");
        let configuration = &mut properties["ipConfigurations"][0];
        configuration["unknown"] = json!(2);
        let subnet = configuration["properties"]["subnet"]["id"].as_str().unwrap().to_uppercase();
        configuration["properties"]["subnet"]["id"] = json!(subnet);
    });
    assert_eq!(change(&azure, std::slice::from_ref(&service)), []);
    let changed =
        service.annotate("azure-pls-fqdns", "a.example").annotate("azure-pls-proxy-protocol", "false");
    let found = change(&azure, std::slice::from_ref(&changed));
    let [step] = found.as_slice() else { panic!("the subnet is as it should be: {found:?}") };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (from, to) = (names(&["b.example", "a.example"]), names(&["a.example"]));
    let listed = Change::PrivateLinkList { list: "FQDNs", from, to };
    assert_eq!(step.changes, [Change::ProxyProtocol { on: false }, listed]);
    azure.converge(&[changed.arc()], &[]);
    let document = serde_json::to_value(private_link(&mut azure)).unwrap();
    assert_eq!(document["unknown"], 1);
    assert_eq!(document["tags"]["theirs"], "x");
    assert_eq!(document["properties"]["accessMode"], "Default");
    assert_eq!(document["properties"]["ipConfigurations"][0]["unknown"], 2);
}

/// LB-321.
#[test]
fn lb_321_one_that_failed_is_written_again() {
    let mut azure = served(&linked());
    edit(&mut azure, |document| document["properties"]["provisioningState"] = json!("Failed"));
    let found = change(&azure, &[linked()]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].action, found[0].purpose), (Action::Update, Purpose::Repair));
}

/// LB-322, LB-323: connections are removed first, then the private link service, then the frontend. If only the
/// annotation is removed, the frontend stays.
#[test]
fn lb_322_lb_323_connections_go_before_it_and_it_goes_before_the_frontend() {
    for gone in [linked().deleting(), web(), linked().annotate("azure-pls-create", "false")] {
        let mut azure = served(&linked());
        let id = private_link(&mut azure).id.clone().unwrap();
        let connections: Vec<_> =
            ["one", "two"].map(|name| id.child("privateEndpointConnections", name)).into();
        edit(&mut azure, |document| {
            document["properties"]["privateEndpointConnections"] =
                connections.iter().map(|id| json!({"id": id, "name": id.name()})).collect();
        });
        let planned = azure.plan(&[gone.arc()], &[]).plan;
        let targets: Vec<&ResourceId> = planned.steps.iter().take(3).map(|step| &step.target).collect();
        assert_eq!(targets, [&connections[0], &connections[1], &id]);
        assert!(planned.steps[..3].iter().all(|step| step.action == Action::Delete));
        assert_eq!(planned.steps[0].on_behalf_of, [gone.0.key()]);
        azure.converge(&[gone.arc()], &[]);
        assert!(azure.observed.private_links.is_empty());
    }
}

/// LB-156: health probes carry a PROXY protocol header, too, which kube-proxy does not understand.
#[test]
fn lb_156_with_the_proxy_protocol_each_port_is_probed_by_itself() {
    let local = linked().local(30123).annotate("azure-load-balancer-health-probe-protocol", "https");
    let timed = local
        .annotate("azure-load-balancer-health-probe-interval", "15")
        .annotate("azure-load-balancer-health-probe-num-of-probe", "7");
    let probe = |service: &Svc| {
        let desired = crate::resources::load_balancer::rule::desired(
            &cluster(),
            &service.intent(&cluster()),
            crate::model::Family::V4,
        );
        let [(_, probe)] = desired.probes.as_slice() else { panic!("{:?}", desired.probes) };
        probe.clone()
    };
    let own = probe(&timed.clone().annotate("azure-pls-proxy-protocol", " True "));
    assert_eq!((own.protocol, own.port, own.interval, own.threshold), ("Https", 10080, 15, 7));
    for without in [timed.clone(), timed.clone().annotate("azure-pls-proxy-protocol", "false")] {
        assert_eq!(probe(&without).port, 30123);
    }
    let not_asked_for = timed.annotate("azure-pls-proxy-protocol", "true").annotate("azure-pls-create", "no");
    assert_eq!(probe(&not_asked_for).port, 30123);
}
