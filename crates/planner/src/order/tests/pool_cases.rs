//! Cases of `docs/rules/backend-pools.md`.

use azure_types::{InterfaceConfigurations, IpConfiguration, Sku, SubResource};
use k8s::names::*;
use serde_json::json;

use super::*;
use crate::machines::backend_pool::{
    PoolMembership, is_eligible, members_by_address, node_addresses, pools_to_fill,
};
use crate::machines::holder::Holder;
use crate::machines::interface::plan_interfaces;
use crate::machines::inventory::Machines;
use crate::machines::scale_set::{plan_instances, plan_model, write_parallelism};
use crate::model::{Family, Flavor};

fn join(flavor: Flavor, family: Family) -> PoolMembership {
    PoolMembership {
        pool: cluster().pool_id(&cluster().placement(flavor), family),
        family,
        member: true,
        of_nodes: None,
    }
}

fn v4() -> [PoolMembership; 1] {
    [join(Flavor::External, Family::V4)]
}

/// The kinds of machines, which are members of pools through different documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An instance of the uniform scale set `alpha`.
    Uniform,
    /// A standalone machine, or one of an availability set.
    Standalone,
    /// A machine of the flexible scale set `alpha`.
    Flexible,
}

const KINDS: [Kind; 3] = [Kind::Uniform, Kind::Standalone, Kind::Flexible];

impl Kind {
    fn node(self, number: u32) -> Node {
        match self {
            Self::Uniform => node("alpha", number),
            Self::Standalone | Self::Flexible => machine_node(&format!("alpha_{number}")),
        }
    }

    fn machines(self, size: u32) -> Machines {
        let names = (0..size).map(|number| format!("alpha_{number}"));
        let interfaces = names.clone().map(|name| Arc::new(network_interface(&name))).collect();
        let of_set = (self == Self::Flexible).then_some("alpha");
        let virtual_machines = names.map(|name| virtual_machine(&name, of_set)).collect();
        let machines = Machines { scale_sets: Vec::new(), interfaces, virtual_machines };
        match self {
            Self::Uniform => Machines { scale_sets: vec![scale_set("alpha", size)], ..Machines::default() },
            Self::Standalone => machines,
            Self::Flexible => Machines { scale_sets: vec![(flexible_set("alpha"), Vec::new())], ..machines },
        }
    }
}

/// A document that refers to pools in the plans of one machine: the model first, if there is one.
enum Referring<'a> {
    Configurations(&'a mut InterfaceConfigurations),
    Interface(&'a mut NetworkInterface),
}

impl Referring<'_> {
    fn pools(&mut self, family: Family) -> &mut Vec<SubResource> {
        let index = usize::from(family == Family::V6);
        match self {
            Self::Configurations(interfaces) => interfaces.configurations_mut()[index].pools_mut(),
            Self::Interface(interface) => interface.configurations_mut()[index].pools_mut(),
        }
    }
}

/// All documents that refer to pools: the model, then the machines.
fn referring(machines: &mut Machines) -> Vec<Referring<'_>> {
    let mut all = Vec::new();
    for (set, instances) in &mut machines.scale_sets {
        let properties = Arc::make_mut(set).properties.as_mut().unwrap();
        let profile = properties.virtual_machine_profile.as_mut().unwrap();
        all.push(Referring::Configurations(profile.network_profile.as_mut().unwrap()));
        for instance in instances {
            let properties = Arc::make_mut(instance).properties.as_mut().unwrap();
            let profile = Arc::make_mut(properties.network_profile_configuration.as_mut().unwrap());
            all.push(Referring::Configurations(profile));
        }
    }
    all.extend(machines.interfaces.iter_mut().map(|one| Referring::Interface(Arc::make_mut(one))));
    all
}

fn put_in(machines: &mut Machines, pool: &ResourceId) {
    for mut one in referring(machines) {
        one.pools(Family::V4).push(SubResource::to(pool.clone()));
    }
}

/// Plans and applies the plan; returns it.
fn bring(machines: &mut Machines, memberships: &[PoolMembership], nodes: &[Arc<Node>]) -> Vec<Step> {
    let steps = machines.plan(&cluster(), memberships, nodes);
    machines.apply(&steps);
    assert_eq!(machines.plan(&cluster(), memberships, nodes), [], "planned again");
    steps
}

