//! Goals of AzureManagedMachinePools, and their machines.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use capz_planner::agent_pool::{
    PoolReplicas, TAGS, end, goals, instances_reading, machines, remembered_tags, scale_set_of,
    scale_sets_reading, sync,
};
use capz_planner::cluster::Memory;
use capz_planner::condition::project;
use capz_planner::custom_headers;
use capz_planner::service::MANAGED_MACHINE_POOL;
use capz_planner::{Action, Goal, ObservedResources, Plan, Reading, State, Step};
use serde_json::{Value, json};

use super::azure::Azure;
use super::managed_cluster::{Managed, NO_ANNOTATIONS, Pool};

/// A pool that declares everything.
pub fn everything() -> Pool {
    let mut pool = Pool::new(json!({
        "name": "pool1", "mode": "System", "sku": "Standard_D2s_v3", "osType": "Linux", "osDiskType": "Ephemeral",
        "osDiskSizeGB": 64, "kubeletDiskType": "OS", "maxPods": 32, "availabilityZones": ["1", "2"],
        "scaleSetPriority": "Regular", "scaleDownMode": "Delete", "spotMaxPrice": "1",
        "scaling": { "minSize": 2, "maxSize": 10 },
        "taints": [{ "key": "dedicated", "value": "kafka", "effect": "NoSchedule" }],
        "nodeLabels": { "team": "a" }, "additionalTags": { "owner": "b" },
        "enableUltraSSD": true, "enableNodePublicIP": true, "enableFIPS": true, "enableEncryptionAtHost": true,
        "nodePublicIPPrefixID": "/subscriptions/123/resourceGroups/p/providers/Microsoft.Network/publicIPPrefixes/p",
        "kubeletConfig": {
            "cpuManagerPolicy": "static", "cpuCfsQuota": true, "cpuCfsQuotaPeriod": "110ms",
            "imageGcHighThreshold": 70, "imageGcLowThreshold": 50, "topologyManagerPolicy": "best-effort",
            "allowedUnsafeSysctls": ["net.*"], "failSwapOn": false, "containerLogMaxSizeMB": 50,
            "containerLogMaxFiles": 10, "podMaxPids": 2048,
        },
        "linuxOSConfig": {
            "swapFileSizeMB": 1500, "transparentHugePageEnabled": "madvise", "transparentHugePageDefrag": "defer",
            "sysctls": {
                "fsAioMaxNr": 65536, "netIpv4IPLocalPortRange": "32000 60000", "netIpv4TCPFinTimeout": 60,
                "netIpv4TCPKeepaliveProbes": 9, "netIpv4TCPKeepaliveTime": 7200, "netIpv4TCPMaxSynBacklog": 4096,
                "netIpv4TCPMaxTwBuckets": 8000, "netIpv4TCPTwReuse": true, "netIpv4TCPkeepaliveIntvl": 75,
                "vmSwappiness": 60,
            },
        },
        "asoManagedClustersAgentPoolPatches": ["spec: {upgradeSettings: {maxSurge: 33%}}"],
    }));
    pool.version = Some("v1.31.1");
    pool.replicas = Some(5);
    pool
}

/// The goals of the first pool of a cluster, where the pool has this document.
pub fn goals_of(managed: &Managed, held: Option<Value>) -> Vec<Goal> {
    let pool = managed.pools[0].declared();
    let mut observed = ObservedResources::default();
    observed.take(&id_of(managed), held);
    goals(managed.scope(), &pool, &Memory::default(), &observed).unwrap()
}

fn id_of(managed: &Managed) -> ResourceId {
    managed.cluster_id().child("agentPools", managed.pools[0].declared().azure_name())
}

fn with(pool: Pool) -> Managed {
    Managed { pools: vec![pool], ..Managed::new(json!({})) }
}

/// The properties of a pool whose properties in Azure are these.
fn properties(managed: &Managed, held: Option<Value>) -> Value {
    let held = held.map(|held| json!({ "properties": held }));
    goals_of(managed, held).pop().unwrap().document["properties"].clone()
}

