//! Documents as users write them, and their results.

use std::time::Duration;

use cloud_config::{
    BackendPoolType, CloudConfig, ConfigError, HealthProbeMode, LoadBalancerSku, Problem, VmType, Warning,
};
use proptest::prelude::*;

fn parse(text: &str) -> CloudConfig {
    CloudConfig::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn problems(text: &str) -> Vec<Problem> {
    match CloudConfig::parse(text) {
        Err(ConfigError::Invalid(problems)) => problems,
        Ok(config) => config.refusals(),
        other => panic!("{text}: {other:?}"),
    }
}

/// The refusals besides those for a minimal document.
fn refusals(text: &str) -> Vec<Problem> {
    let needed = "subscriptionId: s\nresourceGroup: g\nlocation: l\nuseManagedIdentityExtension: true\n";
    let text = match text.strip_prefix('{') {
        Some(flow) => format!(
            "{{subscriptionId: s, resourceGroup: g, location: l, useManagedIdentityExtension: true, {flow}"
        ),
        None => format!("{needed}{text}"),
    };
    problems(&text)
}

fn warnings(config: &CloudConfig) -> Vec<String> {
    config.warnings().iter().map(Warning::to_string).collect()
}

fn with_environment(text: &str, environment: &[(&str, &str)]) -> CloudConfig {
    CloudConfig::from_file(text, &|name| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
    .unwrap()
}

const MINIMAL: &str = r#"{
  "cloud": "AzurePublicCloud",
  "tenantId": "00000000-0000-0000-0000-00000000000a",
  "subscriptionId": "00000000-0000-0000-0000-00000000000b",
  "resourceGroup": "Group-A",
  "location": "westeurope",
  "vnetName": "vnet",
  "subnetName": "nodes",
  "securityGroupName": "nodes-nsg",
  "routeTableName": "routes",
  "vmType": "vmss",
  "loadBalancerSku": "Standard",
  "useManagedIdentityExtension": true,
  "userAssignedIdentityID": "00000000-0000-0000-0000-00000000000c"
}"#;

#[test]
fn the_minimal_managed_identity_document() {
    let config = parse(MINIMAL);
    assert_eq!(config.resource_group, "group-a", "lower-cased after a file load");
    assert_eq!(config.load_balancer_sku, LoadBalancerSku::Standard);
    assert_eq!(config.vnet_resource_group(), "group-a");
    assert_eq!(config.security_group_resource_group(), "group-a");
    assert_eq!(config.network_subscription_id(), config.subscription_id);
    assert_eq!(config.refusals(), []);
    assert_eq!(config.route_table_resource_group(), "group-a");
    assert_eq!(warnings(&config), [""; 0]);
}

#[test]
fn an_empty_document_is_all_defaults() {
    for text in ["", "  \n", "{}", "null", "# nothing\n", "\u{feff}"] {
        let config = parse(text);
        assert_eq!(config, CloudConfig::default(), "{text:?}");
    }
    let config = CloudConfig::default();
    assert!(config.exclude_master_from_standard_lb);
    assert_eq!(config.vm_type, VmType::Vmss);
    assert_eq!(config.load_balancer_backend_pool_configuration_type, BackendPoolType::NodeIpConfiguration);
    assert_eq!(config.cluster_service_load_balancer_health_probe_mode, HealthProbeMode::ServiceNodePort);
    assert_eq!(config.cluster_service_shared_load_balancer_health_probe_port, 10256);
    assert_eq!(config.cluster_service_shared_load_balancer_health_probe_path, "/healthz");
    assert_eq!(config.node_instance_not_found_grace_period, Duration::ZERO);
    assert_eq!(config.put_vmss_vm_batch_size, 1);
    assert_eq!((config.backoff.retries, config.backoff.duration), (1, Duration::from_secs(5)));
    let keys: Vec<String> = config.refusals().into_iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["subscriptionId", "resourceGroup", "location", "useManagedIdentityExtension"]);
}

