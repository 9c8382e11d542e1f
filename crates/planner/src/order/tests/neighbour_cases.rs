//! What others have beside the cluster's own: users in tags, addresses in rules, private link services, and changes that
//! Azure refused after it had accepted them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::PrivateLinkService;
use serde_json::json;

use super::*;
use crate::model::{Balancer, Flavor};
use crate::outcome::{Action, Purpose};
use crate::resources::foreign_entries::ForeignEntries;
use crate::resources::load_balancer::ListedLoadBalancer;
use crate::resources::security_group::{self, ClusterUsage, addresses_of_nodes, rules_with_foreign};
use crate::resources::{load_balancer, private_link, public_ip};
use crate::service::ParsedServices;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn web() -> Svc {
    svc("web").tcp(80)
}

/// The usage of a cluster with this Service, and two nodes.
fn usage(service: &Svc, is_complete: bool) -> ClusterUsage {
    let nodes = nodes([node("alpha", 0), node("alpha", 1)]);
    let mut parsed = ParsedServices::default();
    ClusterUsage::of_known(
        &cluster(),
        &mut parsed,
        &[service.arc()],
        Arc::new(addresses_of_nodes(&nodes)),
        &[],
        &[],
        is_complete,
    )
}

/// A rule to these addresses, managed by its name.
fn rule(name: &str, to: &[&str]) -> Value {
    json!({"name": name, "properties": {
        "protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 500,
        "sourceAddressPrefix": "Internet", "sourcePortRange": "*", "destinationPortRanges": ["80"],
        "destinationAddressPrefixes": to,
    }})
}

const MANAGED: &str = "k8s-azure-lb_allow_IPv4_556f7044ec033071ec0dfcf7cd85bc93";

#[test]
fn rules_with_addresses_of_unknown_origin() {
    let service = web().published(&["20.0.0.1"]);
    let proof = ownership::Proof::new(
        crate::outcome::proof::service(&cluster(), &service.arc().key()),
        ownership::Evidence::Declared { key: "test".to_owned() },
    );
    for (name, to, is_complete, expected) in [
        (MANAGED, &["20.0.0.1", "20.0.0.9"][..], true, Some((&["20.0.0.1"][..], &["20.0.0.9"][..]))),
        (
            MANAGED,
            &["10.0.1.10", "20.0.0.8", "20.0.0.9"],
            true,
            Some((&["10.0.1.10"], &["20.0.0.8", "20.0.0.9"])),
        ),
        (MANAGED, &["20.0.0.1", "20.0.0.9"], false, None),
        ("manual", &["20.0.0.1", "20.0.0.9"], true, None),
        (MANAGED, &["20.0.0.1"], true, None),
        (MANAGED, &["20.0.0.9"], true, None),
        // Proven to have been the cluster's.
        (MANAGED, &["20.0.0.1", "20.0.0.7"], true, None),
    ] {
        let group = security_group(json!([rule(name, to)]));
        let usage = usage(&service, is_complete).with_proofs([(ip("20.0.0.7"), proof.clone())]);
        let found = rules_with_foreign(&group, &usage);
        let found: Vec<_> =
            found.iter().map(|one| (one.name.as_str(), one.own.clone(), one.foreign.clone())).collect();
        let expected = expected.map(|(own, foreign)| {
            let foreign = foreign.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
            (MANAGED, own.iter().map(|one| ip(one)).collect::<Vec<_>>(), foreign)
        });
        assert_eq!(found, Vec::from_iter(expected), "{name} {to:?} {is_complete}");
    }
}

