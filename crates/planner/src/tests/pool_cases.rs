//! Cases of `docs/rules/backend-pools.md`.

use azure_types::InterfaceConfigurations;
use k8s::names::*;
use serde_json::json;

use super::*;
use crate::backend_pool::{is_eligible, members_by_address, node_addresses, pools_to_fill};
use crate::scale_set::{PoolMembership, plan_instances, plan_model, write_parallelism};
use crate::{Family, Flavor};

fn join(flavor: Flavor, family: Family) -> PoolMembership {
    PoolMembership { pool: cluster().pool_id(&cluster().placement(flavor), family), family, member: true }
}

fn v4() -> [PoolMembership; 1] {
    [join(Flavor::External, Family::V4)]
}

/// The pools of one family that a document's interface refers to, by name of the load balancer.
fn pools(interfaces: &InterfaceConfigurations, family: usize) -> Vec<String> {
    let interface = &interfaces.network_interface_configurations.as_ref().unwrap()[0];
    let address = &interface.properties.as_ref().unwrap().ip_configurations.as_ref().unwrap()[family];
    let pools = address.properties.as_ref().unwrap().load_balancer_backend_address_pools.iter().flatten();
    pools.map(|pool| pool.id.as_ref().unwrap().parent().unwrap().name().to_owned()).collect()
}

fn of_instance(step: &Step, family: usize) -> Vec<String> {
    match &step.document {
        Some(Document::ScaleSetInstance(document)) => pools(
            document.properties.as_ref().unwrap().network_profile_configuration.as_ref().unwrap(),
            family,
        ),
        other => panic!("{other:?}"),
    }
}

fn targets(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.target.name()).collect()
}

fn put_in(instance: &mut ScaleSetInstance, pools: &[&ResourceId]) {
    let properties = instance.properties.as_mut().unwrap();
    properties.network_profile_configuration = serde_json::from_value(interfaces(pools, &[])).unwrap();
}

fn set_power(instance: &mut ScaleSetInstance, state: &str) {
    let view = instance.properties.as_mut().unwrap().instance_view.as_mut().unwrap();
    view.statuses = serde_json::from_value(json!([{"code": format!("PowerState/{state}")}])).unwrap();
}

/// LB-410: pools come with a Service of their family, and go with the load balancer.
#[test]
fn lb_410_a_pool_stays_as_long_as_its_load_balancer() {
    let mut azure = Azure::new();
    let nodes = nodes([node("alpha", 0)]);
    let (single, dual) = (svc("single").tcp(80), svc("dual").tcp(81).dual());
    azure.converge(&[single.arc(), dual.arc()], &nodes);
    azure.converge(&[single.arc(), dual.deleting().arc()], &nodes);
    let pools = azure.observed.load_balancers[0].properties.as_ref().unwrap().backend_address_pools.clone();
    let names: Vec<String> = pools.unwrap().into_iter().filter_map(|pool| pool.name).collect();
    assert_eq!(names, ["testCluster", "testCluster-IPv6"]);
    assert_eq!(azure.plan(&[single.arc()], &nodes).plan.steps, [], "nor do machines leave it");
    azure.converge(&[single.deleting().arc()], &nodes);
    assert_eq!(azure.observed.load_balancers.len(), 0);
}

/// LB-180.
#[test]
fn lb_180_a_new_load_balancer_has_the_pools_of_its_families() {
    let planned = Azure::new().plan(&[svc("test1").tcp(80).dual().arc()], &[]);
    let step = planned.plan.steps.iter().find(|step| step.target.name() == "testCluster").unwrap();
    let pools = load_balancer_of(step).properties.as_ref().unwrap().backend_address_pools.as_ref().unwrap();
    let names: Vec<_> = pools.iter().map(|pool| pool.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["testCluster", "testCluster-IPv6"]);
}

