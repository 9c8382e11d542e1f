//! The deletion of objects by an API server alone, and tokens of service accounts. No controllers run.

use http::Method;
use serde_json::{Value, json};

use crate::agreement::caller::{Answer, Caller, MERGE, config_map};

async fn delete(caller: &Caller, path: &str, policy: &str) -> Answer {
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
    caller.send(Method::DELETE, path, Some(("application/json", &options))).await
}

pub async fn deletions_wait_for_a_collector(caller: Caller) {
    let maps = caller.at("configmaps");
    for (name, policy, finalizer) in [("f", "Foreground", "foregroundDeletion"), ("o", "Orphan", "orphan")] {
        caller.post(&maps, &config_map(name, json!({}))).await.ok(201);
        let at = format!("{maps}/{name}");
        let marked = delete(&caller, &at, policy).await.ok(200);
        assert_eq!(marked["metadata"]["finalizers"], json!([finalizer]));
        let stamp = &marked["metadata"]["deletionTimestamp"];
        assert!(stamp.is_string());
        let held = caller.get(&at).await.ok(200);
        assert_eq!(
            (&held["metadata"]["finalizers"], &held["metadata"]["deletionTimestamp"]),
            (&json!([finalizer]), stamp)
        );
        // A deletion without a policy keeps the earlier one.
        caller.delete(&at).await.ok(200);
        assert_eq!(caller.get(&at).await.ok(200)["metadata"]["finalizers"], json!([finalizer]));
    }
    // The later policy counts.
    let other = delete(&caller, &format!("{maps}/f"), "Orphan").await.ok(200);
    assert_eq!(other["metadata"]["finalizers"], json!(["orphan"]));
    delete(&caller, &format!("{maps}/f"), "Background").await.ok(200);
    caller.get(&format!("{maps}/f")).await.refused(404, "NotFound");
    let none = json!({"metadata": {"finalizers": null}});
    caller.patch(&format!("{maps}/o"), MERGE, &none).await.ok(200);
    caller.get(&format!("{maps}/o")).await.refused(404, "NotFound");

    caller.post(&maps, &config_map("x", json!({}))).await.ok(201);
    let wrong = delete(&caller, &format!("{maps}/x"), "Sideways").await;
    assert!(wrong.refused(422, "Invalid").contains("Sideways"), "{}", wrong.body);
    caller.get(&format!("{maps}/x")).await.ok(200);
}

