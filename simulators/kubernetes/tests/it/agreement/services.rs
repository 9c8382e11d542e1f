//! The API server's decisions about Services, Nodes and Events.

use serde_json::{Value, json};

use crate::agreement::caller::{Answer, Caller, MERGE, STRATEGIC, service, version};

async fn create(caller: &Caller, name: &str, spec: Value) -> Answer {
    caller.post(&caller.at("services"), &service(name, spec)).await
}

pub async fn cluster_addresses(caller: Caller) {
    let plain = create(&caller, "plain", json!({"ports": [{"port": 80}]})).await.ok(201);
    let spec = &plain["spec"];
    assert!(spec["clusterIP"].as_str().unwrap().starts_with("10.0."));
    assert_eq!(spec["clusterIPs"], json!([spec["clusterIP"]]));
    assert_eq!((&spec["type"], &spec["sessionAffinity"]), (&json!("ClusterIP"), &json!("None")));
    assert_eq!(spec["ports"], json!([{"port": 80, "protocol": "TCP", "targetPort": 80}]));
    let headless =
        create(&caller, "headless", json!({"clusterIP": "None", "ports": [{"port": 80}]})).await.ok(201);
    assert_eq!(headless["spec"]["clusterIP"], "None");
    let asked = json!({"clusterIP": "10.0.77.77", "ports": [{"port": 80}]});
    create(&caller, "asked", asked.clone()).await.ok(201);
    let refused = create(&caller, "again", asked.clone()).await;
    assert!(refused.refused(422, "Invalid").contains("provided IP is already allocated"));
    caller.delete(&format!("{}/asked", caller.at("services"))).await.ok(200);
    create(&caller, "again", asked).await.ok(201);
    let at = format!("{}/plain", caller.at("services"));
    let mut moved = plain.clone();
    moved["spec"]["clusterIP"] = json!("10.0.99.99");
    let refused = caller.put(&at, &moved).await;
    assert!(refused.refused(422, "Invalid").contains("may not change once set"));
}

pub async fn node_ports(caller: Caller) {
    let spec = json!({"type": "NodePort", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]});
    let object = create(&caller, "web", spec).await.ok(201);
    let port = |index: usize| object["spec"]["ports"][index]["nodePort"].as_u64().unwrap();
    assert!((30000..=32767).contains(&port(0)) && (30000..=32767).contains(&port(1)));
    assert_ne!(port(0), port(1));
    assert_eq!(object["spec"]["externalTrafficPolicy"], "Cluster");
    let same = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port(0)}]});
    let refused = create(&caller, "thief", same.clone()).await;
    assert!(refused.refused(422, "Invalid").contains("provided port is already allocated"));
    assert_eq!(refused.body["details"]["causes"][0]["field"], "spec.ports[0].nodePort");
    caller.delete(&format!("{}/web", caller.at("services"))).await.ok(200);
    create(&caller, "heir", same).await.ok(201);
    let outside = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]});
    let refused = create(&caller, "outside", outside).await;
    assert!(refused.refused(422, "Invalid").contains("The range of valid ports is 30000-32767"));
}

pub async fn node_ports_follow_the_type(caller: Caller) {
    let at = format!("{}/web", caller.at("services"));
    create(&caller, "web", json!({"ports": [{"port": 80}]})).await.ok(201);
    let change = |kind: &str| json!({"spec": {"type": kind}});
    let balanced = caller.patch(&at, MERGE, &change("LoadBalancer")).await.ok(200);
    let port = balanced["spec"]["ports"][0]["nodePort"].clone();
    assert!(port.is_number());
    let kept = caller.patch(&at, MERGE, &change("NodePort")).await.ok(200);
    assert_eq!(kept["spec"]["ports"][0]["nodePort"], port);
    let plain = caller.patch(&at, MERGE, &change("ClusterIP")).await.ok(200);
    assert_eq!(plain["spec"]["ports"][0].get("nodePort"), None);
    assert_eq!(plain["spec"].get("externalTrafficPolicy"), None);
    assert_eq!(plain["spec"]["clusterIP"], balanced["spec"]["clusterIP"]);
    let same = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]});
    create(&caller, "heir", same).await.ok(201);
}

