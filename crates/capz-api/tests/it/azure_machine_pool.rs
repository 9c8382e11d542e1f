//! Section F of the acceptance list, as far as it concerns admission: scale sets and their instances.

use capz_api::admission::{Denied, validate};
use capz_api::{Context, Gates, Lookup};
use serde_json::{Value, json};

use super::{SSH_KEY, admitted, change_refused, context, judge};

const KIND: &str = "AzureMachinePool";

fn base() -> Value {
    json!({
        "metadata": { "name": "p" },
        "spec": { "location": "eastus", "template": { "vmSize": "Standard_D2s_v3", "osDisk": { "diskSizeGB": 30 }, "sshPublicKey": SSH_KEY } }
    })
}

#[test]
fn a_pool_is_completed() {
    let spec = admitted(KIND, base(), &context())["spec"].clone();
    assert_eq!(spec["orchestrationMode"], "Uniform");
    assert_eq!(
        spec["strategy"],
        json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1, "maxUnavailable": 0, "deletePolicy": "Oldest" } })
    );
    assert_eq!(
        spec["template"]["osDisk"],
        json!({ "osType": "Linux", "cachingType": "None", "diskSizeGB": 30 })
    );
    assert_eq!(spec["template"]["networkInterfaces"], json!([{ "privateIPConfigs": 1 }]));
}

/// CAPZ-134
#[test]
fn machines_can_be_replaced_and_are_told_in_time() {
    let strategy = |surge: Value, unavailable: Value| {
        (
            "spec.strategy",
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": surge, "maxUnavailable": unavailable } }),
        )
    };
    let timeout = |minutes: i64| ("spec.template.terminateNotificationTimeout", json!(minutes));
    judge(
        KIND,
        &base(),
        &[
            (&[strategy(json!(0), json!(0))], "MaxUnavailable must not be 0 if MaxSurge is 0"),
            (&[strategy(json!("20%"), json!(0))], ""),
            (&[strategy(json!("some"), json!(0))], "maxSurge: Invalid value: \"some\""),
            (&[timeout(4)], "terminateNotificationTimeout: Invalid value: 4"),
            (&[timeout(16)], "terminateNotificationTimeout: Invalid value: 16"),
            (&[timeout(5)], ""),
            (&[timeout(15)], ""),
        ],
        &context(),
    );
    let object = admitted(KIND, super::with(&base(), &[timeout(4)]), &context());
    let denied = validate(KIND, &object, None, &context()).unwrap_err();
    assert!(matches!(denied, Denied::Forbidden(_)), "pools are refused by a text: {denied:?}");
}

/// CAPZ-135
#[test]
fn flexible_scale_sets_need_a_cluster_that_is_new_enough() {
    let flexible = [("spec.orchestrationMode", json!("Flexible"))];
    for (version, expected) in [
        (Lookup::Found("v1.25.9".to_owned()), "v1.26.0 or later; it is \"v1.25.9\""),
        (Lookup::Found("v1.26.0".to_owned()), ""),
        (Lookup::Found("v2.0.0".to_owned()), ""),
        (Lookup::Found(String::new()), "v1.26.0 or later; it is \"\""),
        (Lookup::Failed("no MachinePool refers to it".to_owned()), "no MachinePool refers to it"),
    ] {
        let context = Context { pool_version: version, ..context() };
        judge(KIND, &base(), &[(&flexible, expected)], &context);
    }
}

#[test]
fn what_a_pool_decided_once_stays() {
    let bootstrap =
        |value: bool| super::with(&base(), &[("spec.template.disableVMBootstrapExtension", json!(value))]);
    assert!(change_refused(KIND, base(), bootstrap(false), &context()).is_empty());
    assert!(!change_refused(KIND, bootstrap(false), bootstrap(true), &context()).is_empty());
    assert!(!change_refused(KIND, bootstrap(false), base(), &context()).is_empty());
    // A role that is added later is not a changed role.
    let system = super::with(&base(), &[("spec.identity", json!("SystemAssigned"))]);
    assert!(change_refused(KIND, base(), system, &context()).is_empty());
}

/// S6: with another value there would be a second scale set, and the first would be abandoned.
#[test]
fn a_pool_stays_the_scale_set_that_it_is() {
    let with = |member: &str, value: &str| super::with(&base(), &[(member, json!(value))]);
    for (member, before, now) in [
        ("spec.location", "eastus", "westus"),
        ("spec.orchestrationMode", "Uniform", "Flexible"),
        ("spec.template.osDisk.osType", "Linux", "Windows"),
        ("spec.providerID", "azure:///a", "azure:///b"),
    ] {
        let errors = change_refused(KIND, with(member, before), with(member, now), &context());
        let expected = format!("{member}: Invalid value: \"{now}\": field is immutable");
        assert!(errors.contains(&expected), "{member}: {errors:?}");
        assert!(change_refused(KIND, with(member, before), with(member, before), &context()).is_empty());
    }
    assert!(change_refused(KIND, base(), with("spec.providerID", "azure:///a"), &context()).is_empty());
}

/// CAPZ-133, as far as it concerns admission: pools are admitted with any gates.
#[test]
fn pools_are_taken_whatever_the_gates() {
    let object = admitted(KIND, base(), &context());
    for gates in [Gates::default(), Gates { edge_zone: true, api_server_ilb: true, ..Gates::default() }] {
        let context = Context { gates, ..context() };
        validate(KIND, &object, None, &context).unwrap();
    }
}

#[test]
fn an_instance_stays_the_one_that_it_is() {
    let kind = "AzureMachinePoolMachine";
    let instance =
        |id: &str| json!({ "metadata": { "name": "p-0" }, "spec": { "providerID": id, "instanceID": "0" } });
    assert!(change_refused(kind, instance(""), instance("azure:///a"), &context()).is_empty());
    let errors = change_refused(kind, instance("azure:///a"), instance("azure:///b"), &context());
    assert_eq!(errors, ["spec.providerID: Invalid value: \"azure:///b\": providerID is immutable"]);
}