/// The number of pools that each holder refers to, in one family: model, then machines.
fn counts(machines: &mut Machines, family: Family) -> Vec<usize> {
    referring(machines).iter_mut().map(|one| one.pools(family).len()).collect()
}

fn uniform(size: u32) -> (Arc<ScaleSet>, Vec<Arc<ScaleSetInstance>>) {
    scale_set("alpha", size)
}

/// The same for only the instances of a uniform set.
fn plan_instances_of(
    (set, instances): &(Arc<ScaleSet>, Vec<Arc<ScaleSetInstance>>),
    memberships: &[PoolMembership],
    nodes: &[Arc<Node>],
) -> Vec<Step> {
    plan_instances(&cluster(), set, instances, memberships, nodes)
}

fn targets(steps: &[Step]) -> Vec<&str> {
    steps.iter().map(|step| step.target.name()).collect()
}

fn set_power(instance: &mut Arc<ScaleSetInstance>, state: &str) {
    let properties = Arc::make_mut(instance).properties.as_mut().unwrap();
    let view = Arc::make_mut(properties.instance_view.as_mut().unwrap());
    view.statuses = serde_json::from_value(json!([{"code": format!("PowerState/{state}")}])).unwrap();
}

/// LB-410: pools are added with a Service of their family, and removed with the load balancer.
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

/// Machines of every kind join with one write each, and one for their set's model.
#[test]
fn machines_of_every_kind_join() {
    let both = [join(Flavor::External, Family::V4), join(Flavor::External, Family::V6)];
    for kind in KINDS {
        let mut machines = kind.machines(2);
        let all = nodes([kind.node(0), kind.node(1)]);
        let steps = bring(&mut machines, &both, &all);
        let holders = referring(&mut machines).len();
        assert_eq!(
            (steps.len(), holders),
            (holders, if kind == Kind::Standalone { 2 } else { 3 }),
            "{kind:?}"
        );
        for family in Family::BOTH {
            assert_eq!(counts(&mut machines, family), vec![1; holders], "{kind:?}");
        }
    }
}

/// LB-182, LB-183: for machines of every kind.
#[test]
fn lb_182_lb_183_a_pool_is_not_emptied_by_exclusions() {
    let pool = cluster().pool_id(&cluster().placement(Flavor::External), Family::V4);
    for kind in KINDS {
        let mut machines = kind.machines(2);
        put_in(&mut machines, &pool);
        let out = |number| labelled(kind.node(number), LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "true");
        assert_eq!(bring(&mut machines, &v4(), &nodes([out(0), out(1)])), [], "{kind:?}");
        let steps = bring(&mut machines, &v4(), &nodes([out(0), kind.node(1)]));
        assert_eq!(counts(&mut machines, Family::V4).iter().rev().take(2).collect::<Vec<_>>(), [&1, &0]);
        let name = out(0).name().to_owned();
        let leaves = Change::Membership {
            member: Member::Node(name),
            joins: false,
            pool: "testCluster".to_owned(),
            load_balancer: "testCluster".to_owned(),
        };
        assert_eq!(steps.len(), 1, "{kind:?}");
        assert_eq!(steps[0].changes, [leaves]);
    }
}

