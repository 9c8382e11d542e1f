//! The text of plans.

use super::*;
use crate::outcome::Purpose;

fn shop() -> Svc {
    svc("web").tcp(80).udp(53).change(|s| s.metadata.namespace = Some("shop".into()))
}

#[test]
fn a_first_plan_reads_like_this() {
    let planned = Azure::new().plan(&[shop().arc()], &nodes([node("alpha", 0)]));
    insta::assert_snapshot!(planned, @r#"
    In this order (+ create, ~ change, - delete):

      + public IP testCluster-aweb (resource group rg)
          static IPv4 address in zones 1, 2, 3
          for shop/web

      + load balancer testCluster (resource group rg)
          frontend aweb added for shop/web (public IP testCluster-aweb)
          backend pool testCluster added
          probe aweb-TCP-80 added: Tcp 10080 every 5 s
          rule aweb-TCP-80 added: Tcp port 80 → backend port 80
          rule aweb-UDP-53 added: Udp port 53 → backend port 53
          for shop/web

      ~ scale set alpha (resource group rg)
          new instances: joins backend pool testCluster of load balancer testCluster

      ~ instance alpha/0 (resource group rg)
          node alpha000000 joins backend pool testCluster of load balancer testCluster

      ~ security group nsg (resource group rg)
          rule k8s-azure-lb_allow_IPv4_d39272f7f57ed937951650d93992ad77 added: Allow Tcp 80 from Internet to (known after apply) (priority 500)
          rule k8s-azure-lb_allow_IPv4_eacf5e21d4ad7b5345009ad51af9d388 added: Allow Udp 53 from Internet to (known after apply) (priority 501)
          for shop/web

    Plan: 2 to create, 3 to change, 0 to delete.
    "#);
}

/// NODE-273: a plan without steps in which a range of pods gets no route does not claim that all is well.
#[test]
fn node_273_ranges_without_a_route_are_counted() {
    use crate::resources::route::{RouteKey, RoutePlan, RouteRefusal};
    let range: ipnet::IpNet = "10.244.3.0/24".parse().unwrap();
    let key = RouteKey { node: "n1".into(), range };
    let refusal = RouteRefusal::PrefixTaken { table: "routes".into(), by: "onprem".into(), range };
    let routes = RoutePlan { step: None, refused: vec![(key, refusal)] };
    let plan = Azure::new().plan(&[], &[]).with_routes(routes.clone(), Vec::new(), Vec::new());
    let text = plan.to_string();
    assert!(
        text.ends_with("Plan: 0 to create, 0 to change, 0 to delete; 1 range of pods gets no route.\n"),
        "{text}"
    );
    assert!(text.contains("remove that route, or delete the Node and let it register again"), "{text}");
    let plan = Azure::new().plan(&[], &[]).with_routes(routes, vec!["n2 is odd".to_owned()], Vec::new());
    let text = plan.to_string();
    assert!(
        text.contains("Warning: no route: n2 is odd") && text.ends_with("; 2 ranges of pods get no route.\n")
    );
    assert_eq!(plan.to_json()["summary"]["unrouted"], 2);
}

/// LB-051.
#[test]
fn lb_051_a_change_and_a_removal_read_like_this_and_no_change_is_no_write() {
    let mut azure = Azure::new();
    let nodes = nodes([node("alpha", 0)]);
    let inside = svc("db").tcp(5432).internal();
    azure.converge(&[shop().arc(), inside.arc()], &nodes);
    assert_eq!(
        azure.plan(&[shop().arc(), inside.arc()], &nodes).to_string(),
        "No changes: Azure is as the cluster wants it.\n"
    );
    let off = shop().annotate("azure-disable-load-balancer-floating-ip", "true");
    let planned = azure.plan(&[off.arc(), inside.deleting().arc()], &nodes);
    insta::assert_snapshot!(planned, @r#"
    In this order (+ create, ~ change, - delete):

      ~ load balancer testCluster (resource group rg)
          rule aweb-TCP-80: backend port 80 → 10080
          rule aweb-TCP-80: floating IP on → off
          rule aweb-UDP-53: backend port 53 → 10053
          rule aweb-UDP-53: floating IP on → off
          for shop/web

      ~ scale set alpha (resource group rg)
          new instances: leaves backend pool testCluster of load balancer testCluster-internal

      ~ instance alpha/0 (resource group rg)
          node alpha000000 leaves backend pool testCluster of load balancer testCluster-internal

      - load balancer testCluster-internal (resource group rg)
          rule adb-TCP-5432 removed
          probe adb-TCP-5432 removed
          frontend adb of default/db removed
          the last frontend is gone
          for default/db
          ours: name testCluster-internal is made of the cluster's name

      ~ security group nsg (resource group rg)
          rule k8s-azure-lb_allow_IPv4_d39272f7f57ed937951650d93992ad77 removed: no Service needs it for 20.0.0.3
          rule k8s-azure-lb_allow_IPv4_eacf5e21d4ad7b5345009ad51af9d388 removed: no Service needs it for 20.0.0.3
          rule k8s-azure-lb_allow_IPv4_15d1c3353325305e7e66491096adedb3 added: Allow Tcp 10080 from Internet to 10.0.1.10 (priority 502)
          rule k8s-azure-lb_allow_IPv4_d59ae993a8c5fbbd94fb3e9d04c7b9f5 added: Allow Udp 10053 from Internet to 10.0.1.10 (priority 503)
          for shop/web

    Plan: 0 to create, 4 to change, 1 to delete.
    "#);
}

/// All changes that several load balancers need for a machine are one write, whether it joins or leaves their pools.
#[test]
fn a_machine_that_several_load_balancers_ask_for_is_written_once() {
    let mut azure = Azure::new();
    let (services, nodes) =
        ([svc("web").tcp(80).arc(), svc("db").tcp(5432).internal().arc()], nodes([node("alpha", 0)]));
    let is_once = |planned: &crate::outcome::ClusterPlan| {
        let mut targets: Vec<_> = planned.plan.steps.iter().map(|step| &step.target).collect();
        targets.sort();
        targets.windows(2).all(|pair| pair[0] != pair[1])
    };
    let first = azure.converge(&services, &nodes);
    assert!(is_once(&first), "{first}");
    for kind in ["nodeIP", "nodeIPConfiguration"] {
        azure.cluster = cluster_with(serde_json::json!({"loadBalancerBackendPoolConfigurationType": kind}));
        let planned = azure.plan(&services, &nodes);
        assert!(is_once(&planned), "{kind}: {planned}");
        let kinds: Vec<String> = planned.plan.steps.iter().map(|step| step.target.resource_type()).collect();
        let machines = kinds.iter().filter(|kind| kind.contains("virtualMachine")).count();
        assert_eq!((kinds.len(), machines), (4, 2), "{kind}: {planned}");
        azure.converge(&services, &nodes);
    }
}

/// LB-406: what Azure left unfinished is written again, and a preview says so beforehand.
#[test]
fn repairs_stand_in_the_preview() {
    let mut azure = Azure::new();
    let (services, nodes) = ([shop().arc()], nodes([node("alpha", 0)]));
    azure.converge(&services, &nodes);
    let failed = Some(azure_types::Word::from("Failed"));
    for public_ip in azure.observed.public_ips.iter_mut().map(Arc::make_mut) {
        public_ip.properties.get_or_insert_default().provisioning_state = failed.clone();
    }
    for load_balancer in azure.observed.load_balancers.iter_mut().map(Arc::make_mut) {
        load_balancer.properties.get_or_insert_default().provisioning_state = failed.clone();
    }
    let group = azure.observed.security_group.as_mut().unwrap();
    group.properties.get_or_insert_default().provisioning_state = failed;
    let planned = azure.plan(&services, &nodes);
    assert!(planned.plan.steps.iter().all(|step| step.purpose == Purpose::Repair), "{planned}");
    insta::assert_snapshot!(planned, @"
    In this order (+ create, ~ change, - delete):

      ~ public IP testCluster-aweb (resource group rg)
          written again as it is: Azure did not finish the last write
          for shop/web
          ours: tag k8s-azure-service=shop/web; tag k8s-azure-cluster-name=testCluster; name testCluster-aweb is made of the cluster's name and the UID of a Service

      ~ load balancer testCluster (resource group rg)
          written again as it is: the last operation on it failed

      ~ security group nsg (resource group rg)
          written again as it is: the last operation on it failed

    Plan: 0 to create, 3 to change, 0 to delete.
    ");
}

/// A plan reports annotations without effect, before anything is made public by mistake.
#[test]
fn annotations_without_a_meaning_are_told_in_the_first_plan() {
    let web = svc("web")
        .tcp(80)
        .annotate("azure-load-balancer-internal", "yes")
        .annotate("azure-load-balancer-internl", "true");
    let planned = Azure::new().plan(&[web.arc()], &[]);
    let reasons: Vec<&str> = planned.notices.iter().map(|notice| notice.reason).collect();
    assert_eq!(reasons, ["AnnotationValueIgnored", "UnknownAnnotation"], "{planned}");
    assert!(planned.plan.to_string().contains("public IP testCluster-aweb"), "what it does stays");
}

#[test]
fn what_is_refused_stands_before_the_counts() {
    let bad = svc("bad").tcp(80).annotate("azure-load-balancer-tcp-idle-timeout", "3");
    let planned = Azure::new().plan(&[bad.arc()], &[]);
    insta::assert_snapshot!(planned, @r#"
      ! default/bad is refused: annotation service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout: idle timeout value must be a whole number representing minutes between 4 and 100, actual value: 3; correct or remove it

    Plan: 0 to create, 0 to change, 0 to delete; 1 Service refused.
    "#);
}
