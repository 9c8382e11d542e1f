//! Several load balancers: the placement of a Service, and its moves.

use std::sync::Arc;

use azure_types::{LoadBalancer, PublicIpAddress, ResourceId, SubResource};
use k8s::{Node, Service};
use serde_json::{Value, json};

use super::azure::Azure;
use super::{Svc, cluster, cluster_with, node, nodes, public_ip, rule_names, svc};
use crate::model::{Balancer, Cluster, Flavor, Labels};
use crate::outcome::{Refusal, Stop};
use crate::placement::{ServiceObservation, place};
use crate::resources::load_balancer::{ListedLoadBalancer, Places};
use crate::service::ServiceIntent;

/// The cluster `lb1` with these entries, each with a primary set of its name.
pub(super) fn several(entries: &[(&str, Value)]) -> Cluster {
    let entry = |(name, more): &(&str, Value)| {
        let mut entry = json!({"name": name, "primaryVMSet": format!("set-{name}")});
        for (key, value) in more.as_object().unwrap() {
            entry[key] = value.clone();
        }
        entry
    };
    let entries: Vec<Value> = entries.iter().map(entry).collect();
    let cluster = cluster_with(json!({
        "loadBalancerBackendPoolConfigurationType": "nodeIP",
        "multipleStandardLoadBalancerConfigurations": entries,
    }));
    Cluster { name: "lb1".to_owned(), ..cluster }
}

