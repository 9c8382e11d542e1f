//! Custom resources.

use serde_json::json;

use crate::*;

pub fn definition() -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": { "plural": "widgets", "kind": "Widget", "shortNames": ["wd"] },
            "versions": [
                { "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                  "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } },
                { "name": "v1beta1", "served": true, "storage": false,
                  "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } },
            ],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_definition_serves_its_kind_in_all_versions_and_takes_it_along() {
    let kubernetes = kubernetes();
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    assert_eq!(raw::get(&kubernetes, widgets, "").await.0, 404);
    let stored = kubernetes.create(definition()).unwrap();
    assert_eq!(stored["status"]["conditions"][1]["type"], "Established");

    let widget = json!({ "metadata": { "name": "w" }, "spec": { "size": 1 }, "status": { "ready": true } });
    let (code, created) = raw::post(&kubernetes, widgets, &widget).await;
    assert_eq!((code, created["kind"].as_str()), (201, Some("Widget")));
    assert!(created.get("status").is_none());
    assert_eq!(created["metadata"]["generation"], 1);

    let mut status = created.clone();
    status["status"] = json!({ "ready": true });
    status["spec"]["size"] = json!(2);
    status["metadata"]["labels"] = json!({ "x": "y" });
    let (code, written) = raw::put(&kubernetes, &format!("{widgets}/w/status"), &status).await;
    assert_eq!((code, &written["status"]["ready"], &written["spec"]["size"]), (200, &json!(true), &json!(1)));
    assert!(
        written["metadata"].get("labels").is_none(),
        "the status of a custom resource is the status alone"
    );

    let (code, other) =
        raw::get(&kubernetes, "/apis/example.com/v1beta1/namespaces/default/widgets/w", "").await;
    assert_eq!((code, other["apiVersion"].as_str()), (200, Some("example.com/v1beta1")));
    let (_, list) = raw::get(&kubernetes, "/apis/example.com/v1", "").await;
    assert_eq!(list["resources"][0]["shortNames"], json!(["wd"]));
    assert_eq!(list["resources"][1]["name"], "widgets/status");

    kubernetes.delete("crd", "", "widgets.example.com").unwrap();
    assert_eq!(raw::get(&kubernetes, widgets, "").await.0, 404);
    kubernetes.create(definition()).unwrap();
    assert!(kubernetes.list("wd").is_empty());
}
