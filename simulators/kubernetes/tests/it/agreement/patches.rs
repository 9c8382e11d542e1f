//! The three older kinds of patches.

use serde_json::json;

use crate::agreement::caller::{Caller, JSON, MERGE, STRATEGIC, config_map, service, version};

pub async fn merge_patch(caller: Caller) {
    let maps = caller.at("configmaps");
    caller.post(&maps, &config_map("m", json!({"a": "1", "b": "2"}))).await.ok(201);
    let change = json!({"data": {"a": null, "c": "3"}, "metadata": {"labels": {"x": "y"}}});
    let patched = caller.patch(&format!("{maps}/m"), MERGE, &change).await.ok(200);
    assert_eq!(patched["data"], json!({"b": "2", "c": "3"}));
    assert_eq!(patched["metadata"]["labels"], json!({"x": "y"}));
}

pub async fn json_patch(caller: Caller) {
    let maps = caller.at("configmaps");
    let at = format!("{maps}/m");
    caller.post(&maps, &config_map("m", json!({"a": "1"}))).await.ok(201);
    let change = json!([
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "2"},
        {"op": "add", "path": "/metadata/annotations", "value": {"example.com/x": "y"}},
    ]);
    let patched = caller.patch(&at, JSON, &change).await.ok(200);
    assert_eq!(patched["data"]["a"], "2");
    assert_eq!(patched["metadata"]["annotations"], json!({"example.com/x": "y"}));
    caller.patch(&at, JSON, &change).await.refused(422, "Invalid");
    let absent = json!([{"op": "remove", "path": "/data/nope"}]);
    caller.patch(&at, JSON, &absent).await.refused(422, "Invalid");
    assert_eq!(caller.get(&at).await.ok(200), patched);
}

pub async fn strategic_patch_of_a_service(caller: Caller) {
    let services = caller.at("services");
    let at = format!("{services}/web");
    let mut object = service(
        "web",
        json!({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}], "type": "NodePort"}),
    );
    object["metadata"]["finalizers"] = json!(["example.com/one"]);
    let created = caller.post(&services, &object).await.ok(201);
    let change = json!({
        "metadata": {"finalizers": ["example.com/two"]},
        "spec": {"ports": [
            {"port": 80, "name": "changed"}, {"port": 81, "$patch": "delete"}, {"port": 82, "name": "c"}]},
    });
    let patched = caller.patch(&at, STRATEGIC, &change).await.ok(200);
    let mut finalizers: Vec<&str> =
        patched["metadata"]["finalizers"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
    finalizers.sort_unstable();
    assert_eq!(finalizers, ["example.com/one", "example.com/two"]);
    let port = |name: &str| {
        patched["spec"]["ports"].as_array().unwrap().iter().find(|port| port["name"] == name).cloned()
    };
    assert_eq!(patched["spec"]["ports"].as_array().unwrap().len(), 2);
    assert_eq!(port("changed").unwrap()["nodePort"], created["spec"]["ports"][0]["nodePort"]);
    assert_eq!(port("c").unwrap()["port"], 82);

    let ordered = json!({"spec": {"$setElementOrder/ports": [{"port": 82}, {"port": 80}]}});
    let patched = caller.patch(&at, STRATEGIC, &ordered).await.ok(200);
    assert_eq!(
        (&patched["spec"]["ports"][0]["port"], &patched["spec"]["ports"][1]["port"]),
        (&json!(82), &json!(80))
    );

    let removed =
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/one", "example.com/two"]}});
    let patched = caller.patch(&at, STRATEGIC, &removed).await.ok(200);
    assert_eq!(patched["metadata"].get("finalizers"), None);
}

