//! Nodes that get no traffic: the reasons, who is informed, and which reasons are temporary.

use azure_types::{IpConfiguration, SubResource};
use k8s::ObjectKey;
use serde_json::json;

use super::*;
use crate::machines::backend_pool::PoolMembership;
use crate::machines::inventory::Machines;
use crate::machines::obstacle::Reason;
use crate::machines::unserved::{Unserved, find, notices};
use crate::model::words::MAX_NAMED;
use crate::model::{Family, Flavor};

fn pool(family: Family) -> PoolMembership {
    PoolMembership {
        pool: cluster().pool_id(&cluster().placement(Flavor::External), family),
        family,
        member: true,
        of_nodes: None,
    }
}

/// The reason for a node that is instance 0 of `alpha`, if its scale set and machine are changed like this.
fn reason(
    family: Family,
    node: Node,
    change: impl FnOnce(&mut ScaleSet, &mut Vec<ScaleSetInstance>),
) -> Option<Reason> {
    let (mut set, mut instances) = scale_set("alpha", 1);
    let mut of_set: Vec<ScaleSetInstance> = instances.drain(..).map(Arc::unwrap_or_clone).collect();
    change(Arc::make_mut(&mut set), &mut of_set);
    instances.extend(of_set.into_iter().map(Arc::new));
    let machines = Machines { scale_sets: vec![(set, instances)], ..Machines::default() };
    let found = find(&cluster(), &nodes([node]), &machines, &[pool(family)]);
    assert!(found.len() <= 1, "{found:?}");
    found.into_iter().next().map(|one| one.reason)
}

fn with_provider_id(id: &str) -> Node {
    let mut node = node("alpha", 0);
    node.spec.provider_id = id.to_owned();
    node
}

fn connect(machine: &mut ScaleSetInstance, interfaces: Value) {
    let properties = machine.properties.as_mut().unwrap();
    properties.network_profile_configuration = Some(serde_json::from_value(interfaces).unwrap());
}

#[test]
fn each_reason_is_found_and_some_pass_by_themselves() {
    let of_pool = |machine: &mut ScaleSetInstance, id: &ResourceId| connect(machine, interfaces(&[id], &[]));
    let alpha = || node("alpha", 0);
    let nothing = |_: &mut ScaleSet, _: &mut Vec<ScaleSetInstance>| {};
    let others = cluster().load_balancer_id(&cluster().placement(Flavor::External));
    let others = others.parent().unwrap().resource("Microsoft.Network", "loadBalancers", "theirs");
    let others = others.child("backendAddressPools", "pool");

    let stopped = |_: &mut ScaleSet, machines: &mut Vec<ScaleSetInstance>| {
        let view = Arc::make_mut(machines[0].properties.as_mut().unwrap().instance_view.as_mut().unwrap());
        view.statuses = serde_json::from_value(json!([{"code": "PowerState/deallocated"}])).unwrap();
    };
    let one_family = |_: &mut ScaleSet, machines: &mut Vec<ScaleSetInstance>| {
        let only = json!([{"name": "v4", "properties": {"primary": true}}]);
        let mut one = interfaces(&[], &[]);
        one["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"] = only;
        connect(&mut machines[0], one);
    };
    let elsewhere =
        |_: &mut ScaleSet, machines: &mut Vec<ScaleSetInstance>| of_pool(&mut machines[0], &others);
    let member = |_: &mut ScaleSet, machines: &mut Vec<ScaleSetInstance>| {
        of_pool(&mut machines[0], &pool(Family::V4).pool);
    };
    let no_machine = |_: &mut ScaleSet, machines: &mut Vec<ScaleSetInstance>| machines.clear();

    let v4 = Family::V4;
    let rows: [(&str, Option<Reason>, Option<Reason>, bool); 8] = [
        ("member", reason(v4, alpha(), member), None, false),
        ("gone", reason(v4, alpha(), no_machine), Some(Reason::NoMachine), true),
        ("about to join", reason(v4, alpha(), nothing), Some(Reason::NoMachine), true),
        ("stopped", reason(v4, alpha(), stopped), Some(Reason::NotRunning), true),
        ("one family", reason(Family::V6, alpha(), one_family), Some(Reason::NoAddress(Family::V6)), false),
        (
            "another's",
            reason(v4, alpha(), elsewhere),
            Some(Reason::other_load_balancer(&cluster(), &others.parent().unwrap())),
            false,
        ),
        ("not initialised", reason(v4, with_provider_id(""), nothing), None, false),
        ("foreign", reason(v4, with_provider_id("aws:///i-1"), nothing), None, false),
    ];
    for (name, found, expected, may_pass) in rows {
        assert_eq!(found, expected, "{name}");
        assert_eq!(found.is_some_and(|reason| reason.may_pass()), may_pass, "{name}");
    }
}

