//! Webhooks: their paths, their registration, and their responses.

use capz_api::admission::{Needs, is_topology_dry_run, needs, review};
use capz_api::crd::KINDS;
use capz_api::webhooks::{Task, WEBHOOKS, Webhook, registration};
use capz_api::{Context, Lookup};
use serde_json::{Value, json};

use super::{Fixed, SSH_KEY};

const MUTATE: &str = "/mutate-infrastructure-cluster-x-k8s-io-v1beta1-";
const VALIDATE: &str = "/validate-infrastructure-cluster-x-k8s-io-v1beta1-";

fn ask(path: &str, object: Value, old: Option<&Value>) -> Result<capz_api::admission::Admitted, Value> {
    let webhook = Webhook::at(path).unwrap();
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    review(webhook, object, old, &Context::default(), &mut Fixed)
        .map_err(|denied| denied.status(webhook.kind, &name))
}

#[test]
fn paths_and_names_are_those_that_registrations_know() {
    let found: Vec<(String, String)> =
        WEBHOOKS.iter().map(|webhook| (webhook.name(), webhook.path())).collect();
    let group = "infrastructure.cluster.x-k8s.io";
    for (name, path) in [
        (format!("default.azurecluster.{group}"), format!("{MUTATE}azurecluster")),
        (format!("default.azuremachinetemplate.{group}"), format!("{MUTATE}azuremachinetemplate")),
        (format!("validation.azureclusteridentity.{group}"), format!("{VALIDATE}azureclusteridentity")),
        ("azuremachinepoolmachine.kb.io".to_owned(), format!("{VALIDATE}azuremachinepoolmachine")),
        (format!("default.azuremanagedcontrolplanes.{group}"), format!("{MUTATE}azuremanagedcontrolplane")),
        (format!("validation.azuremanagedclusters.{group}"), format!("{VALIDATE}azuremanagedcluster")),
        (format!("default.azuremanagedmachinepools.{group}"), format!("{MUTATE}azuremanagedmachinepool")),
        (
            format!("validation.azuremanagedmachinepooltemplates.{group}"),
            format!("{VALIDATE}azuremanagedmachinepooltemplate"),
        ),
        (format!("validation.azureasomanagedcluster.{group}"), format!("{VALIDATE}azureasomanagedcluster")),
    ] {
        assert!(found.contains(&(name.clone(), path)), "{name}: {found:#?}");
    }
    // Every kind is validated, except templates of raw resources; some have no defaults.
    for kind in &KINDS {
        let has = |task| WEBHOOKS.iter().any(|webhook| webhook.kind == kind.name && webhook.task == task);
        let raw = kind.name.starts_with("AzureASOManaged");
        assert_eq!(has(Task::Validate), !(raw && kind.name.ends_with("Template")), "{}", kind.name);
        let whole = raw
            || [
                "AzureClusterIdentity",
                "AzureMachinePoolMachine",
                "AzureManagedCluster",
                "AzureManagedClusterTemplate",
            ]
            .contains(&kind.name);
        assert_eq!(has(Task::Default), !whole, "{}", kind.name);
    }
}

#[test]
fn registrations_fail_closed_and_take_both_reviews() {
    for (task, count) in [(Task::Default, 9), (Task::Validate, 16)] {
        let registration = registration(task);
        let webhooks = registration["webhooks"].as_array().unwrap();
        assert_eq!(webhooks.len(), count);
        for webhook in webhooks {
            assert_eq!(webhook["failurePolicy"], "Fail");
            assert_eq!(webhook["sideEffects"], "None");
            assert_eq!(webhook["admissionReviewVersions"], json!(["v1", "v1beta1"]));
            let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap();
            let served = Webhook::at(path).unwrap();
            assert_eq!((served.task, json!(served.name())), (task, webhook["name"].clone()));
            let operations = match (task, served.kind) {
                (Task::Validate, "AzureManagedMachinePool") => json!(["CREATE", "UPDATE", "DELETE"]),
                (Task::Validate, kind) if kind.starts_with("AzureASO") => json!(["CREATE"]),
                _ => json!(["CREATE", "UPDATE"]),
            };
            assert_eq!(webhook["rules"][0]["operations"], operations, "{webhook}");
            // The kinds of pools, and most of managed clusters, leave the match policy to its default.
            let said = match served.kind {
                "AzureManagedMachinePool" => true,
                kind => !kind.starts_with("AzureMachinePool") && !kind.contains("Managed"),
            };
            assert_eq!(webhook.get("matchPolicy").is_some(), said, "{webhook}");
        }
    }
    assert!(Webhook::at("/convert").is_none(), "there is one version alone");
}