fn plain(names: &[&'static str]) -> Cluster {
    let entries: Vec<(&str, Value)> = names.iter().map(|name| (*name, json!({}))).collect();
    several(&entries)
}

/// A load balancer on which these Services have this many rules, each with a frontend of its own.
fn load_balancer(
    cluster: &Cluster,
    name: &str,
    services: &[(&str, usize)],
) -> (Balancer, ListedLoadBalancer) {
    let flavor = if name.ends_with("-internal") { Flavor::Internal } else { Flavor::External };
    let balancer = Balancer { name: name.to_owned(), flavor };
    let frontend = |(service, _): &(&str, usize)| {
        let id = cluster.frontend_id(&balancer, &format!("a{service}"));
        json!({"id": id, "name": format!("a{service}"), "properties": match flavor {
            Flavor::External => json!({"publicIPAddress": {"id": cluster.public_ip_id("rg", &format!("lb1-a{service}"))}}),
            Flavor::Internal => json!({"privateIPAddress": "10.0.0.9"}),
        }})
    };
    let rules = services.iter().flat_map(|(service, count)| {
        let frontend = cluster.frontend_id(&balancer, &format!("a{service}"));
        (0..*count).map(move |number| {
            json!({"name": format!("a{service}-TCP-{number}"),
                   "properties": {"frontendIPConfiguration": {"id": frontend}}})
        })
    });
    let document = json!({
        "id": cluster.load_balancer_id(&balancer), "name": name, "etag": "1",
        "properties": {
            "frontendIPConfigurations": services.iter().map(frontend).collect::<Vec<_>>(),
            "loadBalancingRules": rules.collect::<Vec<_>>(),
        },
    });
    (balancer, Arc::<azure_types::LoadBalancer>::new(serde_json::from_value(document).unwrap()).into())
}

/// The known state when a Service is placed.
#[derive(Default)]
pub(super) struct PlacementWorld {
    pub nodes: Vec<Arc<Node>>,
    load_balancers: Vec<(Balancer, ListedLoadBalancer)>,
    public_ips: Vec<Arc<PublicIpAddress>>,
    namespace: Option<Labels>,
    places: Places,
}

impl PlacementWorld {
    pub fn of(cluster: &Cluster, load_balancers: &[(&str, &[(&str, usize)])]) -> Self {
        let load_balancers =
            load_balancers.iter().map(|(name, services)| load_balancer(cluster, name, services));
        Self { load_balancers: load_balancers.collect(), ..Self::default() }
    }

    pub fn place(&mut self, cluster: &Cluster, service: &Svc) -> Result<String, Refusal> {
        match self.try_place(cluster, service) {
            Ok(balancer) => Ok(balancer.name),
            Err(Stop::Refused(refusal)) => Err(refusal),
            Err(Stop::NotYet(wait)) => panic!("{wait}"),
        }
    }

    pub fn try_place(&mut self, cluster: &Cluster, service: &Svc) -> Result<Balancer, Stop> {
        let intent = ServiceIntent::from_service(cluster, &service.0)?;
        let observation = ServiceObservation {
            public_ips: &self.public_ips,
            load_balancers: &self.load_balancers,
            subnet: None,
            nodes: &self.nodes,
            machine_sets: None,
            namespace: self.namespace.as_ref(),
            private_links: None,
            private_link_subnet: None,
        };
        place(cluster, &intent, &observation, &mut self.places)
    }
}

fn web() -> Svc {
    svc("web").tcp(80)
}

fn labels(labels: &[(&str, &str)]) -> Labels {
    labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn labelled(service: Svc, key: &str, value: &str) -> Svc {
    service.change(|service| service.metadata.labels = Some(labels(&[(key, value)])))
}

/// LB-222, LB-223, LB-224, LB-225, LB-237, LB-241: the current load balancer; an empty one; one to be created; the one
/// with the fewest rules.
#[test]
fn lb_222_to_225_the_most_eligible_load_balancer_is_chosen() {
    let cluster = plain(&["lb1", "lb2"]);
    type Existing = &'static [(&'static str, &'static [(&'static str, usize)])];
    let rows: [(&str, Existing, &str); 9] = [
        ("LB-222", &[], "lb1"),
        ("LB-223", &[("lb1", &[("other", 2)]), ("lb2", &[])], "lb2"),
        ("the second does not exist", &[("lb1", &[("other", 2)])], "lb2"),
        ("an empty one goes before one to be made", &[("lb2", &[])], "lb2"),
        ("LB-224", &[("lb1", &[("other", 2)]), ("lb2", &[("more", 1)])], "lb2"),
        ("the first of equals", &[("lb2", &[("more", 1)]), ("lb1", &[("other", 1)])], "lb1"),
        ("LB-225", &[("lb1", &[("other", 2), ("web", 1)]), ("lb2", &[])], "lb1"),
        ("LB-237, a frontend without rules", &[("lb2", &[("web", 0), ("other", 3)])], "lb2"),
        // The rules of an internal load balancer do not count for an external Service, but the entry does.
        ("LB-241, it was internal", &[("lb1", &[]), ("lb2-internal", &[("web", 1)])], "lb2"),
    ];
    for (case, existing, expected) in rows {
        assert_eq!(
            PlacementWorld::of(&cluster, existing).place(&cluster, &web()).as_deref(),
            Ok(expected),
            "{case}"
        );
    }
    let internal =
        PlacementWorld::of(&cluster, &[("lb1-internal", &[("other", 2)])]).place(&cluster, &web().internal());
    assert_eq!(internal.as_deref(), Ok("lb2-internal"));
}

/// LB-430: Services that are placed at the same time are spread as if they came one after the other.
#[test]
fn lb_430_promised_places_count_as_rules() {
    let cluster = plain(&["lb1", "lb2", "lb3"]);
    let mut known = PlacementWorld::of(&cluster, &[("lb1", &[("other", 2)])]);
    let mut place = |name: &str, ports: i32| {
        let service = (0..ports).fold(svc(name), |service, port| service.tcp(80 + port));
        known.place(&cluster, &service).unwrap()
    };
    assert_eq!([place("a", 3), place("b", 1), place("c", 1)], ["lb2", "lb3", "lb3"]);
    assert_eq!(place("a", 3), "lb2", "a retry has its place already");
}