pub async fn health_check_ports(caller: Caller) {
    let at = format!("{}/web", caller.at("services"));
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]});
    let object = create(&caller, "web", spec).await.ok(201);
    let port = object["spec"]["healthCheckNodePort"].as_u64().unwrap();
    assert!((30000..=32767).contains(&port));
    let refused = caller.patch(&at, MERGE, &json!({"spec": {"healthCheckNodePort": 31999}})).await;
    refused.refused(422, "Invalid");
    let cluster =
        caller.patch(&at, MERGE, &json!({"spec": {"externalTrafficPolicy": "Cluster"}})).await.ok(200);
    assert_eq!(cluster["spec"].get("healthCheckNodePort"), None);
    let local = caller.patch(&at, MERGE, &json!({"spec": {"externalTrafficPolicy": "Local"}})).await.ok(200);
    assert!(local["spec"]["healthCheckNodePort"].is_number());
}

pub async fn refusals(caller: Caller) {
    for (spec, message) in [
        (json!({}), "spec.ports: Required value"),
        (json!({"ports": [{"port": 80}, {"port": 81}]}), "spec.ports[0].name: Required value"),
        (
            json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]}),
            "spec.ports[1].name: Duplicate value: \"a\"",
        ),
        (
            json!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]}),
            "spec.ports[1]: Duplicate value",
        ),
        (
            json!({"ports": [{"port": 70000}]}),
            "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535",
        ),
        (
            json!({"ports": [{"port": 80, "protocol": "XYZ"}]}),
            "spec.ports[0].protocol: Unsupported value: \"XYZ\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ),
        (json!({"type": "Foo", "ports": [{"port": 80}]}), "spec.type: Unsupported value: \"Foo\""),
        (
            json!({"ports": [{"port": 80, "nodePort": 30100}]}),
            "spec.ports[0].nodePort: Forbidden: may not be used",
        ),
        (json!({"type": "ExternalName"}), "spec.externalName: Required value"),
        (
            json!({"clusterIP": "None", "type": "NodePort", "ports": [{"port": 80}]}),
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
        (
            json!({"sessionAffinity": "X", "ports": [{"port": 80}]}),
            "spec.sessionAffinity: Unsupported value: \"X\"",
        ),
        (
            json!({"loadBalancerSourceRanges": ["10.0.0.0/8"], "ports": [{"port": 80}]}),
            "oadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
        ),
    ] {
        let answer = create(&caller, "bad", spec.clone()).await;
        let text = answer.refused(422, "Invalid");
        assert!(text.starts_with("Service \"bad\" is invalid: "), "{text}");
        assert!(text.contains(message), "{spec}: {text}");
        assert_eq!(answer.body["details"]["kind"], "Service");
        let cause = &answer.body["details"]["causes"][0];
        assert!(
            message.ends_with(cause["message"].as_str().unwrap())
                || message.contains(cause["field"].as_str().unwrap().trim_start_matches("spec.L")),
            "{cause}"
        );
    }
    create(&caller, "1abc", json!({"ports": [{"port": 80}]})).await.ok(201);
    let name = create(&caller, "a.b", json!({"ports": [{"port": 80}]})).await;
    let message = name.refused(422, "Invalid");
    assert!(message.contains("metadata.name: Invalid value: \"a.b\": must not contain dots"), "{message}");
    let mut object = service("labelled", json!({"ports": [{"port": 80}]}));
    object["metadata"]["labels"] = json!({"a b": "c"});
    let labels = caller.post(&caller.at("services"), &object).await;
    assert!(labels.refused(422, "Invalid").contains("metadata.labels: Invalid value: \"a b\""));
    let mut object = service("finalized", json!({"ports": [{"port": 80}]}));
    object["metadata"]["finalizers"] = json!(["x"]);
    let finalizers = caller.post(&caller.at("services"), &object).await;
    assert!(finalizers.refused(422, "Invalid").contains("nor is it fully qualified"));

    let at = format!("{}/web", caller.at("services"));
    create(&caller, "web", json!({"type": "LoadBalancer", "ports": [{"port": 80}]})).await.ok(201);
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "x"}]}}});
    let answer = caller.patch(&format!("{at}/status"), MERGE, &status).await;
    assert!(
        answer.refused(422, "Invalid").contains("status.loadBalancer.ingress[0].ip: Invalid value: \"x\"")
    );
}

