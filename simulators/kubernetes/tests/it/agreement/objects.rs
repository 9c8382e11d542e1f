//! Single objects: create, update, status, delete.

use http::Method;
use serde_json::json;

use crate::agreement::caller::{Caller, MERGE, config_map, service, version};

pub async fn create_and_create_again(caller: Caller) {
    let services = caller.at("services");
    let object = service("web", json!({"ports": [{"port": 80}]}));
    let created = caller.post(&services, &object).await.ok(201);
    let metadata = &created["metadata"];
    assert_eq!(created["kind"], "Service");
    assert_eq!(metadata["namespace"], caller.namespace.as_str());
    for member in ["uid", "resourceVersion", "creationTimestamp"] {
        assert!(metadata[member].as_str().is_some_and(|text| !text.is_empty()), "{member}");
    }
    let read = caller.get(&format!("{services}/web")).await.ok(200);
    assert_eq!(read, created);
    let again = caller.post(&services, &object).await;
    assert_eq!(again.refused(409, "AlreadyExists"), "services \"web\" already exists");
    assert_eq!(again.body["details"], json!({"name": "web", "kind": "services"}));
}

pub async fn names_are_generated(caller: Caller) {
    let maps = caller.at("configmaps");
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "some-"}});
    let one = caller.post(&maps, &object).await.ok(201);
    let two = caller.post(&maps, &object).await.ok(201);
    let name = |object: &serde_json::Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    assert!(name(&one).starts_with("some-") && name(&one).len() == "some-".len() + 5);
    assert_ne!(name(&one), name(&two));
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let refused = caller.post(&maps, &nameless).await;
    assert!(refused.refused(422, "Invalid").contains("name or generateName is required"));
}

pub async fn update_under_a_version(caller: Caller) {
    let services = caller.at("services");
    let at = format!("{services}/web");
    let created = caller.post(&services, &service("web", json!({"ports": [{"port": 80}]}))).await.ok(201);
    let mut first = created.clone();
    first["metadata"]["labels"] = json!({"a": "1"});
    let updated = caller.put(&at, &first).await.ok(200);
    assert_ne!(version(&updated), version(&created));
    assert_eq!(updated["metadata"]["uid"], created["metadata"]["uid"]);
    let mut second = created;
    second["metadata"]["labels"] = json!({"a": "2"});
    let refused = caller.put(&at, &second).await;
    assert_eq!(
        refused.refused(409, "Conflict"),
        "Operation cannot be fulfilled on services \"web\": the object has been modified; please apply your \
         changes to the latest version and try again"
    );
    assert_eq!(caller.get(&at).await.ok(200)["metadata"]["labels"], json!({"a": "1"}));
}

pub async fn update_without_a_version(caller: Caller) {
    let maps = caller.at("configmaps");
    caller.post(&maps, &config_map("m", json!({"a": "1"}))).await.ok(201);
    let updated = caller.put(&format!("{maps}/m"), &config_map("m", json!({"a": "2"}))).await.ok(200);
    assert_eq!(updated["data"], json!({"a": "2"}));
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", caller.namespace);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
        "spec": {"holderIdentity": "one"}});
    caller.post(&leases, &lease).await.ok(201);
    let refused = caller.put(&format!("{leases}/l"), &lease).await;
    assert!(refused.refused(422, "Invalid").contains("metadata.resourceVersion"));
    assert!(refused.body["message"].as_str().unwrap().contains("must be specified for an update"));
}

pub async fn update_of_another_name(caller: Caller) {
    let maps = caller.at("configmaps");
    caller.post(&maps, &config_map("m", json!({}))).await.ok(201);
    let refused = caller.put(&format!("{maps}/m"), &config_map("other", json!({}))).await;
    assert_eq!(
        refused.refused(400, "BadRequest"),
        "the name of the object (other) does not match the name on the URL (m)"
    );
    let mut foreign = config_map("n", json!({}));
    foreign["metadata"]["namespace"] = json!("elsewhere");
    caller.post(&maps, &foreign).await.refused(400, "BadRequest");
}