/// LB-203, LB-204: a machine that cannot join is skipped, its node is named, and the others join.
#[test]
fn lb_203_lb_204_each_reason_of_a_virtual_machine_is_found() {
    let of = |cluster: &Cluster, change: &dyn Fn(&mut Vec<NetworkInterface>)| {
        let mut interfaces = vec![network_interface("m")];
        change(&mut interfaces);
        interfaces.push(network_interface("sound"));
        let interfaces = interfaces.into_iter().map(Arc::new).collect();
        let mut machines = Machines { interfaces, ..Machines::default() };
        let all = nodes([machine_node("m"), machine_node("sound")]);
        let pools = [pool(Family::V4)];
        for step in machines.plan(cluster, &pools, &all) {
            let sound = Member::Node("sound".to_owned());
            assert!(
                matches!(&step.changes[0], Change::Membership { member, joins: true, .. } if *member == sound),
                "{step:?}"
            );
            machines.apply(&[step]);
        }
        let found = find(cluster, &all, &machines, &pools);
        found.into_iter().find(|one| one.node == "m").map(|one| one.reason)
    };
    fn second(interfaces: &mut Vec<NetworkInterface>) -> &mut NetworkInterface {
        let mut second = interfaces[0].clone();
        second.id = Some(second.id.unwrap().parent().unwrap().resource(
            "Microsoft.Network",
            "networkInterfaces",
            "x",
        ));
        interfaces.push(second);
        &mut interfaces[1]
    }
    fn properties(interface: &mut NetworkInterface) -> &mut azure_types::NetworkInterfaceProperties {
        interface.properties.as_mut().unwrap()
    }
    type Row<'a> = (&'a str, &'a dyn Fn(&mut Vec<NetworkInterface>), Reason, bool);
    let rows: [Row<'_>; 5] = [
        ("no interface", &|all| all.clear(), Reason::NoMachine, true),
        (
            "failed (LB-203)",
            &|all| properties(&mut all[0]).provisioning_state = Some("failed".into()),
            Reason::InterfaceFailed,
            true,
        ),
        (
            "going",
            &|all| properties(&mut all[0]).provisioning_state = Some("Deleting".into()),
            Reason::NoMachine,
            true,
        ),
        (
            "none of two is primary",
            &|all| {
                properties(second(all)).primary = Some(false);
                properties(&mut all[0]).primary = None;
            },
            Reason::NoPrimaryInterface,
            false,
        ),
        (
            "no address",
            &|all| {
                let configurations = properties(&mut all[0]).ip_configurations.as_mut().unwrap();
                configurations[0].properties.as_mut().unwrap().private_ip_address = None;
            },
            Reason::NoAddress(Family::V4),
            false,
        ),
    ];
    for (name, change, expected, may_pass) in rows {
        let found = of(&cluster(), change);
        assert_eq!(found.as_ref(), Some(&expected), "{name}");
        assert_eq!(expected.may_pass(), may_pass, "{name}");
    }
    // A member that fails later keeps its place.
    let failed_member = |all: &mut Vec<NetworkInterface>| {
        properties(&mut all[0]).provisioning_state = Some("Failed".into());
        let configurations = properties(&mut all[0]).ip_configurations.as_mut().unwrap();
        configurations[0].pools_mut().push(SubResource::to(pool(Family::V4).pool));
    };
    assert_eq!(of(&cluster(), &failed_member), None);
}

