//! Lists: pages, selectors, deletion, tables.

use http::Request;
use kube::client::Body;
use serde_json::{Value, json};

use crate::agreement::caller::{Caller, config_map, names, service, version};

pub async fn pages(caller: Caller) {
    let maps = caller.at("configmaps");
    for name in ["c", "a", "e", "b", "d"] {
        caller.post(&maps, &config_map(name, json!({}))).await.ok(201);
    }
    let first = caller.get(&format!("{maps}?limit=2")).await.ok(200);
    assert_eq!(first["kind"], "ConfigMapList");
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    // Pages after the first one show the state at its time.
    caller.delete(&format!("{maps}/d")).await.ok(200);
    let mut seen: Vec<String> = vec![];
    let mut page = first.clone();
    loop {
        assert_eq!(version(&page), version(&first));
        seen.extend(names(&page).into_iter().map(str::to_owned));
        let Some(next) = page["metadata"]["continue"].as_str().filter(|next| !next.is_empty()) else { break };
        page = caller.get(&format!("{maps}?limit=2&continue={next}")).await.ok(200);
    }
    assert_eq!(seen, ["a", "b", "c", "d", "e"]);
    let whole = caller.get(&maps).await.ok(200);
    assert_eq!(names(&whole), ["a", "b", "c", "e"]);
    assert_eq!(whole["metadata"].get("continue"), None);
    caller.get(&format!("{maps}?continue=nonsense")).await.refused(400, "BadRequest");
}

pub async fn labels_select(caller: Caller) {
    let maps = caller.at("configmaps");
    for (name, labels) in [
        ("one", json!({"app": "web", "tier": "front"})),
        ("two", json!({"app": "web"})),
        ("three", json!({"app": "db"})),
        ("four", json!({})),
    ] {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = labels;
        caller.post(&maps, &object).await.ok(201);
    }
    for (selector, expected) in [
        ("app%3Dweb", &["one", "two"][..]),
        ("app%3D%3Dweb,tier", &["one"]),
        ("app!%3Dweb", &["four", "three"]),
        ("app%20in%20(web,db),!tier", &["three", "two"]),
        ("app%20notin%20(web)", &["four", "three"]),
        ("!app", &["four"]),
    ] {
        let list = caller.get(&format!("{maps}?labelSelector={selector}")).await.ok(200);
        assert_eq!(names(&list), expected, "{selector}");
    }
    caller.get(&format!("{maps}?labelSelector=%3D%3D%3D")).await.refused(400, "BadRequest");
}

pub async fn fields_select(caller: Caller) {
    let maps = caller.at("configmaps");
    for name in ["one", "two"] {
        caller.post(&maps, &config_map(name, json!({}))).await.ok(201);
    }
    let list = caller.get(&format!("{maps}?fieldSelector=metadata.name%3Dtwo")).await.ok(200);
    assert_eq!(names(&list), ["two"]);
    let list = caller.get(&format!("{maps}?fieldSelector=metadata.name!%3Dtwo")).await.ok(200);
    assert_eq!(names(&list), ["one"]);
    let everywhere = format!("/api/v1/configmaps?fieldSelector=metadata.namespace%3D{}", caller.namespace);
    assert_eq!(names(&caller.get(&everywhere).await.ok(200)), ["one", "two"]);
    caller.get(&format!("{maps}?fieldSelector=data.a%3Db")).await.refused(400, "BadRequest");

    let events = caller.at("events");
    for (name, subject) in [("e1", "web"), ("e2", "db")] {
        let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name},
            "involvedObject": {"kind": "Service", "name": subject, "namespace": caller.namespace},
            "reason": "R", "type": "Normal"});
        caller.post(&events, &event).await.ok(201);
    }
    let selector = "involvedObject.name%3Dweb,involvedObject.kind%3DService,type%3DNormal";
    let list = caller.get(&format!("{events}?fieldSelector={selector}")).await.ok(200);
    assert_eq!(names(&list), ["e1"]);
}

pub async fn a_collection_is_deleted(caller: Caller) {
    let maps = caller.at("configmaps");
    for (name, label) in [("one", "x"), ("two", "x"), ("three", "y")] {
        let mut object = config_map(name, json!({}));
        object["metadata"]["labels"] = json!({"l": label});
        caller.post(&maps, &object).await.ok(201);
    }
    caller.delete(&format!("{maps}?labelSelector=l%3Dx")).await.ok(200);
    assert_eq!(names(&caller.get(&maps).await.ok(200)), ["three"]);
}

pub async fn tables(caller: Caller) {
    let services = caller.at("services");
    let object = json!({"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "web"}});
    let created = caller.post(&services, &service("web", object)).await.ok(201);
    let table = async |path: &str| {
        let request = Request::builder()
            .uri(path)
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
            .body(Body::empty())
            .unwrap();
        let table = caller.answer(request).await.ok(200);
        assert_eq!((&table["kind"], &table["apiVersion"]), (&json!("Table"), &json!("meta.k8s.io/v1")));
        table
    };
    let columns = |table: &Value| -> Vec<(String, i64)> {
        let columns = table["columnDefinitions"].as_array().unwrap();
        columns
            .iter()
            .map(|column| (column["name"].as_str().unwrap().to_owned(), column["priority"].as_i64().unwrap()))
            .collect()
    };
    let expected = |columns: &[(&str, i64)]| -> Vec<(String, i64)> {
        columns.iter().map(|(name, priority)| ((*name).to_owned(), *priority)).collect()
    };
    let shown = table(&services).await;
    assert_eq!(
        columns(&shown),
        expected(&[
            ("Name", 0),
            ("Type", 0),
            ("Cluster-IP", 0),
            ("External-IP", 0),
            ("Port(s)", 0),
            ("Age", 0),
            ("Selector", 1)
        ])
    );
    let cells = &shown["rows"][0]["cells"];
    let ports = format!("80:{}/TCP", created["spec"]["ports"][0]["nodePort"]);
    assert_eq!(
        (&cells[0], &cells[1], &cells[2], &cells[3], &cells[4], &cells[6]),
        (
            &json!("web"),
            &json!("LoadBalancer"),
            &created["spec"]["clusterIP"],
            &json!("<pending>"),
            &json!(ports),
            &json!("app=web")
        )
    );
    assert_eq!(shown["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(shown["rows"][0]["object"]["metadata"]["name"], "web");
    let one = table(&format!("{services}/web")).await;
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);

    let name = &caller.namespace;
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}});
    caller.post("/api/v1/nodes", &node).await.ok(201);
    let shown = table(&format!("/api/v1/nodes/{name}")).await;
    assert_eq!(
        columns(&shown),
        expected(&[
            ("Name", 0),
            ("Status", 0),
            ("Roles", 0),
            ("Age", 0),
            ("Version", 0),
            ("Internal-IP", 1),
            ("External-IP", 1),
            ("OS-Image", 1),
            ("Kernel-Version", 1),
            ("Container-Runtime", 1)
        ])
    );
    let cells = &shown["rows"][0]["cells"];
    assert_eq!(
        (&cells[1], &cells[2], &cells[5], &cells[6], &cells[7]),
        (&json!("Ready"), &json!("<none>"), &json!("10.0.0.1"), &json!("<none>"), &json!("<unknown>"))
    );
}