/// Puts a cluster of ours, and its network.
fn put_cluster(azure: &mut Azure, managed: &Managed) {
    let tags = managed.scope().cluster.tags(None, None);
    azure.put(&managed.cluster_id(), json!({ "tags": tags, "properties": {} }));
    azure.put(&managed.scope().subnet(None), json!({ "properties": {} }));
}

fn plan_in(azure: &Azure, managed: &Managed) -> Plan {
    azure.plan(managed.scope(), goals_of(managed, azure.get(&id_of(managed))))
}

/// The next write of the pool that is there with these properties, in a cluster of ours; `None` if it is as desired.
fn update(managed: &Managed, held: Value) -> Option<Step> {
    let mut azure = Azure::default();
    put_cluster(&mut azure, managed);
    azure.put(&id_of(managed), json!({ "properties": held }));
    plan_in(&azure, managed).steps().next().cloned()
}

#[test]
fn every_field_of_a_pool_has_its_member() {
    let managed = with(everything());
    let found = properties(&managed, None);
    let subnet = managed.scope().subnet(None);
    assert_eq!(
        found,
        json!({
            "count": 5, "orchestratorVersion": "1.31.1", "vmSize": "Standard_D2s_v3", "osType": "Linux",
            "osDiskType": "Ephemeral", "osDiskSizeGB": 64, "kubeletDiskType": "OS", "mode": "System", "maxPods": 32,
            "availabilityZones": ["1", "2"], "scaleSetPriority": "Regular", "scaleDownMode": "Delete",
            "spotMaxPrice": 1, "enableAutoScaling": true, "minCount": 2, "maxCount": 10,
            "nodeTaints": ["dedicated=kafka:NoSchedule"], "nodeLabels": { "team": "a" }, "tags": { "owner": "b" },
            "enableUltraSSD": true, "enableNodePublicIP": true, "enableFIPS": true, "enableEncryptionAtHost": true,
            "nodePublicIPPrefixID":
                "/subscriptions/123/resourceGroups/p/providers/Microsoft.Network/publicIPPrefixes/p",
            "vnetSubnetID": subnet.as_str(),
            "kubeletConfig": {
                "cpuManagerPolicy": "static", "cpuCfsQuota": true, "cpuCfsQuotaPeriod": "110ms",
                "imageGcHighThreshold": 70, "imageGcLowThreshold": 50, "topologyManagerPolicy": "best-effort",
                "allowedUnsafeSysctls": ["net.*"], "failSwapOn": false, "containerLogMaxSizeMB": 50,
                "containerLogMaxFiles": 10, "podMaxPids": 2048,
            },
            "linuxOSConfig": {
                "swapFileSizeMB": 1500, "transparentHugePageEnabled": "madvise",
                "transparentHugePageDefrag": "defer",
                "sysctls": {
                    "fsAioMaxNr": 65536, "netIpv4IpLocalPortRange": "32000 60000", "netIpv4TcpFinTimeout": 60,
                    "netIpv4TcpKeepaliveProbes": 9, "netIpv4TcpKeepaliveTime": 7200,
                    "netIpv4TcpMaxSynBacklog": 4096, "netIpv4TcpMaxTwBuckets": 8000, "netIpv4TcpTwReuse": true,
                    "netIpv4TcpkeepaliveIntvl": 75, "vmSwappiness": 60,
                },
            },
            "type": "VirtualMachineScaleSets", "upgradeSettings": { "maxSurge": "33%" },
        })
    );
    assert!(subnet.as_str().ends_with("/virtualNetworks/net/subnets/nodes"));
    let own = with(Pool::new(json!({ "subnetName": "other" })));
    assert!(properties(&own, None)["vnetSubnetID"].as_str().unwrap().ends_with("/subnets/other"));
}

