//! The output of plans besides their steps: counts, refusals, warnings, JSON.

use serde_json::json;

use super::*;
use crate::outcome::plan_json::PLAN_FORMAT_VERSION;

fn refused() -> Svc {
    svc("bad").tcp(80).annotate("azure-load-balancer-tcp-idle-timeout", "soon")
}

#[test]
fn refused_services_are_counted_in_the_last_line() {
    let planned = Azure::new().plan(&[svc("web").tcp(80).arc(), refused().arc()], &[]).to_string();
    assert!(planned.contains("\n  ! default/bad is refused: "), "{planned}");
    assert!(planned.ends_with("to delete; 1 Service refused.\n"), "{planned}");
}

#[test]
fn a_plan_with_nothing_but_refusals_does_not_say_that_all_is_well() {
    let planned = Azure::new().plan(&[refused().arc()], &[]).to_string();
    assert!(
        planned.ends_with("Plan: 0 to create, 0 to change, 0 to delete; 1 Service refused.\n"),
        "{planned}"
    );
}

/// U11: all mistakes are reported at once, so that correcting one does not reveal the next.
#[test]
fn all_mistakes_of_a_service_are_told_at_once() {
    let wrong = svc("bad")
        .tcp(80)
        .tcp(65535)
        .annotate("azure-load-balancer-tcp-idle-timeout", "soon")
        .annotate("azure-load-balancer-ipv4", "10.0.0.1")
        .annotate("azure-load-balancer-health-probe-interval", "fast")
        .annotate("azure-pls-create", "true")
        .annotate("azure-pls-ip-configuration-ip-address-count", "99");
    let planned = Azure::new().plan(&[wrong.arc()], &[]);
    let [(_, refusal)] = &planned.refused[..] else { panic!("{:?}", planned.refused) };
    let text = refusal.to_string();
    for part in [
        "6 mistakes: (1) annotation",
        "10.0.0.1",
        "azure-load-balancer-tcp-idle-timeout: soon value must be a whole number",
        "health-probe-interval",
        "65535",
        "99",
        "(6) spec.ports",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(refusal.is_terminal());
}

/// An operation that a manager has begun is no mistake of the Service: the plan contains the steps that follow, and
/// says that it waits.
#[test]
fn a_service_whose_public_ip_is_being_made_waits_and_is_not_refused() {
    let mut azure = Azure::new();
    let (services, nodes) = ([svc("web").tcp(80).arc()], nodes([node("alpha", 0)]));
    let whole = azure.plan(&services, &nodes);
    azure.take(&whole.plan.steps[0]);
    let made = azure.observed.clone();
    let properties = Arc::make_mut(&mut azure.observed.public_ips[0]).properties.as_mut().unwrap();
    properties.provisioning_state = Some("Updating".into());
    properties.ip_address = None;
    let planned = azure.plan(&services, &nodes);
    let wait = crate::outcome::Wait::PublicIps { names: vec!["testCluster-aweb".to_owned()] };
    assert_eq!((planned.refused.len(), &planned.waiting), (0, &vec![(services[0].key(), wait)]), "{planned}");
    assert_eq!(planned.plan.steps.len(), whole.plan.steps.len() - 1, "{planned}");
    let text = planned.to_string();
    assert!(
        text.contains("  ! default/web waits: Azure is still at work on public IP testCluster-aweb"),
        "{text}"
    );
    assert!(text.contains("from Internet to (known after apply)"), "{text}");
    assert!(text.ends_with("to delete; 1 Service waits.\n"), "{text}");
    let json = planned.to_json();
    assert_eq!((&json["summary"]["waiting"], &json["summary"]["refused"]), (&json!(1), &json!(0)));
    assert_eq!(json["waiting"][0]["service"], "default/web");

    // A dynamic public IP has an address once a frontend refers to it.
    azure.observed = made;
    Arc::make_mut(&mut azure.observed.public_ips[0]).properties.as_mut().unwrap().ip_address = None;
    let planned = azure.plan(&services, &nodes);
    assert_eq!((planned.refused.len(), planned.waiting.len()), (0, 0), "{planned}");
    assert!(planned.to_string().contains("from Internet to (known after apply)"), "{planned}");
}

#[test]
fn programs_read_steps_refusals_and_counts_as_json() {
    let planned = Azure::new().plan(&[svc("web").tcp(80).arc(), refused().arc()], &[]).to_json();
    assert_eq!(planned["formatVersion"], PLAN_FORMAT_VERSION);
    assert_eq!(planned["summary"]["create"], 2);
    assert_eq!(planned["summary"]["refused"], 1);
    assert_eq!(planned["refused"][0]["service"], "default/bad");
    assert_eq!(planned["refused"][0]["untilServiceChanges"], true);
    let step = &planned["steps"][0];
    assert_eq!(step["action"], "create");
    assert_eq!(step["resourceType"], "publicIPAddresses");
    assert!(step["resourceId"].as_str().unwrap().ends_with("/publicIPAddresses/testCluster-aweb"), "{step}");
    assert_eq!(step["onBehalfOf"], json!(["default/web"]));
    assert!(step["changes"][0].as_str().unwrap().starts_with("static IPv4"), "{step}");
    assert_eq!(step["document"]["properties"]["publicIPAllocationMethod"], "Static");
    for member in ["notices", "waiting", "warnings"] {
        assert!(planned[member].is_array(), "{planned}");
    }
}

/// A cluster that is configured with another name than its load balancers have.
fn renamed(services: &[Arc<Service>]) -> Azure {
    let mut azure = Azure::new();
    assert_eq!(azure.converge(services, &[]).warnings, Vec::<String>::new());
    azure.cluster.name = "kubernetes".to_owned();
    azure
}

/// LB-453
#[test]
fn a_cluster_name_that_makes_everything_a_second_time_is_refused() {
    let services = [svc("web").tcp(80).arc(), svc("db").tcp(5432).internal().arc()];
    let azure = renamed(&services);
    let new = svc("new").tcp(81).arc();
    let planned = azure.plan(&[services[0].clone(), services[1].clone(), new], &[]);
    assert_eq!(planned.plan.steps, Vec::new());
    let [warning] = &planned.warnings[..] else { panic!("{:?}", planned.warnings) };
    for part in ["`testCluster`", "2 Services", "default/db", "set --cluster-name=testCluster"] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    // U11: one sentence for all, not one per Service.
    let text = planned.to_string();
    let begins =
        "  ! default/db, default/new, default/web are refused: load balancers of the name `testCluster`";
    assert!(text.starts_with(begins), "{text}");
    assert_eq!(text.matches("load balancers of the name").count(), 1, "{text}");
    let refused: Vec<_> = planned.refused.iter().map(|(key, _)| &*key.name).collect();
    assert_eq!(refused, ["db", "new", "web"]);
    for (_, refusal) in &planned.refused {
        assert!(matches!(refusal, Refusal::OtherClusterName(_)), "{refusal}");
    }
}

/// LB-453
#[test]
fn a_service_of_another_cluster_name_is_not_let_go_either() {
    let azure = renamed(&[svc("web").tcp(80).arc()]);
    let web = svc("web").tcp(80).published(&["20.0.0.3"]).deleting().arc();
    let never_served = svc("new").tcp(81).deleting().arc();
    let planned = azure.plan(&[web, never_served], &[]);
    assert_eq!(planned.plan.steps, Vec::new());
    let [(key, _)] = &planned.refused[..] else { panic!("{:?}", planned.refused) };
    assert_eq!(&*key.name, "web");
}

/// LB-453
#[test]
fn what_an_older_name_left_behind_stops_nobody_who_is_served() {
    let services = [svc("web").tcp(80).arc()];
    let mut azure = renamed(&services);
    let left = std::mem::take(&mut azure.observed.load_balancers);
    azure.converge(&services, &[]);
    azure.observed.load_balancers.extend(left);
    let more = [services[0].clone(), svc("new").tcp(81).arc()];
    let planned = azure.converge(&more, &[]);
    assert_eq!(planned.refused, Vec::new());
    assert_eq!(azure.plan(&more, &[]).plan.steps, Vec::new());
}

#[test]
fn load_balancers_of_other_clusters_in_the_group_are_no_reason_to_warn() {
    let mut azure = Azure::new();
    azure.converge(&[svc("web").tcp(80).arc()], &[]);
    azure.cluster.name = "kubernetes".to_owned();
    assert_eq!(azure.plan(&[svc("shop").tcp(80).arc()], &[]).warnings, Vec::<String>::new());
}
