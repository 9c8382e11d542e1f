//! Applying the remedies of a refusal results in a configuration that starts: no remedy leads to the next refusal.

use cloud_config::keys::KEYS;
use cloud_config::{CloudConfig, ConfigError, Edit, Problem};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A value that only the owner of a cluster knows.
fn owners_value(key: &str) -> Value {
    match key {
        "clusterServiceSharedLoadBalancerHealthProbePort" => json!(10256),
        "resourceManagerEndpoint" => json!("https://management.azure.com"),
        "tags" | "tagsMap" => json!(null),
        // A value of the right type.
        key => match KEYS.iter().find(|known| known.name == key.split('.').next().unwrap()) {
            Some(known) if known.value_type.describe() == "boolean" => json!(true),
            Some(known) if known.value_type.describe() == "integer" => json!(3),
            Some(known) if known.value_type.describe() == "number" => json!(1.5),
            Some(known) if known.value_type.describe() == "list" => json!([]),
            Some(known) if known.value_type.describe() == "mapping" => json!({}),
            _ => json!("00000000-0000-0000-0000-00000000000a"),
        },
    }
}

fn problems(document: &Map<String, Value>) -> Vec<Problem> {
    match CloudConfig::runnable(Value::Object(document.clone()).to_string().as_bytes(), &|_| None) {
        Ok(_) => Vec::new(),
        Err(ConfigError::Invalid(problems)) => problems,
        Err(other) => panic!("{other}"),
    }
}

/// Makes every change that the problems propose.
fn follow(document: &mut Map<String, Value>, problems: &[Problem]) {
    for edit in problems.iter().flat_map(|problem| &problem.remedy.edits) {
        let (key, value) = match edit {
            Edit::Set { key, value } => {
                (key, serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone())))
            }
            Edit::Give { key, .. } => (key, owners_value(key)),
            Edit::Remove { key } => (key, Value::Null),
        };
        // A nested key is set by setting the whole of its parent right.
        match key.split_once(['.', '[']) {
            None => document.insert(key.clone(), value),
            Some((parent, _)) => document.insert(parent.to_owned(), owners_value(parent)),
        };
    }
}

const GOOD: &[(&str, &str)] = &[
    ("tenantId", "t"),
    ("subscriptionId", "s"),
    ("resourceGroup", "g"),
    ("location", "westeurope"),
    ("useManagedIdentityExtension", "true"),
];