pub async fn an_update_that_changes_nothing_keeps_the_version(caller: Caller) {
    let maps = caller.at("configmaps");
    let created = caller.post(&maps, &config_map("m", json!({"a": "1"}))).await.ok(201);
    let updated = caller.put(&format!("{maps}/m"), &created).await.ok(200);
    assert_eq!(version(&updated), version(&created));
    let patched = caller.patch(&format!("{maps}/m"), MERGE, &json!({"data": {"a": "1"}})).await.ok(200);
    assert_eq!(version(&patched), version(&created));
}

pub async fn status_is_apart(caller: Caller) {
    let services = caller.at("services");
    let at = format!("{services}/web");
    let balancer = json!({"loadBalancer": {"ingress": [{"ip": "20.0.0.1"}]}});
    let mut object = service("web", json!({"type": "LoadBalancer", "ports": [{"port": 80}]}));
    object["status"] = balancer.clone();
    let created = caller.post(&services, &object).await.ok(201);
    assert_eq!(created["status"], json!({"loadBalancer": {}}), "a status cannot be created");

    let mut update = created.clone();
    update["status"] = balancer.clone();
    update["metadata"]["labels"] = json!({"a": "1"});
    let updated = caller.put(&at, &update).await.ok(200);
    assert_eq!(updated["status"], json!({"loadBalancer": {}}));
    assert_eq!(updated["metadata"]["labels"], json!({"a": "1"}));

    // The mode is defaulted for the decoded type: here it is another one, for which the mode is ignored.
    let mut change = json!({"spec": {"type": "ClusterIP"}, "status": balancer});
    let refused = caller.patch(&format!("{at}/status"), MERGE, &change).await;
    assert!(
        refused
            .refused(422, "Invalid")
            .contains("ipMode: Required value: must be specified when `ip` is set")
    );
    change["status"]["loadBalancer"]["ingress"][0]["ipMode"] = json!("VIP");
    let patched = caller.patch(&format!("{at}/status"), MERGE, &change).await.ok(200);
    assert_eq!(patched["spec"]["type"], "LoadBalancer");
    assert_eq!(patched["status"]["loadBalancer"]["ingress"][0]["ip"], "20.0.0.1");
    assert_eq!(caller.get(&format!("{at}/status")).await.ok(200), patched);

    let cleared = caller.patch(&at, MERGE, &json!({"status": {"loadBalancer": null}})).await.ok(200);
    assert_eq!(cleared["status"]["loadBalancer"]["ingress"][0]["ip"], "20.0.0.1");
    let inner = caller.patch(&at, MERGE, &json!({"spec": {"type": "ClusterIP"}})).await.ok(200);
    assert_eq!(
        inner["status"],
        json!({"loadBalancer": {}}),
        "what is no load balancer has no address of one"
    );
    let refused = caller.patch(&format!("{at}/status"), MERGE, &json!({"status": balancer})).await;
    assert!(refused.refused(422, "Invalid").contains("may only be used when `spec.type` is 'LoadBalancer'"));
}