/// LB-181: an interface whose machine is deleted leaves, even if it is the last one; one whose machine has no node
/// stays.
#[test]
fn lb_181_an_interface_without_a_machine_leaves() {
    let pool = cluster().pool_id(&cluster().placement(Flavor::External), Family::V4);
    let mut machines = Kind::Standalone.machines(2);
    put_in(&mut machines, &pool);
    assert_eq!(bring(&mut machines, &v4(), &[]), [], "nodes that are about to register");
    let interface = Arc::make_mut(&mut machines.interfaces[0]);
    interface.properties.as_mut().unwrap().virtual_machine = None;
    machines.interfaces.truncate(1);
    let steps = bring(&mut machines, &v4(), &[]);
    assert_eq!(targets(&steps), ["alpha_0-nic"]);
    let member = Member::Interface("alpha_0-nic".to_owned());
    assert!(
        matches!(&steps[0].changes[0], Change::Membership { member: one, joins: false, .. } if *one == member),
        "{steps:?}"
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
    assert_eq!(
        in_pool,
        ["10.0.1.10", "10.0.1.12", "10.0.1.13"],
        "every machine in the network can be a member"
    );
    let let_in = node_addresses(&by_address, &all, &[Family::V4]);
    assert_eq!(let_in.iter().map(ToString::to_string).collect::<Vec<_>>(), in_pool);
}

/// NODE-064: the kind of a node's machine follows from its provider ID, and no key of azure.json changes it.
#[test]
fn node_064_the_kind_of_a_machine_follows_from_its_id() {
    let without = cluster_with(json!({"disableAvailabilitySetNodes": true}));
    for kind in KINDS {
        let machines = kind.machines(1);
        let nodes = nodes([kind.node(0)]);
        let steps = machines.plan(&cluster(), &v4(), &nodes);
        assert!(!steps.is_empty(), "{kind:?}");
        assert_eq!(machines.plan(&without, &v4(), &nodes), steps, "{kind:?}");
    }
}

/// NODE-081.
#[test]
fn node_081_a_node_that_is_new_and_not_ready_belongs_in_pools() {
    let taint = json!({"key": TAINT_UNINITIALIZED, "value": "true", "effect": "NoSchedule"});
    let not_ready = json!({"type": "Ready", "status": "False"});
    for kind in KINDS {
        let mut node = kind.node(0);
        node.spec.taints.push(serde_json::from_value(taint.clone()).unwrap());
        node.status.conditions.push(serde_json::from_value(not_ready.clone()).unwrap());
        assert!(is_eligible(&cluster(), &node), "{kind:?}");
        let mut machines = kind.machines(1);
        bring(&mut machines, &v4(), &nodes([node]));
        assert!(counts(&mut machines, Family::V4).iter().all(|count| *count == 1), "{kind:?}");
    }
}

/// NODE-082: the exclusion label with the value `false`, among others.
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
    let machines = azure.observed.machines.clone();
    azure.apply(&first.plan);
    azure.observed.machines = machines;
    let again = azure.plan(&[dual.tcp(443).arc()], &nodes);
    assert_eq!(again.plan.steps.iter().filter(|step| step.target.name() == "0").count(), 0);
    let step = again.plan.steps.iter().find(|step| step.target.name() == "testCluster").unwrap();
    let lb = load_balancer_of(step);
    assert_eq!(lb.properties.as_ref().unwrap().backend_address_pools.as_ref().unwrap().len(), 2);
    assert_eq!(
        pools_to_fill(&azure.cluster, &azure.cluster.placement(Flavor::External), None, Some(lb), lb),
        []
    );
}

/// LB-197: for instances of uniform scale sets. A virtual machine's interface is written whether it runs or not.
#[test]
fn lb_197_instances_that_do_not_run_are_skipped() {
    let nodes = nodes([node("alpha", 0)]);
    for state in ["stopped", "Stopping", "deallocated", "deallocating", "unknown"] {
        let mut set = uniform(1);
        set_power(&mut set.1[0], state);
        assert_eq!(plan_instances_of(&set, &v4(), &nodes), [], "{state}");
    }
}

/// LB-200: of every kind.
#[test]
fn lb_200_what_azure_is_deleting_is_left_alone() {
    for kind in KINDS {
        let mut machines = kind.machines(1);
        for (set, _) in &mut machines.scale_sets {
            Arc::make_mut(set).properties.as_mut().unwrap().provisioning_state = Some("Deleting".into());
        }
        for interface in &mut machines.interfaces {
            let properties = Arc::make_mut(interface).properties.as_mut().unwrap();
            properties.provisioning_state = Some("Deleting".into());
        }
        assert_eq!(bring(&mut machines, &v4(), &nodes([kind.node(0)])), [], "{kind:?}");
    }
}