#[test]
fn a_refusal_names_each_place() {
    let object = json!({ "metadata": { "name": "c-1" }, "spec": { "location": "eastus" } });
    let object = ask(&format!("{MUTATE}azurecluster"), object, None).unwrap().object;
    let status = ask(&format!("{VALIDATE}azurecluster"), object, None).unwrap_err();
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")));
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with("AzureCluster.infrastructure.cluster.x-k8s.io \"c-1\" is invalid: spec.identityRef: Required value: "),
        "{message}"
    );
    let cause = &status["details"]["causes"][0];
    assert_eq!(
        (&cause["field"], &cause["reason"]),
        (&json!("spec.identityRef"), &json!("FieldValueRequired"))
    );
    assert!(cause["message"].as_str().unwrap().starts_with("Required value: "), "{cause}");
}

#[test]
fn pools_are_refused_by_a_text_and_unreadable_objects_as_bad_requests() {
    let pool = |timeout: Value| {
        json!({ "metadata": { "name": "p" }, "spec": { "location": "l",
        "template": { "sshPublicKey": SSH_KEY, "terminateNotificationTimeout": timeout } } })
    };
    let path = format!("{VALIDATE}azuremachinepool");
    let status = ask(&path, pool(json!(4)), None).unwrap_err();
    assert_eq!((&status["code"], &status["reason"]), (&json!(403), &json!("Forbidden")));
    assert!(status.get("details").is_none(), "{status}");
    let status = ask(&path, pool(json!("soon")), None).unwrap_err();
    assert_eq!((&status["code"], &status["reason"]), (&json!(400), &json!("BadRequest")));
}

/// A mutating webhook sees objects before the API server validates them against the schema: it names the path itself.
#[test]
fn a_member_of_another_type_is_named() {
    for (kind, spec, words) in [
        (
            "azurecluster",
            json!({ "additionalTags": { "billed": true } }),
            "spec.additionalTags.billed: invalid type: boolean",
        ),
        (
            "azurecluster",
            json!({ "networkSpec": { "subnets": [{ "name": "a" }, { "name": "b", "cidrBlocks": "10.0.0.0/16" }] } }),
            "spec.networkSpec.subnets[1].cidrBlocks: invalid type: string",
        ),
        (
            "azuremachine",
            json!({ "osDisk": { "diskSizeGB": "30" } }),
            "spec.osDisk.diskSizeGB: invalid type: string",
        ),
        (
            "azuremachinetemplate",
            json!({ "template": { "spec": { "osDisk": { "diskSizeGB": "30" } } } }),
            "spec.template.spec.osDisk.diskSizeGB: invalid type: string",
        ),
        ("azuremachine", json!("a large one"), "spec: invalid type: string"),
    ] {
        let object = json!({ "metadata": { "name": "o" }, "spec": spec });
        let status = ask(&format!("{MUTATE}{kind}"), object, None).unwrap_err();
        assert_eq!(status["code"], 400);
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with(words), "{message}");
    }
}

/// Generated templates have an empty key, and are applied more than once.
#[test]
fn a_key_that_was_drawn_stays_where_none_is_given() {
    for (kind, wrap) in [
        ("azuremachine", (|spec| spec) as fn(Value) -> Value),
        ("azuremachinetemplate", |spec| json!({ "template": { "spec": spec } })),
        ("azuremachinepool", |spec| json!({ "template": spec, "location": "eastus" })),
    ] {
        let object = |spec: Value| json!({ "metadata": { "name": "o" }, "spec": wrap(spec) });
        let machine = |key: &str| {
            object(json!({ "vmSize": "Standard_D2s_v3", "sshPublicKey": key,
                "osDisk": { "osType": "Linux", "diskSizeGB": 30, "managedDisk": { "storageAccountType": "Premium_LRS" } } }))
        };
        let other = "c3NoLXJzYSBBQUFB";
        let old = machine(other);
        let applied = ask(&format!("{MUTATE}{kind}"), machine(""), Some(&old)).unwrap().object;
        assert!(applied.to_string().contains(other), "{applied}");
        let given = ask(&format!("{MUTATE}{kind}"), machine(SSH_KEY), Some(&old)).unwrap().object;
        assert!(given.to_string().contains(SSH_KEY) && !given.to_string().contains(other), "{given}");
        let made = ask(&format!("{MUTATE}{kind}"), machine(""), None).unwrap().object;
        assert!(made.to_string().contains(SSH_KEY), "{made}");
    }
}

#[test]
fn deprecated_members_are_told_once() {
    let machine = json!({ "metadata": { "name": "m" }, "spec": {
        "vmSize": "s", "osDisk": {}, "sshPublicKey": SSH_KEY, "subnetName": "a", "acceleratedNetworking": false } });
    let completed = ask(&format!("{MUTATE}azuremachine"), machine.clone(), None).unwrap();
    assert_eq!(
        completed.warnings,
        [
            "spec.acceleratedNetworking is deprecated: use networkInterfaces",
            "spec.subnetName is deprecated: use networkInterfaces"
        ]
    );
    let changed = ask(&format!("{MUTATE}azuremachine"), machine.clone(), Some(&machine)).unwrap();
    assert!(changed.warnings.is_empty());
}

#[test]
fn an_unknown_kind_is_named() {
    let unknown = capz_api::admission::validate("AzureMoon", &json!({}), None, &Context::default());
    assert!(unknown.unwrap_err().to_string().starts_with("there is no kind \"AzureMoon\""));
}