/// LB-435: a Service that retries keeps its destination, although it is still where it may not stay, and although
/// another load balancer has fewer rules by now.
#[test]
fn lb_435_whoever_tries_again_goes_where_it_was_going() {
    let cluster = several(&[
        ("lb1", json!({"serviceLabelSelector": {"matchLabels": {"team": "a"}}})),
        ("lb2", json!({})),
        ("lb3", json!({})),
    ]);
    let service = web().tcp(81);
    let both: &[(&str, &[(&str, usize)])] =
        &[("lb1", &[("web", 2)]), ("lb2", &[("x", 3)]), ("lb3", &[("y", 4)])];
    let mut known = PlacementWorld::of(&cluster, both);
    for _ in 0..4 {
        assert_eq!(known.place(&cluster, &service).as_deref(), Ok("lb2"));
    }
    // It has left, except for one rule.
    let fewer: &[(&str, &[(&str, usize)])] = &[("lb1", &[("web", 1)]), ("lb2", &[("x", 3)]), ("lb3", &[])];
    known.load_balancers = PlacementWorld::of(&cluster, fewer).load_balancers;
    assert_eq!(known.place(&cluster, &service).as_deref(), Ok("lb2"));
    // Its own promise does not count as load for itself.
    let intent = service.intent(&cluster);
    let two = Balancer { name: "lb2".to_owned(), flavor: Flavor::External };
    assert_eq!(known.places.of(&two).promised_rules(None, &intent.key), 0);
    let other = svc("other").intent(&cluster);
    assert_eq!(known.places.of(&two).promised_rules(None, &other.key), 2);
}

/// LB-021: the entries' load balancers of both flavors are the cluster's, in any case; others are not.
#[test]
fn lb_021_the_load_balancers_of_all_entries_are_the_clusters() {
    let cluster = plain(&["lb1", "lb2"]);
    let all = ["LB1", "lb1-Internal", "other", "lb2", "lb2-internal", "lb3"]
        .map(|name| Arc::clone(load_balancer(&cluster, name, &[]).1.document()));
    let own: Vec<String> =
        cluster.own_load_balancers(all, &[]).into_iter().map(|(one, _)| one.name).collect();
    assert_eq!(own, ["lb1", "lb1-internal", "lb2", "lb2-internal"]);
}

/// LB-021: a load balancer is created in the spelling of its configuration, and one that exists is found in any.
#[test]
fn lb_021_a_configured_name_keeps_its_case() {
    let mut cluster = plain(&["Lb-One", "LB-TWO"]);
    cluster.name = "lb-one".to_owned();
    assert_eq!(PlacementWorld::default().place(&cluster, &web()).as_deref(), Ok("Lb-One"));
    let found =
        cluster.own_load_balancers([Arc::clone(load_balancer(&cluster, "lb-two", &[]).1.document())], &[]);
    assert_eq!(found[0].0.name, "LB-TWO");
}

/// LB-221.
#[test]
fn lb_221_one_entry_bears_the_clusters_name() {
    let mut cluster = plain(&["lb1", "lb2"]);
    cluster.name = "LB2".to_owned();
    assert_eq!(PlacementWorld::default().place(&cluster, &web()).as_deref(), Ok("lb1"));
    cluster.name = "kubernetes".to_owned();
    let refusal = Refusal::NoConfigurationOfCluster { cluster: "kubernetes".to_owned() };
    assert_eq!(PlacementWorld::default().place(&cluster, &web()), Err(refusal));
}

/// LB-226, LB-227: the annotation's names are trimmed and match in any case; at least one has to be configured.
#[test]
fn lb_226_lb_227_the_annotation_names_load_balancers() {
    let cluster = plain(&["lb1", "lb2", "lb3"]);
    let named = |value: &str| web().annotate("azure-load-balancer-configurations", value);
    let place =
        |service: &Svc| PlacementWorld::of(&cluster, &[("lb2", &[("x", 1)])]).place(&cluster, service);
    assert_eq!(place(&named("lb2")).as_deref(), Ok("lb2"));
    assert_eq!(place(&named(" LB2 , lb3")).as_deref(), Ok("lb3"), "both will do, and lb3 has no rules");
    assert_eq!(place(&named("lb2,lb4")).as_deref(), Ok("lb2"));
    assert_eq!(place(&named(" , ")).as_deref(), Ok("lb1"), "an empty list counts as absent");
    let in_other_case = web().annotate("Azure-Load-Balancer-Configurations", "lb2");
    assert_eq!(place(&in_other_case).as_deref(), Ok("lb2"));
    assert!(in_other_case.intent(&cluster).notices.is_empty());
    let refusal = place(&named("lb4, lb5")).unwrap_err();
    assert!(matches!(&refusal, Refusal::UnknownConfigurations { named, .. } if named == &["lb4", "lb5"]));
    assert!(refusal.is_terminal());
    // Without several load balancers the annotation has no effect, and its owner is informed.
    let single = named("lb4").intent(&crate::order::tests::cluster());
    assert!(single.notices[0].message.contains("multipleStandardLoadBalancerConfigurations"));
}

