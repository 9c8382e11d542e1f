//! Admission webhooks over TLS, as registered. They listen in this process; both servers call them over a socket.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::agreement::caller::{Caller, MERGE, config_map, names};
use crate::agreement::listening::{Listening, pause};

impl Listening {
    /// Responds to every AdmissionReview with the result of `decide` for its `request`, and records the requests.
    pub async fn admits(decide: fn(&Value) -> Value) -> Listening {
        Listening::start(move |review| {
            let request = review["request"].clone();
            let mut response = decide(&request);
            response["uid"] = request["uid"].clone();
            let answer =
                json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
            (answer, request)
        })
        .await
    }

    /// One webhook of a configuration, for ConfigMaps with the caller's own label.
    pub fn webhook(&self, caller: &Caller, operations: &[&str]) -> Value {
        json!({
            "name": "hook.example.com",
            "clientConfig": self.client_config(),
            "rules": [{"operations": operations, "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}],
            "objectSelector": {"matchLabels": {"hooked": caller.namespace}},
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": 20,
        })
    }
}

fn hooked(caller: &Caller, name: &str) -> Value {
    let mut object = config_map(name, json!({"a": "1"}));
    object["metadata"]["labels"] = json!({"hooked": caller.namespace});
    object
}

/// Registers the webhook, waits until the server calls it, and clears its recorded requests.
pub async fn register(caller: &Caller, kind: &str, listening: &Listening, webhook: Value) {
    let plural = format!("{}s", kind.to_lowercase());
    let configuration = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": caller.namespace}, "webhooks": [webhook]});
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    caller.post(&path, &configuration).await.ok(201);
    for _ in 0..600 {
        let probe = format!("{}?dryRun=All", caller.at("configmaps"));
        caller.post(&probe, &hooked(caller, "probe")).await;
        if !listening.asked.lock().is_empty() {
            listening.asked.lock().clear();
            return;
        }
        pause().await;
    }
    panic!("the server does not ask the webhook");
}

pub async fn a_mutating_webhook_changes_objects(caller: Caller) {
    let listening = Listening::admits(|_| {
        let patch = json!([{"op": "add", "path": "/data/hook", "value": "was here"}]);
        json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode(patch.to_string())})
    })
    .await;
    let webhook = listening.webhook(&caller, &["CREATE", "UPDATE"]);
    register(&caller, "MutatingWebhookConfiguration", &listening, webhook).await;
    let maps = caller.at("configmaps");
    let created = caller.post(&maps, &hooked(&caller, "m")).await.ok(201);
    assert_eq!(created["data"], json!({"a": "1", "hook": "was here"}));
    assert_eq!(created["metadata"]["managedFields"].as_array().unwrap().len(), 1);
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"]["f:data"];
    assert!(owned.get("f:a").is_some() && owned.get("f:hook").is_none(), "{owned}");
    let change = json!({"data": {"a": "2", "hook": "away"}});
    let patched = caller.patch(&format!("{maps}/m"), MERGE, &change).await.ok(200);
    assert_eq!(patched["data"], json!({"a": "2", "hook": "was here"}));
    caller.post(&maps, &config_map("other", json!({"a": "1"}))).await.ok(201);

    let asked = listening.asked.lock().clone();
    let operations: Vec<&str> = asked.iter().map(|request| request["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["CREATE", "UPDATE"]);
    let (first, second) = (&asked[0], &asked[1]);
    let map = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    assert_eq!((&first["kind"], &first["requestKind"]), (&map, &map));
    assert_eq!(first["resource"], json!({"group": "", "version": "v1", "resource": "configmaps"}));
    assert_eq!((&first["name"], &first["namespace"]), (&json!("m"), &json!(caller.namespace)));
    assert_eq!((&first["oldObject"], &first["dryRun"]), (&Value::Null, &json!(false)));
    assert_eq!(first["options"]["kind"], "CreateOptions");
    assert!(first["userInfo"]["username"].is_string());
    assert!(first["object"]["metadata"].get("resourceVersion").is_none());
    assert_eq!(second["oldObject"]["data"]["a"], "1");
    assert_eq!(second["object"]["data"], json!({"a": "2", "hook": "away"}));
    assert_eq!(second["object"]["metadata"]["uid"], created["metadata"]["uid"]);
}

pub async fn a_mutating_webhook_makes_a_mistake(caller: Caller) {
    let listening = Listening::admits(|request| {
        let (path, value) = match request["object"]["metadata"]["name"].as_str().unwrap_or_default() {
            "type" => ("/data/hook", json!(5)),
            "member" => ("/unknown", json!("dropped")),
            "path" => ("/none/there", json!("x")),
            "uid" => ("/metadata/uid", json!("forged")),
            _ => return json!({"allowed": true}),
        };
        let patch = json!([{"op": "add", "path": path, "value": value}]);
        json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode(patch.to_string())})
    })
    .await;
    let webhook = listening.webhook(&caller, &["CREATE"]);
    register(&caller, "MutatingWebhookConfiguration", &listening, webhook).await;
    let maps = caller.at("configmaps");
    for name in ["type", "path"] {
        let answer = caller.post(&maps, &hooked(&caller, name)).await;
        answer.refused(500, "InternalError");
        caller.get(&format!("{maps}/{name}")).await.refused(404, "NotFound");
    }
    let dropped = caller.post(&maps, &hooked(&caller, "member")).await.ok(201);
    assert!(dropped.get("unknown").is_none());
    let own = caller.post(&maps, &hooked(&caller, "uid")).await.ok(201);
    assert_ne!(own["metadata"]["uid"], "forged");
}

