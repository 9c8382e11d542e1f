//! Requests and responses, without a listener.

use axum::body::Body;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::json;
use telemetry::metrics::Metrics;
use tower::ServiceExt as _;

use super::*;

const PATH: &str = "infrastructure-cluster-x-k8s-io-v1beta1-azuremachinetemplate";

/// A client without a server.
fn client() -> kube::Client {
    arm::install_crypto_provider();
    kube::Client::try_from(kube::Config::new("http://127.0.0.1:9".parse().unwrap())).unwrap()
}

async fn ask(path: &str, content_type: &str, body: String) -> (Value, String) {
    let metrics = Metrics::default();
    let webhooks = Webhooks {
        gates: Gates::default(),
        lookups: Lookups::new(client(), None),
        metrics: WebhookMetrics::of(&metrics),
    };
    let request = Request::post(path).header("Content-Type", content_type).body(Body::from(body)).unwrap();
    let answer = webhooks.router().oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (serde_json::from_slice(&body).unwrap(), metrics.encode())
}

fn question(version: &str, operation: &str, object: Value, old: Value) -> String {
    let request =
        json!({ "uid": "u-1", "operation": operation, "name": "", "object": object, "oldObject": old });
    let review = json!({ "apiVersion": format!("admission.k8s.io/{version}"), "kind": "AdmissionReview", "request": request });
    review.to_string()
}

fn template(size: &str) -> Value {
    let disk = json!({ "osType": "Linux", "diskSizeGB": 128 });
    let spec = json!({ "vmSize": size, "osDisk": disk, "unknownMember": [1] });
    json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "AzureMachineTemplate",
        "metadata": { "name": "t-1", "namespace": "default" },
        "spec": { "template": { "spec": spec } },
    })
}

#[tokio::test]
async fn an_object_is_completed_by_a_patch_in_the_version_of_the_question() {
    for version in ["v1", "v1beta1"] {
        let object = template("Standard_D2s_v3");
        let body = question(version, "CREATE", object.clone(), Value::Null);
        let (answer, metrics) =
            ask(&format!("/mutate-{PATH}"), "application/json; charset=utf-8", body).await;
        assert_eq!(answer["apiVersion"], json!(format!("admission.k8s.io/{version}")));
        let response = &answer["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(true)), "{response}");
        assert_eq!(response["patchType"], "JSONPatch");
        let patch = BASE64_STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
        let mut completed = object;
        json_patch::patch(&mut completed, &serde_json::from_slice::<json_patch::Patch>(&patch).unwrap())
            .unwrap();
        let spec = &completed["spec"]["template"]["spec"];
        assert!(spec["sshPublicKey"].as_str().unwrap().len() > 400, "{spec}");
        assert_eq!(spec["unknownMember"], json!([1]));
        // A complete object stays unchanged, without a patch.
        let body = question(version, "CREATE", completed, Value::Null);
        let (answer, _) = ask(&format!("/mutate-{PATH}"), "application/json", body).await;
        assert!(
            answer["response"]["allowed"] == true && answer["response"].get("patch").is_none(),
            "{answer}"
        );
        let line =
            format!("controller_runtime_webhook_requests_total{{webhook=\"/mutate-{PATH}\",code=\"200\"}} 1");
        assert!(metrics.contains(&line), "{metrics}");
    }
}

#[tokio::test]
async fn a_change_that_must_not_be_is_refused_with_its_places() {
    let body = question("v1", "UPDATE", template("Standard_D4s_v3"), template("Standard_D2s_v3"));
    let (answer, _) = ask(&format!("/validate-{PATH}"), "application/json", body).await;
    let response = &answer["response"];
    assert_eq!((&response["uid"], &response["allowed"]), (&json!("u-1"), &json!(false)));
    let status = &response["status"];
    assert_eq!((&status["code"], &status["reason"]), (&json!(422), &json!("Invalid")), "{status}");
    assert_eq!(status["details"]["name"], "t-1");
    assert!(status["details"]["causes"][0]["field"].as_str().unwrap().contains("template"), "{status}");
}

/// Cluster API tries topologies by server-side apply as a dry run, which may change its templates.
#[tokio::test]
async fn a_topology_that_is_tried_may_change_templates() {
    let mut new = template("Standard_D4s_v3");
    new["metadata"]["annotations"] = json!({ "topology.cluster.x-k8s.io/dry-run": "" });
    for (dry_run, allowed) in [(true, true), (false, false)] {
        let mut review: Value =
            serde_json::from_str(&question("v1", "UPDATE", new.clone(), template("Standard_D2s_v3")))
                .unwrap();
        review["request"]["dryRun"] = json!(dry_run);
        let (mut answer, _) = ask(&format!("/validate-{PATH}"), "application/json", review.to_string()).await;
        let causes = answer["response"]["status"]["details"]["causes"].take();
        let immutable = causes.to_string().contains("immutable");
        assert_eq!(!immutable, allowed, "{causes}");
    }
}

#[tokio::test]
async fn whoever_goes_is_let_go() {
    let body = question("v1", "DELETE", Value::Null, template("x"));
    for path in [format!("/mutate-{PATH}"), format!("/validate-{PATH}")] {
        let (answer, _) = ask(&path, "application/json", body.clone()).await;
        assert_eq!(answer["response"]["allowed"], true, "{answer}");
    }
}

#[tokio::test]
async fn what_is_no_question_is_told_so() {
    let good = question("v1", "CREATE", template("x"), Value::Null);
    for (content_type, body, words) in [
        ("text/plain", good.clone(), "must be application/json"),
        ("application/json", "{}".to_owned(), "no AdmissionReview"),
        ("application/json", String::new(), "no AdmissionReview"),
        (
            "application/json",
            good.replace("admission.k8s.io/v1", "admission.k8s.io/v2"),
            "admission.k8s.io/v2",
        ),
    ] {
        let (answer, _) = ask(&format!("/mutate-{PATH}"), content_type, body).await;
        let response = &answer["response"];
        assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(400)));
        assert!(response["status"]["message"].as_str().unwrap().contains(words), "{response}");
    }
}