pub async fn a_finalizer_holds_an_object(caller: Caller) {
    let maps = caller.at("configmaps");
    let at = format!("{maps}/web");
    let mut object = config_map("web", json!({"a": "1"}));
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    caller.post(&maps, &object).await.ok(201);

    let marked = caller.delete(&at).await.ok(200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let held = caller.get(&at).await.ok(200);
    let stamp = held["metadata"]["deletionTimestamp"].clone();
    assert!(stamp.is_string());
    assert_eq!(held["metadata"]["deletionGracePeriodSeconds"], 0);
    let again = caller.delete(&at).await.ok(200);
    assert_eq!(again["metadata"]["deletionTimestamp"], stamp, "the first deletion counts");

    let add =
        json!({"metadata": {"finalizers": ["example.com/one", "example.com/two", "example.com/three"]}});
    let refused = caller.patch(&at, MERGE, &add).await;
    assert!(refused.refused(422, "Invalid").contains("no new finalizers can be added"));

    let one = json!({"metadata": {"finalizers": ["example.com/two"]}});
    caller.patch(&at, MERGE, &one).await.ok(200);
    caller.get(&at).await.ok(200);
    caller.patch(&at, MERGE, &json!({"metadata": {"finalizers": null}})).await.ok(200);
    caller.get(&at).await.refused(404, "NotFound");
}

pub async fn deletion_under_preconditions(caller: Caller) {
    let maps = caller.at("configmaps");
    let created = caller.post(&maps, &config_map("m", json!({}))).await.ok(201);
    let at = format!("{maps}/m");
    let delete = async |preconditions: serde_json::Value| {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
        caller.send(Method::DELETE, &at, Some(("application/json", &options))).await
    };
    delete(json!({"uid": "00000000-0000-0000-0000-000000000000"})).await.refused(409, "Conflict");
    delete(json!({"resourceVersion": "1"})).await.refused(409, "Conflict");
    let uid = created["metadata"]["uid"].clone();
    let answer = delete(json!({"uid": uid, "resourceVersion": version(&created)})).await.ok(200);
    assert_eq!((answer["kind"].as_str(), answer["status"].as_str()), (Some("Status"), Some("Success")));
    assert_eq!(answer["details"]["uid"], uid);
    caller.delete(&at).await.refused(404, "NotFound");
}

pub async fn a_lease_is_taken_by_one(caller: Caller) {
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", caller.namespace);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
        "spec": {"holderIdentity": "", "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.000000Z"}});
    let free = caller.post(&leases, &lease).await.ok(201);
    assert_eq!(free["spec"]["renewTime"], "2026-01-01T00:00:00.000000Z");
    let take = async |who: &str| {
        let mut lease = free.clone();
        lease["spec"]["holderIdentity"] = json!(who);
        caller.put(&format!("{leases}/l"), &lease).await
    };
    let taken = take("one").await.ok(200);
    take("two").await.refused(409, "Conflict");
    let now = caller.get(&format!("{leases}/l")).await.ok(200);
    assert_eq!(now, taken);
    assert_eq!(now["spec"]["holderIdentity"], "one");
}

pub async fn a_dry_run_stores_nothing(caller: Caller) {
    let maps = caller.at("configmaps");
    let object = config_map("m", json!({"a": "1"}));
    caller.post(&format!("{maps}?dryRun=All"), &object).await.ok(201);
    caller.get(&format!("{maps}/m")).await.refused(404, "NotFound");
    caller.post(&maps, &object).await.ok(201);
    let changed =
        caller.patch(&format!("{maps}/m?dryRun=All"), MERGE, &json!({"data": {"a": "2"}})).await.ok(200);
    assert_eq!(changed["data"]["a"], "2");
    caller.delete(&format!("{maps}/m?dryRun=All")).await.ok(200);
    assert_eq!(caller.get(&format!("{maps}/m")).await.ok(200)["data"]["a"], "1");
}

pub async fn what_is_not_there(caller: Caller) {
    let services = caller.at("services");
    let missing = caller.get(&format!("{services}/nope")).await;
    assert_eq!(missing.refused(404, "NotFound"), "services \"nope\" not found");
    assert_eq!(missing.body["details"], json!({"name": "nope", "kind": "services"}));
    let message = "leases.coordination.k8s.io \"nope\" not found";
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases/nope", caller.namespace);
    assert_eq!(caller.get(&leases).await.refused(404, "NotFound"), message);
    caller.patch(&format!("{services}/nope"), MERGE, &json!({})).await.refused(404, "NotFound");
    caller.delete(&format!("{services}/nope")).await.refused(404, "NotFound");
    let elsewhere = "/api/v1/namespaces/no-such-namespace/configmaps";
    let refused = caller.post(elsewhere, &config_map("m", json!({}))).await;
    assert_eq!(refused.refused(404, "NotFound"), "namespaces \"no-such-namespace\" not found");
    let empty = caller.get(elsewhere).await.ok(200);
    assert_eq!(empty["items"], json!([]), "a list of nothing, whether the namespace is there or not");
    assert_eq!(caller.get("/apis/nobody.example/v1/things").await.code, 404);
}