#[test]
fn an_owner_hears_of_addresses_of_unknown_origin_beside_its_own() {
    let at_nodes = || web().annotate("azure-disable-load-balancer-floating-ip", "true");
    for (service, to, expected) in [
        (web().published(&["20.0.0.1"]), "20.0.0.1", 1),
        (web().annotate("azure-additional-public-ips", "20.0.0.1"), "20.0.0.1", 1),
        (at_nodes(), "10.0.1.10", 1),
        // Floating IP: the nodes' addresses are no destinations of the Service.
        (web().published(&["20.0.0.1"]), "10.0.1.10", 0),
        (at_nodes().published(&["20.0.0.2"]), "20.0.0.1", 0),
    ] {
        let published: BTreeSet<IpAddr> =
            service.0.status.load_balancer.ingress.iter().map(|one| ip(&one.ip)).collect();
        // All of them are addresses of the cluster.
        let other = svc("other").tcp(81).published(&["20.0.0.1"]);
        let nodes = nodes([node("alpha", 0)]);
        let all = [service.arc(), other.arc()];
        let usage = ClusterUsage::of_known(
            &cluster(),
            &mut ParsedServices::default(),
            &all,
            Arc::new(addresses_of_nodes(&nodes)),
            &[],
            &[],
            true,
        );
        let group = security_group(json!([rule(MANAGED, &[to, "20.0.0.9"])]));
        let entries = ForeignEntries::of_rules(&group, &usage);
        let intent = service.intent(&cluster());
        let notices = entries.beside(&cluster(), &intent, &published, &[], |_| true);
        assert_eq!(notices.len(), expected, "{service:?} {to}");
        for notice in notices {
            let start = format!("rule {MANAGED} of security group nsg also opens 20.0.0.9, ");
            assert!(notice.message.starts_with(&start), "{}", notice.message);
            assert_eq!(notice.reason, "SharedWithUnknown");
        }
    }
}

#[test]
fn users_of_a_public_ip_that_are_no_services_of_the_cluster() {
    let tags =
        |users: &str, cluster: &str| json!({"k8s-azure-service": users, "k8s-azure-cluster-name": cluster});
    let own = "testCluster-aweb";
    let service = web().published(&["20.0.0.1"]);
    for (name, address, tags, expected) in [
        (
            own,
            "20.0.0.1",
            tags("default/web,default/known,default/gone,gone", "testCluster"),
            &["default/gone", "gone"][..],
        ),
        // Its own name is enough, and so is its published address.
        (own, "20.0.0.9", tags("default/gone", "testCluster"), &["default/gone"]),
        ("theirs", "20.0.0.1", tags("default/gone", "testCluster"), &["default/gone"]),
        ("theirs", "20.0.0.9", tags("default/gone", "testCluster"), &[]),
        (own, "20.0.0.1", tags("default/gone", "another"), &[]),
        (own, "20.0.0.1", tags("default/web,default/known", "testCluster"), &[]),
        ("theirs", "20.0.0.1", json!({"k8s-azure-service": "default/gone"}), &[]),
    ] {
        let public_ip = public_ip(&cluster(), name, Some(address), tags);
        let intent = service.intent(&cluster());
        let exists = |key: &k8s::ObjectKey| &*key.name == "known";
        let found = public_ip::foreign_users(&cluster(), intent.removal(), &public_ip, exists);
        assert_eq!(found, expected, "{name} {address}");
        let published = BTreeSet::from([ip("20.0.0.1")]);
        let none = ForeignEntries::default();
        let notices = none.beside(&cluster(), &intent, &published, &[Arc::new(public_ip)], exists);
        assert_eq!(notices.len(), expected.len());
    }
}

/// A public IP that a frontend, an interface or a gateway refers to.
#[test]
fn addresses_that_something_else_than_a_load_balancer_of_the_cluster_uses() {
    let cluster = cluster();
    let used_by = |user: Option<ResourceId>, gateway: bool| {
        let mut document =
            serde_json::to_value(public_ip(&cluster, "one", Some("20.0.0.1"), json!({}))).unwrap();
        if let Some(user) = user {
            let member = if gateway { "natGateway" } else { "ipConfiguration" };
            document["properties"][member] = json!({"id": user});
        }
        serde_json::from_value::<PublicIpAddress>(document).unwrap()
    };
    let balancer = cluster.placement(Flavor::External);
    let former = Balancer { name: "former".to_owned(), flavor: Flavor::External };
    let network = |kind, name| cluster.network_group("rg").resource("Microsoft.Network", kind, name);
    let listed: Vec<(Balancer, ListedLoadBalancer)> = vec![(
        former.clone(),
        Arc::new(LoadBalancer { id: Some(cluster.load_balancer_id(&former)), ..Default::default() }).into(),
    )];
    for (user, gateway, expected) in [
        (None, false, false),
        (Some(cluster.frontend_id(&balancer, "aweb")), false, false),
        (Some(cluster.frontend_id(&former, "aweb")), false, false),
        (Some(network("networkInterfaces", "nic").child("ipConfigurations", "one")), false, true),
        (Some(network("natGateways", "gateway")), true, true),
    ] {
        let public_ip = used_by(user.clone(), gateway);
        let found = public_ip::addresses_of_others(&cluster, [&public_ip], &listed);
        assert_eq!(found.len(), usize::from(expected), "{user:?}");
    }
}