pub async fn a_finalizer_of_its_own_and_the_collectors(caller: Caller) {
    let maps = caller.at("configmaps");
    let mut object = config_map("m", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/own", "orphan"]);
    caller.post(&maps, &object).await.ok(201);
    let at = format!("{maps}/m");
    let marked = delete(&caller, &at, "Foreground").await.ok(200);
    assert_eq!(marked["metadata"]["finalizers"], json!(["example.com/own", "foregroundDeletion"]));
    let own = json!({"metadata": {"finalizers": ["foregroundDeletion"]}});
    caller.patch(&at, MERGE, &own).await.ok(200);
    caller.patch(&at, MERGE, &json!({"metadata": {"finalizers": []}})).await.ok(200);
    caller.get(&at).await.refused(404, "NotFound");
}

pub async fn a_namespace_waits_for_its_finalizers(caller: Caller) {
    let name = format!("{}-x", caller.namespace);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let created = caller.post("/api/v1/namespaces", &namespace).await.ok(201);
    assert_eq!(created["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(created["status"], json!({"phase": "Active"}));
    let at = format!("/api/v1/namespaces/{name}");
    let maps = format!("{at}/configmaps");
    caller.post(&maps, &config_map("m", json!({}))).await.ok(201);
    caller.delete(&at).await.ok(200);
    let terminating = caller.get(&at).await.ok(200);
    assert_eq!(terminating["status"]["phase"], "Terminating");
    assert!(terminating["metadata"]["deletionTimestamp"].is_string());
    caller.get(&format!("{maps}/m")).await.ok(200);
    // Servers notice it after a moment.
    let late = caller.post(&maps, &config_map("late", json!({}))).await;
    let message = late.refused(403, "Forbidden");
    let why = format!("unable to create new content in namespace {name} because it is being terminated");
    assert!(message.ends_with(&why), "{message}");
    caller.delete(&format!("{maps}/m")).await.ok(200);
    let mut empty = terminating.clone();
    empty["spec"]["finalizers"] = json!([]);
    caller.put(&format!("{at}/finalize"), &empty).await;
    caller.get(&at).await.refused(404, "NotFound");
}

pub async fn a_service_account_has_tokens(caller: Caller) {
    let accounts = caller.at("serviceaccounts");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    let account = caller.post(&accounts, &account).await.ok(201);
    let ask = async |spec: Value| {
        let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        caller.post(&format!("{accounts}/robot/token"), &request).await
    };
    let granted = ask(json!({"audiences": ["https://kubernetes.default.svc", "vault"]})).await.ok(201);
    assert_eq!(
        (granted["kind"].as_str(), &granted["spec"]["expirationSeconds"]),
        (Some("TokenRequest"), &json!(3600))
    );
    assert!(granted["status"]["expirationTimestamp"].is_string());
    let token = granted["status"]["token"].as_str().unwrap().to_owned();
    let review = async |token: &str, audiences: Value| {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": audiences}});
        caller.post("/apis/authentication.k8s.io/v1/tokenreviews", &review).await.ok(201)["status"].clone()
    };
    let known = review(&token, json!(["vault", "other"])).await;
    assert_eq!(known["authenticated"], true, "{known}");
    assert_eq!(known["audiences"], json!(["vault"]));
    let user = &known["user"];
    assert_eq!(user["username"], format!("system:serviceaccount:{}:robot", caller.namespace));
    assert_eq!(user["uid"], account["metadata"]["uid"]);
    let groups = json!([
        "system:serviceaccounts",
        format!("system:serviceaccounts:{}", caller.namespace),
        "system:authenticated"
    ]);
    assert_eq!(user["groups"], groups);
    let stranger = review(&token, json!(["other"])).await;
    assert!(stranger["authenticated"] != true && stranger["error"].is_string(), "{stranger}");
    let forged = format!("{}x.{}", &token[..token.len() / 2], &token[token.len() / 2..]);
    assert_ne!(review(&forged, json!(["vault"])).await["authenticated"], true);

    let short = ask(json!({"expirationSeconds": 5})).await;
    assert_eq!(
        short.refused(422, "Invalid"),
        "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 5: may not specify a \
         duration less than 10 minutes"
    );
    let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "none"}});
    ask(bound.clone()).await.refused(404, "NotFound");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "none"}});
    caller.post(&caller.at("secrets"), &secret).await.ok(201);
    let bound = ask(bound).await.ok(201)["status"]["token"].as_str().unwrap().to_owned();
    assert_eq!(review(&bound, json!(null)).await["authenticated"], true);
    let nobody =
        json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}});
    caller.post(&format!("{accounts}/nobody/token"), &nobody).await.refused(404, "NotFound");
}

pub async fn a_job_ends_in_its_steps(caller: Caller) {
    let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "sum"}, "spec": {"template": template}});
    let jobs = format!("/apis/batch/v1/namespaces/{}/jobs", caller.namespace);
    caller.post(&jobs, &job).await.ok(201);
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let write = async |status: Value| {
        caller.patch(&format!("{jobs}/sum/status"), MERGE, &json!({"status": status})).await
    };
    let refused = write(json!({"succeeded": 1, "conditions": [condition("Complete")]})).await;
    let message = refused.refused(422, "Invalid");
    for why in [
        "status.completionTime: Required value: completionTime is required for Complete jobs",
        "status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
        "status.startTime: Required value: startTime is required for finished job",
    ] {
        assert!(message.contains(why), "{message}");
    }
    let failed =
        write(json!({"startTime": "2026-01-01T00:00:00Z", "conditions": [condition("Failed")]})).await;
    assert!(failed.refused(422, "Invalid").contains("without the FailureTarget=true condition"));
    let ended = json!({"active": 0, "succeeded": 1, "startTime": "2026-01-01T00:00:00Z",
        "completionTime": "2026-01-01T00:01:00Z", "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
    write(ended).await.ok(200);
    let begun = write(json!({"conditions": [condition("SuccessCriteriaMet")], "completionTime": null})).await;
    assert!(begun.refused(422, "Invalid").contains("cannot disable the terminal Complete=True condition"));
    let fewer = write(json!({"succeeded": 0})).await;
    assert!(fewer.refused(422, "Invalid").contains("cannot decrease the succeeded counter"));
}
