//! Node pools of clusters that Azure manages: their defaults and limits, what of them stays, and the last System pool.

use capz_api::admission::{Denied, Needs, needs, needs_of_deletion, validate, validate_deletion};
use capz_api::azure_managed_machine_pool::{MODE_LABEL, PoolTaint};
use capz_api::crd::{Kind, definition};
use capz_api::{Context, Lookup, SystemPools};
use serde_json::{Value, json};

use super::{admitted, change_refused, judge, with};

const KIND: &str = "AzureManagedMachinePool";
const TEMPLATE: &str = "AzureManagedMachinePoolTemplate";
const PREFIX: &str = "/subscriptions/6d4f2b8a-0c1e-4f5a-9b3c-7d8e9f0a1b2c/resourceGroups/rg/providers/\
    Microsoft.Network/publicIPPrefixes/p";

/// A value for each member of a pool, and another valid one.
fn members() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("additionalTags", json!({ "a": "1" }), json!({ "a": "2" })),
        ("asoManagedClustersAgentPoolPatches", json!(["{}"]), json!(["{\"spec\": {}}"])),
        ("availabilityZones", json!(["1", "2"]), json!(["1", "3"])),
        ("enableEncryptionAtHost", json!(true), json!(false)),
        ("enableFIPS", json!(false), json!(true)),
        ("enableNodePublicIP", json!(true), json!(false)),
        ("enableUltraSSD", json!(false), json!(true)),
        ("kubeletConfig", json!({ "failSwapOn": false }), json!({ "failSwapOn": true })),
        ("kubeletDiskType", json!("OS"), json!("Temporary")),
        (
            "linuxOSConfig",
            json!({ "sysctls": { "vmSwappiness": 1 } }),
            json!({ "sysctls": { "vmSwappiness": 2 } }),
        ),
        ("maxPods", json!(10), json!(250)),
        ("mode", json!("User"), json!("System")),
        ("name", json!("pool1"), json!("pool2")),
        ("nodeLabels", json!({ "a": "1" }), json!({ "b": "1" })),
        ("nodePublicIPPrefixID", json!(PREFIX), json!(format!("{PREFIX}2"))),
        ("osDiskSizeGB", json!(0), json!(64)),
        ("osDiskType", json!("Managed"), json!("Ephemeral")),
        ("osType", json!("Linux"), json!("Windows")),
        ("providerIDList", json!(["azure:///a"]), json!(["azure:///b"])),
        ("scaleDownMode", json!("Delete"), json!("Deallocate")),
        ("scaleSetPriority", json!("Regular"), json!("Spot")),
        ("scaling", json!({ "minSize": 1, "maxSize": 3 }), json!({ "minSize": 2, "maxSize": 10 })),
        ("sku", json!("Standard_D2s_v3"), json!("Standard_D4s_v3")),
        ("spotMaxPrice", json!("0.1"), json!(-1)),
        ("subnetName", json!("nodes"), json!("others")),
        (
            "taints",
            json!([{ "key": "a", "value": "b", "effect": "NoSchedule" }]),
            json!([{ "key": "a", "value": "b", "effect": "NoExecute" }]),
        ),
    ]
}

/// The members that may change; the last System pool keeps its mode.
const CHANGEABLE: [&str; 9] = [
    "additionalTags",
    "asoManagedClustersAgentPoolPatches",
    "mode",
    "nodeLabels",
    "providerIDList",
    "scaleDownMode",
    "scaling",
    "spotMaxPrice",
    "taints",
];

fn base() -> Value {
    json!({ "metadata": { "name": "pool0" }, "spec": { "mode": "User", "sku": "Standard_D2s_v3" } })
}

fn template() -> Value {
    json!({ "metadata": { "name": "pool0" }, "spec": { "template": { "spec": base()["spec"] } } })
}