/// LB-198, LB-199: for machines and models of every kind.
#[test]
fn lb_198_lb_199_machines_serve_one_pair_of_load_balancers() {
    let group = cluster().network_group("rg");
    let pool_of = |name: &str| {
        group.resource("Microsoft.Network", "loadBalancers", name).child("backendAddressPools", "p")
    };
    for kind in KINDS {
        for (name, joins) in [("other", false), ("TESTCLUSTER-internal", true)] {
            let mut machines = kind.machines(1);
            put_in(&mut machines, &pool_of(name));
            let steps = bring(&mut machines, &v4(), &nodes([kind.node(0)]));
            let after = counts(&mut machines, Family::V4);
            assert!(after.iter().all(|count| *count == 1 + usize::from(joins)), "{kind:?} {name}: {after:?}");
            assert_eq!(steps.len(), if joins { after.len() } else { 0 }, "{kind:?} {name}");
        }
    }
}

/// LB-201: the images of scale sets' models are known; standalone machines join.
#[test]
fn lb_201_windows_2019_has_no_ipv6_members() {
    let both = [join(Flavor::External, Family::V4), join(Flavor::External, Family::V6)];
    let image = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/galleries/AKSWindows/images/windows-2019-containerd/versions/17763.5820.240516";
    let mut machines = Kind::Uniform.machines(1);
    let properties = Arc::make_mut(&mut machines.scale_sets[0].0).properties.as_mut().unwrap();
    let profile = properties.virtual_machine_profile.as_mut().unwrap();
    profile.storage_profile = serde_json::from_value(json!({"imageReference": {"id": image}})).unwrap();
    bring(&mut machines, &both, &nodes([node("alpha", 0)]));
    assert_eq!(counts(&mut machines, Family::V4), [1, 1]);
    assert_eq!(counts(&mut machines, Family::V6), [0, 0]);
}

/// LB-421: the model of a flexible set names the API version of its interfaces, and joins only for machines of its own:
/// a name that begins like the set's proves nothing.
#[test]
fn the_model_of_a_flexible_set_joins_for_its_own_machines() {
    let all = nodes([machine_node("alpha_0")]);
    let plan = |machines: &Machines| {
        let (set, vms) = (&machines.scale_sets[0].0, &machines.virtual_machines);
        plan_model(&cluster(), set, vms, &v4(), &all)
    };
    let mut machines = Kind::Flexible.machines(1);
    let sent = serde_json::to_value(plan(&machines).unwrap().document).unwrap();
    let profile = &sent["properties"]["virtualMachineProfile"]["networkProfile"];
    assert_eq!(profile["networkApiVersion"], "2020-11-01");
    machines.virtual_machines = vec![virtual_machine("alpha_0", None)];
    assert_eq!(plan(&machines), None);
}

/// LB-420: the whole document is sent, under the version that was read. The second configuration of a family, one
/// without an address and a second interface stay out of the pool.
#[test]
fn an_interface_joins_with_its_first_address_of_the_family() {
    let mut interface = network_interface("alpha_0");
    let configurations = interface.properties.as_mut().unwrap().ip_configurations.as_mut().unwrap();
    let mut second = configurations[0].clone();
    second.name = Some("second".to_owned());
    configurations[0].properties.as_mut().unwrap().primary = Some(false);
    let mut pending = second.clone();
    pending.properties.as_mut().unwrap().private_ip_address = None;
    configurations.push(second);
    configurations.insert(0, pending);
    let mut other = network_interface("alpha_0");
    other.id =
        Some(other.id.unwrap().parent().unwrap().resource("Microsoft.Network", "networkInterfaces", "x"));
    other.properties.as_mut().unwrap().primary = Some(false);
    let mut expected = serde_json::to_value(&interface).unwrap();
    let interfaces = [Arc::new(other), Arc::new(interface)];
    let steps = plan_interfaces(&cluster(), &interfaces, &v4(), &nodes([machine_node("alpha_0")]));
    assert_eq!(targets(&steps), ["alpha_0-nic"]);
    let pool = cluster().pool_id(&cluster().placement(Flavor::External), Family::V4);
    expected["properties"]["ipConfigurations"][1]["properties"]["loadBalancerBackendAddressPools"] =
        json!([{"id": pool}]);
    assert_eq!(serde_json::to_value(&steps[0].document).unwrap(), expected);
    assert_eq!(steps[0].if_match.as_deref(), Some("n0"));
}