#[test]
fn every_refusal_alone_is_mended_by_its_remedy() {
    let several = json!([{"name": "a", "primaryVMSet": "x"}, {"name": "A"}]);
    let cases = [
        json!({"vmType": "vmssflex", "disableAvailabilitySetNodes": true}),
        json!({"loadBalancerSku": "basic", "disableOutboundSNAT": true}),
        json!({"loadBalancerSku": "service"}),
        json!({"loadBalancerSku": "premium"}),
        json!({"loadBalancerBackendPoolConfigurationType": "podIP"}),
        json!({"loadBalancerBackendPoolConfigurationType": "invalid"}),
        json!({"multipleStandardLoadBalancerConfigurations": several}),
        json!({"multipleStandardLoadBalancerConfigurations": several,
               "loadBalancerBackendPoolConfigurationType": "nodeIP"}),
        json!({"multipleStandardLoadBalancerConfigurations": ["a"]}),
        json!({"serviceGatewayEnabled": true}),
        json!({"serviceGatewayEnabled": true, "loadBalancerSku": "service",
               "loadBalancerBackendPoolConfigurationType": "podIP",
               "multipleStandardLoadBalancerConfigurations": several}),
        json!({"preConfiguredBackendPoolLoadBalancerTypes": "some"}),
        json!({"cloud": "AzureStackCloud"}),
        json!({"networkResourceTenantID": "other"}),
        json!({"useManagedIdentityExtension": false}),
        json!({"useManagedIdentityExtension": false, "cloudConfigType": "file"}),
        json!({"useManagedIdentityExtension": false, "aadMSIDataPlaneIdentityPath": "/x"}),
        json!({"useManagedIdentityExtension": false, "aadClientSecret": "x", "tenantId": null}),
        json!({"useFederatedWorkloadIdentityExtension": true}),
        json!({"subscriptionId": null, "resourceGroup": null, "location": null}),
        json!({"subscriptionId": "/subscriptions/s"}),
        json!({"resourceManagerEndpoint": "management.azure.com"}),
        json!({"cloudConfigType": "disk"}),
        json!({"clusterServiceLoadBalancerHealthProbeMode": "none"}),
        json!({"clusterServiceSharedLoadBalancerHealthProbePort": 70000}),
        json!({"useManagedIdentityExtension": "true"}),
        json!({"useInstanceMetadata": "yes"}),
        json!({"vmssCacheTTLInSeconds": "600"}),
        json!({"cloudProviderRateLimitQPS": "six"}),
        json!({"loadBalancerRateLimit": {"cloudProviderRateLimitQPS": [1]}}),
        json!({"location": ["westeurope"]}),
        json!({"tagsMap": "a=b"}),
        json!({"tags": format!("a={}", "x".repeat(257))}),
    ];
    for case in cases {
        let mut document: Map<String, Value> = GOOD
            .iter()
            .map(|(key, value)| ((*key).to_owned(), serde_json::from_str(value).unwrap_or(json!(value))))
            .collect();
        assert_eq!(problems(&document), []);
        document.extend(case.as_object().unwrap().clone());
        let refused = problems(&document);
        assert!(!refused.is_empty(), "{case} is taken");
        follow(&mut document, &refused);
        assert_eq!(problems(&document), [], "after following the remedies of {case}: {refused:#?}");
    }
}

fn value_of(key: &'static str) -> BoxedStrategy<Value> {
    let words: &'static [&'static str] = match key {
        "vmType" => &["vmss", "standard", "vmssflex", "mainframe"],
        "loadBalancerSku" => &["standard", "basic", "service", "premium"],
        "loadBalancerBackendPoolConfigurationType" => &["nodeIPConfiguration", "nodeIP", "podIP", "x"],
        "cloudConfigType" => &["file", "secret", "merge", "x"],
        "cloud" => &["AzurePublicCloud", "AzureStackCloud", "x"],
        "preConfiguredBackendPoolLoadBalancerTypes" => &["", "all", "x"],
        "networkResourceTenantID" | "tenantId" => &["", "t", "u", "a b"],
        _ => &["", "x", "true", "7", "a/b"],
    };
    let several = json!([{"name": "a"}, {"name": "a", "primaryVMSet": "x"}]);
    prop_oneof![
        4 => prop::sample::select(words).prop_map(Value::from),
        2 => any::<bool>().prop_map(Value::from),
        1 => (-1i64..100_000).prop_map(Value::from),
        1 => Just(json!(["x"])),
        1 => Just(several),
        1 => Just(json!({"x": "y"})),
        1 => Just(Value::Null),
    ]
    .boxed()
}

fn document() -> impl Strategy<Value = Map<String, Value>> {
    let names: Vec<&'static str> = KEYS.iter().map(|key| key.name).collect();
    let pair = prop::sample::select(names).prop_flat_map(|key| (Just(key.to_owned()), value_of(key)));
    prop::collection::vec(pair, 0..12).prop_map(|pairs| pairs.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// A value of the wrong type hides its meaning, so a second round may be needed, never a third.
    #[test]
    fn following_remedies_ends_in_a_configuration_that_starts(mut document in document()) {
        let mut said = Vec::new();
        for _round in 0..2 {
            let refused = problems(&document);
            follow(&mut document, &refused);
            said.push(refused);
        }
        prop_assert_eq!(problems(&document), Vec::<Problem>::new(), "{:#?}", said);
    }
}