/// CAPZ-195: Azure's number counts while its autoscaler decides, and the MachinePool gets it.
#[test]
fn an_autoscaler_decides_the_number() {
    let scaling = json!({ "scaling": { "minSize": 2, "maxSize": 10 } });
    for (spec, replicas, held, count) in [
        (&scaling, Some(3), None, 3),
        (&scaling, None, None, 2),
        (&scaling, Some(40), None, 10),
        (&scaling, Some(3), Some(json!({ "count": 5 })), 5),
        (&scaling, Some(3), Some(json!({ "count": 1 })), 2),
        (&json!({}), Some(3), Some(json!({ "count": 5 })), 3),
        (&json!({}), None, None, 1),
        (&json!({}), Some(0), None, 0),
    ] {
        let managed = with(Pool { replicas, ..Pool::new(spec.clone()) });
        let found = properties(&managed, held.clone());
        assert_eq!(found["count"], count, "{spec} {replicas:?} {held:?}");
        // Azure refuses the autoscaler for a number outside of its bounds: the pool is scaled first.
        let is_outside = held.as_ref().is_some_and(|held| held["count"] == 1);
        let is_on = spec.get("scaling").is_some() && !is_outside;
        assert_eq!(found["enableAutoScaling"], is_on);
        assert_eq!(found.get("minCount").is_some(), is_on);
    }
    let autoscaled = json!({ "properties": { "enableAutoScaling": true, "count": 5 } });
    assert_eq!(sync(&autoscaled), PoolReplicas { is_autoscaled: true, replicas: Some(5) });
    let fixed = json!({ "properties": { "enableAutoScaling": false, "count": 5 } });
    assert_eq!(sync(&fixed), PoolReplicas { is_autoscaled: false, replicas: None });
    // Scaling that is removed from the declaration is turned off in Azure, with its bounds.
    let managed = with(Pool { replicas: Some(5), ..Pool::new(json!({})) });
    let mut held = properties(&managed, None);
    held["enableAutoScaling"] = json!(true);
    held["minCount"] = json!(2);
    held["maxCount"] = json!(10);
    let step = update(&managed, held).unwrap();
    let sent = &step.document["properties"];
    assert_eq!(
        (&sent["enableAutoScaling"], sent.get("minCount"), sent.get("maxCount")),
        (&json!(false), None, None)
    );
}

/// CAPZ-196: the machines of a pool are those of the scale set that bears its name as a tag.
#[test]
fn machines_are_those_of_the_scale_set_of_the_pool() {
    let managed = Managed::new(json!({}));
    let group = "/subscriptions/123/resourceGroups/MC_my-rg_aks_eastus";
    let set = |name: &str, tags: Value| json!({ "id": format!("{group}/providers/Microsoft.Compute/virtualMachineScaleSets/{name}"), "tags": tags });
    let sets = [
        set("aks-pool1-vmss", json!({ "poolName": "pool1" })),
        set("aks-pool0-vmss", json!({ "aks-managed-poolName": "pool0" })),
        set("other", json!({})),
    ];
    for (pool, expected) in [
        ("pool0", Some("aks-pool0-vmss")),
        ("pool1", Some("aks-pool1-vmss")),
        ("pool", None),
        ("pool2", None),
    ] {
        let found = scale_set_of(pool, &sets);
        assert_eq!(found.as_ref().map(ResourceId::name), expected, "{pool}");
    }
    let Reading::List { group: read, resource_type, .. } = scale_sets_reading(managed.scope()) else {
        panic!()
    };
    assert_eq!((read.as_str(), resource_type), (group, "Microsoft.Compute/virtualMachineScaleSets"));
    let own = scale_set_of("pool0", &sets).unwrap();
    assert!(matches!(instances_reading(&own), Reading::List { group, .. } if group == own));
    let instances = ["2", "10", "0"].map(|number| json!({ "id": format!("{own}/virtualMachines/{number}") }));
    let found = machines(&instances);
    let prefix = "azure:///subscriptions/123/resourceGroups/mc_my-rg_aks_eastus/providers/Microsoft.Compute/\
                  virtualMachineScaleSets/aks-pool0-vmss/virtualMachines";
    assert_eq!(found.provider_ids, ["0", "10", "2"].map(|number| format!("{prefix}/{number}")));
    assert_eq!(found.replicas, 3);
}