/// The cases of a pool, for pools and for templates of pools.
fn judge_both(cases: &[(&[(&str, Value)], &str)]) {
    judge(KIND, &base(), cases, &Context::default());
    let moved: Vec<(Vec<(String, Value)>, &str)> = cases
        .iter()
        .map(|(changes, words)| {
            let moved = |(path, value): &(&str, Value)| {
                (path.replacen("spec.", "spec.template.spec.", 1), value.clone())
            };
            (changes.iter().map(moved).collect(), *words)
        })
        .collect();
    for (changes, words) in &moved {
        let changes: Vec<(&str, Value)> =
            changes.iter().map(|(path, value)| (path.as_str(), value.clone())).collect();
        judge(TEMPLATE, &template(), &[(&changes, words)], &Context::default());
    }
}

#[test]
fn a_pool_is_completed() {
    let object = admitted(KIND, base(), &Context::default());
    assert_eq!(
        object["spec"],
        json!({
            "mode": "User", "sku": "Standard_D2s_v3", "name": "pool0", "osType": "Linux", "osDiskType": "Managed",
            "scaleDownMode": "Delete"
        })
    );
    assert_eq!(object["metadata"]["labels"], json!({ MODE_LABEL: "User" }));
    let object = admitted(TEMPLATE, template(), &Context::default());
    assert_eq!(object["spec"]["template"]["spec"]["name"], "pool0");
    assert_eq!(object["metadata"]["labels"][MODE_LABEL], "User");
    // Another label stays, and the mode's follows the mode.
    let labelled = with(
        &base(),
        &[("metadata.labels", json!({ "team": "a", MODE_LABEL: "System" })), ("spec.name", json!("mine"))],
    );
    let object = admitted(KIND, labelled, &Context::default());
    assert_eq!(object["metadata"]["labels"], json!({ "team": "a", MODE_LABEL: "User" }));
    assert_eq!(object["spec"]["name"], "mine");
}

/// CAPZ-189
#[test]
fn pods_names_and_systems_have_their_limits() {
    let named = |name: &str| ("spec.name", json!(name));
    let windows = || ("spec.osType", json!("Windows"));
    judge_both(&[
        (&[("spec.maxPods", json!(9))], "maxPods: Invalid value: 9"),
        (&[("spec.maxPods", json!(10))], ""),
        (&[("spec.maxPods", json!(250))], ""),
        (&[("spec.maxPods", json!(251))], "maxPods: Invalid value: 251"),
        (&[named("windows"), windows()], "at most 6 characters in a pool with Windows"),
        (&[named("window"), windows()], ""),
        (&[named("twelvetwelve")], ""),
        (&[named("twelvetwelve1")], "at most 12 characters in a pool with Linux"),
        (&[named("Pool")], "name: Invalid value: \"Pool\": it must begin with a lower-case letter"),
        (&[named("1pool")], "name: Invalid value: \"1pool\": it must begin with a lower-case letter"),
        (&[named("pOol")], "it must consist of lower-case letters and digits"),
        (&[named("po-ol")], "it must consist of lower-case letters and digits"),
        (&[named("pöol")], "it must consist of lower-case letters and digits"),
        (&[named("pool1")], ""),
        (&[("metadata.name", json!("pool-1"))], "it must consist of lower-case letters and digits"),
        (&[("metadata.name", json!("pool-1")), named("pool1")], ""),
        (&[("spec.mode", json!("System")), windows()], "osType: Forbidden: a System pool runs Linux"),
        (&[("spec.mode", json!("System"))], ""),
        (&[windows()], ""),
    ]);
    // New ones are refused in words, and changes with their places.
    let object = admitted(KIND, with(&base(), &[named("Pool")]), &Context::default());
    let denied = validate(KIND, &object, None, &Context::default()).unwrap_err();
    assert!(matches!(denied, Denied::Forbidden(_)), "{denied:?}");
}