/// LB-182, LB-183.
#[test]
fn lb_182_lb_183_a_pool_is_not_emptied_by_exclusions() {
    let (set, mut machines) = scale_set("alpha", 2);
    let pool = cluster().pool_id(&cluster().placement(Flavor::External), Family::V4);
    machines.iter_mut().for_each(|machine| put_in(machine, &[&pool]));
    let out = |number| labelled(node("alpha", number), LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "true");
    let all = nodes([out(0), out(1)]);
    assert_eq!(plan_instances(&cluster(), &set, &machines, &v4(), &all), []);
    let one = nodes([out(0), node("alpha", 1)]);
    let steps = plan_instances(&cluster(), &set, &machines, &v4(), &one);
    assert_eq!(targets(&steps), ["0"]);
    assert_eq!(of_instance(&steps[0], 0), Vec::<String>::new());
    assert_eq!(
        steps[0].changes,
        ["node alpha000000 leaves backend pool testCluster of load balancer testCluster"]
    );
}

/// LB-450.
#[test]
fn nodes_without_a_machine_of_azures_are_no_destinations() {
    let mut new = node("alpha", 1);
    new.spec.provider_id = String::new();
    let mut foreign = node("alpha", 2);
    foreign.spec.provider_id = "kind://docker/kind/worker".to_owned();
    let mut standalone = node("alpha", 3);
    standalone.spec.provider_id =
        "azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm"
            .to_owned();
    let all = nodes([node("alpha", 0), new, foreign, standalone]);
    let of = |family| node_addresses(&cluster(), &all, &[family]).iter().map(ToString::to_string).collect();
    let (v4, v6): (Vec<String>, Vec<String>) = (of(Family::V4), of(Family::V6));
    assert_eq!(v4, ["10.0.1.10", "10.0.1.13"]);
    assert_eq!(v6, ["fd00:1::10", "fd00:1::13"]);
    let by_address = cluster_with(json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"}));
    let in_pool: Vec<String> =
        members_by_address(&by_address, &all, Family::V4).keys().map(ToString::to_string).collect();
    assert_eq!(in_pool, ["10.0.1.10", "10.0.1.12", "10.0.1.13"], "whoever is in the network can be a member");
    let let_in = node_addresses(&by_address, &all, &[Family::V4]);
    assert_eq!(let_in.iter().map(ToString::to_string).collect::<Vec<_>>(), in_pool);
}

#[test]
fn the_one_predicate_for_nodes_in_pools() {
    let cluster = cluster();
    let eligible = |node: &Node| is_eligible(&cluster, node);
    let with = |key: &str, value: &str| labelled(node("alpha", 0), key, value);
    assert!(eligible(&node("alpha", 0)));
    for value in ["false", "False", "0", "f"] {
        assert!(eligible(&with(LABEL_EXCLUDE_FROM_LOAD_BALANCERS, value)), "{value}");
    }
    for value in ["", "true", "no", "1"] {
        assert!(!eligible(&with(LABEL_EXCLUDE_FROM_LOAD_BALANCERS, value)), "{value}");
    }
    assert!(!eligible(&with(LABEL_MANAGED, "False")));
    assert!(eligible(&with(LABEL_RESOURCE_GROUP, "RG")));
    assert!(!eligible(&with(LABEL_RESOURCE_GROUP, "elsewhere")));
    assert!(!eligible(&with(LABEL_CONTROL_PLANE, "")));
    assert!(!eligible(&with(LABEL_ROLE, "master")));
    let kept_in = cluster_with(json!({"excludeMasterFromStandardLB": false}));
    assert!(is_eligible(&kept_in, &with(LABEL_CONTROL_PLANE, "")));
    let mut leaving = node("alpha", 0);
    leaving
        .spec
        .taints
        .push(serde_json::from_value(json!({"key": TAINT_TO_BE_DELETED, "effect": "NoSchedule"})).unwrap());
    assert!(!eligible(&leaving));
    let mut deleted = node("alpha", 0);
    deleted.metadata.deletion_timestamp = svc("x").deleting().0.metadata.deletion_timestamp;
    assert!(!eligible(&deleted));
    let mut unready = node("alpha", 0);
    unready
        .status
        .conditions
        .push(serde_json::from_value(json!({"type": "Ready", "status": "False"})).unwrap());
    assert!(eligible(&unready), "health probes see to it");
}

/// LB-194, LB-195, LB-196.
#[test]
fn lb_194_lb_195_lb_196_preconfigured_pools_are_left_alone_unless_they_were_missing() {
    let mut azure = Azure::of(cluster_with(json!({"preConfiguredBackendPoolLoadBalancerTypes": "external"})));
    let nodes = nodes([node("alpha", 0)]);
    let dual = svc("test1").tcp(80).dual();
    let first = azure.plan(&[dual.arc()], &nodes);
    assert!(first.plan.steps.iter().any(|step| step.target.name() == "0"), "created now, filled now");
    let machines = azure.observed.scale_sets.clone();
    azure.apply(&first.plan);
    azure.observed.scale_sets = machines;
    let again = azure.plan(&[dual.tcp(443).arc()], &nodes);
    assert_eq!(again.plan.steps.iter().filter(|step| step.target.name() == "0").count(), 0);
    let step = again.plan.steps.iter().find(|step| step.target.name() == "testCluster").unwrap();
    let lb = load_balancer_of(step);
    assert_eq!(lb.properties.as_ref().unwrap().backend_address_pools.as_ref().unwrap().len(), 2);
    assert_eq!(pools_to_fill(&azure.cluster, &azure.cluster.placement(Flavor::External), Some(lb), lb), []);
}

/// LB-197, LB-200.
#[test]
fn lb_197_lb_200_machines_that_do_not_run_are_skipped() {
    let nodes = nodes([node("alpha", 0)]);
    for state in ["stopped", "Stopping", "deallocated", "deallocating", "unknown"] {
        let (set, mut machines) = scale_set("alpha", 1);
        set_power(&mut machines[0], state);
        assert_eq!(plan_instances(&cluster(), &set, &machines, &v4(), &nodes), [], "{state}");
    }
    let (mut set, machines) = scale_set("alpha", 1);
    set.properties.as_mut().unwrap().provisioning_state = Some("Deleting".into());
    assert_eq!(plan_model(&cluster(), &set, &v4(), &nodes), None);
    assert_eq!(plan_instances(&cluster(), &set, &machines, &v4(), &nodes), []);
}

/// LB-198, LB-199.
#[test]
fn lb_198_lb_199_machines_serve_one_pair_of_load_balancers() {
    let nodes = nodes([node("alpha", 0)]);
    let group = cluster().network_group("rg");
    let pool_of = |name: &str| {
        group.resource("Microsoft.Network", "loadBalancers", name).child("backendAddressPools", "p")
    };
    for (name, joins) in [("other", false), ("TESTCLUSTER-internal", true)] {
        let (mut set, mut machines) = scale_set("alpha", 1);
        let pool = pool_of(name);
        put_in(&mut machines[0], &[&pool]);
        let model = set.properties.as_mut().unwrap().virtual_machine_profile.as_mut().unwrap();
        model.network_profile = serde_json::from_value(interfaces(&[&pool], &[])).unwrap();
        let steps = plan_instances(&cluster(), &set, &machines, &v4(), &nodes);
        assert_eq!(steps.len(), usize::from(joins), "{name}");
        assert_eq!(plan_model(&cluster(), &set, &v4(), &nodes).is_some(), joins, "{name}");
        if joins {
            assert_eq!(of_instance(&steps[0], 0), [name, "testCluster"]);
        }
    }
}

/// LB-201.
#[test]
fn lb_201_windows_2019_has_no_ipv6_members() {
    let nodes = nodes([node("alpha", 0)]);
    let both = [join(Flavor::External, Family::V4), join(Flavor::External, Family::V6)];
    let (mut set, machines) = scale_set("alpha", 1);
    let steps = plan_instances(&cluster(), &set, &machines, &both, &nodes);
    assert_eq!((of_instance(&steps[0], 0).len(), of_instance(&steps[0], 1).len()), (1, 1));
    let image = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/AKSWindows/images/windows-2019-containerd/versions/17763.5820.240516";
    let profile = set.properties.as_mut().unwrap().virtual_machine_profile.as_mut().unwrap();
    profile.storage_profile = serde_json::from_value(json!({"imageReference": {"id": image}})).unwrap();
    let steps = plan_instances(&cluster(), &set, &machines, &both, &nodes);
    assert_eq!((of_instance(&steps[0], 0).len(), of_instance(&steps[0], 1).len()), (1, 0));
    let model = plan_model(&cluster(), &set, &both, &nodes).unwrap();
    assert_eq!(model.changes.len(), 1);
}

/// NODE-068.
#[test]
fn node_068_instances_are_written_one_by_one_unless_tagged() {
    let (mut set, _) = scale_set("alpha", 0);
    let four = cluster_with(json!({"putVMSSVMBatchSize": 4}));
    assert_eq!(write_parallelism(&four, &set), 1);
    set.tags = Some([("aks-managed-coordination".to_owned(), "true".to_owned())].into());
    assert_eq!(write_parallelism(&four, &set), 4);
    assert_eq!(write_parallelism(&cluster_with(json!({"putVMSSVMBatchSize": 0})), &set), 1);
}

/// What is sent is what changes: Azure keeps the rest, and members that we do not know are in it.
#[test]
fn writes_of_machines_hold_their_interfaces_and_nothing_else() {
    let (set, machines) = scale_set("alpha", 2);
    let nodes = nodes([node("alpha", 1)]);
    let steps = plan_instances(&cluster(), &set, &machines, &v4(), &nodes);
    assert_eq!(targets(&steps), ["1"], "a machine without a node is left as it is");
    let pool = cluster().pool_id(&cluster().placement(Flavor::External), Family::V4);
    let sent = serde_json::to_value(&steps[0].document).unwrap();
    let expected = json!({"location": "westus", "etag": "i0", "properties": {
        "networkProfileConfiguration": interfaces(&[&pool], &[])}});
    assert_eq!(sent, expected);
    assert_eq!(steps[0].if_match.as_deref(), Some("i0"));
    let model = plan_model(&cluster(), &set, &v4(), &nodes).unwrap();
    let sent = serde_json::to_value(&model.document).unwrap();
    let expected = json!({"location": "westus", "etag": "s0", "properties": {
        "virtualMachineProfile": {"networkProfile": interfaces(&[&pool], &[])}}});
    assert_eq!(sent, expected);
    assert_eq!(plan_model(&cluster(), &set, &v4(), &[]), None, "no node, no membership");
}

#[test]
fn membership_stands_on_the_primary_interface_and_address() {
    let (set, mut machines) = scale_set("alpha", 1);
    let nodes = nodes([node("alpha", 0)]);
    let config = |primary: bool| {
        json!({"name": "nic", "properties": {"primary": primary, "ipConfigurations": [
        {"name": "second", "properties": {"primary": false}}, {"name": "first", "properties": {"primary": true}}]}})
    };
    let mut put = |value: Value| {
        let properties = machines[0].properties.as_mut().unwrap();
        properties.network_profile_configuration = serde_json::from_value(value).unwrap();
        plan_instances(&cluster(), &set, &machines, &v4(), &nodes)
    };
    let steps = put(json!({"networkInterfaceConfigurations": [config(false), config(true)]}));
    let sent = serde_json::to_value(&steps[0].document).unwrap();
    let list = &sent["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"];
    assert_eq!(list[0], config(false));
    assert!(
        list[1]["properties"]["ipConfigurations"][1]["properties"]["loadBalancerBackendAddressPools"]
            .is_array()
    );
    assert!(put(json!({"networkInterfaceConfigurations": [config(false), config(false)]})).is_empty());
}

#[test]
fn machines_that_are_off_leave_a_pool_that_goes() {
    let (set, mut machines) = scale_set("alpha", 1);
    let pool = cluster().pool_id(&cluster().placement(Flavor::External), Family::V4);
    put_in(&mut machines[0], &[&pool]);
    set_power(&mut machines[0], "deallocated");
    let leave = [PoolMembership { pool, family: Family::V4, member: false }];
    assert_eq!(plan_instances(&cluster(), &set, &machines, &leave, &[]).len(), 1);
}

/// A node that is not initialised yet is found by its name.
#[test]
fn nodes_without_a_provider_id_join_by_name() {
    let (set, machines) = scale_set("alpha", 1);
    let mut fresh = node("ALPHA", 0);
    fresh.spec.provider_id.clear();
    let nodes = nodes([fresh]);
    assert_eq!(plan_instances(&cluster(), &set, &machines, &v4(), &nodes).len(), 1);
    assert!(plan_model(&cluster(), &set, &v4(), &nodes).is_some());
}