/// LB-228: no new Services, and existing ones stay.
#[test]
fn lb_228_a_closed_load_balancer_takes_no_new_services() {
    let cluster = several(&[("lb1", json!({"allowServicePlacement": false})), ("lb2", json!({}))]);
    let place = |existing: &[(&str, &[(&str, usize)])]| {
        PlacementWorld::of(&cluster, existing).place(&cluster, &web())
    };
    assert_eq!(place(&[("lb1", &[]), ("lb2", &[("other", 9)])]).as_deref(), Ok("lb2"));
    assert_eq!(place(&[("lb1", &[("web", 1)]), ("lb2", &[])]).as_deref(), Ok("lb1"));
}

/// LB-229, LB-230, LB-262: selectors select; load balancers without one are for Services that no selector selects, and
/// an empty selector counts as none.
#[test]
fn lb_229_lb_230_lb_262_selectors_choose_among_load_balancers() {
    let team = |name: &str| json!({"matchLabels": {"team": name}});
    let by_label = several(&[("lb1", json!({})), ("lb2", json!({"serviceLabelSelector": team("a")}))]);
    let place = |service: &Svc| PlacementWorld::default().place(&by_label, service);
    assert_eq!(place(&labelled(web(), "team", "a")).as_deref(), Ok("lb2"));
    assert_eq!(place(&labelled(web(), "team", "b")).as_deref(), Ok("lb1"));

    let both = several(&[
        ("lb1", json!({"serviceLabelSelector": {}})),
        ("lb2", json!({"serviceNamespaceSelector": team("a")})),
        ("lb3", json!({"serviceLabelSelector": team("b")})),
    ]);
    let mut known = PlacementWorld { namespace: Some(labels(&[("team", "a")])), ..PlacementWorld::default() };
    assert_eq!(known.place(&both, &labelled(web(), "team", "a")).as_deref(), Ok("lb2"));
    let mut known = PlacementWorld { namespace: Some(labels(&[("team", "c")])), ..PlacementWorld::default() };
    assert_eq!(known.place(&both, &labelled(web(), "team", "a")).as_deref(), Ok("lb1"));

    let half = several(&[
        ("lb1", json!({})),
        ("lb2", json!({"serviceLabelSelector": team("a"), "serviceNamespaceSelector": team("x")})),
    ]);
    let mut known = PlacementWorld { namespace: Some(Labels::new()), ..PlacementWorld::default() };
    assert_eq!(known.place(&half, &labelled(web(), "team", "a")).as_deref(), Ok("lb1"), "LB-262");
}

