//! What people and programs read of a plan beside its steps: counts, refusals, warnings, JSON.

use serde_json::json;

use super::*;
use crate::PLAN_FORMAT_VERSION;

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
    for member in ["notices", "warnings"] {
        assert!(planned[member].is_array(), "{planned}");
    }
}

#[test]
fn a_cluster_name_that_makes_everything_a_second_time_is_warned_of() {
    let mut azure = Azure::new();
    let services = [svc("web").tcp(80).arc(), svc("db").tcp(5432).internal().arc()];
    assert_eq!(azure.converge(&services, &[]).warnings, Vec::<String>::new());
    azure.cluster.name = "kubernetes".to_owned();
    let planned = azure.plan(&services, &[]);
    let [warning] = &planned.warnings[..] else { panic!("{:?}", planned.warnings) };
    for part in ["`testCluster`", "2 Services", "default/db", "--cluster-name=testCluster"] {
        assert!(warning.contains(part), "{part}: {warning}");
    }
    assert!(planned.to_string().contains("  ! Warning: load balancers of the name `testCluster`"));
}

#[test]
fn load_balancers_of_other_clusters_in_the_group_are_no_reason_to_warn() {
    let mut azure = Azure::new();
    azure.converge(&[svc("web").tcp(80).arc()], &[]);
    azure.cluster.name = "kubernetes".to_owned();
    assert_eq!(azure.plan(&[svc("shop").tcp(80).arc()], &[]).warnings, Vec::<String>::new());
}