/// LB-422: machines of every kind leave, and the models of their sets, whether they are nodes or not.
#[test]
fn lb_422_everybody_leaves_a_pool_that_goes() {
    let pool = cluster().pool_id(&cluster().placement(Flavor::External), Family::V4);
    let leave = [PoolMembership { pool: pool.clone(), family: Family::V4, member: false, of_nodes: None }];
    for kind in KINDS {
        for all in [nodes([kind.node(0)]), Vec::new()] {
            let mut machines = kind.machines(2);
            put_in(&mut machines, &pool);
            bring(&mut machines, &leave, &all);
            assert!(counts(&mut machines, Family::V4).iter().all(|count| *count == 0), "{kind:?}");
        }
    }
    let both = Family::BOTH.map(|family| {
        let pool = cluster().pool_id(&cluster().placement(Flavor::External), family);
        PoolMembership { pool, family, member: false, of_nodes: None }
    });
    let join = both.clone().map(|leave| PoolMembership { member: true, ..leave });
    for kind in KINDS {
        let mut machines = kind.machines(2);
        bring(&mut machines, &join, &nodes([kind.node(0), kind.node(1)]));
        bring(&mut machines, &both, &[]);
        for family in Family::BOTH {
            assert!(counts(&mut machines, family).iter().all(|count| *count == 0), "{kind:?} {family}");
        }
    }
}

/// LB-198: a scale set that serves another load balancer does not block other sets.
#[test]
fn lb_198_a_scale_set_elsewhere_keeps_no_other_out() {
    let others = cluster().network_group("rg").resource("Microsoft.Network", "loadBalancers", "theirs");
    let mut taken = Machines { scale_sets: vec![scale_set("alpha", 1)], ..Machines::default() };
    put_in(&mut taken, &others.child("backendAddressPools", "p"));
    let free = ["beta", "gamma"].map(|name| scale_set(name, 1));
    let mut machines =
        Machines { scale_sets: taken.scale_sets.into_iter().chain(free).collect(), ..Machines::default() };
    let all = nodes([node("alpha", 0), node("beta", 0), node("gamma", 0)]);
    bring(&mut machines, &v4(), &all);
    assert_eq!(counts(&mut machines, Family::V4), [1; 6], "alpha is left as it is");
}

/// LB-421: in another resource group, the instances of a scale set are written, but never its model.
#[test]
fn lb_421_models_in_other_resource_groups_are_left_alone() {
    let (set, instances) = uniform(1);
    let elsewhere = |id: &ResourceId| -> ResourceId {
        id.to_string().replace("/resourceGroups/rg/", "/resourceGroups/elsewhere/").parse().unwrap()
    };
    let mut set = ScaleSet::clone(&set);
    set.id = set.id.as_ref().map(elsewhere);
    let instances = instances.into_iter().map(|one| {
        let mut one = ScaleSetInstance::clone(&one);
        one.id = one.id.as_ref().map(elsewhere);
        Arc::new(one)
    });
    let mut machine = node("alpha", 0);
    machine.spec.provider_id =
        machine.spec.provider_id.replace("/resourceGroups/rg/", "/resourceGroups/elsewhere/");
    let mut machines =
        Machines { scale_sets: vec![(Arc::new(set), instances.collect())], ..Machines::default() };
    let steps = bring(&mut machines, &v4(), &nodes([machine]));
    assert_eq!(targets(&steps), ["0"]);
}

/// NODE-068.
#[test]
fn node_068_instances_are_written_one_by_one_unless_tagged() {
    let (mut set, _) = uniform(0);
    let four = cluster_with(json!({"putVMSSVMBatchSize": 4}));
    assert_eq!(write_parallelism(&four, &set), 1);
    Arc::make_mut(&mut set).tags = Some([("aks-managed-coordination".to_owned(), "true".to_owned())].into());
    assert_eq!(write_parallelism(&four, &set), 4);
    assert_eq!(write_parallelism(&cluster_with(json!({"putVMSSVMBatchSize": 0})), &set), 1);
}