/// CAPZ-190
#[test]
fn labels_of_aks_and_wrong_limits_of_kubelets_are_refused() {
    let kubelet = |config: Value| ("spec.kubeletConfig", config);
    judge_both(&[
        (
            &[("spec.nodeLabels", json!({ "a": "b", "kubernetes.azure.com/x": "y" }))],
            "nodeLabels: Invalid value: \"kubernetes.azure.com/x\"",
        ),
        (&[("spec.nodeLabels", json!({ "azure.com/x": "y" }))], ""),
        (&[kubelet(json!({ "cpuCfsQuotaPeriod": "110" }))], "cpuCfsQuotaPeriod: Invalid value: \"110\""),
        (&[kubelet(json!({ "cpuCfsQuotaPeriod": "110ms" }))], ""),
        (
            &[kubelet(json!({ "imageGcLowThreshold": 70, "imageGcHighThreshold": 50 }))],
            "imageGcLowThreshold: Invalid value: 70: must not be above imageGcHighThreshold, which is 50",
        ),
        (&[kubelet(json!({ "imageGcLowThreshold": 50, "imageGcHighThreshold": 50 }))], ""),
        (&[kubelet(json!({ "imageGcLowThreshold": 70 }))], ""),
    ]);
    // Labels are validated at a change, too.
    for (kind, base, path) in
        [(KIND, base(), "spec.nodeLabels"), (TEMPLATE, template(), "spec.template.spec.nodeLabels")]
    {
        let changed = with(&base, &[(path, json!({ "kubernetes.azure.com/x": "y" }))]);
        let errors = change_refused(kind, base, changed, &Context::default());
        assert!(errors[0].starts_with(&format!("{path}: Invalid value")), "{errors:?}");
    }
}

/// CAPZ-191
#[test]
fn swap_and_ports_are_those_that_aks_takes() {
    let swap = || ("spec.linuxOSConfig.swapFileSizeMB", json!(1500));
    let kubelet = |config: Value| ("spec.kubeletConfig", config);
    let ports =
        |range: &str| ("spec.linuxOSConfig", json!({ "sysctls": { "netIpv4IPLocalPortRange": range } }));
    let form = "netIpv4IPLocalPortRange: Invalid value: \"1024\": must be two ports";
    judge_both(&[
        (&[swap()], "linuxOSConfig.swapFileSizeMB: Invalid value: 1500: a node with swap"),
        (&[swap(), kubelet(json!({}))], "swapFileSizeMB: Invalid value"),
        (&[swap(), kubelet(json!({ "failSwapOn": true }))], "swapFileSizeMB: Invalid value"),
        (&[swap(), kubelet(json!({ "failSwapOn": false }))], ""),
        (&[ports("1023 33000")], "the first port must be from 1024 to 60999"),
        (&[ports("1024 33000")], ""),
        (&[ports("60999 65000")], ""),
        (&[ports("61000 65000")], "the first port must be from 1024 to 60999"),
        (&[ports("1024 32000")], "the last port must be from 32768 to 65000"),
        (&[ports("1024 32767")], "the last port must be from 32768 to 65000"),
        (&[ports("1024 32768")], ""),
        (&[ports("1024 65001")], "the last port must be from 32768 to 65000"),
        (&[ports("40000 33000")], "the first port must not be above the last one"),
        (&[ports("33000 33000")], ""),
        (&[ports("1024")], form),
        (&[ports("32000 60000")], ""),
        (&[ports("32000  60000")], "must be two ports"),
        (&[ports("32000-60000")], "must be two ports"),
        (&[ports("32000 ")], "must be two ports"),
        (&[ports("+32000 60000")], "must be two ports"),
        (&[ports("32000 99999999999999999999")], "the last port must be from 32768 to 65000"),
    ]);
}

/// CAPZ-192
#[test]
fn pods_may_set_the_sysctls_that_aks_knows() {
    for (sysctl, is_taken) in [
        ("net.*", true),
        ("net.ipv4.tcp_syncookies", true),
        ("kernel.sem", true),
        ("kernel.msg*", true),
        ("kernel.shm*", true),
        ("kernel.shmmax", true),
        ("fs.mqueue.*", true),
        ("fs.mqueue.msg_max", true),
        ("kernel.foo", false),
        ("vm.swappiness", false),
        ("kernel.shm", false),
        ("kernel.msg", false),
        ("kernel.sem*", false),
        ("fs.mqueue.", false),
        ("fs.mqueue", false),
        ("net.", false),
        ("net", false),
        ("", false),
    ] {
        let words = format!("allowedUnsafeSysctls[1]: Invalid value: {sysctl:?}");
        let config = ("spec.kubeletConfig", json!({ "allowedUnsafeSysctls": ["kernel.sem", sysctl] }));
        judge_both(&[(&[config], if is_taken { "" } else { &words })]);
    }
}