/// LB-231: each load balancer is listed with the reason why the Service is not allowed on it.
#[test]
fn lb_231_where_nothing_is_eligible_each_reason_is_told() {
    let cluster = several(&[
        ("lb1", json!({"allowServicePlacement": false})),
        ("lb2", json!({"serviceLabelSelector": {"matchLabels": {"team": "a"}}})),
        (
            "lb3",
            json!({"serviceNamespaceSelector": {"matchExpressions": [{"key": "x", "operator": "Exists"}]}}),
        ),
    ]);
    let mut known = PlacementWorld { namespace: Some(Labels::new()), ..PlacementWorld::default() };
    let text = known.place(&cluster, &web()).unwrap_err().to_string();
    for part in [
        "selects 3 load balancers (lb1, lb2, lb3)",
        "1 of them (lb1) have allowServicePlacement",
        "1 of them (lb2) do not match the service label selector",
        "1 of them (lb3) do not match the service namespace selector",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A public IP that is used by a load balancer's frontend.
fn used_public_ip(cluster: &Cluster, load_balancer: &str, tags: Value) -> PublicIpAddress {
    let mut found = public_ip(cluster, "pip1", Some("20.1.2.3"), tags);
    let balancer = Balancer { name: load_balancer.to_owned(), flavor: Flavor::External };
    let frontend = cluster.frontend_id(&balancer, "aother");
    found.properties.as_mut().unwrap().ip_configuration = Some(SubResource::to(frontend));
    found
}

/// LB-232: an address decides, so no load balancer can be named in addition. Deletion does not read the annotation.
#[test]
fn lb_232_an_address_and_a_load_balancer_contradict_each_other() {
    let cluster = plain(&["lb1", "lb2"]);
    let both = web().annotate("azure-load-balancer-configurations", "lb1");
    for pinned in [
        both.clone().annotate("azure-load-balancer-ipv4", "20.1.2.3"),
        both.clone().annotate("azure-pip-name", "pip1"),
        both.change(|service| "20.1.2.3".clone_into(&mut service.spec.load_balancer_ip)),
    ] {
        let refusal = ServiceIntent::from_service(&cluster, &pinned.0).unwrap_err();
        assert!(matches!(refusal, Refusal::PlacedByAddress { .. }), "{refusal}");
        let mut azure = Azure::of(cluster.clone());
        azure.converge(&[web().arc()], &[]);
        azure.converge(&[pinned.deleting().arc()], &[]);
        assert!(azure.observed.load_balancers.is_empty() && azure.observed.public_ips.is_empty());
    }
}

/// LB-233, LB-235, LB-236: a Service that asks for a public IP goes where that is.
#[test]
fn lb_233_lb_235_lb_236_a_public_ip_decides() {
    let cluster = several(&[
        ("lb1", json!({})),
        ("lb2", json!({})),
        ("lb3", json!({"serviceLabelSelector": {"matchLabels": {"team": "a"}}})),
    ]);
    let existing: &[(&str, &[(&str, usize)])] = &[("lb2", &[("other", 5)]), ("lb3", &[("more", 1)])];
    let place = |public_ip: PublicIpAddress, service: &Svc| {
        let public_ips = vec![Arc::new(public_ip)];
        PlacementWorld { public_ips, ..PlacementWorld::of(&cluster, existing) }.place(&cluster, service)
    };
    let by_name = web().annotate("azure-pip-name", "pip1");
    let by_address = web().annotate("azure-load-balancer-ipv4", "20.1.2.3");
    for service in [&by_name, &by_address] {
        let on_lb2 = used_public_ip(&cluster, "lb2", json!({}));
        assert_eq!(place(on_lb2, service).as_deref(), Ok("lb2"), "LB-233");
        let theirs = used_public_ip(&cluster, "lb2", json!({"k8s-azure-cluster-name": "theirs"}));
        assert_eq!(place(theirs, service).as_deref(), Ok("lb1"), "LB-236");
        let unused = public_ip(&cluster, "pip1", Some("20.1.2.3"), json!({}));
        assert_eq!(place(unused, service).as_deref(), Ok("lb1"), "no load balancer uses it");
        for elsewhere in ["lb3", "gateway"] {
            let refusal = place(used_public_ip(&cluster, elsewhere, json!({})), service).unwrap_err();
            let Refusal::AddressOnOtherLoadBalancer { load_balancer, eligible, .. } = refusal else {
                panic!("LB-235: {refusal}")
            };
            assert_eq!(
                (load_balancer.as_str(), eligible),
                (elsewhere, vec!["lb1".to_owned(), "lb2".to_owned()])
            );
        }
    }
}

/// LB-234: a private address is found among the frontends of the internal load balancers.
#[test]
fn lb_234_a_private_address_decides() {
    let cluster = plain(&["lb1", "lb2"]);
    let service = web().internal().annotate("azure-load-balancer-ipv4", "10.0.0.9");
    let mut known = PlacementWorld::of(&cluster, &[("lb1", &[]), ("lb2-internal", &[("other", 4)])]);
    assert_eq!(known.place(&cluster, &service).as_deref(), Ok("lb2-internal"));
    // No load balancer has the address, or one that is not configured.
    let another = web().internal().annotate("azure-load-balancer-ipv4", "10.0.0.8");
    let mut known = PlacementWorld::of(&cluster, &[("lb1", &[]), ("lb2-internal", &[("other", 4)])]);
    assert_eq!(known.place(&cluster, &another).as_deref(), Ok("lb1-internal"));
    let mut known = PlacementWorld::of(&cluster, &[("lb9-internal", &[("other", 4)])]);
    assert_eq!(known.place(&cluster, &service).as_deref(), Ok("lb1-internal"));
}

/// LB-431: a full load balancer is skipped; if all are full, the Service is refused.
#[test]
fn lb_431_a_full_load_balancer_is_passed_over() {
    let cluster = plain(&["lb1", "lb2"]);
    let place = |lb1: usize, lb2: usize| {
        PlacementWorld::of(&cluster, &[("lb1", &[("x", lb1)]), ("lb2", &[("y", lb2)])])
            .place(&cluster, &web())
    };
    assert_eq!(place(1500, 1499).as_deref(), Ok("lb2"));
    assert!(matches!(place(1500, 1500), Err(Refusal::LoadBalancerFull { .. })));
}

fn find<'a>(azure: &'a Azure, name: &str) -> Option<&'a LoadBalancer> {
    let all = azure.observed.load_balancers.iter().map(Arc::as_ref);
    all.into_iter().find(|one| one.id.as_ref().is_some_and(|id| id.name() == name))
}