pub async fn strategic_order(caller: Caller) {
    let services = caller.at("services");
    let at = format!("{services}/web");
    let item = |port: u16| json!({"port": port, "name": format!("p{port}")});
    let spec = json!({"ports": [item(1), item(2), item(3)]});
    caller.post(&services, &service("web", spec)).await.ok(201);
    let ports = |numbers: &[u16]| numbers.iter().map(|port| item(*port)).collect::<Vec<_>>();
    let keys = |numbers: &[u16]| numbers.iter().map(|port| json!({"port": port})).collect::<Vec<_>>();
    for (change, expected) in [
        (json!({"ports": ports(&[3, 2])}), &[1, 3, 2][..]),
        (json!({"ports": ports(&[9])}), &[9, 1, 3, 2]),
        (json!({"ports": ports(&[2, 8, 9])}), &[1, 3, 2, 8, 9]),
        (json!({"$setElementOrder/ports": keys(&[9, 7, 1]), "ports": ports(&[7])}), &[3, 2, 8, 9, 7, 1]),
        (
            json!({"$setElementOrder/ports": keys(&[1, 2]),
                "ports": [{"port": 3, "$patch": "delete"}, {"port": 9, "$patch": "delete"}]}),
            &[8, 7, 1, 2],
        ),
    ] {
        let patched = caller.patch(&at, STRATEGIC, &json!({"spec": change})).await.ok(200);
        let order: Vec<u64> = patched["spec"]["ports"]
            .as_array()
            .unwrap()
            .iter()
            .map(|port| port["port"].as_u64().unwrap())
            .collect();
        assert_eq!(order, expected, "{change}");
    }
}

pub async fn strategic_patch_of_addresses(caller: Caller) {
    let name = &caller.namespace;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
    "status": {
        "addresses": [{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.1"}],
        "conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}],
    }});
    let created = caller.post("/api/v1/nodes", &node).await.ok(201);
    assert_eq!(created["status"]["addresses"], node["status"]["addresses"], "a node comes with its status");
    let at = format!("/api/v1/nodes/{name}");
    let status = format!("{at}/status");
    let change = json!({"status": {
        "addresses": [{"type": "InternalIP", "address": "10.0.0.2"}],
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    let patched = caller.patch(&status, STRATEGIC, &change).await.ok(200);
    assert_eq!(
        patched["status"]["addresses"],
        json!([{"type": "Hostname", "address": "h"}, {"type": "InternalIP", "address": "10.0.0.2"}])
    );
    let states: Vec<_> =
        patched["status"]["conditions"].as_array().unwrap().iter().map(|c| c["status"].clone()).collect();
    assert_eq!(states, ["True", "True"]);
    let change = json!({"status": {"addresses": [
        {"type": "InternalIP", "address": "10.0.0.3"}, {"type": "InternalIP", "address": "fd00::3"},
        {"$patch": "replace"}]}});
    let patched = caller.patch(&status, STRATEGIC, &change).await.ok(200);
    assert_eq!(
        patched["status"]["addresses"],
        json!([{"type": "InternalIP", "address": "10.0.0.3"}, {"type": "InternalIP", "address": "fd00::3"}])
    );
    let change = json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}});
    let patched = caller.patch(&at, STRATEGIC, &change).await.ok(200);
    assert_eq!(patched["spec"]["taints"], change["spec"]["taints"], "taints are replaced as a whole");
}

pub async fn patch_under_a_version(caller: Caller) {
    let maps = caller.at("configmaps");
    let at = format!("{maps}/m");
    let created = caller.post(&maps, &config_map("m", json!({"a": "1"}))).await.ok(201);
    let change =
        |value: &str| json!({"metadata": {"resourceVersion": version(&created)}, "data": {"a": value}});
    for content in [MERGE, STRATEGIC] {
        let answer = caller.patch(&at, content, &change(content)).await;
        match content {
            MERGE => assert_eq!(answer.ok(200)["data"]["a"], MERGE),
            _ => drop(answer.refused(409, "Conflict").to_owned()),
        }
    }
}

pub async fn patches_that_are_none(caller: Caller) {
    let services = caller.at("services");
    let at = format!("{services}/web");
    caller.post(&services, &service("web", json!({"ports": [{"port": 80}]}))).await.ok(201);
    caller.patch(&at, JSON, &json!({"op": "test"})).await.refused(400, "BadRequest");
    caller.patch(&at, STRATEGIC, &json!([])).await.refused(400, "BadRequest");
    let unknown = caller.patch(&at, "application/unknown", &json!({})).await;
    assert!(!unknown.refused(415, "UnsupportedMediaType").is_empty());
    let renamed = caller.patch(&at, MERGE, &json!({"metadata": {"name": "other"}})).await;
    assert!(matches!(renamed.code, 400 | 422), "{renamed:?}");
    let invalid = caller.patch(&at, MERGE, &json!({"spec": {"ports": [{"port": 0}]}})).await;
    assert!(invalid.refused(422, "Invalid").contains("spec.ports[0].port"));
}