/// CAPZ-193
#[test]
fn a_prefix_of_addresses_needs_addresses() {
    let prefix = |id: &str| ("spec.nodePublicIPPrefixID", json!(id));
    let public = |is: bool| ("spec.enableNodePublicIP", json!(is));
    let wrong = "nodePublicIPPrefixID: Invalid value";
    judge_both(&[
        (&[prefix(PREFIX)], "enableNodePublicIP: Invalid value: null: must be true"),
        (&[prefix(PREFIX), public(false)], "enableNodePublicIP: Invalid value: false: must be true"),
        (&[prefix(PREFIX), public(true)], ""),
        (&[prefix(&PREFIX.to_lowercase()), public(true)], ""),
        (&[prefix(PREFIX.trim_start_matches('/')), public(true)], ""),
        (&[prefix("p"), public(true)], wrong),
        (&[prefix(""), public(true)], wrong),
        (&[prefix(&PREFIX.replace("6d4f2b8a", "6d4f")), public(true)], wrong),
        (&[prefix(&PREFIX.replace("publicIPPrefixes", "publicIPAddresses")), public(true)], wrong),
        (&[prefix(&PREFIX.replace("/resourceGroups/rg", "")), public(true)], wrong),
        (&[prefix(&format!("{PREFIX}/")), public(true)], wrong),
        (&[public(true)], ""),
    ]);
    judge_both(&[
        (&[("spec.subnetName", json!("a"))], "subnetName: Invalid value: \"a\""),
        (&[("spec.subnetName", json!("a1"))], ""),
        (&[("spec.subnetName", json!("a_.-b"))], ""),
        (&[("spec.subnetName", json!("-ab"))], "subnetName: Invalid value"),
        (&[("spec.subnetName", json!("ab_"))], "subnetName: Invalid value"),
        (&[("spec.subnetName", json!("a b"))], "subnetName: Invalid value"),
        (&[("spec.subnetName", json!("a".repeat(80)))], ""),
        (&[("spec.subnetName", json!("a".repeat(81)))], "subnetName: Invalid value"),
    ]);
}

/// CAPZ-174, of pools: each member stays, except for those that AKS can change.
#[test]
fn each_member_of_a_pool_stays_unless_aks_can_change_it() {
    let definition = definition(Kind::named(KIND).unwrap());
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let known: Vec<&String> =
        schema["properties"]["spec"]["properties"].as_object().unwrap().keys().collect();
    let members = members();
    assert!(known.iter().all(|name| members.iter().any(|(member, ..)| member == name)), "{known:?}");
    for (kind, base, spec) in [(KIND, base(), "spec"), (TEMPLATE, template(), "spec.template.spec")] {
        for (member, before, now) in &members {
            let path = format!("{spec}.{member}");
            let [before, now] = [before, now].map(|value| with(&base, &[(path.as_str(), value.clone())]));
            let errors = change_refused(kind, before.clone(), now, &Context::default());
            if CHANGEABLE.contains(member) {
                assert!(errors.is_empty(), "{path}: {errors:?}");
            } else {
                assert_eq!(errors.len(), 1, "{path}: {errors:?}");
                assert!(errors[0].starts_with(&format!("{path}: Invalid value")), "{errors:?}");
                assert!(errors[0].contains("field is immutable"), "{errors:?}");
            }
            assert!(change_refused(kind, before.clone(), before, &Context::default()).is_empty());
        }
    }
}