pub async fn nodes_are_tainted(caller: Caller) {
    let name = &caller.namespace;
    let taint = |key: &str| json!({"key": key, "effect": "NoSchedule"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
        "spec": {"taints": [taint("a")]}});
    let created = caller.post("/api/v1/nodes", &node).await.ok(201);
    assert_eq!(created["spec"]["taints"], json!([taint("a"), taint("node.kubernetes.io/not-ready")]));
    let at = format!("/api/v1/nodes/{name}");
    let identify = |id: &str| json!({"spec": {"providerID": id}});
    caller.patch(&at, MERGE, &identify("azure:///one")).await.ok(200);
    caller.patch(&at, MERGE, &identify("azure:///two")).await.refused(422, "Invalid");
    let twice = json!({"spec": {"taints": [taint("a"), taint("a")]}});
    let refused = caller.patch(&at, MERGE, &twice).await;
    assert!(refused.refused(422, "Invalid").contains("taints must be unique by key and effect pair"));
    let wrong = json!({"spec": {"taints": [{"key": "a", "effect": "Sometimes"}]}});
    caller.patch(&at, MERGE, &wrong).await.refused(422, "Invalid");
}

pub async fn nodes_have_ranges(caller: Caller) {
    const AT: &str = "/api/v1/nodes";
    const FIXED: &str =
        "spec.podCIDRs: Forbidden: node updates may not change podCIDR except from \"\" to valid";
    let name = |suffix: &str| format!("{}-{suffix}", caller.namespace);
    let node = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec});
    let ranges = |node: &Value| (node["spec"]["podCIDR"].clone(), node["spec"]["podCIDRs"].clone());
    let of = |range: &str| (json!(range), json!([range]));

    // Writing one of the two members sets both; if they differ, the older one counts.
    for (suffix, spec) in [
        ("one", json!({"podCIDR": "10.244.1.0/24"})),
        ("all", json!({"podCIDRs": ["10.244.1.0/24"]})),
        ("differ", json!({"podCIDR": "10.244.1.0/24", "podCIDRs": ["10.244.2.0/24", "10.244.3.0/24"]})),
        ("empty", json!({"podCIDR": "10.244.1.0/24", "podCIDRs": []})),
        ("none", json!({"podCIDR": "", "podCIDRs": ["10.244.1.0/24"]})),
    ] {
        let created = caller.post(AT, &node(&name(suffix), spec)).await.ok(201);
        assert_eq!(ranges(&created), of("10.244.1.0/24"), "{suffix}");
    }
    let bare = caller.post(AT, &node(&name("bare"), json!({"podCIDR": "", "podCIDRs": []}))).await.ok(201);
    assert_eq!(ranges(&bare), (Value::Null, Value::Null));
    for spec in [
        json!({"podCIDR": "10.244.1.0"}),
        json!({"podCIDRs": ["10.244.1.0/33"]}),
        json!({"podCIDR": "10.244.1.0/+8"}),
    ] {
        let answer = caller.post(AT, &node(&name("bad"), spec.clone())).await;
        let text = answer.refused(422, "Invalid");
        assert!(text.contains("spec.podCIDRs[0]: Invalid value: ") && text.contains("valid CIDR"), "{text}");
    }

    // A node without ranges gets them once.
    for (suffix, content, spec) in [
        ("a", MERGE, json!({"podCIDR": "10.244.4.0/24"})),
        ("b", MERGE, json!({"podCIDRs": ["10.244.4.0/24"]})),
        ("c", STRATEGIC, json!({"podCIDR": "10.244.4.0/24", "podCIDRs": ["10.244.4.0/24"]})),
    ] {
        caller.post(AT, &node(&name(suffix), json!({}))).await.ok(201);
        let at = format!("{AT}/{}", name(suffix));
        let given = caller.patch(&at, content, &json!({"spec": spec})).await.ok(200);
        assert_eq!(ranges(&given), of("10.244.4.0/24"), "{suffix}");
        for refused in [
            json!({"podCIDR": "10.244.5.0/24"}),
            json!({"podCIDR": "10.244.5.0/24", "podCIDRs": ["10.244.5.0/24"]}),
            json!({"podCIDR": null, "podCIDRs": null}),
            json!({"podCIDR": null, "podCIDRs": ["10.244.5.0/24"]}),
        ] {
            let answer = caller.patch(&at, MERGE, &json!({"spec": refused})).await;
            assert!(answer.refused(422, "Invalid").contains(FIXED), "{refused}: {}", answer.body);
        }
        // One of the two alone does not contradict the other.
        for same in [
            json!({"podCIDR": null}),
            json!({"podCIDRs": null}),
            json!({"podCIDRs": ["10.244.5.0/24"]}),
            json!({"podCIDR": "", "podCIDRs": ["10.244.4.0/24"]}),
        ] {
            let patched = caller.patch(&at, MERGE, &json!({"spec": same})).await.ok(200);
            assert_eq!(
                (ranges(&patched), version(&patched)),
                (of("10.244.4.0/24"), version(&given)),
                "{same}"
            );
        }
        let mut whole = given.clone();
        whole["spec"]["podCIDRs"] = Value::Null;
        assert_eq!(ranges(&caller.put(&at, &whole).await.ok(200)), of("10.244.4.0/24"));
        whole["spec"]["podCIDR"] = Value::Null;
        assert!(caller.put(&at, &whole).await.refused(422, "Invalid").contains(FIXED));
    }

    let both = ["10.244.6.0/24", "fd00:10:244:6::/64"];
    let created = caller.post(AT, &node(&name("both"), json!({"podCIDRs": both}))).await.ok(201);
    assert_eq!(ranges(&created), (json!(both[0]), json!(both)));
    for wrong in [
        json!(["10.244.6.0/24", "10.244.7.0/24"]),
        json!(["10.244.6.0/24", "10.244.6.0/24"]),
        json!(["fd00:6::/64", "fd00:7::/64"]),
        json!(["10.244.6.0/24", "fd00:6::/64", "fd00:7::/64"]),
    ] {
        let answer = caller.post(AT, &node(&name("bad"), json!({"podCIDRs": wrong}))).await;
        let text = answer.refused(422, "Invalid");
        assert!(text.contains("may specify no more than one CIDR for each IP family"), "{text}");
    }
    let at = format!("{AT}/{}", name("both"));
    let fewer = caller.patch(&at, MERGE, &json!({"spec": {"podCIDRs": [both[0]]}})).await;
    assert!(fewer.refused(422, "Invalid").contains(FIXED));
}

