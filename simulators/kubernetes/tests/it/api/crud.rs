//! Create, get, update and the subresources.

use http::Method;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use crate::api::*;

#[tokio::test(start_paused = true)]
async fn an_object_is_created_read_replaced_and_deleted() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let created = api.create(&PostParams::default(), &typed(config_map("a", json!({})))).await.unwrap();
    assert!(created.metadata.uid.is_some());
    assert_eq!(created.metadata.creation_timestamp.as_ref().unwrap().0, kubernetes.now());

    let mut read = api.get("a").await.unwrap();
    assert_eq!(read.metadata.resource_version, created.metadata.resource_version);
    read.data.get_or_insert_default().insert("more".to_owned(), "1".to_owned());
    let replaced = api.replace("a", &PostParams::default(), &read).await.unwrap();
    assert_ne!(replaced.metadata.resource_version, created.metadata.resource_version);
    assert_eq!(replaced.metadata.uid, created.metadata.uid);

    let deleted = api.delete("a", &DeleteParams::default()).await.unwrap().right().expect("gone at once");
    assert_eq!(deleted.details.unwrap().uid, created.metadata.uid.unwrap());
    let missing = status(api.get("a").await);
    assert_eq!((missing.code, missing.message.as_str()), (404, "configmaps \"a\" not found"));
    assert_eq!(missing.reason, "NotFound");
}

#[tokio::test(start_paused = true)]
async fn of_two_writers_with_one_version_the_second_loses() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let created = api.create(&PostParams::default(), &typed(config_map("a", json!({})))).await.unwrap();
    let with = |value: &str| {
        let mut object = created.clone();
        object.data.get_or_insert_default().insert("key".to_owned(), value.to_owned());
        object
    };
    api.replace("a", &PostParams::default(), &with("one")).await.unwrap();
    let lost = status(api.replace("a", &PostParams::default(), &with("two")).await);
    assert_eq!((lost.code, lost.reason.as_str()), (409, "Conflict"));
    assert!(
        lost.message
            .starts_with("Operation cannot be fulfilled on configmaps \"a\": the object has been modified")
    );

    let mut unconditional = with("three");
    unconditional.metadata.resource_version = None;
    api.replace("a", &PostParams::default(), &unconditional).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_makes_no_new_version() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let created = api.create(&PostParams::default(), &typed(config_map("a", json!({})))).await.unwrap();
    let before = kubernetes.resource_version();
    api.replace("a", &PostParams::default(), &created).await.unwrap();
    api.patch("a", &PatchParams::default(), &Patch::Merge(json!({ "data": { "key": "value" } })))
        .await
        .unwrap();
    assert_eq!(kubernetes.resource_version(), before);
}

#[tokio::test(start_paused = true)]
async fn creating_is_refused_where_it_cannot_be() {
    let kubernetes = kubernetes();
    let path = "/api/v1/namespaces/default/configmaps";
    assert_eq!(raw::post(&kubernetes, path, &config_map("a", json!({}))).await.0, 201);
    let (code, twice) = raw::post(&kubernetes, path, &config_map("a", json!({}))).await;
    assert_eq!((code, twice["reason"].as_str()), (409, Some("AlreadyExists")));
    assert_eq!(twice["message"], "configmaps \"a\" already exists");

    let elsewhere = "/api/v1/namespaces/nowhere/configmaps";
    let (code, missing) = raw::post(&kubernetes, elsewhere, &json!({ "metadata": { "name": "a" } })).await;
    assert_eq!((code, missing["message"].as_str()), (404, Some("namespaces \"nowhere\" not found")));

    let (code, _) =
        raw::post(&kubernetes, "/api/v1/namespaces/kube-system/configmaps", &config_map("b", json!({})))
            .await;
    assert_eq!(code, 400, "the body names another namespace");
    let (code, _) = raw::post(&kubernetes, path, &service("c")).await;
    assert_eq!(code, 400, "the body is of another kind");
    let (code, unnamed) = raw::post(&kubernetes, path, &json!({})).await;
    assert_eq!((code, unnamed["reason"].as_str()), (422, Some("Invalid")));
    let versioned = json!({ "metadata": { "name": "d", "resourceVersion": "4" } });
    let (code, status) = raw::post(&kubernetes, path, &versioned).await;
    assert_eq!(
        (code, status["message"].as_str()),
        (500, Some("resourceVersion should not be set on objects to be created"))
    );
    let (code, _) = raw::post(&kubernetes, "/api/v1/configmaps", &config_map("e", json!({}))).await;
    assert_eq!(code, 405, "a namespaced kind is created in a namespace");
    let (code, _) = raw::send(&kubernetes, Method::POST, path, &[("content-type", "text/plain")], "x").await;
    assert_eq!(code, 415);
}