pub async fn a_validating_webhook_refuses(caller: Caller) {
    let listening = Listening::admits(|request| {
        let object = if request["object"].is_null() { &request["oldObject"] } else { &request["object"] };
        match object["metadata"]["name"].as_str().unwrap_or_default() {
            "said" => {
                json!({"allowed": false, "status": {"code": 418, "reason": "Because", "message": "no tea"}})
            }
            "silent" => json!({"allowed": false}),
            "reasoned" => json!({"allowed": false, "status": {"reason": "Conflict"}}),
            "kept" => json!({"allowed": request["operation"] != "DELETE", "status": {"message": "it stays"}}),
            _ => json!({"allowed": true, "warnings": ["take care"]}),
        }
    })
    .await;
    let webhook = listening.webhook(&caller, &["*"]);
    register(&caller, "ValidatingWebhookConfiguration", &listening, webhook).await;
    let maps = caller.at("configmaps");
    let said = caller.post(&maps, &hooked(&caller, "said")).await;
    let denied = "admission webhook \"hook.example.com\" denied the request";
    assert_eq!(said.refused(418, "Because"), format!("{denied}: no tea"));
    let silent = caller.post(&maps, &hooked(&caller, "silent")).await;
    assert_eq!(silent.refused(400, ""), format!("{denied} without explanation"));
    let reasoned = caller.post(&maps, &hooked(&caller, "reasoned")).await;
    assert_eq!(reasoned.refused(400, "Conflict"), format!("{denied}: Conflict"));
    caller.get(&format!("{maps}/said")).await.refused(404, "NotFound");

    caller.post(&maps, &hooked(&caller, "kept")).await.ok(201);
    let kept = caller.delete(&format!("{maps}/kept")).await;
    assert_eq!(kept.refused(400, ""), format!("{denied}: it stays"));
    caller.get(&format!("{maps}/kept")).await.ok(200);

    let mut generated = hooked(&caller, "x");
    generated["metadata"] = json!({"generateName": "free-", "labels": generated["metadata"]["labels"]});
    listening.asked.lock().clear();
    let free = caller.post(&maps, &generated).await.ok(201);
    let asked = listening.asked.lock().clone();
    let seen = &asked[0]["object"];
    assert_eq!(seen["metadata"]["name"], free["metadata"]["name"], "validators see the name");
    assert_eq!(seen["metadata"]["uid"], free["metadata"]["uid"], "and the uid that is stored");
}

pub async fn a_collection_is_deleted_up_to_what_is_refused(caller: Caller) {
    let listening = Listening::admits(|request| {
        json!({"allowed": request["operation"] != "DELETE" || request["oldObject"]["metadata"]["name"] != "b"})
    })
    .await;
    let webhook = listening.webhook(&caller, &["CREATE", "DELETE"]);
    register(&caller, "ValidatingWebhookConfiguration", &listening, webhook).await;
    let maps = caller.at("configmaps");
    for name in ["a", "b", "c"] {
        caller.post(&maps, &hooked(&caller, name)).await.ok(201);
    }
    let mine = format!("{maps}?labelSelector=hooked%3D{}", caller.namespace);
    let refused = caller.delete(&mine).await;
    let denied = "admission webhook \"hook.example.com\" denied the request without explanation";
    assert_eq!(refused.refused(400, ""), denied);
    assert_eq!(names(&caller.get(&mine).await.ok(200)), ["b", "c"]);
}