/// CAPZ-197, and what is no longer declared.
#[test]
fn taints_and_labels_are_those_declared_and_azures() {
    let taint = json!({ "key": "dedicated", "value": "kafka", "effect": "NoSchedule" });
    let spot = "kubernetes.azure.com/scalesetpriority";
    for (spec, held, expected) in [
        (json!({ "taints": [taint] }), json!({}), Some((json!(["dedicated=kafka:NoSchedule"]), json!(null)))),
        (
            json!({ "nodeLabels": { "a": "1" } }),
            json!({ "nodeTaints": ["gone=a:NoSchedule", format!("{spot}=spot:NoSchedule")],
                "nodeLabels": { "a": "1", "gone": "b", spot: "spot" } }),
            Some((json!([format!("{spot}=spot:NoSchedule")]), json!({ "a": "1", spot: "spot" }))),
        ),
        (
            json!({}),
            json!({ "nodeTaints": [format!("{spot}=spot:NoSchedule")], "nodeLabels": { spot: "spot" } }),
            None,
        ),
        (json!({}), json!({ "nodeLabels": { "gone": "b" } }), Some((json!(null), json!({})))),
        // A label that a patch declares is declared.
        (
            json!({ "asoManagedClustersAgentPoolPatches": ["{\"spec\":{\"nodeLabels\":{\"a\":\"1\"}}}"] }),
            json!({ "nodeLabels": { "a": "1" } }),
            None,
        ),
    ] {
        let managed = with(Pool::new(spec.clone()));
        let mut before = properties(&with(Pool::new(json!({}))), None);
        before.as_object_mut().unwrap().remove("nodeTaints");
        before.as_object_mut().unwrap().extend(held.as_object().unwrap().clone());
        let step = update(&managed, before);
        let sent = step.as_ref().map(|step| {
            let properties = &step.document["properties"];
            (properties["nodeTaints"].clone(), properties["nodeLabels"].clone())
        });
        assert_eq!(sent, expected, "{spec} {held}");
    }
}

/// CAPZ-185: a pool follows a control plane that Azure has upgraded, and is never lowered.
#[test]
fn a_pool_is_never_lowered() {
    for (declared, upgraded, held, expected) in [
        (Some("v1.24.6"), None, None, json!("1.24.6")),
        (Some("v1.24.6"), Some("v1.25.4"), None, json!("1.25.4")),
        (Some("v1.24.6"), Some("v1.25.4"), Some("1.25.4"), json!("1.25.4")),
        (Some("v1.24.6"), None, Some("1.25.4"), json!("1.25.4")),
        (Some("v1.26.0"), None, Some("1.25.4"), json!("1.26.0")),
        (None, None, None, json!(null)),
        (None, None, Some("1.25.4"), json!(null)),
        (None, Some("v1.25.4"), None, json!("1.25.4")),
    ] {
        let mut managed = with(Pool { version: declared, ..Pool::new(json!({})) });
        managed.auto_upgrade_version = upgraded;
        let held = held.map(|version| json!({ "orchestratorVersion": version }));
        let found = properties(&managed, held.clone());
        assert_eq!(found["orchestratorVersion"], expected, "{declared:?} {upgraded:?} {held:?}");
    }
}

/// CAPZ-200: an annotation is a header of the request, and a change of it alone is one request.
#[test]
fn annotations_are_headers_of_one_request() {
    let annotation = |value: &str| {
        let key = "infrastructure.cluster.x-k8s.io/custom-header-UseGPUDedicatedVHD".to_owned();
        BTreeMap::from([(key, value.to_owned()), ("else".to_owned(), "a".to_owned())])
    };
    let headers = |value: &str| BTreeMap::from([("UseGPUDedicatedVHD".to_owned(), value.to_owned())]);
    assert_eq!(custom_headers::of([&annotation("true")]), headers("true"));
    let of = |annotations: &BTreeMap<String, String>| {
        with(Pool { annotations: annotations.clone(), ..Pool::new(json!({})) })
    };
    let none = NO_ANNOTATIONS.clone();
    let mut azure = Azure::default();
    let plain = of(&none);
    put_cluster(&mut azure, &plain);
    for (annotations, sent, writes) in [
        (annotation("true"), headers("true"), 1),
        (annotation("true"), headers("true"), 0),
        (annotation("false"), headers("false"), 1),
        (annotation("false"), headers("false"), 0),
        (none.clone(), BTreeMap::new(), 1),
        (none, BTreeMap::new(), 0),
    ] {
        let managed = of(&annotations);
        let goals = goals_of(&managed, azure.get(&id_of(&managed)));
        assert_eq!(goals[1].headers, sent);
        azure.rounds.clear();
        assert!(azure.settle(managed.scope(), &goals).is_reached());
        assert_eq!(azure.rounds.len(), writes, "{annotations:?}");
    }
}

