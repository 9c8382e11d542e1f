//! Server-side apply.

use serde_json::{Value, json};

use crate::agreement::caller::{APPLY, Answer, Caller, MERGE, service, version};

fn port(port: u16, name: &str) -> Value {
    json!({"port": port, "protocol": "TCP", "name": name})
}

async fn apply(caller: &Caller, manager: &str, force: bool, object: &Value) -> Answer {
    let name = object["metadata"]["name"].as_str().unwrap();
    let at = format!("{}/{name}?fieldManager={manager}&force={force}", caller.at("services"));
    caller.patch(&at, APPLY, object).await
}

fn managers(object: &Value) -> Vec<(&str, &str)> {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    entries
        .iter()
        .map(|entry| (entry["manager"].as_str().unwrap(), entry["operation"].as_str().unwrap()))
        .collect()
}

pub async fn apply_creates_and_repeats(caller: Caller) {
    let object = service("web", json!({"ports": [port(80, "http")], "type": "NodePort"}));
    let created = apply(&caller, "one", false, &object).await.ok(201);
    assert_eq!(managers(&created), [("one", "Apply")]);
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!((&entry["apiVersion"], &entry["fieldsType"]), (&json!("v1"), &json!("FieldsV1")));
    let key = "k:{\"port\":80,\"protocol\":\"TCP\"}";
    assert_eq!(
        entry["fieldsV1"],
        json!({"f:spec": {
            "f:ports": {key: {".": {}, "f:name": {}, "f:port": {}, "f:protocol": {}}},
            "f:type": {},
        }})
    );
    let again = apply(&caller, "one", false, &object).await.ok(200);
    assert_eq!(version(&again), version(&created), "the same again writes nothing");
}

pub async fn apply_removes_what_it_drops(caller: Caller) {
    let mut object = service("web", json!({"ports": [port(80, "a"), port(81, "b")]}));
    object["metadata"]["labels"] = json!({"x": "1", "y": "2"});
    object["metadata"]["finalizers"] = json!(["example.com/one"]);
    apply(&caller, "one", false, &object).await.ok(201);
    let mut theirs = service("web", json!({"ports": [port(82, "c")]}));
    theirs["metadata"]["labels"] = json!({"z": "3", "y": "2"});
    apply(&caller, "two", false, &theirs).await.ok(200);

    let object = service("web", json!({"ports": [port(81, "b")]}));
    let smaller = apply(&caller, "one", false, &object).await.ok(200);
    let mut names: Vec<&str> = smaller["spec"]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["b", "c"]);
    assert_eq!(smaller["metadata"]["labels"], json!({"y": "2", "z": "3"}), "shared ones stay");
    assert_eq!(smaller["metadata"].get("finalizers"), None);
}

pub async fn apply_conflicts(caller: Caller) {
    let object = service("web", json!({"ports": [port(80, "a")], "sessionAffinity": "None"}));
    apply(&caller, "one", false, &object).await.ok(201);
    let change = json!({"sessionAffinity": "ClientIP"});
    let other = service("web", change);
    let refused = apply(&caller, "two", false, &other).await;
    assert_eq!(
        refused.refused(409, "Conflict"),
        "Apply failed with 1 conflict: conflict with \"one\": .spec.sessionAffinity"
    );
    assert_eq!(
        refused.body["details"]["causes"],
        json!([{"reason": "FieldManagerConflict", "message": "conflict with \"one\"",
            "field": ".spec.sessionAffinity"}])
    );
    let forced = apply(&caller, "two", true, &other).await.ok(200);
    assert_eq!(forced["spec"]["sessionAffinity"], "ClientIP");
    let back = apply(&caller, "one", false, &object).await;
    assert!(back.refused(409, "Conflict").contains("conflict with \"two\": .spec.sessionAffinity"));
    let agreed = service("web", json!({"ports": [port(80, "a")], "sessionAffinity": "ClientIP"}));
    apply(&caller, "one", false, &agreed).await.ok(200);
}

pub async fn apply_after_an_update(caller: Caller) {
    let object = service("web", json!({"ports": [port(80, "a")], "type": "ClusterIP"}));
    caller.post(&format!("{}?fieldManager=creator", caller.at("services")), &object).await.ok(201);
    let change = service("web", json!({"type": "NodePort"}));
    let refused = apply(&caller, "one", false, &change).await;
    assert!(
        refused
            .refused(409, "Conflict")
            .starts_with("Apply failed with 1 conflict: conflict with \"creator\" using v1"),
        "{refused:?}"
    );
    apply(&caller, "one", true, &change).await.ok(200);
    let at = format!("{}/web?fieldManager=editor", caller.at("services"));
    caller.patch(&at, MERGE, &json!({"spec": {"type": "LoadBalancer"}})).await.ok(200);
    let refused = apply(&caller, "one", false, &change).await;
    assert!(refused.refused(409, "Conflict").contains("conflict with \"editor\" using v1"));
}

/// A manager may be given what another one has written: then it removes that with its next apply.
pub async fn apply_removes_what_it_was_given(caller: Caller) {
    let object = service("web", json!({"ports": [port(80, "a")]}));
    apply(&caller, "one", false, &object).await.ok(201);
    let at = format!("{}/web?fieldManager=editor", caller.at("services"));
    let annotated = json!({"metadata": {"annotations": {"example.com/a": "1"}, "managedFields": [{}]}});
    let edited = caller.patch(&at, MERGE, &annotated).await.ok(200);
    let given = json!({"metadata": {"resourceVersion": version(&edited), "managedFields": [{
        "manager": "one", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": {"f:annotations": {"f:example.com/a": {}}}},
    }]}});
    let given = caller.patch(&at, MERGE, &given).await.ok(200);
    assert_eq!(managers(&given), [("one", "Apply")]);
    assert_eq!(given["metadata"]["annotations"], json!({"example.com/a": "1"}));
    let again = apply(&caller, "one", false, &object).await.ok(200);
    assert_eq!(again["metadata"].get("annotations"), None);
}

pub async fn apply_without_a_manager(caller: Caller) {
    let object = service("web", json!({"ports": [port(80, "a")]}));
    let at = format!("{}/web", caller.at("services"));
    let refused = caller.patch(&at, APPLY, &object).await;
    assert!(refused.refused(422, "Invalid").contains("fieldManager: Required value"));
    let mut with_fields = object.clone();
    with_fields["metadata"]["managedFields"] = json!([]);
    let refused = caller.patch(&format!("{at}?fieldManager=one"), APPLY, &with_fields).await;
    assert_eq!(refused.code, 400, "{refused:?}");
    let mut other = object;
    other["metadata"]["name"] = json!("other");
    let refused = caller.patch(&format!("{at}?fieldManager=one"), APPLY, &other).await;
    assert_eq!(refused.code, 400, "{refused:?}");
}