fn rules_on(azure: &Azure, name: &str) -> Vec<String> {
    let names = find(azure, name).map(rule_names).unwrap_or_default();
    let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    names.sort();
    names
}

fn all(services: &[&Svc]) -> Vec<Arc<Service>> {
    services.iter().map(|service| service.arc()).collect()
}

/// LB-238: a Service that does not share its frontend takes everything along. LB-241: from external to internal it
/// keeps the entry, and nothing of it remains on the external load balancer.
#[test]
fn lb_238_lb_241_a_service_moves_with_all_that_it_has() {
    let nodes = nodes([node("alpha", 0)]);
    let on = |name: &str| web().annotate("azure-load-balancer-configurations", name);
    let other = svc("other").tcp(81).annotate("azure-load-balancer-configurations", "lb1");
    let mut azure = Azure::of(plain(&["lb1", "lb2"]));
    azure.converge(&all(&[&on("lb1"), &other]), &nodes);
    assert_eq!(rules_on(&azure, "lb1"), ["aother-TCP-81", "aweb-TCP-80"]);
    azure.converge(&all(&[&on("lb2"), &other]), &nodes);
    assert_eq!(rules_on(&azure, "lb1"), ["aother-TCP-81"]);
    assert_eq!(rules_on(&azure, "lb2"), ["aweb-TCP-80"]);
    azure.converge(&all(&[&on("lb2"), &web()]), &nodes);
    let internal = web().internal();
    azure.converge(&all(&[&internal]), &nodes);
    assert!(find(&azure, "lb2").is_none(), "no Service is left there");
    assert_eq!(rules_on(&azure, "lb2-internal"), ["aweb-TCP-80"], "LB-241");
    azure.converge(&all(&[&on("lb1").internal()]), &nodes);
    assert!(find(&azure, "lb2-internal").is_none());
    assert_eq!(rules_on(&azure, "lb1-internal"), ["aweb-TCP-80"]);
}