/// Additional tags that were applied are removed once they are no longer declared; those of others stay.
#[test]
fn tags_of_others_stay() {
    let mut managed = with(Pool::new(json!({ "additionalTags": { "team": "a" } })));
    assert_eq!(remembered_tags(&managed.pools[0].declared()).as_deref(), Some(r#"{"team":"a"}"#));
    managed.pools[0] = Pool::new(json!({}));
    assert_eq!(remembered_tags(&managed.pools[0].declared()), None);
    managed.pools[0].annotations.insert(TAGS.to_owned(), r#"{"team":"a","changed":"a"}"#.to_owned());
    assert_eq!(remembered_tags(&managed.pools[0].declared()).as_deref(), Some("{}"));
    let mut held = properties(&managed, None);
    held["tags"] = json!({ "team": "a", "changed": "b", "policy": "c" });
    let step = update(&managed, held).unwrap();
    assert_eq!(step.document["properties"]["tags"], json!({ "changed": "b", "policy": "c" }));
}

/// A pool that exists is taken over with its cluster; in a cluster of others nothing is written or deleted.
#[test]
fn a_pool_is_ours_if_its_cluster_is() {
    let managed = with(Pool::new(json!({})));
    let tags = managed.scope().cluster.tags(None, None);
    for (tags, is_ours) in [(json!(tags), true), (json!({}), false)] {
        for is_end in [false, true] {
            let mut azure = Azure::default();
            azure.put(&managed.cluster_id(), json!({ "tags": tags, "properties": {} }));
            azure.put(&id_of(&managed), json!({ "properties": { "count": 9 } }));
            let plan = match is_end {
                true => azure.plan(
                    managed.scope(),
                    end(managed.scope(), &managed.pools[0].declared(), &Memory::default()),
                ),
                false => plan_in(&azure, &managed),
            };
            let actions: Vec<Action> = plan.steps().map(|step| step.action).collect();
            let expected = if is_end { Action::Delete } else { Action::Update };
            assert_eq!(actions, if is_ours { vec![expected] } else { vec![] }, "{tags}");
            assert_eq!(plan.items[0].1, State::Foreign);
        }
    }
    // Without its cluster a pool is not created.
    let plan = plan_in(&Azure::default(), &managed);
    assert_eq!(plan.items[0].1, State::Missing);
    assert!(matches!(plan.items[1].1, State::Waits(_)), "{plan}");
    // It has gone with its cluster.
    let gone = end(managed.scope(), &managed.pools[0].declared(), &Memory::default());
    assert!(Azure::default().plan(managed.scope(), gone).is_reached());
}

/// The state of a pool is a condition.
#[test]
fn a_pool_has_a_condition() {
    let managed = with(Pool::new(json!({})));
    let mut azure = Azure::default();
    put_cluster(&mut azure, &managed);
    let state = |plan: &Plan| {
        let conditions = project(&MANAGED_MACHINE_POOL, plan);
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].condition.as_deref(), Some("AgentPoolsReady"));
        (conditions[0].status.clone().unwrap(), conditions[0].reason.clone())
    };
    assert_eq!(state(&plan_in(&azure, &managed)), ("False".into(), Some("Creating".into())));
    let goals = goals_of(&managed, None);
    let plan = azure.settle(managed.scope(), &goals);
    assert_eq!(state(&plan), ("True".into(), None));
}