pub async fn events_in_both_groups(caller: Caller) {
    let events = caller.at("events");
    let about = |namespace: &str| json!({"kind": "Service", "name": "web", "namespace": namespace});
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "one"},
        "involvedObject": about(&caller.namespace), "reason": "Ensured", "message": "words", "type": "Normal",
        "source": {"component": "test"}, "count": 1});
    caller.post(&events, &event).await.ok(201);
    let newer = format!("/apis/events.k8s.io/v1/namespaces/{}/events", caller.namespace);
    let same = caller.get(&format!("{newer}/one")).await.ok(200);
    assert_eq!((&same["note"], &same["regarding"]["name"]), (&json!("words"), &json!("web")));
    assert_eq!(same["apiVersion"], "events.k8s.io/v1");
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "two"},
        "regarding": about(&caller.namespace), "reason": "Ensured", "note": "more words", "type": "Warning",
        "action": "Ensure", "reportingController": "test", "reportingInstance": "test-0",
        "eventTime": "2026-01-01T00:00:00.000000Z"});
    caller.post(&newer, &event).await.ok(201);
    let older = caller.get(&format!("{events}/two")).await.ok(200);
    assert_eq!(
        (&older["message"], &older["involvedObject"]["name"], &older["reportingComponent"]),
        (&json!("more words"), &json!("web"), &json!("test"))
    );
    let mut incomplete = event.clone();
    incomplete["metadata"]["name"] = json!("three");
    incomplete["eventTime"] = Value::Null;
    assert!(caller.post(&newer, &incomplete).await.refused(422, "Invalid").contains("eventTime"));
    let mut foreign = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "four"}});
    foreign["involvedObject"] = about("elsewhere");
    let refused = caller.post(&events, &foreign).await;
    assert!(refused.refused(422, "Invalid").contains("does not match event.namespace"));
}