#[test]
fn what_is_needed_is_looked_up_and_nothing_else() {
    let system = json!({ "spec": { "identity": "SystemAssigned" } });
    let whole = json!({ "spec": { "identity": "SystemAssigned",
        "systemAssignedIdentityRole": { "scope": "/subscriptions/1", "definitionID": "/subscriptions/1/x" } } });
    let flexible = json!({ "spec": { "orchestrationMode": "Flexible" } });
    let labelled = json!({ "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "c" } } });
    let network = Needs { cluster_network: true, ..Needs::default() };
    let subscription = Needs { subscription: true, ..Needs::default() };
    for (kind, object, expected) in [
        ("AzureMachine", &system, subscription),
        ("AzureMachinePool", &system, subscription),
        ("AzureMachineTemplate", &system, Needs::default()),
        ("AzureMachine", &whole, Needs::default()),
        ("AzureMachinePool", &flexible, Needs { pool_version: true, ..Needs::default() }),
        ("AzureMachine", &flexible, Needs::default()),
        ("AzureManagedControlPlane", &labelled, network),
        ("AzureManagedControlPlaneTemplate", &labelled, network),
        ("AzureManagedControlPlane", &system, Needs::default()),
        ("AzureManagedCluster", &labelled, Needs::default()),
        ("AzureMachine", &labelled, Needs::default()),
    ] {
        assert_eq!(needs(kind, object, None), expected, "{kind} {object}");
    }
    // A control plane is held against its Cluster with the write that sets the label.
    let unlabelled = json!({ "metadata": {} });
    for (old, expected) in [(&unlabelled, network), (&labelled, Needs::default())] {
        assert_eq!(needs("AzureManagedControlPlane", &labelled, Some(old)), expected, "{old}");
    }
    let context = Context { subscription: Lookup::Failed("no Cluster".to_owned()), ..Context::default() };
    let webhook = Webhook::at(&format!("{MUTATE}azuremachine")).unwrap();
    assert!(review(webhook, system, None, &context, &mut Fixed).is_err());
}

#[test]
fn a_topology_is_tried_in_a_dry_run_of_a_marked_object() {
    let marked = json!({ "metadata": { "annotations": { "topology.cluster.x-k8s.io/dry-run": "" } } });
    assert!(is_topology_dry_run(true, &marked));
    assert!(!is_topology_dry_run(false, &marked));
    assert!(!is_topology_dry_run(true, &json!({ "metadata": {} })));
}

/// Required members without a value: Go's types write them empty, so that the established provider never refused a rule
/// without a description (`tests/corpus/cluster-api/answers.txt`). A member whose enumeration or minimum length
/// excludes the empty value stays missing, so that the API server asks for it.
#[test]
fn members_that_must_be_there_are_written_empty_where_that_is_a_value() {
    let cluster = |subnet: Value| json!({ "metadata": { "name": "c1" }, "spec": { "location": "l", "networkSpec": { "subnets": [subnet] } } });
    let rule = json!({ "name": "r", "protocol": "Tcp" });
    let rule = cluster(json!({ "role": "node", "securityGroup": { "securityRules": [rule] } }));
    let machine = |spec: Value| json!({ "metadata": { "name": "m1" }, "spec": spec });
    let in_rule = "/spec/networkSpec/subnets/0/securityGroup/securityRules/0";
    for (kind, object, place, expected) in [
        ("azurecluster", rule.clone(), format!("{in_rule}/description"), Some(json!(""))),
        // The webhook's own default takes precedence.
        ("azurecluster", rule, format!("{in_rule}/direction"), Some(json!("Inbound"))),
        ("azurecluster", cluster(json!({})), "/spec/networkSpec/subnets/0/role".to_owned(), None),
        (
            "azurecluster",
            json!({ "metadata": { "name": "c1" }, "spec": { "networkSpec": { "additionalAPIServerLBPorts": [{}] } } }),
            "/spec/networkSpec/additionalAPIServerLBPorts/0/port".to_owned(),
            Some(json!(0)),
        ),
        (
            "azurecluster",
            cluster(json!({ "role": "node", "serviceEndpoints": [{ "service": "s" }] })),
            "/spec/networkSpec/subnets/0/serviceEndpoints/0/locations".to_owned(),
            None,
        ),
        ("azuremachine", machine(json!({})), "/spec/osDisk".to_owned(), Some(json!({ "osType": "" }))),
        (
            "azuremachine",
            machine(json!({ "image": { "marketplace": {} } })),
            "/spec/image/marketplace/offer".to_owned(),
            None,
        ),
        // An optional member stays missing with everything in it.
        ("azuremachine", machine(json!({})), "/spec/diagnostics/boot/userManaged".to_owned(), None),
    ] {
        let admitted = ask(&format!("{MUTATE}{kind}"), object, None).unwrap();
        assert_eq!(admitted.object.pointer(&place), expected.as_ref(), "{place} of {:#}", admitted.object);
    }
}