/// A user who configures pools of pods has not set the service gateway's own key: the problem names the setting that
/// exists.
#[test]
fn a_half_of_the_service_gateway_is_named_by_what_somebody_set() {
    for (text, first) in [
        (
            r#"{"loadBalancerBackendPoolConfigurationType":"podIP"}"#,
            "loadBalancerBackendPoolConfigurationType=podIP",
        ),
        (
            r#"{"loadBalancerBackendPoolConfigurationType":"podIP","loadBalancerSku":"basic"}"#,
            "loadBalancerBackendPoolConfigurationType=podIP",
        ),
        (r#"{"loadBalancerSku":"service"}"#, "loadBalancerSku=service"),
        (r#"{"serviceGatewayEnabled":true}"#, "serviceGatewayEnabled=true"),
    ] {
        let said = parse(text).refusals()[0].to_string();
        assert!(said.starts_with(&format!("{first}: ")), "{text}: {said}");
    }
}

#[test]
fn yaml_and_json_and_any_case_give_the_same() {
    let json = r#"{"subscriptionID":"s","UserAgent":"u","cloudProviderRatelimit":false,"VNETNAME":"v"}"#;
    let yaml = "subscriptionId: s\nuserAgent: u\ncloudProviderRateLimit: false\nvnetName: v\n";
    let flow = "{subscriptionId: s, userAgent: u, vnetName: v} # flow style is YAML alone";
    assert_eq!(parse(json), parse(yaml));
    assert_eq!(parse(json), parse(flow));
}

#[test]
fn the_exact_spelling_wins_and_the_other_one_is_named() {
    let config = parse(r#"{"vnetname":"other","vnetName":"exact","VNetName":"third"}"#);
    assert_eq!(config.vnet_name, "exact");
    assert_eq!(warnings(&config).len(), 2, "{:?}", warnings(&config));
    assert_eq!(parse("location: a\nlocation: b").location, "b", "a repeated key: the last one counts");
}

#[test]
fn scalars_become_text_where_text_is_expected() {
    for (text, expected) in [
        ("aadClientSecret: 12345", "12345"),
        ("aadClientSecret: 98765432109876543", "98765432109876543"),
        ("aadClientSecret: true", "true"),
        ("aadClientSecret: 1.5", "1.5"),
        ("aadClientSecret: '0123'", "0123"),
        ("aadClientSecret: ", ""),
        ("aadClientSecret: ~", ""),
        (r#"{"aadClientSecret": 12345678}"#, "12345678"),
    ] {
        assert_eq!(parse(text).aad_client_secret.reveal(), expected, "{text}");
    }
    // The other way round is an error, named with key, value and remedy.
    let found =
        problems("useManagedIdentityExtension: \"true\"\nvmssCacheTTLInSeconds: \"600\"\nlocation: [a]\n");
    let shown: Vec<String> = found.iter().map(Problem::to_string).collect();
    assert_eq!(
        shown,
        [
            "useManagedIdentityExtension=\"true\": must be true or false (set useManagedIdentityExtension to true, \
             without quotes)",
            "location=a list: must be a text (set location to a single value)",
            "vmssCacheTTLInSeconds=\"600\": must be a whole number (set vmssCacheTTLInSeconds to 600, without quotes)",
        ]
    );
    assert!(parse("useManagedIdentityExtension: yes").use_managed_identity_extension, "as YAML 1.1 has it");
}

#[test]
fn the_environment_lies_over_the_document() {
    let text = "tenantId: t\naadClientId: c\naadClientSecret: s\n";
    let config = with_environment(text, &[]);
    assert_eq!((config.tenant_id.as_str(), config.aad_client_secret.reveal()), ("t", "s"));
    let config = with_environment(
        text,
        &[
            ("AZURE_TENANT_ID", "t2"),
            ("AZURE_CLIENT_ID", ""),
            ("AZURE_CLIENT_SECRET", "s2"),
            ("AZURE_FEDERATED_TOKEN_FILE", "/token"),
            ("AZURE_ENVIRONMENT_FILEPATH", "/env.json"),
        ],
    );
    assert_eq!(config.tenant_id, "t2");
    assert_eq!(config.aad_client_id, "c", "an empty variable does not count");
    assert_eq!(config.aad_client_secret.reveal(), "s2");
    assert_eq!(config.aad_federated_token_file, "/token");
    assert!(config.use_federated_workload_identity_extension);
    assert_eq!(config.environment_file, "/env.json");
}

/// LB-168, NODE-144.
#[test]
fn lb_168_node_144_outbound_snat_needs_the_standard_sku() {
    for sku in ["basic", "Basic", "service"] {
        let text = format!("loadBalancerSku: {sku}\ndisableOutboundSNAT: true\n");
        let found = problems(&text);
        let problem = found.iter().find(|problem| problem.key == "disableOutboundSNAT").unwrap();
        assert!(
            problem.reason.contains("standard") && problem.reason.contains(&sku.to_lowercase()),
            "{problem}"
        );
    }
    assert!(parse("disableOutboundSNAT: true").disable_outbound_snat);
}

/// LB-220, NODE-143.
#[test]
fn lb_220_node_143_several_load_balancers_must_be_told_apart() {
    let entries = |pool: &str, entries: &str| {
        format!(
            "loadBalancerBackendPoolConfigurationType: {pool}\nmultipleStandardLoadBalancerConfigurations:\n{entries}"
        )
    };
    let good =
        "- {name: lb1, primaryVMSet: a}\n- {name: lb2, primaryVMSet: b, allowServicePlacement: false}\n";
    let config = parse(&entries("nodeIP", good));
    assert_eq!(config.multiple_standard_load_balancer_configurations.len(), 2);
    assert!(config.multiple_standard_load_balancer_configurations[0].allow_service_placement);
    assert!(!config.multiple_standard_load_balancer_configurations[1].allow_service_placement);

    let found = refusals(&entries("nodeIPConfiguration", good));
    assert!(
        found[0].reason.contains("cannot be used with backend pool type nodeIPConfiguration"),
        "{found:?}"
    );
    for (bad, words) in [
        (
            "- {name: lb1, primaryVMSet: a}\n- {name: LB1, primaryVMSet: b}\n",
            "duplicated multiple standard load",
        ),
        ("- {name: lb1}\n", "must have primary VMSet"),
        ("- {name: lb1, primaryVMSet: a}\n- {name: lb1-Internal, primaryVMSet: b}\n", "ends with -internal"),
        ("- {name: lb1, primaryVMSet: a}\n- {name: lb2, primaryVMSet: A}\n", "duplicated primary VMSet"),
    ] {
        let found = refusals(&entries("nodeIP", bad));
        assert!(found.iter().any(|problem| problem.reason.contains(words)), "{found:?}");
    }
    assert_eq!(refusals(&entries("nodeIP", good)), []);
    let labels = "- {name: lb1, primaryVMSet: a, serviceNamespaceSelector: {matchLabels: {team: a}}}\n";
    assert!(parse(&entries("nodeIP", labels)).follows_namespace_labels());
    let selector = "- {name: lb1, primaryVMSet: a, nodeSelector: {matchLabels: [a]}}\n";
    let key = "multipleStandardLoadBalancerConfigurations[0].nodeSelector.matchLabels";
    assert_eq!(problems(&entries("nodeIP", selector))[0].key, key);
    // With another SKU the list has no effect.
    let basic = format!("loadBalancerSku: basic\n{}", entries("nodeIP", "- {name: lb1}\n"));
    assert!(!parse(&basic).uses_multiple_standard_load_balancers());
}

/// LB-338, NODE-142.
#[test]
fn lb_338_node_142_the_service_gateway_is_all_or_nothing() {
    let document = |gateway: bool, pods: bool, service: bool| {
        let mut text = String::new();
        if gateway {
            text.push_str("serviceGatewayEnabled: true\n");
        }
        if pods {
            text.push_str("loadBalancerBackendPoolConfigurationType: PodIP\n");
        }
        if service {
            text.push_str("loadBalancerSku: Service\n");
        }
        text
    };
    for bits in 1..7u8 {
        let text = document(bits & 1 != 0, bits & 2 != 0, bits & 4 != 0);
        let found = refusals(&text);
        assert_eq!(found.len(), 1, "{text}{found:?}");
        let shown = found[0].to_string();
        assert!(shown.contains("loadBalancerBackendPoolConfigurationType is '"), "{shown}");
        assert!(shown.contains("loadBalancerSku is '"), "{shown}");
    }
    let all = document(true, true, true);
    assert!(parse(&all).service_gateway_enabled);
    assert_eq!(refusals(&all).len(), 1, "all three together are one refusal: this release does none of them");
    let multiple = "multipleStandardLoadBalancerConfigurations: [{name: a, primaryVMSet: b}]\n";
    assert_eq!(refusals(&format!("{all}{multiple}")).len(), 2);
}

/// NODE-139, NODE-140, NODE-141.
#[test]
fn node_139_140_141_other_contradictions() {
    let found = refusals("vmType: standard\ndisableAvailabilitySetNodes: true\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].reason.contains("only supported when vmType is 'vmss'"), "{found:?}");
    assert_eq!(refusals("vmType: vmss\ndisableAvailabilitySetNodes: true\n"), []);
    let found = problems("cloudConfigType: FILE\n");
    let about = |words: &str| found.iter().any(|problem| problem.reason.contains(words));
    assert!(about("useInstanceMetadata must be enabled without Azure credentials"), "{found:?}");
    // A user who has named an application already is not asked for it again.
    let named = problems("tenantId: t\naadClientId: c\n");
    let remedy =
        |found: &[Problem]| found.iter().map(|problem| problem.remedy.to_string()).collect::<String>();
    assert!(
        remedy(&named).contains("or add one proof that you are") && !remedy(&named).contains("set tenantId")
    );
    let remedies: String = found.iter().map(|problem| problem.remedy.to_string()).collect();
    for way in [
        "useManagedIdentityExtension to true",
        "managed identity",
        "aadClientId",
        "aadClientSecret",
        "aadClientCertPath",
        "certificate",
        "useFederatedWorkloadIdentityExtension",
        "workload identity",
    ] {
        assert!(remedies.contains(way), "{way}: {found:?}");
    }
    let found = problems("loadBalancerBackendPoolConfigurationType: invalid\n");
    for word in ["nodeIPConfiguration", "nodeIP", "podIP"] {
        assert!(found[0].reason.contains(word), "{found:?}");
    }
}

#[test]
fn all_problems_come_at_once_on_one_line() {
    let error = CloudConfig::runnable(
        b"cloudConfigType: disk\ndisableOutboundSNAT: true\nloadBalancerSku: basic\nsubscriptionId: a/b\n\
         clusterServiceSharedLoadBalancerHealthProbePort: 70000\nresourceManagerEndpoint: management.azure.com\n",
        &|_| None,
    )
    .unwrap_err();
    let text = error.to_string();
    assert!(!text.contains('\n'), "{text}");
    for key in [
        "cloudConfigType=\"disk\"",
        "disableOutboundSNAT=true",
        "subscriptionId=\"a/b\"",
        "clusterServiceSharedLoadBalancerHealthProbePort=70000",
        "resourceManagerEndpoint=\"management.azure.com\"",
    ] {
        assert!(text.contains(key), "{key} in {text}");
    }
}

/// LB-337, NODE-145.
#[test]
fn lb_337_node_145_a_map_of_tags_wins_over_the_text() {
    let config = parse("tags: A=1,keep=x\ntagsMap: {a: 2, number: 7, empty: , 'with,comma': 'k=v'}\n");
    let tags: Vec<(&str, &str)> = config.tags.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(tags, [("a", "2"), ("empty", ""), ("keep", "x"), ("number", "7"), ("with,comma", "k=v")]);
}

/// LB-334 and LB-336, the configuration's part: ignored pieces are named, prefixes are trimmed.
#[test]
fn tags_that_are_no_pairs_are_named_in_warnings() {
    let config = parse("tags: 'a=b, c = d ,e,f=g=h, x= null'\nsystemTags: ' c , '\n");
    assert_eq!(config.tags.get("x").map(String::as_str), Some(" null"));
    assert_eq!(config.tags.len(), 3);
    assert_eq!(config.system_tags, ["c"]);
    assert_eq!(warnings(&config).len(), 2, "{:?}", warnings(&config));
}

/// NODE-279: a value that is replaced by another one is named.
#[test]
fn node_279_values_that_something_else_counts_for_are_named_in_warnings() {
    let config = parse("vmType: vmms\nputVMSSVMBatchSize: -1\n");
    assert_eq!(config.put_vmss_vm_batch_size, 1);
    assert_eq!(
        warnings(&config),
        [
            "putVMSSVMBatchSize=-1: no number of instances; 1 is used (give a number from 1 on)",
            "vmType=vmms: none of vmss, vmssflex and standard; standard is used (correct it)",
        ]
    );
}

#[test]
fn what_this_release_does_not_do_is_refused_by_key() {
    for (text, key) in [
        ("loadBalancerSku: premium", "loadBalancerSku"),
        ("loadBalancerBackendPoolConfigurationType: addresses", "loadBalancerBackendPoolConfigurationType"),
        (
            "multipleStandardLoadBalancerConfigurations: [{name: a, primaryVMSet: b}]",
            "multipleStandardLoadBalancerConfigurations",
        ),
        (
            "loadBalancerBackendPoolConfigurationType: nodeIP\n\
             multipleStandardLoadBalancerConfigurations: [{name: a-internal, primaryVMSet: b}]",
            "multipleStandardLoadBalancerConfigurations",
        ),
        ("preConfiguredBackendPoolLoadBalancerTypes: some", "preConfiguredBackendPoolLoadBalancerTypes"),
        ("cloud: AzureStackCloud", "cloud"),
        ("{tenantId: a, networkResourceTenantID: b}", "networkResourceTenantID"),
    ] {
        let found = refusals(text);
        assert_eq!(found.len(), 1, "{text}: {found:?}");
        assert_eq!(found[0].key, key);
        assert!(!found[0].remedy.edits.is_empty());
    }
    for text in [
        "vmType: VMSS",
        "vmType: standard",
        "vmType: vmssflex",
        "vmType: mainframe",
        "loadBalancerBackendPoolConfigurationType: nodeip",
        "{tenantId: a, networkResourceTenantID: A}",
        "{cloud: azurestackcloud, disableAzureStackCloud: true}",
    ] {
        assert_eq!(refusals(text), [], "{text}");
    }
}

#[test]
fn rate_limits_are_judged_in_both_places_and_not_applied() {
    let config = parse(
        "cloudProviderRateLimit: true\ncloudProviderRateLimitQPS: 3\ncloudProviderRateLimitBucketWrite: 100\n\
         loadBalancerRateLimit: {cloudProviderRateLimitQPS: 0.5}\n\
         Entries: {LoadBalancerRateLimit: {cloudProviderRateLimitQPS: 9}, routeTableRateLimit: {cloudProviderRateLimit: false}}\n",
    );
    assert_eq!(warnings(&config).len(), 1, "{:?}", warnings(&config));
    for text in [
        "loadBalancerRateLimit: {cloudProviderRateLimitQPS: many}",
        "Entries: {x: {cloudProviderRateLimit: 1}}",
    ] {
        assert_eq!(problems(text).len(), 1, "{text}");
    }
}

#[test]
fn back_off_keys_count_only_when_enabled() {
    let keys = "cloudProviderBackoffRetries: 9\ncloudProviderBackoffDuration: 7\n";
    assert_eq!(parse(keys).backoff.retries, 1);
    let backoff = parse(&format!("cloudProviderBackoff: true\n{keys}")).backoff;
    assert_eq!((backoff.retries, backoff.duration), (9, Duration::from_secs(7)));
    assert_eq!(parse("cloudProviderBackoff: true").backoff.retries, 6);
}

#[test]
fn texts_that_are_no_mapping_are_told_apart() {
    for (text, words) in [
        ("- a\n- b\n", "a list"),
        ("just words", "a text"),
        ("{\"a\": 1,\n \"b\": \"x}", "line 2, column 9: EOF while parsing a string"),
        ("{\"cloud\": \"x\"\n \"vnetName\": \"v\"}", "line 2, column 2, near vnetName: expected `,` or `}`"),
        ("{\"cloud\": \"x\",\n // where\n \"location\": \"l\"}", "line 2, column 2, near cloud: "),
        ("a: [1, 2\nb: }", "line 2"),
        ("a: b: c\n", "neither valid YAML nor JSON"),
    ] {
        let error = CloudConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(words), "{text:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn no_error_and_no_debug_output_shows_a_secret() {
    for text in [
        "aadClientSecret: [hunter2]\n",
        "aadClientSecret: {hunter2: hunter2}\n",
        "aadClientSecret: \"hunter2\n",
        "aadClientSecret: *hunter2\n",
        "aadClientSecret: &hunter2 !hunter2 [\n",
        "{\"aadClientSecret\": \"hunter2\" \"x\"}",
    ] {
        let error = CloudConfig::parse(text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
    let config = parse("aadClientSecret: hunter2\naadClientCertPassword: hunter2\n");
    assert!(!format!("{config:?} {config:#?}").contains("hunter2"));
}

fn scalar() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(|f| serde_json::json!(f)),
        ".{0,20}".prop_map(Into::into),
        Just(serde_json::json!([1, "a"])),
        Just(serde_json::json!({"a": 1})),
    ]
}

const KEYS: &[&str] = &[
    "cloud",
    "subscriptionId",
    "resourceGroup",
    "tags",
    "tagsMap",
    "vmType",
    "loadBalancerSku",
    "disableOutboundSNAT",
    "routeUpdateIntervalInSeconds",
    "multipleStandardLoadBalancerConfigurations",
    "clusterServiceSharedLoadBalancerHealthProbePort",
    "aadClientSecret",
    "Entries",
    "auxiliaryTokenProvider",
    "maximumLoadBalancerRuleCount",
    "cloudProviderRateLimitQPS",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_makes_parsing_panic(text in "\\PC{0,200}") {
        let _ = CloudConfig::parse(&text);
    }

    #[test]
    fn no_yaml_looking_text_makes_parsing_panic(text in "[a-zA-Z0-9:{}\\[\\],&*!|>'\"#~ .\n-]{0,200}") {
        let _ = CloudConfig::parse(&text);
    }

    #[test]
    fn no_value_of_any_key_makes_parsing_panic(
        pairs in prop::collection::vec((prop::sample::select(KEYS), scalar()), 0..8)
    ) {
        let object: serde_json::Map<_, _> = pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        let text = serde_json::Value::Object(object).to_string();
        if let Err(error) = CloudConfig::parse(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn the_case_of_keys_does_not_matter(flips in prop::collection::vec(any::<bool>(), 800)) {
        let mut flips = flips.into_iter().cycle();
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(MINIMAL).unwrap();
        let scrambled: serde_json::Map<_, _> = object
            .into_iter()
            .map(|(key, value)| {
                let key = key
                    .chars()
                    .map(|c| if flips.next() == Some(true) { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
                    .collect::<String>();
                (key, value)
            })
            .collect();
        prop_assert_eq!(parse(&serde_json::Value::Object(scrambled).to_string()), parse(MINIMAL));
    }

    #[test]
    fn parsed_tags_never_hold_two_keys_that_azure_takes_for_one(text in "[aAbB= ,n]{0,60}") {
        let (tags, _) = cloud_config::parse_tags(&text);
        let mut lower: Vec<String> = tags.keys().map(|key| key.to_ascii_lowercase()).collect();
        lower.sort();
        lower.dedup();
        prop_assert_eq!(lower.len(), tags.len());
    }
}