pub async fn a_definition_has_a_schema_for_each_version(caller: Caller) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "gadgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{"name": "v1", "served": true, "storage": true}]},
    });
    let refused = caller.post(definitions, &definition).await;
    assert_eq!(
        refused.refused(422, "Invalid"),
        "CustomResourceDefinition.apiextensions.k8s.io \"gadgets.example.com\" is invalid: \
         spec.versions[0].schema.openAPIV3Schema: Required value"
    );
}

/// Every cluster has a Service for its API, at the first cluster address.
pub async fn the_server_is_a_service(caller: Caller) {
    let service = caller.get("/api/v1/namespaces/default/services/kubernetes").await.ok(200);
    assert_eq!(service["metadata"]["labels"], json!({"component": "apiserver", "provider": "kubernetes"}));
    assert_eq!(service["spec"]["clusterIP"], "10.0.0.1");
    let port = &service["spec"]["ports"][0];
    assert_eq!((&port["name"], &port["port"]), (&json!("https"), &json!(443)));
}

pub async fn everything_is_allowed_to_administrators(caller: Caller) {
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}});
    let answer = caller.post(reviews, &review).await.ok(201);
    assert_eq!((&answer["status"]["allowed"], &answer["spec"]), (&json!(true), &review["spec"]));
    assert_eq!(caller.get(reviews).await.code, 405);
}

pub async fn a_workload_is_scaled(caller: Caller) {
    let at = format!("/apis/apps/v1/namespaces/{}/deployments", caller.namespace);
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}});
    caller.post(&at, &object).await.ok(201);
    let scale = format!("{at}/d/scale");
    let three = json!({"spec": {"replicas": 3}});
    assert_eq!(caller.patch(&scale, MERGE, &three).await.ok(200)["spec"]["replicas"], 3);
    let refused = caller.patch(&scale, MERGE, &json!({"spec": {"replicas": -1}})).await;
    assert_eq!(
        refused.refused(422, "Invalid"),
        "Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
    );
    let causes = &refused.body["details"]["causes"];
    assert_eq!(
        (&causes[0]["reason"], &causes[0]["field"]),
        (&json!("FieldValueInvalid"), &json!("spec.replicas"))
    );
    assert_eq!(caller.get(&scale).await.ok(200)["spec"]["replicas"], 3);
}

/// The admission plugin StorageObjectInUseProtection.
pub async fn claims_and_volumes_are_protected(caller: Caller) {
    let claims = caller.at("persistentvolumeclaims");
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "finalizers": ["example.com/x"]},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let created = caller.post(&format!("{claims}?fieldManager=me"), &claim).await.ok(201);
    let finalizers = &created["metadata"]["finalizers"];
    assert_eq!(finalizers, &json!(["example.com/x", "kubernetes.io/pvc-protection"]));
    let owned = &created["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"]["f:finalizers"];
    assert!(owned.get("v:\"kubernetes.io/pvc-protection\"").is_none(), "{owned}");
    let free = json!({"metadata": {"finalizers": null}});
    let freed = caller.patch(&format!("{claims}/data"), MERGE, &free).await.ok(200);
    assert!(freed["metadata"].get("finalizers").is_none(), "it is given once");
    caller.delete(&format!("{claims}/data")).await.ok(200);
    caller.get(&format!("{claims}/data")).await.refused(404, "NotFound");

    let name = caller.namespace.clone();
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}}});
    let created = caller.post("/api/v1/persistentvolumes", &volume).await.ok(201);
    assert_eq!(created["metadata"]["finalizers"], json!(["kubernetes.io/pv-protection"]));
    let at = format!("/api/v1/persistentvolumes/{name}");
    let marked = caller.delete(&at).await.ok(200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    caller.patch(&at, MERGE, &free).await.ok(200);
    caller.get(&at).await.refused(404, "NotFound");
}