/// Members that may be set later, or that mean the same in another form.
#[test]
fn a_pool_may_become_what_it_is() {
    let changed = |old: &[(&str, Value)], new: &[(&str, Value)]| {
        change_refused(KIND, with(&base(), old), with(&base(), new), &Context::default())
    };
    for member in ["enableFIPS", "enableEncryptionAtHost", "subnetName"] {
        let path = format!("spec.{member}");
        let value = if member == "subnetName" { json!("nodes") } else { json!(true) };
        assert!(changed(&[], &[(&path, value)]).is_empty(), "{member} is set once");
    }
    let zones = |zones: Value| [("spec.availabilityZones", zones)];
    assert!(changed(&zones(json!(["1", "2"])), &zones(json!(["2", "1"]))).is_empty());
    assert!(!changed(&zones(json!(["1", "1"])), &zones(json!(["1", "2"]))).is_empty());
    assert!(changed(&[], &zones(json!([]))).is_empty());
    // An object from before names had a default.
    let mut old = admitted(KIND, base(), &Context::default());
    old["spec"].as_object_mut().unwrap().remove("name");
    let new = admitted(KIND, base(), &Context::default());
    validate(KIND, &new, Some(&old), &Context::default()).unwrap();
    // What a new pool would be refused for is not asked of an existing one.
    let pods = |pods: i32| [("spec.maxPods", json!(pods))];
    assert!(changed(&pods(5), &pods(5)).is_empty());
    let denied = validate(KIND, &with(&new, &pods(20)), Some(&new), &Context::default()).unwrap_err();
    assert!(matches!(denied, Denied::Invalid(_)), "{denied:?}");
}

fn system(metadata: Value) -> Value {
    let mut pool = with(&base(), &[("spec.mode", json!("System"))]);
    pool["metadata"] = super::applied_again::merged(
        &json!({ "name": "pool0", "labels": { "cluster.x-k8s.io/cluster-name": "c1" } }),
        &metadata,
    );
    pool
}

/// CAPZ-194
#[test]
fn the_last_system_pool_stays() {
    let pools = |cluster_goes: bool, others: usize| Lookup::Found(SystemPools { cluster_goes, others });
    let moved = json!({ "annotations": { "clusterctl.cluster.x-k8s.io/delete-for-move": "" } });
    let going = json!({ "deletionTimestamp": "2026-11-30T07:00:00Z" });
    let last = "spec.mode: Forbidden: pool0 is the last System pool of its cluster";
    let unknown = "whether the cluster of pool0 has another System pool is unknown: no answer";
    for (metadata, system_pools, expected) in [
        (json!({}), pools(false, 0), last),
        (json!({}), pools(false, 1), ""),
        (json!({}), pools(true, 0), ""),
        (json!({}), Lookup::Failed("no answer".to_owned()), unknown),
        (moved.clone(), pools(false, 0), ""),
        (going, pools(false, 0), ""),
        (json!({ "labels": null }), pools(false, 0), ""),
    ] {
        let context = Context { system_pools, ..Context::default() };
        let said = validate_deletion(KIND, &system(metadata.clone()), &context);
        let said = said.map_err(|denied| denied.status(KIND, "pool0")).err().unwrap_or_default();
        let message = said["message"].as_str().unwrap_or_default();
        assert_eq!(
            message.contains(expected) && !message.is_empty(),
            !expected.is_empty(),
            "{metadata}: {said}"
        );
        assert_eq!(said["code"] == 403, !expected.is_empty(), "{said}");
        // A change of the mode is guarded in the same way.
        let old = admitted(KIND, system(metadata), &context);
        let new = with(&old, &[("spec.mode", json!("User"))]);
        if needs(KIND, &new, Some(&old)).system_pools {
            let said = validate(KIND, &new, Some(&old), &context).err().map(|denied| denied.to_string());
            assert_eq!(said.is_some(), !expected.is_empty(), "{said:?}");
            assert!(said.unwrap_or_default().contains(expected));
        }
    }
    // Others do not depend on a User pool, nor on a template.
    let context = Context { system_pools: pools(false, 0), ..Context::default() };
    for (kind, object) in [(KIND, base()), (TEMPLATE, template()), ("AzureMachine", system(json!({})))] {
        validate_deletion(kind, &object, &context).unwrap();
    }
    let asked = Needs { system_pools: true, ..Needs::default() };
    assert_eq!(needs_of_deletion(KIND, &system(json!({}))), asked);
    assert_eq!(needs_of_deletion(KIND, &system(moved)), Needs::default());
    assert_eq!(needs_of_deletion(KIND, &base()), Needs::default());
    let user = with(&system(json!({})), &[("spec.mode", json!("User"))]);
    assert_eq!(needs(KIND, &user, Some(&system(json!({})))), asked);
    assert_eq!(needs(KIND, &system(json!({})), Some(&user)), Needs::default());
    assert_eq!(needs(KIND, &system(json!({})), Some(&system(json!({})))), Needs::default());
}

