//! The content of bodies, and their formats.

use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};

use crate::agreement::caller::{Answer, Caller, MERGE, config_map, service};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

pub async fn unknown_members_are_dropped(caller: Caller) {
    let services = caller.at("services");
    let mut object = service("web", json!({"ports": [{"port": 80, "prot": "TCP"}], "sesame": "open"}));
    object["metadata"]["colour"] = json!("red");
    let created = caller.post(&services, &object).await.ok(201);
    assert!(created["spec"].get("sesame").is_none() && created["metadata"].get("colour").is_none());
    assert!(created["spec"]["ports"][0].get("prot").is_none());
    let patch = json!({"spec": {"sesame": "open"}, "data": 5});
    let patched = caller.patch(&format!("{services}/web"), MERGE, &patch).await.ok(200);
    assert!(patched["spec"].get("sesame").is_none() && patched.get("data").is_none());
}

pub async fn wrong_types_are_refused(caller: Caller) {
    for (spec, metadata) in [
        (json!({"loadBalancerIP": 5, "ports": [{"port": 80}]}), json!({})),
        (json!({"ports": {}}), json!({})),
        (json!({"ports": [{"port": "http"}]}), json!({})),
        (json!({"ports": [{"port": 80.5}]}), json!({})),
        (json!({"ports": [{"port": 80}]}), json!({"labels": {"a": 5}})),
        (json!([]), json!({})),
    ] {
        let mut object = service("web", spec);
        if let Some(labels) = metadata.get("labels") {
            object["metadata"]["labels"] = labels.clone();
        }
        let refused = caller.post(&caller.at("services"), &object).await;
        let message = refused.refused(400, "BadRequest");
        let start = "Service in version \"v1\" cannot be handled as a Service: ";
        assert!(message.starts_with(start), "{message}");
    }
    let quota = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
        "spec": {"hard": {"pods": "many"}}});
    let refused = caller.post(&caller.at("resourcequotas"), &quota).await;
    let message = refused.refused(400, "BadRequest");
    assert!(message.contains("quantities must match the regular expression"), "{message}");
}

pub async fn null_and_empty_are_nothing(caller: Caller) {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "labels": null,
        "annotations": {}, "finalizers": [], "generateName": ""}, "data": {"a": ""}, "binaryData": null});
    let created = caller.post(&caller.at("configmaps"), &object).await.ok(201);
    let metadata: Vec<&str> = created["metadata"].as_object().unwrap().keys().map(String::as_str).collect();
    for absent in ["labels", "annotations", "finalizers", "generateName"] {
        assert!(!metadata.contains(&absent), "{created}");
    }
    assert_eq!((&created["data"], created.get("binaryData")), (&json!({"a": ""}), None));
}

async fn send(caller: &Caller, method: Method, path: &str, body: &[u8]) -> Answer {
    let request = Request::builder().method(method).uri(path).header("content-type", PROTOBUF);
    // Go's clients accept both, and use what they get.
    let accept = "application/json, application/vnd.kubernetes.protobuf;q=0.5";
    caller.answer(request.header("accept", accept).body(Body::from(body.to_vec())).unwrap()).await
}

/// An envelope around an object.
fn envelope(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| [&[number << 3 | 2, bytes.len() as u8], bytes].concat();
    let about = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &about), field(2, object)].concat()
}

pub async fn objects_come_in_protobuf(caller: Caller) {
    let maps = caller.at("configmaps");
    // metadata.name "m" and generation 0, data a: b.
    let object = b"\n\x05\n\x01m8\0\x12\x06\n\x01a\x12\x01b";
    let body = envelope("v1", "ConfigMap", object);
    let created = send(&caller, Method::POST, &maps, &body).await.ok(201);
    assert_eq!((&created["kind"], &created["data"]), (&json!("ConfigMap"), &json!({"a": "b"})));
    let object = b"\n\x05\n\x01m8\0\x12\x06\n\x01a\x12\x01c";
    let body = envelope("v1", "ConfigMap", object);
    let replaced = send(&caller, Method::PUT, &format!("{maps}/m"), &body).await.ok(200);
    assert_eq!(replaced["data"], json!({"a": "c"}));
    let none = send(&caller, Method::POST, &maps, b"{}").await;
    assert_eq!(none.code, 400, "{}", none.body);
    // preconditions.uid "x".
    let options = envelope("v1", "DeleteOptions", b"\x12\x03\n\x01x");
    let refused = send(&caller, Method::DELETE, &format!("{maps}/m"), &options).await;
    assert!(refused.refused(409, "Conflict").contains("the UID in the precondition (x)"));
    let options = envelope("v1", "DeleteOptions", b"\"\nBackground");
    send(&caller, Method::DELETE, &format!("{maps}/m"), &options).await.ok(200);
    caller.get(&format!("{maps}/m")).await.refused(404, "NotFound");
}

pub async fn objects_come_in_yaml(caller: Caller) {
    let maps = caller.at("configmaps");
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\ndata:\n  a: \"1\"\n";
    let request =
        Request::builder().method(Method::POST).uri(&maps).header("content-type", "application/yaml");
    let request = request.header("accept", "application/json").body(Body::from(text.as_bytes().to_vec()));
    let created = caller.answer(request.unwrap()).await.ok(201);
    assert_eq!(created["data"], json!({"a": "1"}));
    let object: Value = config_map("z", json!({}));
    let refused = caller.send(Method::POST, &maps, Some(("text/plain", &object))).await;
    assert_eq!(refused.code, 415, "{}", refused.body);
}