/// Only changed members are sent: Azure keeps the rest, including members that we do not know.
#[test]
fn writes_of_machines_hold_their_interfaces_and_nothing_else() {
    let (set, machines) = uniform(2);
    let nodes = nodes([node("alpha", 1)]);
    let steps = plan_instances(&cluster(), &set, &machines, &v4(), &nodes);
    assert_eq!(targets(&steps), ["1"], "a machine without a node is left as it is");
    let pool = cluster().pool_id(&cluster().placement(Flavor::External), Family::V4);
    let sent = serde_json::to_value(&steps[0].document).unwrap();
    let expected = json!({"location": "westus", "etag": "i0", "properties": {
        "networkProfileConfiguration": interfaces(&[&pool], &[])}});
    assert_eq!(sent, expected);
    assert_eq!(steps[0].if_match.as_deref(), Some("i0"));
    let model = plan_model(&cluster(), &set, &[], &v4(), &nodes).unwrap();
    let sent = serde_json::to_value(&model.document).unwrap();
    let expected = json!({"location": "westus", "etag": "s0", "properties": {
        "virtualMachineProfile": {"networkProfile": interfaces(&[&pool], &[])}}});
    assert_eq!(sent, expected);
    assert_eq!(plan_model(&cluster(), &set, &[], &v4(), &[]), None, "no node, no membership");
}