#[tokio::test(start_paused = true)]
async fn generated_names_differ() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let object: ConfigMap = typed(json!({ "metadata": { "generateName": "run-" } }));
    let first = api.create(&PostParams::default(), &object).await.unwrap().metadata.name.unwrap();
    let second = api.create(&PostParams::default(), &object).await.unwrap().metadata.name.unwrap();
    assert!(first.starts_with("run-") && first.len() == 9, "{first}");
    assert_ne!(first, second);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_and_stores_nothing() {
    let kubernetes = kubernetes();
    let api = services(&kubernetes);
    let before = kubernetes.resource_version();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let answer = api.create(&dry, &typed(service("a"))).await.unwrap();
    let address = answer.spec.unwrap().cluster_ip.unwrap();
    assert!(api.get_opt("a").await.unwrap().is_none());

    // The address was released: a Service may request it.
    let mut wanting = service("b");
    wanting["spec"]["clusterIP"] = json!(address);
    let stored = api.create(&PostParams::default(), &typed(wanting)).await.unwrap();
    let version = kubernetes.resource_version();
    assert!(version > before);

    // A dry run of an update releases no allocation of the stored Service.
    let mut internal = stored.clone();
    internal.spec.as_mut().unwrap().type_ = Some("ClusterIP".to_owned());
    let dry_answer = api.replace("b", &dry, &internal).await.unwrap();
    assert_eq!(dry_answer.spec.unwrap().type_.as_deref(), Some("ClusterIP"));
    assert_eq!(kubernetes.resource_version(), version);
    let mut thief = service("c");
    let port = stored.spec.unwrap().ports.unwrap().remove(0).node_port.unwrap();
    thief["spec"]["ports"][0]["nodePort"] = json!(port);
    assert_eq!(status(api.create(&PostParams::default(), &typed(thief)).await).code, 422);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_by_its_subresource_alone() {
    let kubernetes = kubernetes();
    let api = services(&kubernetes);
    let mut object = service("a");
    object["status"] = json!({ "loadBalancer": { "ingress": [{ "ip": "1.2.3.4" }] } });
    let created = api.create(&PostParams::default(), &typed(object.clone())).await.unwrap();
    assert!(created.status.unwrap().load_balancer.unwrap_or_default().ingress.is_none());

    object["spec"]["ports"][0]["port"] = json!(81);
    let main = api.patch("a", &PatchParams::default(), &Patch::Merge(object.clone())).await.unwrap();
    assert!(main.status.unwrap().load_balancer.unwrap_or_default().ingress.is_none());
    assert_eq!(main.spec.unwrap().ports.unwrap()[0].port, 81);

    object["spec"]["ports"][0]["port"] = json!(82);
    let patched = api.patch_status("a", &PatchParams::default(), &Patch::Merge(object)).await.unwrap();
    assert_eq!(patched.spec.unwrap().ports.unwrap()[0].port, 81);
    let ingress = patched.status.unwrap().load_balancer.unwrap().ingress.unwrap();
    assert_eq!(ingress[0].ip.as_deref(), Some("1.2.3.4"));
}

/// Go's service controllers set their finalizer by a patch of the status subresource.
#[tokio::test(start_paused = true)]
async fn metadata_of_a_builtin_kind_passes_through_the_status_subresource() {
    let kubernetes = kubernetes();
    let api = services(&kubernetes);
    api.create(&PostParams::default(), &typed(service("a"))).await.unwrap();
    let patch = json!({ "metadata": { "finalizers": ["service.kubernetes.io/load-balancer-cleanup"] } });
    let patched = api.patch_status("a", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    assert_eq!(patched.metadata.finalizers.unwrap(), ["service.kubernetes.io/load-balancer-cleanup"]);
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_brings_the_status_when_it_registers() {
    let kubernetes = kubernetes();
    let api: Api<Node> = Api::all(client(&kubernetes));
    let node = json!({ "metadata": { "name": "n" }, "status": { "nodeInfo": { "kubeletVersion": "v1.33.0",
        "architecture": "", "bootID": "", "containerRuntimeVersion": "", "kernelVersion": "", "kubeProxyVersion": "",
        "machineID": "", "operatingSystem": "", "osImage": "", "systemUUID": "" } } });
    let created = api.create(&PostParams::default(), &typed(node)).await.unwrap();
    assert_eq!(created.status.unwrap().node_info.unwrap().kubelet_version, "v1.33.0");
}

#[tokio::test(start_paused = true)]
async fn the_generation_counts_changes_of_the_specification() {
    let kubernetes = kubernetes();
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
        "spec": { "replicas": 1, "selector": { "matchLabels": { "a": "b" } },
            "template": { "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] } } },
    });
    let generation = |object: &serde_json::Value| object["metadata"]["generation"].as_u64();
    assert_eq!(generation(&kubernetes.create(deployment).unwrap()), Some(1));
    let merge = |patch| kubernetes.merge("Deployment", "default", "d", &patch).unwrap();
    assert_eq!(generation(&merge(json!({ "metadata": { "labels": { "x": "y" } } }))), Some(1));
    assert_eq!(generation(&merge(json!({ "spec": { "replicas": 2 } }))), Some(2));
    let status = json!({ "status": { "replicas": 2 } });
    assert_eq!(generation(&kubernetes.merge_status("Deployment", "default", "d", &status).unwrap()), Some(2));

    let (code, scale) =
        raw::get(&kubernetes, "/apis/apps/v1/namespaces/default/deployments/d/scale", "").await;
    assert_eq!(
        (code, &scale["spec"]["replicas"], &scale["status"]["selector"]),
        (200, &json!(2), &json!("a=b"))
    );
    let scale = json!({ "spec": { "replicas": 5 } });
    let (code, _) =
        raw::put(&kubernetes, "/apis/apps/v1/namespaces/default/deployments/d/scale", &scale).await;
    assert_eq!(code, 200);
    let scaled = kubernetes.get("deploy", "default", "d").unwrap();
    assert_eq!((&scaled["spec"]["replicas"], generation(&scaled)), (&json!(5), Some(3)));
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_only_replaced_with_its_version() {
    let kubernetes = kubernetes();
    let api: Api<Lease> = Api::namespaced(client(&kubernetes), "kube-system");
    let lease: Lease = typed(json!({ "metadata": { "name": "l" }, "spec": { "holderIdentity": "one" } }));
    let created = api.create(&PostParams::default(), &lease).await.unwrap();
    let refused = status(api.replace("l", &PostParams::default(), &lease).await);
    assert_eq!(refused.code, 422);
    assert!(
        refused
            .message
            .contains("metadata.resourceVersion: Invalid value: 0: must be specified for an update")
    );
    let mut taken = created.clone();
    taken.spec.as_mut().unwrap().holder_identity = Some("two".to_owned());
    api.replace("l", &PostParams::default(), &taken).await.unwrap();
    assert_eq!(status(api.replace("l", &PostParams::default(), &created).await).code, 409);
}

#[tokio::test(start_paused = true)]
async fn events_read_the_same_in_both_groups() {
    let kubernetes = kubernetes();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": { "name": "e.1", "namespace": "default" },
        "eventTime": "2026-01-01T00:00:00.000000Z", "reportingController": "service-controller",
        "reportingInstance": "x", "action": "Ensure", "reason": "EnsuredLoadBalancer", "type": "Normal",
        "note": "done", "regarding": { "kind": "Service", "name": "a", "namespace": "default" },
    });
    let path = "/apis/events.k8s.io/v1/namespaces/default/events";
    let (code, created) = raw::post(&kubernetes, path, &event).await;
    assert_eq!((code, created["note"].as_str()), (201, Some("done")), "{created}");
    let selector = "involvedObject.name%3Da,involvedObject.kind%3DService,reason%3DEnsuredLoadBalancer";
    let core = format!("/api/v1/namespaces/default/events?fieldSelector={selector}");
    let (_, list) = raw::get(&kubernetes, &core, "").await;
    assert_eq!(list["items"][0]["message"], "done");
    assert_eq!((&list["apiVersion"], &list["kind"]), (&json!("v1"), &json!("EventList")));
    assert_eq!(list["items"][0]["reportingComponent"], "service-controller");
    let (_, list) = raw::get(&kubernetes, &format!("{path}?fieldSelector=regarding.name%3Da"), "").await;
    assert_eq!(list["items"][0]["regarding"]["name"], "a");
    assert_eq!(list["apiVersion"], "events.k8s.io/v1");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_fills_in_belongs_to_nobody() {
    let kubernetes = kubernetes();
    let api = services(&kubernetes);
    api.create(&PostParams::default(), &typed(service("a"))).await.unwrap();
    let port = json!([{ "port": 80, "nodePort": 30123 }]);
    let apply = json!({ "apiVersion": "v1", "kind": "Service", "spec": { "ports": port, "ipFamilyPolicy": "SingleStack" } });
    let applied = api.patch("a", &PatchParams::apply("other"), &Patch::Apply(apply)).await.unwrap();
    assert_eq!(applied.spec.unwrap().ports.unwrap()[0].node_port, Some(30123));
}

#[tokio::test(start_paused = true)]
async fn a_test_can_wait_for_what_it_expects() {
    let kubernetes = kubernetes();
    let writer = kubernetes.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        writer.create(config_map("a", json!({}))).unwrap();
    });
    let start = kubernetes.now();
    let name = kubernetes
        .until("cm", |objects| objects.first().map(|object| object.name().to_owned()))
        .await
        .unwrap();
    assert_eq!(name, "a");
    assert_eq!(kubernetes.now().duration_since(start).as_secs(), 3);
    assert_eq!((kubernetes.clock())(), kubernetes.now());
    assert_eq!(kubernetes.until("nonsense", |_| Some(())).await.unwrap_err().code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_recorder_publishes_and_repeats_events() {
    use kube::runtime::events::{Event, EventType, Recorder, Reporter};
    let kubernetes = kubernetes();
    let object = kubernetes.create(service("a")).unwrap();
    let reporter = Reporter { controller: "service-controller".to_owned(), instance: Some("one".to_owned()) };
    let recorder = Recorder::new(client(&kubernetes), reporter);
    let reference = k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Service".to_owned()),
        name: Some("a".to_owned()),
        namespace: Some("default".to_owned()),
        uid: Some(object.uid().to_owned()),
        ..Default::default()
    };
    let event = Event {
        type_: EventType::Warning,
        reason: "SyncLoadBalancerFailed".to_owned(),
        note: Some("the address is outside of the subnet".to_owned()),
        action: "Sync".to_owned(),
        secondary: None,
    };
    for _ in 0..3 {
        recorder.publish(&event, &reference).await.unwrap();
    }
    let events = kubernetes.list("events");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["series"]["count"], 3);
    assert_eq!(events[0]["involvedObject"]["uid"], object.uid());
}

#[tokio::test(start_paused = true)]
async fn who_asks_what_a_container_says_hears_that_none_runs() {
    let kubernetes = kubernetes();
    let logs = "/api/v1/namespaces/default/pods/p/log?container=c";
    assert_eq!(raw::get(&kubernetes, logs, "").await.0, 404);
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" },
        "spec": { "containers": [{ "name": "c", "image": "i" }] } });
    kubernetes.create(pod).unwrap();
    let (code, refused) = raw::get(&kubernetes, logs, "").await;
    assert_eq!((code, refused["reason"].as_str()), (501, Some("NotImplemented")));
    assert_eq!(
        refused["message"],
        "pod \"p\" has no log: nothing runs in the pods of a simulated Kubernetes"
    );
}