/// CAPZ-197: the form of a taint, and the three effects in the schema that the API server validates.
#[test]
fn taints_have_the_effects_of_kubernetes() {
    let taint: PoolTaint =
        serde_json::from_value(json!({ "key": "dedicated", "value": "kafka", "effect": "NoSchedule" }))
            .unwrap();
    assert_eq!(taint.text(), "dedicated=kafka:NoSchedule");
    for (kind, place) in [(KIND, ""), (TEMPLATE, "/properties/template/properties/spec")] {
        let definition = definition(Kind::named(kind).unwrap());
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let taint = schema.pointer(&format!("{place}/properties/taints/items")).unwrap();
        let effect = &taint["properties"]["effect"];
        assert_eq!(effect["enum"], json!(["NoSchedule", "NoExecute", "PreferNoSchedule"]), "{kind}");
        assert_eq!(taint["required"], json!(["effect", "key", "value"]), "{kind}");
    }
}

/// The ranges of sysctls in the schema that the API server validates.
#[test]
fn sysctls_have_the_ranges_of_aks() {
    let ranges = [
        ("fsAioMaxNr", 65_536, 6_553_500),
        ("fsFileMax", 8_192, 12_000_500),
        ("fsInotifyMaxUserWatches", 781_250, 2_097_152),
        ("fsNrOpen", 8_192, 20_000_500),
        ("kernelThreadsMax", 20, 513_785),
        ("netCoreNetdevMaxBacklog", 1_000, 3_240_000),
        ("netCoreOptmemMax", 20_480, 4_194_304),
        ("netCoreRmemDefault", 212_992, 134_217_728),
        ("netCoreRmemMax", 212_992, 134_217_728),
        ("netCoreSomaxconn", 4_096, 3_240_000),
        ("netCoreWmemDefault", 212_992, 134_217_728),
        ("netCoreWmemMax", 212_992, 134_217_728),
        ("netIpv4NeighDefaultGcThresh1", 128, 80_000),
        ("netIpv4NeighDefaultGcThresh2", 512, 90_000),
        ("netIpv4NeighDefaultGcThresh3", 1_024, 100_000),
        ("netIpv4TCPFinTimeout", 5, 120),
        ("netIpv4TCPKeepaliveProbes", 1, 15),
        ("netIpv4TCPKeepaliveTime", 30, 432_000),
        ("netIpv4TCPMaxSynBacklog", 128, 3_240_000),
        ("netIpv4TCPMaxTwBuckets", 8_000, 1_440_000),
        ("netIpv4TCPkeepaliveIntvl", 1, 75),
        ("netNetfilterNfConntrackBuckets", 65_536, 147_456),
        ("netNetfilterNfConntrackMax", 131_072, 1_048_576),
        ("vmMaxMapCount", 65_530, 262_144),
        ("vmSwappiness", 0, 100),
        ("vmVfsCachePressure", 1, 500),
    ];
    let definition = definition(Kind::named(KIND).unwrap());
    let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let sysctls = &schema["properties"]["linuxOSConfig"]["properties"]["sysctls"]["properties"];
    let sysctls = sysctls.as_object().unwrap();
    for (name, least, most) in ranges {
        let sysctl = &sysctls[name];
        assert_eq!(
            (sysctl["minimum"].as_f64(), sysctl["maximum"].as_f64()),
            (Some(f64::from(least)), Some(f64::from(most))),
            "{name}"
        );
        assert_eq!(sysctl["type"], "integer", "{name}");
    }
    let others: Vec<&String> =
        sysctls.keys().filter(|name| ranges.iter().all(|(known, ..)| known != name)).collect();
    assert_eq!(others, ["netIpv4IPLocalPortRange", "netIpv4TCPTwReuse"]);
}