#[test]
fn membership_stands_on_the_primary_interface_and_address() {
    let (set, mut machines) = uniform(1);
    let nodes = nodes([node("alpha", 0)]);
    let config = |primary: bool| {
        json!({"name": "nic", "properties": {"primary": primary, "ipConfigurations": [
        {"name": "second", "properties": {"primary": false}}, {"name": "first", "properties": {"primary": true}}]}})
    };
    let mut put = |value: Value| {
        let properties = Arc::make_mut(&mut machines[0]).properties.as_mut().unwrap();
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

/// NODE-069: the interface and the configuration of an instance that are members of pools.
#[test]
fn node_069_the_primary_interface_and_its_configurations() {
    let nic = |name: &str, primary: bool, configurations: &[Value]| json!({"name": name, "properties": {"primary": primary, "ipConfigurations": configurations}});
    let ip = |name: &str, primary: bool, family: &str| json!({"name": name, "properties": {"primary": primary, "privateIPAddressVersion": family}});
    let [one, v4, v6] = [ip("one", false, "IPv4"), ip("v4", true, "IPv4"), ip("v6", false, "IPv6")];
    let late = ip("late", false, "IPv6");
    let dual = [one.clone(), v6.clone(), v4.clone(), late.clone()];
    for (interfaces, expected) in [
        (vec![nic("a", false, std::slice::from_ref(&one))], ["one", "-"]),
        (vec![nic("a", false, &dual)], ["v4", "v6"]),
        (vec![nic("a", false, std::slice::from_ref(&one)), nic("b", true, &dual)], ["v4", "v6"]),
        (vec![nic("a", false, &dual), nic("b", false, &dual)], ["-", "-"]),
        (vec![nic("a", true, &[one.clone(), late.clone()])], ["-", "late"]),
        (vec![nic("a", true, &[v4.clone(), one.clone()])], ["v4", "-"]),
        (vec![nic("a", true, &[])], ["-", "-"]),
        (vec![], ["-", "-"]),
    ] {
        let text = format!("{interfaces:?}");
        let profile = json!({"networkInterfaceConfigurations": interfaces});
        let profile: InterfaceConfigurations = serde_json::from_value(profile).unwrap();
        let all = profile.configurations();
        let member = |family| {
            let at = InterfaceConfigurations::member_of(all, family)?;
            all[at].name.as_deref()
        };
        assert_eq!(Family::BOTH.map(|family| member(family).unwrap_or("-")), expected, "{text}");
    }
}

/// NODE-078: a set without an orchestration mode is uniform.
#[test]
fn node_078_a_set_without_an_orchestration_mode_is_uniform() {
    let (mut set, machines) = uniform(1);
    Arc::make_mut(&mut set).properties.as_mut().unwrap().orchestration_mode = None;
    let nodes = nodes([node("alpha", 0)]);
    assert_eq!(targets(&plan_instances_of(&(set.clone(), machines), &v4(), &nodes)), ["0"]);
    assert!(plan_model(&cluster(), &set, &[], &v4(), &nodes).is_some());
}

#[test]
fn machines_that_are_off_leave_a_pool_that_goes() {
    let mut machines = Kind::Uniform.machines(1);
    let pool = cluster().pool_id(&cluster().placement(Flavor::External), Family::V4);
    put_in(&mut machines, &pool);
    set_power(&mut machines.scale_sets[0].1[0], "deallocated");
    let leave = [PoolMembership { pool, family: Family::V4, member: false, of_nodes: None }];
    assert_eq!(targets(&bring(&mut machines, &leave, &[])), ["alpha", "0"]);
}

/// LB-606, S9: a node that is not initialised yet has no machine: two scale sets may assign the same computer names,
/// and one of them may be another cluster's.
#[test]
fn nodes_without_a_provider_id_join_when_they_have_one() {
    let (ours, theirs) = (scale_set("alpha", 1), named_alpha("beta"));
    let mut fresh = node("ALPHA", 0);
    fresh.spec.provider_id.clear();
    let mut machines = Machines { scale_sets: vec![ours, theirs], ..Machines::default() };
    assert_eq!(bring(&mut machines, &v4(), &nodes([fresh])), []);
    assert_eq!(targets(&bring(&mut machines, &v4(), &nodes([node("alpha", 0)]))), ["alpha", "0"]);
    assert_eq!(counts(&mut machines, Family::V4), [1, 1, 0, 0]);
}

/// A scale set of one machine whose computer name is that of `alpha`'s.
fn named_alpha(set: &str) -> (Arc<ScaleSet>, Vec<Arc<ScaleSetInstance>>) {
    let (mut model, mut instances) = scale_set(set, 1);
    let profile = Arc::make_mut(&mut model).properties.as_mut().unwrap().virtual_machine_profile.as_mut();
    profile.unwrap().os_profile.as_mut().unwrap().computer_name_prefix = Some("alpha".to_owned());
    let profile = Arc::make_mut(&mut instances[0]).properties.as_mut().unwrap().os_profile.as_mut();
    profile.unwrap().computer_name = Some("alpha000000".to_owned());
    (model, instances)
}

/// LB-606, S9: a machine that joined by the name of a node leaves, model included, when the node's provider ID names
/// another machine. A machine of another name stays: it may be about to register.
#[test]
fn what_joined_by_a_name_leaves_when_the_id_is_known() {
    let pool = v4()[0].pool.clone();
    let (ours, theirs) = (scale_set("alpha", 1), named_alpha("beta"));
    let mut machines =
        Machines { scale_sets: vec![ours, theirs, scale_set("gamma", 1)], ..Machines::default() };
    put_in(&mut machines, &pool);
    let mut fresh = node("alpha", 0);
    fresh.spec.provider_id.clear();
    assert_eq!(bring(&mut machines, &v4(), &nodes([fresh])), [], "it is not known yet which one it is");
    let steps = bring(&mut machines, &v4(), &nodes([node("alpha", 0)]));
    assert_eq!(targets(&steps), ["beta", "0"]);
    assert_eq!(steps[1].target.parent(), Some(scale_set_id("beta")));
    assert_eq!(counts(&mut machines, Family::V4), [1, 1, 0, 0, 1, 1]);
}

/// LB-606, S9: a scale set that was scaled down to zero is left unchanged next to nodes of another one with its names:
/// it may be a pool of the cluster, whose next machine would have to join again.
#[test]
fn a_set_without_machines_is_not_judged_by_names() {
    let pool = v4()[0].pool.clone();
    let (mut empty, _) = named_alpha("beta");
    Arc::make_mut(&mut empty).sku = Some(Sku { capacity: Some(0), ..Default::default() });
    let mut machines =
        Machines { scale_sets: vec![scale_set("alpha", 1), (empty, Vec::new())], ..Machines::default() };
    put_in(&mut machines, &pool);
    assert_eq!(bring(&mut machines, &v4(), &nodes([node("alpha", 0)])), []);
}