#[test]
fn private_link_services_that_concern_the_cluster_or_keep_a_frontend() {
    let cluster = cluster();
    let balancer = cluster.placement(Flavor::Internal);
    let other = Balancer { name: "other".to_owned(), ..balancer.clone() };
    let (own, theirs) = (cluster.load_balancer_id(&balancer), cluster.load_balancer_id(&other));
    let far = cluster.network_group("far").resource("Microsoft.Network", "loadBalancers", "kubernetes");
    let link = |of_cluster: &str, offered: Option<&ResourceId>| -> PrivateLinkService {
        let offered = offered.map(|id| json!({"id": id.child("frontendIPConfigurations", "aweb")}));
        serde_json::from_value(json!({
            "id": cluster.private_link_id("rg", "one"), "name": "one",
            "tags": {"k8s-azure-cluster-name": of_cluster},
            "properties": {"loadBalancerFrontendIpConfigurations": Vec::from_iter(offered)},
        }))
        .unwrap()
    };
    for (of_cluster, offered, concerns, keeps) in [
        ("testCluster", None, true, false),
        ("testCluster", Some(&far), true, false),
        ("testCluster", Some(&own), true, false),
        ("another", None, false, false),
        ("another", Some(&far), false, false),
        ("another", Some(&theirs), true, false),
        ("another", Some(&own), true, true),
    ] {
        let link = link(of_cluster, offered);
        assert_eq!(private_link::concerns(&cluster, &link), concerns, "{of_cluster} {offered:?}");
        assert_eq!(private_link::keeps_frontend(&cluster, &link, &own), keeps, "{of_cluster} {offered:?}");
        let frontends = [own.child("frontendIPConfigurations", "aweb")];
        let found = private_link::has_unmanaged(&cluster, &frontends, &[Arc::new(link)]);
        assert_eq!(found, keeps, "{of_cluster} {offered:?}");
    }
}

/// Azure accepts some changes and refuses them later: what is written back, and over which version.
#[test]
fn a_change_that_azure_refused_later_is_reverted() {
    let cluster = cluster();
    let balancer = cluster.placement(Flavor::External);
    let group = |etag: &str, state: &str| {
        let mut document = serde_json::to_value(security_group(json!([]))).unwrap();
        document["etag"] = json!(etag);
        document["properties"]["provisioningState"] = json!(state);
        serde_json::from_value::<azure_types::SecurityGroup>(document).unwrap()
    };
    let document = |etag: &str, state: &str| -> LoadBalancer {
        serde_json::from_value(json!({
            "id": cluster.load_balancer_id(&balancer), "etag": etag, "properties": {"provisioningState": state},
        }))
        .unwrap()
    };
    for (etag, state, is_reverted) in [
        ("e1", "Failed", true),
        ("e1", "Canceled", true),
        ("e1", "Succeeded", false),
        ("e0", "Failed", false),
    ] {
        let expected = is_reverted.then(|| Some("e1".to_owned()));
        let (before, now) = (document("e0", "Succeeded"), document(etag, state));
        let undone = load_balancer::undone(&before, &now);
        assert_eq!(undone, is_reverted.then(|| document("e1", "Succeeded")), "{etag} {state}");
        let step = load_balancer::restore(&cluster, &balancer, Some(&before), &now);
        assert_eq!(
            step.map(|step| (step.action, step.purpose, step.if_match)),
            expected.clone().map(|etag| (Action::Update, Purpose::Restore, etag))
        );
        // One that was created is deleted again, if Azure refused it.
        let step = load_balancer::restore(&cluster, &balancer, None, &now);
        let is_deleted = state != "Succeeded";
        let expected_deletion = is_deleted.then(|| (Action::Delete, Purpose::Restore, Some(etag.to_owned())));
        assert_eq!(
            step.map(|step| (step.action, step.purpose, step.if_match)),
            expected_deletion,
            "{etag} {state}"
        );

        let (before, now) = (group("e0", "Succeeded"), group(etag, state));
        let undone = security_group::undone(&before, &now);
        assert_eq!(undone, is_reverted.then(|| group("e1", "Succeeded")), "{etag} {state}");
        let step = security_group::restore(&cluster, &before, &now);
        assert_eq!(
            step.map(|step| (step.action, step.purpose, step.if_match)),
            expected.map(|etag| (Action::Update, Purpose::Restore, etag))
        );
    }
}