/// LB-204: a basic load balancer has virtual machines as members only if there are no scale sets.
#[test]
fn lb_204_virtual_machines_beside_scale_sets_do_not_join_a_basic_load_balancer() {
    for (vm_type, joins) in [("vmss", false), ("vmssflex", false), ("standard", true)] {
        let cluster = cluster_with(json!({"loadBalancerSku": "basic", "vmType": vm_type}));
        let machines = Machines {
            scale_sets: vec![(flexible_set("gamma"), Vec::new())],
            interfaces: vec![Arc::new(network_interface("gamma_1"))],
            virtual_machines: vec![virtual_machine("gamma_1", Some("gamma"))],
        };
        let all = nodes([machine_node("gamma_1")]);
        let steps = machines.plan(&cluster, &[pool(Family::V4)], &all);
        assert_eq!(steps.len(), usize::from(joins), "{vm_type}: {steps:?}");
        let told = find(&cluster, &all, &machines, &[pool(Family::V4)]);
        let expected = if joins { Reason::NoMachine } else { Reason::BasicLoadBalancer };
        assert_eq!(told[0].reason, expected, "{vm_type}");
    }
}

#[test]
fn nodes_that_do_not_belong_in_pools_are_not_missed() {
    let excluded = labelled(node("alpha", 0), k8s::names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "true");
    assert_eq!(reason(Family::V4, excluded, |_, machines| machines.clear()), None);
}