/// LB-239: a frontend that others use stays, and so does the Service; nothing is written.
#[test]
fn lb_239_a_service_whose_frontend_others_use_does_not_move() {
    let nodes = nodes([node("alpha", 0)]);
    let on = |name: &str| web().annotate("azure-load-balancer-configurations", name);
    let sharing = svc("sharing").tcp(81).annotate("azure-pip-name", "lb1-aweb");
    let mut azure = Azure::of(plain(&["lb1", "lb2"]));
    azure.converge(&all(&[&on("lb1")]), &nodes);
    azure.converge(&all(&[&on("lb1"), &sharing]), &nodes);
    let planned = azure.plan(&all(&[&on("lb2"), &sharing]), &nodes);
    assert_eq!(planned.plan.steps, []);
    let [(_, Refusal::CannotMove { from, to, reference, .. })] = planned.refused.as_slice() else {
        panic!("{:?}", planned.refused)
    };
    assert_eq!((from.as_str(), to.as_str()), ("lb1", "lb2"));
    assert!(reference.contains("asharing-TCP-81"), "{reference}");

    // So does a frontend that an outbound rule uses.
    let mut azure = Azure::of(plain(&["lb1", "lb2"]));
    azure.converge(&all(&[&on("lb1")]), &nodes);
    let lb1 =
        azure.observed.load_balancers.iter_mut().find(|one| one.name.as_deref() == Some("lb1")).unwrap();
    let properties = Arc::make_mut(lb1).properties.as_mut().unwrap();
    let frontend = properties.frontend_ip_configurations.as_ref().unwrap()[0].id.clone().unwrap();
    let rule = json!({"name": "out", "properties": {"frontendIPConfigurations": [{"id": frontend}]}});
    properties.outbound_rules = Some(vec![serde_json::from_value(rule).unwrap()]);
    let planned = azure.plan(&all(&[&on("lb2")]), &nodes);
    assert_eq!(planned.plan.steps, []);
    let [(_, Refusal::CannotMove { reference, .. })] = planned.refused.as_slice() else {
        panic!("{:?}", planned.refused)
    };
    assert!(reference.contains("out"), "{reference}");
}

/// LB-240: a Service that shared an address asks for one on another load balancer: its rules are removed, the frontend
/// stays with the others.
#[test]
fn lb_240_whoever_shared_an_address_leaves_no_rules_behind() {
    let nodes = nodes([node("alpha", 0)]);
    let one = svc("one").tcp(80).annotate("azure-load-balancer-configurations", "lb1");
    let two = svc("two").tcp(80).annotate("azure-load-balancer-configurations", "lb2");
    let sharing =
        |name: &str| web().change(|s| s.spec.ports.clear()).tcp(81).annotate("azure-pip-name", name);
    let mut azure = Azure::of(plain(&["lb1", "lb2"]));
    azure.converge(&all(&[&one, &two]), &nodes);
    azure.converge(&all(&[&one, &two, &sharing("lb1-aone")]), &nodes);
    assert_eq!(rules_on(&azure, "lb1"), ["aone-TCP-80", "aweb-TCP-81"]);
    azure.converge(&all(&[&one, &two, &sharing("lb1-atwo")]), &nodes);
    assert_eq!(rules_on(&azure, "lb1"), ["aone-TCP-80"]);
    assert_eq!(rules_on(&azure, "lb2"), ["atwo-TCP-80", "aweb-TCP-81"]);
}

