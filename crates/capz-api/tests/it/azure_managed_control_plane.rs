//! AzureManagedControlPlane and its template: defaults, validation, and what may change.

use capz_api::admission::{complete, set_defaults, validate};
use capz_api::crd::fill_defaults;
use capz_api::{ClusterNetwork, Context, Lookup};
use serde_json::{Value, json};

use super::{Fixed, SSH_KEY, admitted, with};

const KIND: &str = "AzureManagedControlPlane";
const TEMPLATE: &str = "AzureManagedControlPlaneTemplate";
const ZONE: &str = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/";

/// A change of an object: paths with values, where `null` removes a member.
type Changes<'a> = &'a [(&'a str, Value)];

fn base() -> Value {
    json!({
        "metadata": { "name": "c-1", "namespace": "team" },
        "spec": {
            "location": "westeurope",
            "resourceGroupName": "rg",
            "subscriptionID": "s",
            "identityRef": { "kind": "AzureClusterIdentity", "name": "id" },
            "version": "v1.31.1"
        }
    })
}

fn template() -> Value {
    json!({ "metadata": { "name": "t-1" }, "spec": { "template": { "spec": base()["spec"] } } })
}

/// The errors of an object, new or changed, each of a refusal with status 422.
fn refusal(kind: &str, new: &Value, old: Option<&Value>, context: &Context) -> Vec<String> {
    let mut sent = new.clone();
    fill_defaults(kind, &mut sent);
    let object = complete(kind, sent, old, context, &mut Fixed).unwrap();
    let Err(denied) = validate(kind, &object, old, context) else { return Vec::new() };
    assert_eq!(denied.status(kind, "c-1")["code"], 422, "{denied}");
    denied.errors().iter().map(ToString::to_string).collect()
}

/// Whether the errors begin with the expected text, or there are none if that is empty.
fn expect(errors: &[String], expected: &str, case: &impl std::fmt::Debug) {
    match expected {
        "" => assert!(errors.is_empty(), "{case:?} is accepted: {errors:#?}"),
        words => {
            assert!(errors.iter().any(|error| error.starts_with(words)), "{case:?}, {words}: {errors:#?}")
        }
    }
}

fn judge(cases: &[(Changes<'_>, &str)]) {
    for (changes, expected) in cases {
        let errors = refusal(KIND, &with(&base(), changes), None, &Context::default());
        expect(&errors, expected, changes);
    }
}

/// Each case: the previous object and the new one, as changes of the base, and the refusal.
fn judge_changes(cases: &[(Changes<'_>, Changes<'_>, &str)]) {
    for (old, new, expected) in cases {
        let old = admitted(KIND, with(&base(), old), &Context::default());
        let errors = refusal(KIND, &with(&old, new), Some(&old), &Context::default());
        expect(&errors, expected, &(&old["spec"], new));
    }
}

fn network(services: &[&str], pods: &[&str]) -> Context {
    let ranges = |ranges: &[&str]| ranges.iter().map(ToString::to_string).collect();
    let network = ClusterNetwork { services: ranges(services), pods: ranges(pods) };
    Context { cluster_network: Lookup::Found(network), ..Context::default() }
}

/// CAPZ-165.
#[test]
fn a_version_gets_its_v_and_is_not_downgraded() {
    let object = admitted(KIND, with(&base(), &[("spec.version", json!("1.24.6"))]), &Context::default());
    assert_eq!(object["spec"]["version"], "v1.24.6");
    let version = |text: &str| [("spec.version", json!(text))];
    for text in ["foo", "vfoo", "1.24", "v1.024.1"] {
        judge(&[(&version(text), "spec.version: Invalid value: \"v")]);
    }
    for (old, new, words) in [
        ("v1.24.6", "v1.24.6", ""),
        ("v1.24.6", "1.24.10", ""),
        ("v1.24.6", "v1.24.5", "spec.version: Invalid value: \"v1.24.5\": a version cannot be downgraded"),
        ("v1.24.10", "v1.24.9", "spec.version: Invalid value"),
        ("v1.24.6", "vfoo", "spec.version: Invalid value"),
    ] {
        judge_changes(&[(&version(old), &version(new), words)]);
        let (old, new) = (json!(old), json!(new));
        let old = admitted(
            TEMPLATE,
            with(&template(), &[("spec.template.spec.version", old)]),
            &Context::default(),
        );
        let errors = refusal(
            TEMPLATE,
            &with(&old, &[("spec.template.spec.version", new)]),
            Some(&old),
            &Context::default(),
        );
        expect(&errors, &words.replace("spec.", "spec.template.spec."), &old);
    }
    // Azure has upgraded the cluster by itself.
    let mut old = admitted(KIND, with(&base(), &version("v1.24.6")), &Context::default());
    old["status"] = json!({ "autoUpgradeVersion": "v1.25.4" });
    for (new, words) in [
        ("v1.25.3", "spec.version: Invalid value: \"v1.25.3\": Azure has upgraded the cluster to v1.25.4"),
        ("v1.25.4", ""),
        ("v1.26.0", ""),
        // The version stays as it was written.
        ("v1.24.6", ""),
    ] {
        let errors = refusal(KIND, &with(&old, &version(new)), Some(&old), &Context::default());
        expect(&errors, words, &new);
    }
}

/// CAPZ-166.
#[test]
fn defaults_are_those_of_the_established_provider() {
    let object = admitted(KIND, base(), &Context::default());
    let spec = &object["spec"];
    for (path, value) in [
        ("/nodeResourceGroupName", "MC_rg_c-1_westeurope"),
        ("/sku/tier", "Free"),
        ("/networkPlugin", "azure"),
        ("/loadBalancerSKU", "Standard"),
        ("/virtualNetwork/name", "c-1"),
        ("/virtualNetwork/resourceGroup", "rg"),
        ("/virtualNetwork/cidrBlock", "10.0.0.0/8"),
        ("/virtualNetwork/subnet/name", "c-1"),
        ("/virtualNetwork/subnet/cidrBlock", "10.240.0.0/16"),
        ("/dnsPrefix", "c-1"),
    ] {
        assert_eq!(spec.pointer(path), Some(&json!(value)), "{path}");
    }
    assert_eq!(spec["oidcIssuerProfile"], json!({ "enabled": false }));
    assert_eq!(spec["enablePreviewFeatures"], false);
    for absent in ["sshPublicKey", "fleetsMember", "autoscalerProfile", "networkPolicy"] {
        assert!(spec.get(absent).is_none(), "{absent}");
    }
    let in_group = |labels: Value| {
        let changes = [
            ("spec.resourceGroupName", Value::Null),
            ("metadata.labels", json!({ "cluster.x-k8s.io/cluster-name": labels })),
        ];
        with(&base(), &changes)
    };
    for (object, path, value) in [
        (with(&base(), &[("spec.sku", json!({ "tier": "Paid" }))]), "/sku/tier", json!("Standard")),
        (with(&base(), &[("spec.sku", json!({}))]), "/sku/tier", json!("Free")),
        (with(&base(), &[("spec.sshPublicKey", json!(""))]), "/sshPublicKey", json!(SSH_KEY)),
        (in_group(json!("mine")), "/resourceGroupName", json!("mine")),
        (in_group(json!("mine")), "/nodeResourceGroupName", json!("MC_mine_c-1_westeurope")),
        (in_group(json!("mine")), "/virtualNetwork/resourceGroup", json!("mine")),
        // The schema's ranges come first where there is a virtual network.
        (
            with(&base(), &[("spec.networkPluginMode", json!("overlay"))]),
            "/virtualNetwork/cidrBlock",
            json!("10.224.0.0/12"),
        ),
        (
            with(&base(), &[("spec.networkPluginMode", json!("overlay"))]),
            "/virtualNetwork/subnet/cidrBlock",
            json!("10.224.0.0/16"),
        ),
        (
            with(
                &base(),
                &[
                    ("spec.networkPluginMode", json!("overlay")),
                    ("spec.virtualNetwork", json!({ "name": "v" })),
                ],
            ),
            "/virtualNetwork/cidrBlock",
            json!("10.0.0.0/8"),
        ),
        (
            with(
                &base(),
                &[(
                    "spec.extensions",
                    json!([{ "name": "e", "extensionType": "t", "plan": { "product": "p" } }]),
                )],
            ),
            "/extensions/0/plan/name",
            json!("c-1-p"),
        ),
        (
            with(
                &in_group(json!("mine")),
                &[("spec.fleetsMember", json!({ "managerName": "m", "managerResourceGroup": "g" }))],
            ),
            "/fleetsMember",
            json!({ "group": "default", "managerName": "m", "managerResourceGroup": "g", "name": "mine" }),
        ),
    ] {
        let object = admitted(KIND, object, &Context::default());
        assert_eq!(object["spec"].pointer(path), Some(&value), "{path}: {object:#}");
    }
    let template = admitted(TEMPLATE, template(), &Context::default());
    let spec = &template["spec"]["template"]["spec"];
    assert_eq!(spec["virtualNetwork"]["subnet"]["name"], "t-1");
    assert_eq!(spec["virtualNetwork"]["cidrBlock"], "10.0.0.0/8");
    for of_one_cluster in ["nodeResourceGroupName", "dnsPrefix", "sshPublicKey"] {
        assert!(spec.get(of_one_cluster).is_none(), "{of_one_cluster}");
    }
}

/// CAPZ-166: the schema has a default for each parameter, once there is a profile.
#[test]
fn an_autoscaler_profile_gets_the_defaults_of_the_schema() {
    let object = admitted(KIND, with(&base(), &[("spec.autoscalerProfile", json!({}))]), &Context::default());
    assert_eq!(object["spec"]["autoscalerProfile"], autoscaler());
}

/// A group is needed for everything, and is known from the file or from the label.
#[test]
fn a_control_plane_names_its_group_and_its_identity() {
    let path = "spec.resourceGroupName: Required value: name the resource group, or set the label";
    judge(&[
        (&[("spec.resourceGroupName", Value::Null)], path),
        (&[("spec.identityRef", Value::Null)], "spec.identityRef.name: Required value"),
        (
            &[("spec.identityRef", json!({ "kind": "AzureClusterIdentity" }))],
            "spec.identityRef.name: Required value",
        ),
    ]);
    let errors = refusal(
        TEMPLATE,
        &with(&template(), &[("spec.template.spec.identityRef", Value::Null)]),
        None,
        &Context::default(),
    );
    expect(&errors, "spec.template.spec.identityRef: Required value", &"template");
}

/// CAPZ-167 and CAPZ-168. That an unset address becomes the tenth of the range is proved with the plan of the cluster.
#[test]
fn the_cluster_has_one_range_of_services_with_the_dns_service_in_it() {
    let address = |text: &str| [("spec.dnsServiceIP", json!(text))];
    let one = network(&["192.168.0.0/24"], &[]);
    let services = "Cluster.spec.clusterNetwork.services.cidrBlocks";
    for (text, context, words) in [
        ("192.168.0.10", &one, String::new()),
        ("192.168.0.10", &network(&["192.168.0.0/16"], &["10.1.0.0/16"]), String::new()),
        ("", &network(&[], &[]), String::new()),
        (
            "192.168.0.11",
            &one,
            "spec.dnsServiceIP: Invalid value: \"192.168.0.11\": Azure takes only".to_owned(),
        ),
        (
            "192.168.1.10",
            &one,
            "spec.dnsServiceIP: Invalid value: \"192.168.1.10\": it must be in".to_owned(),
        ),
        ("fd00::a", &one, "spec.dnsServiceIP: Invalid value".to_owned()),
        ("fd00::a", &network(&["fd00::/108"], &[]), String::new()),
        ("tenth", &one, "spec.dnsServiceIP: Invalid value: \"tenth\": it must be an IP address".to_owned()),
        ("192.168.0.10", &network(&[], &[]), format!("{services}: Required value: dnsServiceIP needs")),
        ("192.168.0.10", &network(&["x"], &[]), format!("{services}: Invalid value: \"x\"")),
        // CAPZ-168.
        (
            "",
            &network(&["192.168.0.0/24", "192.168.1.0/24"], &[]),
            format!("{services}: Invalid value: [\"192.168.0.0/24\""),
        ),
        (
            "",
            &network(&[], &["10.1.0.0/16", "fd00::/64"]),
            "Cluster.spec.clusterNetwork.pods.cidrBlocks: Invalid value".to_owned(),
        ),
        // Without a label no Cluster is known: the address is judged by itself.
        ("192.168.0.10", &Context::default(), String::new()),
        ("192.168.0.11", &Context::default(), "spec.dnsServiceIP: Invalid value".to_owned()),
    ] {
        expect(&refusal(KIND, &with(&base(), &address(text)), None, context), &words, &text);
    }
    let failed = Context {
        cluster_network: Lookup::Failed("there is no Cluster team/c".to_owned()),
        ..Context::default()
    };
    expect(
        &refusal(KIND, &base(), None, &failed),
        "Cluster.spec.clusterNetwork: Required value: the network of the Cluster",
        &"",
    );
    // A control plane gets its label from Cluster API when it exists already.
    let old = admitted(KIND, base(), &Context::default());
    let two = network(&["192.168.0.0/24", "192.168.1.0/24"], &[]);
    expect(&refusal(KIND, &old, Some(&old), &two), services, &"labelled");
}

/// CAPZ-169.
#[test]
fn overlay_is_a_mode_of_azures_own_plugin() {
    let plugin =
        |plugin: &str| [("spec.networkPluginMode", json!("overlay")), ("spec.networkPlugin", json!(plugin))];
    judge(&[
        (&plugin("kubenet"), "spec.networkPluginMode: Invalid value: \"overlay\""),
        (&plugin("azure"), ""),
        (&[("spec.networkPluginMode", json!("overlay"))], ""),
    ]);
    let policy = [("spec.networkPolicy", json!("calico"))];
    let overlay = [("spec.networkPluginMode", json!("overlay"))];
    judge_changes(&[
        (&policy, &overlay, "spec.networkPluginMode: Forbidden"),
        (&[], &overlay, ""),
        // Azure does not take it back.
        (&overlay, &[("spec.networkPluginMode", Value::Null)], "spec.networkPluginMode: Invalid value"),
    ]);
}

/// CAPZ-170.
#[test]
fn cilium_needs_its_dataplane_its_policy_and_the_overlay() {
    let form = |mode: Value, policy: Value, dataplane: Value| {
        [
            ("spec.networkPluginMode", mode),
            ("spec.networkPolicy", policy),
            ("spec.networkDataplane", dataplane),
        ]
    };
    let (overlay, cilium) = (json!("overlay"), json!("cilium"));
    let dataplane = "spec.networkDataplane: Invalid value: \"cilium\"";
    judge(&[
        (&form(overlay.clone(), cilium.clone(), cilium.clone()), ""),
        (&form(Value::Null, cilium.clone(), cilium.clone()), dataplane),
        (&form(overlay.clone(), Value::Null, cilium.clone()), dataplane),
        (&form(overlay.clone(), json!("azure"), cilium.clone()), dataplane),
        (
            &form(overlay.clone(), cilium.clone(), Value::Null),
            "spec.networkPolicy: Invalid value: \"cilium\"",
        ),
        (&form(overlay.clone(), cilium, json!("azure")), "spec.networkPolicy: Invalid value: \"cilium\""),
        (&form(overlay, json!("azure"), json!("azure")), ""),
    ]);
}

/// CAPZ-171.
#[test]
fn a_load_balancer_has_one_kind_of_addresses_within_limits() {
    let profile = |profile: Value| [("spec.loadBalancerProfile", profile)];
    let path = "spec.loadBalancerProfile";
    judge(&[
        (
            &profile(json!({ "managedOutboundIPs": 2, "outboundIPs": ["/subscriptions/1"] })),
            "spec.loadBalancerProfile: Forbidden",
        ),
        (
            &profile(json!({ "outboundIPPrefixes": ["x"], "outboundIPs": ["y"] })),
            "spec.loadBalancerProfile: Forbidden",
        ),
        (&profile(json!({ "managedOutboundIPs": 2, "outboundIPs": [], "outboundIPPrefixes": [] })), ""),
        (&profile(json!({})), ""),
    ]);
    for (member, least, most) in [
        ("managedOutboundIPs", 1, 100),
        ("allocatedOutboundPorts", 0, 64_000),
        ("idleTimeoutInMinutes", 4, 120),
    ] {
        let refused = format!("{path}.{member}: Invalid value");
        for (value, words) in [(least - 1, refused.as_str()), (least, ""), (most, ""), (most + 1, &refused)] {
            judge(&[(&profile(json!({ member: value })), words)]);
        }
    }
    judge(&[(
        &profile(
            json!({ "managedOutboundIPs": 101, "allocatedOutboundPorts": 65_000, "idleTimeoutInMinutes": 600 }),
        ),
        "spec.loadBalancerProfile.idleTimeoutInMinutes: Invalid value: 600",
    )]);
}

/// CAPZ-172.
#[test]
fn authorized_ranges_are_all_that_changes_in_the_access() {
    let access = |access: Value| [("spec.apiServerAccessProfile", access)];
    let ranges = |range: &str| json!({ "authorizedIPRanges": [range] });
    judge(&[
        (&access(ranges("12.34.56.78/32")), ""),
        (
            &access(ranges("notCidr")),
            "spec.apiServerAccessProfile.authorizedIPRanges[0]: Invalid value: \"notCidr\"",
        ),
        (&access(ranges("12.34.56.78")), "spec.apiServerAccessProfile.authorizedIPRanges[0]: Invalid value"),
    ]);
    let private = json!({ "enablePrivateCluster": true });
    let refused = "spec.apiServerAccessProfile.enablePrivateCluster: Invalid value";
    judge_changes(&[
        (&access(ranges("12.34.56.78/32")), &access(ranges("12.34.56.0/24")), ""),
        (&[], &access(ranges("12.34.56.78/32")), ""),
        (&access(ranges("12.34.56.78/32")), &access(Value::Null), ""),
        (
            &access(private.clone()),
            &access(json!({ "enablePrivateCluster": true, "authorizedIPRanges": ["1.2.3.4/32"] })),
            "",
        ),
        (&[], &access(private.clone()), refused),
        (&access(private.clone()), &access(json!({ "enablePrivateCluster": false })), refused),
        (&access(private), &access(Value::Null), refused),
    ]);
}

/// CAPZ-173.
#[test]
fn a_private_zone_is_one_in_which_azure_keeps_names() {
    let access = |zone: String, private: bool| {
        [("spec.apiServerAccessProfile", json!({ "enablePrivateCluster": private, "privateDNSZone": zone }))]
    };
    let refused = "spec.apiServerAccessProfile.privateDNSZone: Invalid value";
    let long = "x".repeat(33);
    for (zone, words) in [
        ("System".to_owned(), ""),
        ("None".to_owned(), ""),
        ("none".to_owned(), ""),
        (format!("{ZONE}privatelink.westeurope.azmk8s.io"), ""),
        (format!("{ZONE}private.westeurope.azmk8s.io"), ""),
        (format!("{ZONE}sub-1.privatelink.westeurope.azmk8s.io"), ""),
        (format!("{ZONE}{}.private.westeurope.azmk8s.io", &long[1..]), ""),
        ("random".to_owned(), refused),
        (format!("{ZONE}{long}.privatelink.westeurope.azmk8s.io"), refused),
        (format!("{ZONE}a.b.privatelink.westeurope.azmk8s.io"), refused),
        (format!("{ZONE}.privatelink.westeurope.azmk8s.io"), refused),
        (format!("{ZONE}a_b.privatelink.westeurope.azmk8s.io"), refused),
        (format!("{ZONE}public.westeurope.azmk8s.io"), refused),
        (format!("{ZONE}private..azmk8s.io"), refused),
        (format!("{ZONE}private.west-europe.azmk8s.io"), refused),
        (format!("{ZONE}private.westeurope.example.com"), refused),
        ("privatelink.westeurope.azmk8s.io".to_owned(), refused),
    ] {
        judge(&[(&access(zone, true), words)]);
    }
    let zone = format!("{ZONE}privatelink.westeurope.azmk8s.io");
    judge(&[(
        &access(zone, false),
        "spec.apiServerAccessProfile.privateDNSZone: Invalid value: \"/subscriptions",
    )]);
}

/// Extensions with a member; the other members are those of every one.
fn extension(more: Value) -> Value {
    let mut extension = json!({ "name": "e", "extensionType": "t", "autoUpgradeMinorVersion": false });
    extension.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!([extension])
}

/// CAPZ-174: each row of the table of immutable members, by a path, a value and another one. Names are the API server's.
fn immutable() -> Vec<(&'static str, Value, Value)> {
    let fleet = |name: &str| json!({ "managerName": "m", "managerResourceGroup": "g", "name": name });
    let scope = |namespace: &str| {
        extension(json!({ "scope": { "scopeType": "Cluster", "releaseNamespace": namespace } }))
    };
    vec![
        ("subscriptionID", json!("a"), json!("b")),
        ("resourceGroupName", json!("a"), json!("b")),
        ("nodeResourceGroupName", json!("a"), json!("b")),
        ("location", json!("a"), json!("b")),
        ("sshPublicKey", json!(SSH_KEY), json!(SSH_KEY.replace("bWU=", "eW91"))),
        ("dnsServiceIP", json!("10.0.0.10"), json!("10.0.1.10")),
        ("networkPlugin", json!("azure"), json!("kubenet")),
        ("networkPolicy", json!("azure"), json!("calico")),
        ("networkDataplane", json!("azure"), json!("cilium")),
        ("loadBalancerSKU", json!("Standard"), json!("Basic")),
        ("outboundType", json!("loadBalancer"), json!("managedNATGateway")),
        ("azureEnvironment", json!("AzurePublicCloud"), json!("AzureChinaCloud")),
        ("dnsPrefix", json!("aa"), json!("bb")),
        ("httpProxyConfig", json!({ "httpProxy": "http://a" }), json!({ "httpProxy": "http://b" })),
        ("apiServerAccessProfile.enablePrivateCluster", json!(true), json!(false)),
        ("apiServerAccessProfile.enablePrivateClusterPublicFQDN", json!(true), json!(false)),
        ("apiServerAccessProfile.privateDNSZone", json!("System"), json!("None")),
        ("virtualNetwork.name", json!("a"), json!("b")),
        ("virtualNetwork.resourceGroup", json!("a"), json!("b")),
        ("virtualNetwork.cidrBlock", json!("10.0.0.0/8"), json!("10.0.0.0/7")),
        ("virtualNetwork.subnet.name", json!("a"), json!("b")),
        ("virtualNetwork.subnet.cidrBlock", json!("10.1.0.0/16"), json!("10.2.0.0/16")),
        ("fleetsMember", fleet("a"), fleet("b")),
        (
            "extensions",
            extension(json!({ "extensionType": "a" })),
            extension(json!({ "extensionType": "b" })),
        ),
        (
            "extensions",
            extension(json!({ "plan": { "name": "a" } })),
            extension(json!({ "plan": { "name": "b" } })),
        ),
        ("extensions", scope("a"), scope("b")),
        (
            "extensions",
            extension(json!({ "releaseTrain": "Stable" })),
            extension(json!({ "releaseTrain": "Preview" })),
        ),
        ("extensions", extension(json!({ "version": "1.0" })), extension(json!({ "version": "2.0" }))),
        ("extensions", extension(json!({})), extension(json!({ "identity": "SystemAssigned" }))),
    ]
}

/// CAPZ-174.
#[test]
fn what_azure_cannot_change_is_refused() {
    for (member, from, to) in immutable() {
        let path = format!("spec.{member}");
        judge_changes(&[
            (&[(&path, from.clone())], &[(&path, to)], &path),
            // A file that is applied again.
            (&[(&path, from.clone())], &[(&path, from)], ""),
        ]);
    }
    let local = |value: Value| {
        [
            ("spec.disableLocalAccounts", value),
            ("spec.aadProfile", json!({ "managed": true, "adminGroupObjectIDs": ["g"] })),
        ]
    };
    let refused = "spec.disableLocalAccounts: Invalid value";
    judge_changes(&[
        (&local(json!(true)), &local(json!(false)), refused),
        (&local(json!(false)), &local(json!(true)), refused),
        (&local(json!(true)), &local(Value::Null), refused),
        (&local(Value::Null), &local(json!(true)), ""),
    ]);
    // A template lacks the members that are one cluster's.
    let of_clusters = [
        "resourceGroupName",
        "nodeResourceGroupName",
        "sshPublicKey",
        "azureEnvironment",
        "dnsPrefix",
        "httpProxyConfig",
        "virtualNetwork.name",
        "virtualNetwork.resourceGroup",
        "fleetsMember",
    ];
    for (member, from, to) in immutable() {
        let path = format!("spec.template.spec.{member}");
        let old = admitted(TEMPLATE, with(&template(), &[(&path, from)]), &Context::default());
        let errors = refusal(TEMPLATE, &with(&old, &[(&path, to)]), Some(&old), &Context::default());
        expect(&errors, if of_clusters.contains(&member) { "" } else { &path }, &member);
    }
}

/// CAPZ-174: what the table does not list may change.
#[test]
fn what_azure_changes_may_change() {
    let endpoints = json!([{ "service": "Microsoft.Storage", "locations": ["*"] }]);
    let private = json!([{ "name": "p", "privateLinkServiceConnections": [{ "name": "c",
        "privateLinkServiceID": "/subscriptions/1/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/s" }] }]);
    let fleet = json!({ "managerName": "m", "managerResourceGroup": "g", "name": "a" });
    for (member, from, to) in [
        ("virtualNetwork.subnet.serviceEndpoints", Value::Null, endpoints),
        ("virtualNetwork.subnet.privateEndpoints", Value::Null, private),
        ("additionalTags", json!({ "a": "1" }), json!({ "a": "2" })),
        ("sku", json!({ "tier": "Free" }), json!({ "tier": "Standard" })),
        ("autoscalerProfile", json!({}), json!({ "expander": "priority" })),
        ("autoUpgradeProfile", json!({ "upgradeChannel": "patch" }), json!({ "upgradeChannel": "none" })),
        ("loadBalancerProfile", json!({ "managedOutboundIPs": 1 }), json!({ "outboundIPs": ["x"] })),
        ("fleetsMember", fleet.clone(), Value::Null),
        ("fleetsMember", Value::Null, fleet),
        ("extensions", extension(json!({ "version": "1" })), json!([])),
        ("extensions", json!([]), extension(json!({ "version": "1" }))),
        (
            "extensions",
            extension(json!({ "configurationSettings": { "a": "1" } })),
            extension(json!({ "configurationSettings": { "a": "2" } })),
        ),
        ("asoManagedClusterPatches", json!(["{}"]), json!([])),
        ("enablePreviewFeatures", json!(false), json!(true)),
        ("identityRef", json!({ "name": "a" }), json!({ "name": "b" })),
        ("controlPlaneEndpoint", Value::Null, json!({ "host": "h", "port": 443 })),
        ("oidcIssuerProfile", json!({ "enabled": false }), json!({ "enabled": true })),
    ] {
        let path = format!("spec.{member}");
        judge_changes(&[(&[(&path, from)], &[(&path, to)], "")]);
    }
}

/// CAPZ-174: the channel is turned off with `none`.
#[test]
fn a_channel_and_security_features_are_not_taken_back() {
    let channel = |value: Value| [("spec.autoUpgradeProfile", value)];
    let refused = "spec.autoUpgradeProfile.upgradeChannel: Invalid value";
    judge_changes(&[
        (&channel(json!({ "upgradeChannel": "patch" })), &channel(Value::Null), refused),
        (&channel(json!({ "upgradeChannel": "patch" })), &channel(json!({})), refused),
        (&channel(json!({})), &channel(Value::Null), ""),
    ]);
    let features = json!({
        "azureKeyVaultKms": { "enabled": false, "keyID": "k" },
        "defender": { "logAnalyticsWorkspaceResourceID": "w", "securityMonitoring": { "enabled": false } },
        "imageCleaner": { "enabled": false },
        "workloadIdentity": { "enabled": false }
    });
    let all = [
        ("spec.securityProfile", features.clone()),
        ("spec.identity", json!({ "type": "UserAssigned", "userAssignedIdentityResourceID": "/i" })),
        ("spec.oidcIssuerProfile", json!({ "enabled": true })),
    ];
    for feature in features.as_object().unwrap().keys() {
        let path = format!("spec.securityProfile.{feature}");
        judge_changes(&[
            (&all, &[(&path, Value::Null)], &path),
            (&all, &[("spec.securityProfile", Value::Null)], &path),
        ]);
    }
    judge_changes(&[(&all, &[("spec.securityProfile.imageCleaner.enabled", json!(true))], "")]);
}

/// CAPZ-175.
#[test]
fn add_ons_are_turned_off_and_not_removed() {
    let addons = |addons: Value| [("spec.addonProfiles", addons)];
    let addon = |name: &str, enabled: bool| json!({ "name": name, "enabled": enabled });
    let refused = "spec.addonProfiles: Invalid value";
    let old = addons(json!([addon("azurepolicy", true), addon("omsagent", true)]));
    judge_changes(&[
        (&old, &addons(json!([addon("azurepolicy", false), addon("omsagent", true)])), ""),
        (
            &old,
            &addons(json!([
                addon("omsagent", true),
                addon("azurepolicy", true),
                addon("aciConnector", true)
            ])),
            "",
        ),
        (&old, &addons(json!([addon("azurepolicy", true)])), refused),
        (&old, &addons(json!([])), refused),
        (&old, &addons(Value::Null), refused),
        (&[], &old, ""),
    ]);
}

/// CAPZ-176.
#[test]
fn entra_sign_in_stays_and_local_accounts_go_only_with_it() {
    let aad = |managed: bool, groups: Value| {
        [("spec.aadProfile", json!({ "managed": managed, "adminGroupObjectIDs": groups }))]
    };
    let on = aad(true, json!(["g"]));
    judge_changes(&[
        (&[], &on, ""),
        (&on, &aad(true, json!(["g", "h"])), ""),
        (&on, &aad(false, json!(["g"])), "spec.aadProfile.managed: Invalid value"),
        (&on, &aad(true, json!([])), "spec.aadProfile.adminGroupObjectIDs: Invalid value"),
        (&on, &[("spec.aadProfile", Value::Null)], "spec.aadProfile: Invalid value"),
        (
            &[],
            &[("spec.disableLocalAccounts", json!(true))],
            "spec.disableLocalAccounts: Invalid value: true",
        ),
    ]);
    judge(&[
        (&[("spec.disableLocalAccounts", json!(true))], "spec.disableLocalAccounts: Invalid value: true"),
        (&[("spec.disableLocalAccounts", json!(true)), on[0].clone()], ""),
    ]);
}

/// CAPZ-177.
#[test]
fn workload_identity_needs_the_issuer_and_keys_need_an_identity() {
    let issuer = |on: bool| ("spec.oidcIssuerProfile", json!({ "enabled": on }));
    judge_changes(&[
        (&[issuer(true)], &[issuer(false)], "spec.oidcIssuerProfile.enabled: Invalid value"),
        (
            &[issuer(true)],
            &[("spec.oidcIssuerProfile", Value::Null)],
            "spec.oidcIssuerProfile.enabled: Invalid value",
        ),
        (&[issuer(false)], &[issuer(true)], ""),
    ]);
    let workload = ("spec.securityProfile", json!({ "workloadIdentity": { "enabled": true } }));
    let kms = |more: Value| {
        let mut kms = json!({ "enabled": true, "keyID": "https://v.vault.azure.net/keys/k" });
        kms.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("spec.securityProfile", json!({ "azureKeyVaultKms": kms }))
    };
    let identity =
        || ("spec.identity", json!({ "type": "UserAssigned", "userAssignedIdentityResourceID": "/i" }));
    let path = "spec.securityProfile.azureKeyVaultKms";
    let vault = format!("{path}.keyVaultResourceID");
    judge(&[
        (std::slice::from_ref(&workload), "spec.securityProfile.workloadIdentity: Invalid value"),
        (&[workload.clone(), issuer(false)], "spec.securityProfile.workloadIdentity: Invalid value"),
        (&[workload.clone(), issuer(true)], ""),
        (&[kms(json!({}))], "spec.securityProfile.azureKeyVaultKms: Invalid value"),
        (&[kms(json!({})), ("spec.identity", json!({ "type": "SystemAssigned" }))], path),
        (&[kms(json!({})), identity()], ""),
        (&[kms(json!({ "keyVaultNetworkAccess": "Private" })), identity()], &vault),
        (&[kms(json!({ "keyVaultNetworkAccess": "Private", "keyVaultResourceID": "/v" })), identity()], ""),
        (&[kms(json!({ "keyVaultResourceID": "/v" })), identity()], &vault),
        (
            &[kms(json!({ "keyVaultNetworkAccess": "private" })), identity()],
            "spec.securityProfile.azureKeyVaultKms.keyVaultNetworkAccess: Unsupported value",
        ),
        // The identity itself.
        (
            &[("spec.identity", json!({ "type": "UserAssigned" }))],
            "spec.identity.userAssignedIdentityResourceID: Required value",
        ),
        (
            &[("spec.identity", json!({ "userAssignedIdentityResourceID": "/i" }))],
            "spec.identity.userAssignedIdentityResourceID: Invalid value",
        ),
    ]);
}

/// CAPZ-178.
#[test]
fn names_are_those_that_azure_permits() {
    for name in ["my-microsoft-c", "windows-c", "c-Windows"] {
        let errors =
            refusal(KIND, &with(&base(), &[("metadata.name", json!(name))]), None, &Context::default());
        expect(&errors, "metadata.name: Invalid value", &name);
        let errors = refusal(
            TEMPLATE,
            &with(&template(), &[("metadata.name", json!(name))]),
            None,
            &Context::default(),
        );
        expect(&errors, "metadata.name: Invalid value", &name);
    }
    for (name, words) in [
        ("test", ""),
        ("t-1", ""),
        ("Test", "spec.fleetsMember.name"),
        ("-t", "spec.fleetsMember.name"),
        ("t.1", "spec.fleetsMember.name"),
    ] {
        let fleet = json!({ "managerName": "m", "managerResourceGroup": "g", "name": name });
        judge(&[(&[("spec.fleetsMember", fleet)], words)]);
    }
}

/// The defaults block of the printout, which is that of the schema.
fn autoscaler() -> Value {
    json!({
        "balanceSimilarNodeGroups": "false", "expander": "random", "maxEmptyBulkDelete": "10",
        "maxGracefulTerminationSec": "600", "maxNodeProvisionTime": "15m", "maxTotalUnreadyPercentage": "45",
        "newPodScaleUpDelay": "0s", "okTotalUnreadyCount": "3", "scanInterval": "10s", "scaleDownDelayAfterAdd": "10m",
        "scaleDownDelayAfterDelete": "10s", "scaleDownDelayAfterFailure": "3m", "scaleDownUnneededTime": "10m",
        "scaleDownUnreadyTime": "20m", "scaleDownUtilizationThreshold": "0.5", "skipNodesWithLocalStorage": "false",
        "skipNodesWithSystemPods": "true"
    })
}

/// CAPZ-179.
#[test]
fn the_autoscaler_reads_its_parameters() {
    judge(&[(&[("spec.autoscalerProfile", autoscaler())], "")]);
    for (member, value) in [
        ("maxNodeProvisionTime", "15"),
        ("scanInterval", "10m"),
        ("scaleDownUtilizationThreshold", "1.5"),
        ("maxTotalUnreadyPercentage", "120"),
        ("maxEmptyBulkDelete", "-1"),
        ("newPodScaleUpDelay", "soon"),
    ] {
        let path = format!("spec.autoscalerProfile.{member}");
        judge(&[(&[(&path, json!(value))], &format!("{path}: Invalid value: \"{value}\""))]);
        let of_template = format!("spec.template.{path}");
        let errors =
            refusal(TEMPLATE, &with(&template(), &[(&of_template, json!(value))]), None, &Context::default());
        expect(&errors, &of_template, &value);
    }
}

/// CAPZ-180.
#[test]
fn a_prefix_in_dns_is_a_label_and_stays() {
    for (prefix, words) in [
        ("ab".to_owned(), ""),
        ("A-1".to_owned(), ""),
        ("x".repeat(54), ""),
        ("-bad".to_owned(), "spec.dnsPrefix: Invalid value"),
        ("bad-".to_owned(), "spec.dnsPrefix: Invalid value"),
        ("a_b".to_owned(), "spec.dnsPrefix: Invalid value"),
        ("a".to_owned(), "spec.dnsPrefix: Invalid value"),
        ("x".repeat(55), "spec.dnsPrefix: Invalid value"),
    ] {
        judge(&[(&[("spec.dnsPrefix", json!(prefix))], words)]);
    }
    // An object that was stored before there was a default has its name as its prefix.
    let mut old = admitted(KIND, base(), &Context::default());
    old["spec"].as_object_mut().unwrap().remove("dnsPrefix");
    for (prefix, words) in [("c-1", ""), ("other", "spec.dnsPrefix: Invalid value: \"other\"")] {
        let errors =
            refusal(KIND, &with(&old, &[("spec.dnsPrefix", json!(prefix))]), Some(&old), &Context::default());
        expect(&errors, words, &prefix);
    }
    expect(&refusal(KIND, &old, Some(&old), &Context::default()), "", &"none");
}

/// Scopes have namespaces of their own, and Azure chooses versions unless it is told not to.
#[test]
fn extensions_are_whole() {
    let list = |more: Value| [("spec.extensions", extension(more))];
    let scope = |scope: Value| list(json!({ "scope": scope }));
    let twice = json!([extension(json!({}))[0], extension(json!({}))[0]]);
    judge(&[
        (
            &[("spec.extensions", json!([{ "name": "e" }]))],
            "spec.extensions[0].extensionType: Required value",
        ),
        (&list(json!({ "version": "1.0" })), ""),
        (
            &list(json!({ "version": "1.0", "autoUpgradeMinorVersion": true })),
            "spec.extensions[0].version: Forbidden",
        ),
        (
            &[("spec.extensions", json!([{ "name": "e", "extensionType": "t", "version": "1.0" }]))],
            "spec.extensions[0].version: Forbidden",
        ),
        (&scope(json!({ "scopeType": "Cluster", "releaseNamespace": "r" })), ""),
        (&scope(json!({ "scopeType": "Namespace", "targetNamespace": "t" })), ""),
        (
            &scope(json!({ "scopeType": "Cluster" })),
            "spec.extensions[0].scope.releaseNamespace: Required value",
        ),
        (
            &scope(json!({ "scopeType": "Namespace" })),
            "spec.extensions[0].scope.targetNamespace: Required value",
        ),
        (
            &scope(json!({ "scopeType": "Cluster", "releaseNamespace": "r", "targetNamespace": "t" })),
            "spec.extensions[0].scope.targetNamespace: Forbidden",
        ),
        (
            &scope(json!({ "scopeType": "Namespace", "releaseNamespace": "r", "targetNamespace": "t" })),
            "spec.extensions[0].scope.releaseNamespace: Forbidden",
        ),
        (&[("spec.extensions", twice)], "spec.extensions[1].name: Duplicate value: \"e\""),
    ]);
}

#[test]
fn a_network_contains_its_subnet_and_what_is_in_it() {
    let network = |network: Value| [("spec.virtualNetwork", network)];
    let private = |address: &str| {
        let id = "/subscriptions/1/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/s";
        let connections = json!([{ "name": "c", "privateLinkServiceID": id }]);
        network(json!({ "subnet": { "privateEndpoints": [
            { "name": "p", "privateLinkServiceConnections": connections, "privateIPAddresses": [address] }
        ] } }))
    };
    judge(&[
        (&network(json!({ "cidrBlock": "10.1.0.0/16", "subnet": { "cidrBlock": "10.1.2.0/24" } })), ""),
        (
            &network(json!({ "cidrBlock": "10.1.0.0/16" })),
            "spec.virtualNetwork.cidrBlock: Invalid value: \"10.1.0.0/16\"",
        ),
        (
            &network(json!({ "cidrBlock": "10.1.0.0" })),
            "spec.virtualNetwork.cidrBlock: Invalid value: \"10.1.0.0\"",
        ),
        (
            &network(json!({ "subnet": { "cidrBlock": "x" } })),
            "spec.virtualNetwork.subnet.cidrBlock: Invalid value: \"x\"",
        ),
        (&private("10.240.0.7"), ""),
        (
            &private("10.1.0.7"),
            "spec.virtualNetwork.subnet.privateEndpoints[0].privateIPAddresses[0]: Invalid value",
        ),
    ]);
}

/// An object that another manager has stored stays changeable: only what a change makes wrong is refused.
#[test]
fn an_error_that_was_there_before_stops_no_other_change() {
    let mut old = admitted(KIND, base(), &Context::default());
    old["spec"]["networkPolicy"] = json!("cilium");
    old["spec"]["dnsPrefix"] = json!("a_b");
    let finalizer =
        with(&old, &[("metadata.finalizers", json!(["f"])), ("spec.additionalTags", json!({ "a": "b" }))]);
    expect(&refusal(KIND, &finalizer, Some(&old), &Context::default()), "", &"a finalizer");
    let wrong = with(&old, &[("spec.loadBalancerProfile", json!({ "managedOutboundIPs": 0 }))]);
    let errors = refusal(KIND, &wrong, Some(&old), &Context::default());
    assert_eq!(errors.len(), 1, "{errors:#?}");
    expect(&errors, "spec.loadBalancerProfile.managedOutboundIPs: Invalid value: 0", &"a new error");
}

/// Members of a later manager stay at every level.
#[test]
fn unknown_members_stay() {
    let later = json!({ "later": { "a": [1] } });
    for path in [
        "spec.later",
        "spec.virtualNetwork.later",
        "spec.virtualNetwork.subnet.later",
        "spec.sku.later",
        "spec.securityProfile.imageCleaner.later",
        "spec.autoscalerProfile.later",
        "spec.machineTemplate.later",
        "spec.identity.later",
        "spec.oidcIssuerProfile.later",
        "spec.aadProfile.later",
    ] {
        let object = admitted(KIND, with(&base(), &[(path, later.clone())]), &Context::default());
        assert_eq!(object.pointer(&format!("/{}", path.replace('.', "/"))), Some(&later), "{path}");
    }
    for (kind, object, pointer) in [
        ("AzureManagedCluster", json!({ "spec": { "later": later } }), "/spec/later"),
        (
            "AzureManagedClusterTemplate",
            json!({ "spec": { "template": { "spec": { "later": later } } } }),
            "/spec/template/spec/later",
        ),
    ] {
        let stored = set_defaults(kind, object.clone(), &Context::default(), &mut Fixed).unwrap();
        assert_eq!(stored.pointer(pointer), Some(&later));
        validate(kind, &stored, Some(&object), &Context::default()).unwrap();
    }
}