#[test]
fn an_event_for_each_lasting_reason_names_some_nodes_and_counts_the_rest() {
    let one = |number: usize, reason: Reason| Unserved {
        node: format!("n{number}"),
        pool: pool(Family::V4).pool,
        reason,
    };
    let mut unserved: Vec<Unserved> = (0..7).map(|number| one(number, Reason::NoPrimaryInterface)).collect();
    let theirs = cluster().network_group("rg").resource("Microsoft.Network", "loadBalancers", "theirs");
    unserved.push(one(8, Reason::other_load_balancer(&cluster(), &theirs)));
    unserved.push(one(9, Reason::NotRunning));
    // One node in two pools is named once.
    unserved.push(one(0, Reason::NoPrimaryInterface));
    let told = notices(&ObjectKey::new("shop", "web"), &unserved);
    let messages: Vec<&str> = told.iter().map(|notice| notice.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert_eq!(MAX_NAMED, 5);
    assert!(messages[0].contains("nodes n0, n1, n2, n3, n4 and 2 more: "), "{}", messages[0]);
    assert!(messages[1].contains("nodes n8: ") && messages[1].contains("load balancer theirs"));
    assert!(told.iter().all(|notice| notice.warning && notice.reason == "NodesWithoutTraffic"));
}

/// LB-492: a machine may reach the internet through its current load balancer. The remedy leaves it there, in each
/// configuration, and names the group if it is another one.
#[test]
fn the_remedy_for_a_machine_in_another_load_balancer_leaves_it_there() {
    let text = |config: Value, group: &str| {
        let cluster = cluster_with(config);
        let id = cluster.network_group(group).resource("Microsoft.Network", "loadBalancers", "out-internal");
        let reason = Reason::other_load_balancer(&cluster, &id);
        assert!(!reason.may_pass());
        reason.to_string()
    };
    let own = cluster().config.load_balancer_resource_group().to_owned();
    let plain = text(json!({}), &own);
    for part in ["load balancer out-internal", "Leave them there", "loadBalancerName to out in", "to nodeIP"]
    {
        assert!(plain.contains(part), "{part}: {plain}");
    }
    assert!(!plain.contains("take them out") && !plain.contains("loadBalancerResourceGroup"), "{plain}");
    assert!(
        text(json!({}), "other")
            .contains("loadBalancerName to out and loadBalancerResourceGroup to other in")
    );
    let several =
        json!({"multipleStandardLoadBalancerConfigurations": [{"name": "a", "primaryVMSet": "alpha"}]});
    assert!(text(several, &own).contains("an entry out to multipleStandardLoadBalancerConfigurations"));
    assert!(text(json!({"loadBalancerSku": "basic"}), &own).contains("loadBalancerSku to standard"));
}

/// LB-491: each cause that excludes all nodes is reported with the nodes that it excludes. A node with two causes is
/// named with both, because either remains when the other is fixed.
#[test]
fn causes_that_keep_all_nodes_out_of_pools_are_told() {
    use crate::machines::exclusion::why_no_nodes;
    use k8s::names::{
        LABEL_CONTROL_PLANE, LABEL_EXCLUDE_FROM_LOAD_BALANCERS, LABEL_MANAGED, LABEL_RESOURCE_GROUP,
    };
    let excluded = |node: Node| labelled(node, LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "true");
    let (plain, named) = (node("alpha", 0), node("alpha", 0).name().to_owned());
    let control_plane = labelled(plain.clone(), LABEL_CONTROL_PLANE, "");
    let by_address = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"});
    let rows = [
        (json!({}), vec![], vec!["the cluster has no nodes"]),
        (
            json!({}),
            vec![excluded(plain.clone())],
            vec![LABEL_EXCLUDE_FROM_LOAD_BALANCERS, "remove it", named.as_str()],
        ),
        (json!({}), vec![labelled(plain.clone(), LABEL_MANAGED, "false")], vec![LABEL_MANAGED]),
        (json!({}), vec![labelled(plain.clone(), LABEL_RESOURCE_GROUP, "x")], vec![LABEL_RESOURCE_GROUP]),
        (json!({}), vec![control_plane.clone()], vec!["excludeMasterFromStandardLB", "to false"]),
        (
            json!({}),
            vec![excluded(control_plane.clone())],
            vec!["excludeMasterFromStandardLB", LABEL_EXCLUDE_FROM_LOAD_BALANCERS],
        ),
        (by_address, vec![control_plane.clone()], vec!["add a worker", "nodeIPConfiguration"]),
    ];
    for (config, all, parts) in rows {
        let cluster = cluster_with(config);
        let text = why_no_nodes(&cluster, &nodes(all)).unwrap();
        assert!(parts.iter().all(|part| text.contains(part)) && text.len() < 900, "{parts:?}: {text}");
    }
    let beside = nodes([excluded(plain.clone()), node("alpha", 1)]);
    assert_eq!(why_no_nodes(&cluster(), &beside), None);
    let kept = cluster_with(json!({"excludeMasterFromStandardLB": false}));
    assert_eq!(why_no_nodes(&kept, &nodes([control_plane])), None);
}

/// The provider's event is in the plan, too: for Services of the families in question.
#[test]
fn a_plan_names_the_nodes_that_get_no_traffic() {
    let mut azure = Azure::new();
    let interface = Arc::make_mut(&mut azure.observed.machines.interfaces[0]);
    interface.properties.as_mut().unwrap().provisioning_state = Some("Failed".into());
    let one_family = json!([{"name": "v4", "properties": {"primary": true}}]);
    let mut interfaces = interfaces(&[], &[]);
    interfaces["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"] = one_family;
    connect(Arc::make_mut(&mut azure.observed.machines.scale_sets[0].1[1]), interfaces);
    let nodes = nodes([node("alpha", 1), machine_node("alone"), node("beta", 0)]);
    let services = [
        svc("single").tcp(80).arc(),
        svc("dual").tcp(81).dual().arc(),
        svc("refused").tcp(82).annotate("azure-load-balancer-tcp-idle-timeout", "3").arc(),
        svc("gone").tcp(83).deleting().arc(),
    ];
    for planned in [azure.plan(&services, &nodes), {
        azure.converge(&services, &nodes);
        azure.plan(&services, &nodes)
    }] {
        let told: Vec<String> = planned
            .notices
            .iter()
            .filter(|notice| notice.reason == "NodesWithoutTraffic")
            .map(|notice| format!("{}: {}", notice.service, notice.message))
            .collect();
        let failed = "is in provisioning state Failed";
        let expected =
            [("default/dual", "has no IPv6 address"), ("default/dual", failed), ("default/single", failed)];
        assert_eq!(told.len(), expected.len(), "{told:#?}");
        for (line, (key, words)) in told.iter().zip(expected) {
            assert!(line.starts_with(key) && line.contains(words), "{told:#?}");
        }
    }
}