/// A rule for one version matches requests for another one, and the webhook sees the version that it knows.
pub async fn webhooks_see_custom_resources_in_their_version(caller: Caller) {
    let (plural, group) = ("gizmos", format!("{}.example.com", caller.namespace));
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"plural": plural, "singular": "gizmo", "kind": "Gizmo", "listKind": "GizmoList"},
            "versions": [
                {"name": "v1", "served": true, "storage": true, "schema": schema},
                {"name": "v1beta1", "served": true, "storage": false, "schema": schema},
            ]},
    });
    caller.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.ok(201);
    let listening = Listening::admits(|_| {
        let patch = json!([{"op": "add", "path": "/spec/hook", "value": "was here"}]);
        json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode(patch.to_string())})
    })
    .await;
    let mut webhook = listening.webhook(&caller, &["CREATE"]);
    webhook["rules"] = json!([
        {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
        {"operations": ["CREATE"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [plural]},
    ]);
    register(&caller, "MutatingWebhookConfiguration", &listening, webhook).await;
    let path = format!("/apis/{group}/v1beta1/namespaces/{}/{plural}", caller.namespace);
    let gizmo = json!({"apiVersion": format!("{group}/v1beta1"), "kind": "Gizmo", "spec": {"a": 1},
        "metadata": {"name": "g", "labels": {"hooked": caller.namespace}}});
    // The definition is served after a moment.
    let mut created = caller.post(&path, &gizmo).await;
    for _ in 0..600 {
        if created.code != 404 {
            break;
        }
        pause().await;
        created = caller.post(&path, &gizmo).await;
    }
    let created = created.ok(201);
    assert_eq!(created["apiVersion"], format!("{group}/v1beta1"));
    assert_eq!(created["spec"], json!({"a": 1, "hook": "was here"}));
    let asked = listening.asked.lock().clone();
    let asked: Vec<&Value> = asked.iter().filter(|request| request["kind"]["kind"] == "Gizmo").collect();
    assert_eq!(asked.len(), 1);
    assert_eq!(
        (&asked[0]["kind"]["version"], &asked[0]["requestKind"]["version"]),
        (&json!("v1"), &json!("v1beta1"))
    );
    assert_eq!(asked[0]["object"]["apiVersion"], format!("{group}/v1"));
}

/// Subresources with a type of their own: the webhook sees and changes objects of that type.
pub async fn webhooks_see_what_subresources_take(caller: Caller) {
    let listening = Listening::admits(|request| {
        let object = &request["object"];
        let (path, value) = match object["kind"].as_str().unwrap_or_default() {
            "Scale" if object["spec"]["replicas"] == 2 => ("/spec/replicas", json!(3)),
            "Scale" if object["spec"]["replicas"] == 9 => {
                return json!({"allowed": false, "status": {"message": "too many"}});
            }
            "Binding" if object["target"]["name"] == "full" => {
                return json!({"allowed": false, "status": {"message": "no room"}});
            }
            "Binding" => ("/target/name", json!("other")),
            "Eviction" => ("/deleteOptions", json!({"gracePeriodSeconds": 7})),
            _ => return json!({"allowed": true}),
        };
        let patch = json!([{"op": "add", "path": path, "value": value}]);
        json!({"allowed": true, "patchType": "JSONPatch", "patch": BASE64_STANDARD.encode(patch.to_string())})
    })
    .await;
    let label = json!({"metadata": {"labels": {"hooked": caller.namespace}}});
    caller.patch(&format!("/api/v1/namespaces/{}", caller.namespace), MERGE, &label).await.ok(200);
    let mut webhook = listening.webhook(&caller, &["*"]);
    webhook["namespaceSelector"] = webhook["objectSelector"].clone();
    webhook["objectSelector"] = json!({});
    webhook["rules"] = json!([
        {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps", "pods/binding", "pods/eviction"]},
        {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/scale"]},
    ]);
    register(&caller, "MutatingWebhookConfiguration", &listening, webhook).await;
    let container = json!({"containers": [{"name": "c", "image": "i"}]});
    for name in ["a", "b"] {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": container});
        caller.post(&caller.at("pods"), &pod).await.ok(201);
    }
    let binding = |name: &str, node: &str| {
        json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
    };
    let refused = caller.post(&caller.at("pods/b/binding"), &binding("b", "full")).await;
    let denied = "admission webhook \"hook.example.com\" denied the request";
    assert_eq!(refused.refused(400, ""), format!("{denied}: no room"));
    assert!(caller.get(&caller.at("pods/b")).await.ok(200)["spec"].get("nodeName").is_none());
    caller.post(&caller.at("pods/a/binding"), &binding("a", "n0")).await.ok(201);
    assert_eq!(caller.get(&caller.at("pods/a")).await.ok(200)["spec"]["nodeName"], "other");

    let groups = caller.get("/apis/policy").await.ok(200);
    let eviction = json!({"apiVersion": groups["preferredVersion"]["groupVersion"], "kind": "Eviction",
        "metadata": {"name": "a", "namespace": caller.namespace}});
    caller.post(&caller.at("pods/a/eviction"), &eviction).await.ok(201);
    assert_eq!(caller.get(&caller.at("pods/a")).await.ok(200)["metadata"]["deletionGracePeriodSeconds"], 7);

    let deployments = format!("/apis/apps/v1/namespaces/{}/deployments", caller.namespace);
    let labels = json!({"app": "web"});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": container}}});
    caller.post(&deployments, &deployment).await.ok(201);
    let scale = format!("{deployments}/web/scale");
    let to = |replicas: u32| json!({"spec": {"replicas": replicas}});
    let scaled = caller.patch(&scale, MERGE, &to(2)).await.ok(200);
    assert_eq!(scaled["spec"]["replicas"], 3);
    assert_eq!(caller.get(&format!("{deployments}/web")).await.ok(200)["spec"]["replicas"], 3);
    let refused = caller.patch(&scale, MERGE, &to(9)).await;
    assert_eq!(refused.refused(400, ""), format!("{denied}: too many"));
    // The whole object is another resource.
    caller.patch(&format!("{deployments}/web"), MERGE, &to(9)).await.ok(200);

    let asked = listening.asked.lock().clone();
    let shown = |request: &Value| {
        let text = |pointer: &str| request.pointer(pointer).and_then(Value::as_str).unwrap_or("-").to_owned();
        [
            text("/operation"),
            text("/resource/resource"),
            text("/subResource"),
            text("/requestSubResource"),
            text("/name"),
            text("/kind/kind"),
            text("/requestKind/kind"),
            text("/object/kind"),
            text("/oldObject/kind"),
        ]
        .join(" ")
    };
    // A server with a stale cache retries a refused write once.
    let mut seen: Vec<String> = asked.iter().map(shown).collect();
    seen.dedup();
    assert_eq!(
        seen,
        [
            "CREATE pods binding binding b Binding Binding Binding -",
            "CREATE pods binding binding a Binding Binding Binding -",
            "CREATE pods eviction eviction a Eviction Eviction Eviction -",
            "UPDATE deployments scale scale web Scale Scale Scale Scale",
        ]
    );
    assert_eq!(asked[0]["kind"], json!({"group": "", "version": "v1", "kind": "Binding"}));
    assert_eq!(asked[3]["kind"], json!({"group": "autoscaling", "version": "v1", "kind": "Scale"}));
    assert_eq!(asked[3]["resource"]["group"], "apps");
    let replicas = |request: &Value, member: &str| request[member]["spec"]["replicas"].clone();
    assert_eq!((replicas(&asked[3], "oldObject"), replicas(&asked[3], "object")), (json!(1), json!(2)));
    let last = asked.last().unwrap();
    assert_eq!((replicas(last, "oldObject"), replicas(last, "object")), (json!(3), json!(9)));
}

pub async fn a_webhook_that_is_down(caller: Caller) {
    let listening = Listening::admits(|_| json!({"allowed": true})).await;
    // It allows requests at first, so that the test sees when it is in force.
    let mut webhook = listening.webhook(&caller, &["CREATE"]);
    register(&caller, "ValidatingWebhookConfiguration", &listening, webhook.clone()).await;
    let path =
        format!("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{}", caller.namespace);
    // No program listens on port 1.
    webhook["clientConfig"] = json!({"url": "https://127.0.0.1:1/admit"});
    webhook["failurePolicy"] = json!("Fail");
    caller.patch(&path, MERGE, &json!({"webhooks": [webhook]})).await.ok(200);
    let maps = caller.at("configmaps");
    let refused = async |name: &str| {
        for _ in 0..600 {
            let answer = caller.post(&maps, &hooked(&caller, name)).await;
            if answer.code != 201 {
                return answer;
            }
            caller.delete(&format!("{maps}/{name}")).await;
            pause().await;
        }
        panic!("the webhook is not asked");
    };
    let answer = refused("m").await;
    let message = answer.refused(500, "InternalError");
    let start = "Internal error occurred: failed calling webhook \"hook.example.com\": ";
    assert!(message.starts_with(start), "{message}");
    assert!(
        message.contains("Post \"https://127.0.0.1:1/admit?timeout=20s\": dial tcp 127.0.0.1:1"),
        "{message}"
    );
    assert_eq!(answer.body["details"]["causes"][0]["message"], message["Internal error occurred: ".len()..]);

    webhook["failurePolicy"] = json!("Ignore");
    caller.patch(&path, MERGE, &json!({"webhooks": [webhook]})).await.ok(200);
    for _ in 0..600 {
        let answer = caller.post(&maps, &hooked(&caller, "n")).await;
        if answer.code == 201 {
            return;
        }
        pause().await;
    }
    panic!("an optional webhook holds up requests");
}