/// LB-261: load balancers that no entry names any more are emptied and deleted, whether one entry was removed or all of
/// them.
#[test]
fn lb_261_services_leave_a_load_balancer_that_is_configured_no_more() {
    let nodes = nodes([node("alpha", 0)]);
    let mut azure = Azure::of(plain(&["lb1", "lb2", "lb3"]));
    let services = all(&[&web(), &svc("b").tcp(81), &svc("c").tcp(82).internal(), &svc("d").tcp(83)]);
    azure.converge(&services, &nodes);
    assert_eq!(rules_on(&azure, "lb3"), ["aweb-TCP-80"]);
    azure.cluster = plain(&["lb1", "lb2"]);
    azure.converge(&services, &nodes);
    assert!(find(&azure, "lb3").is_none());
    let single = cluster_with(json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"}));
    azure.cluster = Cluster { name: "lb1".to_owned(), ..single };
    azure.converge(&services, &nodes);
    let names: Vec<&str> = azure
        .observed
        .load_balancers
        .iter()
        .filter_map(|one| one.id.as_ref().map(ResourceId::name))
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(rules_on(&azure, "lb1"), ["ab-TCP-81", "ad-TCP-83", "aweb-TCP-80"]);
    assert_eq!(rules_on(&azure, "lb1-internal"), ["ac-TCP-82"]);
}

/// LB-261: a load balancer with only pools of single Services is identified by them, because rules that are named after
/// the Services refer to them.
#[test]
fn lb_261_a_load_balancer_with_pools_of_single_services_alone_is_left() {
    let nodes = nodes([node("alpha", 0)]);
    let local = web().local(30_000);
    let on = |name: &str| local.clone().annotate("azure-load-balancer-configurations", name);
    let single = cluster_with(json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"}));
    for after in [plain(&["lb1", "lb2"]), Cluster { name: "lb1".to_owned(), ..single }] {
        let mut azure = Azure::of(plain(&["lb1", "lb2", "lb3"]));
        azure.observed.endpoints = Some([(web().0.key(), ["alpha-0".to_owned()].into())].into());
        azure.converge(&all(&[&on("lb3")]), &nodes);
        let pools = |azure: &Azure, name: &str| -> Vec<String> {
            let pools =
                find(azure, name).and_then(|one| one.properties.as_ref()?.backend_address_pools.clone());
            pools.into_iter().flatten().filter_map(|pool| pool.name).collect()
        };
        assert_eq!(pools(&azure, "lb3"), ["default-web"]);
        azure.cluster = after;
        azure.converge(&all(&[&local]), &nodes);
        assert!(find(&azure, "lb3").is_none());
        assert_eq!(rules_on(&azure, "lb1"), ["aweb-TCP-80"]);
    }
}

/// LB-261: all pools must belong to this cluster, and the rules must be a Service's of this cluster.
#[test]
fn a_load_balancer_with_other_pools_too_is_not_taken_for_the_clusters() {
    let nodes = nodes([node("alpha", 0)]);
    let on_lb3 = web().local(30_000).annotate("azure-load-balancer-configurations", "lb3");
    let mut azure = Azure::of(plain(&["lb1", "lb2", "lb3"]));
    azure.observed.endpoints = Some([(web().0.key(), ["alpha-0".to_owned()].into())].into());
    azure.converge(&all(&[&on_lb3]), &nodes);
    azure.cluster = plain(&["lb1", "lb2"]);
    let own = |azure: &Azure, services: &[&Svc]| {
        let documents = azure.observed.load_balancers.iter().cloned();
        azure.cluster.own_load_balancers(documents, &all(services)).len()
    };
    assert_eq!((own(&azure, &[&web()]), own(&azure, &[&svc("other")])), (1, 0));
    let pools = Arc::make_mut(&mut azure.observed.load_balancers[0]).properties.as_mut().unwrap();
    let theirs = azure_types::BackendAddressPool { name: Some("theirs".to_owned()), ..Default::default() };
    pools.backend_address_pools.as_mut().unwrap().push(theirs);
    assert_eq!(own(&azure, &[&web()]), 0);
}

/// LB-453: the name of a cluster is reported without the suffix of internal load balancers, in any case.
#[test]
fn lb_453_the_name_of_another_cluster_is_told_without_the_suffix() {
    let cluster = cluster();
    let (_, found) = load_balancer(&cluster, "theirs-internal", &[("web", 1)]);
    let mut document = azure_types::LoadBalancer::clone(&found);
    document.id =
        Some(cluster.network_group("rg").resource("Microsoft.Network", "loadBalancers", "theirs-INTERNAL"));
    let services = all(&[&web()]);
    let by_name = crate::resources::load_balancer::LoadBalancersByName::new(&cluster, [&document], &services);
    assert_eq!(by_name.serving(&services).unwrap().found, ["theirs"]);
}

/// LB-261: a load balancer with another cluster's pool belongs to that cluster, although a Service of this one is on
/// it: the operator is informed, and nothing is moved.
#[test]
fn a_load_balancer_of_another_cluster_is_not_emptied() {
    let nodes = nodes([node("alpha", 0)]);
    let mut azure = Azure::of(Cluster { name: "theirs".to_owned(), ..cluster() });
    azure.converge(&all(&[&web()]), &nodes);
    azure.cluster = plain(&["lb1", "lb2"]);
    let planned = azure.plan(&all(&[&web()]), &nodes);
    assert_eq!(planned.plan.steps, []);
    assert!(
        matches!(planned.refused.as_slice(), [(_, Refusal::OtherClusterName(_))]),
        "{:?}",
        planned.refused
    );
}
