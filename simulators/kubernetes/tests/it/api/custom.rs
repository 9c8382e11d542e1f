//! Custom resources.

use serde_json::json;

use crate::api::*;

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

const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// The definition with one version, whose objects have this spec.
fn with_spec(spec: &Value) -> Value {
    let mut definition = definition();
    definition["spec"]["versions"] = json!([{ "name": "v1", "served": true, "storage": true,
        "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": { "type": "object", "description": "What turns.", "properties": { "spec": spec,
            "status": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } } } }]);
    definition
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name }, "spec": spec })
}

/// Kubernetes' documentation: "Validation rules".
#[tokio::test(start_paused = true)]
async fn rules_are_evaluated_and_all_causes_told() {
    let kubernetes = kubernetes();
    let spec = json!({ "type": "object", "properties": {
        "min": { "type": "integer" }, "max": { "type": "integer" },
        "name": { "type": "string", "x-kubernetes-validations": [
            { "rule": "self == oldSelf", "message": "name is immutable", "reason": "FieldValueForbidden" }] },
    }, "x-kubernetes-validations": [
        { "rule": "self.min <= self.max", "messageExpression": "'min is above ' + string(self.max)" },
        { "rule": "self.max < 100", "message": "too much", "fieldPath": ".max" },
    ] });
    kubernetes.create(with_spec(&spec)).unwrap();
    let (code, refused) =
        raw::post(&kubernetes, WIDGETS, &widget("w", &json!({ "min": 200, "max": 150 }))).await;
    assert_eq!(
        (code, refused["message"].as_str()),
        (
            422,
            Some(
                "Widget.example.com \"w\" is invalid: [spec: Invalid value: \"object\": min is above 150, spec.max: \
                 Invalid value: \"object\": too much]"
            )
        )
    );
    assert_eq!(refused["details"]["causes"][1]["field"], "spec.max");
    let spec = json!({ "min": 1, "max": 2, "name": "a" });
    let (code, mut created) = raw::post(&kubernetes, WIDGETS, &widget("w", &spec)).await;
    assert_eq!(code, 201);
    created["spec"]["name"] = json!("b");
    let (code, refused) = raw::put(&kubernetes, &format!("{WIDGETS}/w"), &created).await;
    assert_eq!((code, &refused["details"]["causes"][0]["reason"]), (422, &json!("FieldValueForbidden")));
    created["spec"]["name"] = json!("a");
    created["spec"]["max"] = json!(3);
    assert_eq!(raw::put(&kubernetes, &format!("{WIDGETS}/w"), &created).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn old_objects_get_new_defaults_and_may_stay_wrong() {
    let kubernetes = kubernetes();
    let mut spec = json!({ "type": "object", "properties": { "size": { "type": "integer" },
        "parts": { "type": "array", "items": { "type": "object", "properties": { "n": { "type": "string" } } } } } });
    kubernetes.create(with_spec(&spec)).unwrap();
    raw::post(&kubernetes, WIDGETS, &widget("w", &json!({ "size": 50, "parts": [{ "n": "a" }] }))).await;
    spec["properties"]["size"]["maximum"] = json!(10);
    spec["properties"]["color"] = json!({ "type": "string", "default": "red" });
    spec["properties"]["parts"]["items"]["properties"]["kind"] = json!({ "type": "string", "default": "x" });
    let change = json!({ "spec": with_spec(&spec)["spec"] });
    kubernetes.merge("crd", "", "widgets.example.com", &change).unwrap();
    let at = format!("{WIDGETS}/w");
    let (_, mut read) = raw::get(&kubernetes, &at, "").await;
    assert_eq!(read["spec"], json!({ "size": 50, "color": "red", "parts": [{ "n": "a", "kind": "x" }] }));
    read["spec"]["color"] = json!("blue");
    let (code, written) = raw::put(&kubernetes, &at, &read).await;
    assert_eq!((code, &written["metadata"]["generation"]), (200, &json!(2)), "{written}");
    let mut worse = written.clone();
    worse["spec"]["size"] = json!(60);
    assert_eq!(raw::put(&kubernetes, &at, &worse).await.0, 422);
    assert_eq!(raw::post(&kubernetes, WIDGETS, &widget("new", &json!({ "size": 50 }))).await.0, 422);
}

#[tokio::test(start_paused = true)]
async fn discovery_and_documents_follow_the_definition() {
    const AGGREGATED: &str =
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    let kubernetes = kubernetes();
    let mut definition = definition();
    let versions = ["v1beta2", "v2alpha1", "v10", "v2"].map(|name| {
        json!({ "name": name, "served": true, "storage": name == "v2", "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                "spec": { "type": "object", "description": "What is wanted." } } } } })
    });
    definition["spec"]["versions"] = json!(versions);
    kubernetes.create(definition).unwrap();
    let (_, group) = raw::get(&kubernetes, "/apis/example.com", "").await;
    let named: Vec<&str> = group["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["version"].as_str().unwrap())
        .collect();
    assert_eq!(named, ["v10", "v2", "v1beta2", "v2alpha1"]);
    assert_eq!(group["preferredVersion"]["version"], "v10");

    let (_, all) = raw::get(&kubernetes, "/apis", AGGREGATED).await;
    assert_eq!(
        (&all["kind"], &all["apiVersion"]),
        (&json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
    );
    let find = |all: &Value| {
        all["items"]
            .as_array()
            .unwrap()
            .iter()
            .find(|group| group["metadata"]["name"] == "example.com")
            .cloned()
    };
    let group = find(&all).unwrap();
    assert_eq!(group["versions"][0]["version"], "v10");
    let resource = &group["versions"][0]["resources"][0];
    assert_eq!((&resource["resource"], &resource["scope"]), (&json!("widgets"), &json!("Namespaced")));
    assert_eq!(
        resource["responseKind"],
        json!({ "group": "example.com", "version": "v10", "kind": "Widget" })
    );
    assert_eq!(resource["subresources"][0]["subresource"], "status");
    let (_, core) = raw::get(&kubernetes, "/api", AGGREGATED).await;
    assert_eq!(core["items"][0]["metadata"]["name"], "");

    let (code, document) = raw::get(&kubernetes, "/openapi/v3/apis/example.com/v10", "").await;
    let schema = &document["components"]["schemas"]["com.example.v10.Widget"];
    assert_eq!((code, &schema["properties"]["spec"]["description"]), (200, &json!("What is wanted.")));
    assert!(schema["properties"]["kind"]["description"].is_string());

    kubernetes.delete("crd", "", "widgets.example.com").unwrap();
    assert_eq!(find(&raw::get(&kubernetes, "/apis", AGGREGATED).await.1), None);
    assert_eq!(raw::get(&kubernetes, "/apis/example.com", "").await.0, 404);
    assert_eq!(raw::get(&kubernetes, "/openapi/v3/apis/example.com/v10", "").await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn owners_of_fields_are_told_apart_by_version() {
    let kubernetes = kubernetes();
    kubernetes.create(definition()).unwrap();
    raw::post(&kubernetes, &format!("{WIDGETS}?fieldManager=one"), &widget("w", &json!({ "a": 1 }))).await;
    let beta = "/apis/example.com/v1beta1/namespaces/default/widgets/w?fieldManager=one";
    let (_, mut object) = raw::get(&kubernetes, beta, "").await;
    object["spec"]["b"] = json!(2);
    let (_, written) = raw::put(&kubernetes, beta, &object).await;
    let versions: Vec<&str> = written["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["apiVersion"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["example.com/v1", "example.com/v1beta1"]);
    object["metadata"]["resourceVersion"] = written["metadata"]["resourceVersion"].clone();
    object["metadata"]["managedFields"] = json!([]);
    let (_, cleared) = raw::put(&kubernetes, beta, &object).await;
    assert!(cleared["metadata"].get("managedFields").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_kind_of_that_name_is_no_service() {
    let kubernetes = kubernetes();
    let mut definition =
        with_spec(&json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }));
    definition["metadata"]["name"] = json!("services.example.com");
    definition["spec"]["names"] = json!({ "plural": "services", "kind": "Service" });
    kubernetes.create(definition).unwrap();
    let object =
        json!({ "metadata": { "name": "1-is-no-label-of-services" }, "spec": { "type": "LoadBalancer" } });
    let (code, created) =
        raw::post(&kubernetes, "/apis/example.com/v1/namespaces/default/services", &object).await;
    assert_eq!((code, &created["spec"]), (201, &json!({ "type": "LoadBalancer" })), "{created}");
}

#[tokio::test(start_paused = true)]
async fn unknown_members_are_refused_or_told_when_asked() {
    let kubernetes = kubernetes();
    kubernetes
        .create(with_spec(&json!({ "type": "object", "properties": { "a": { "type": "integer" } } })))
        .unwrap();
    let object = widget("w", &json!({ "a": 1, "typo": 2 }));
    let (code, refused) = raw::post(&kubernetes, &format!("{WIDGETS}?fieldValidation=Strict"), &object).await;
    assert_eq!(
        (code, refused["message"].as_str()),
        (
            400,
            Some(
                "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \
                 \"spec.typo\""
            )
        )
    );
    let (code, created) = raw::post(&kubernetes, WIDGETS, &object).await;
    assert_eq!((code, &created["spec"]), (201, &json!({ "a": 1 })));
}

#[tokio::test(start_paused = true)]
async fn managers_have_names_of_limited_length() {
    let kubernetes = kubernetes();
    let at = |manager: &str| format!("/api/v1/namespaces/default/configmaps?fieldManager={manager}");
    let object = config_map("m", json!({}));
    let (code, refused) = raw::post(&kubernetes, &at(&"x".repeat(129)), &object).await;
    assert_eq!(
        (code, refused["details"]["causes"][0]["message"].as_str()),
        (422, Some("Too long: may not be more than 128 bytes"))
    );
    let (code, refused) = raw::post(&kubernetes, &at("a%07"), &object).await;
    assert_eq!(
        (code, refused["details"]["causes"][0]["message"].as_str()),
        (422, Some("Invalid value: \"a\\u0007\": should only contain printable characters"))
    );
    assert_eq!(raw::post(&kubernetes, &at(&"x".repeat(128)), &object).await.0, 201);
}

/// Kubernetes' documentation: "CRD field selectors", since 1.31.
#[tokio::test(start_paused = true)]
async fn objects_are_selected_by_the_fields_that_their_definition_names() {
    let kubernetes = kubernetes();
    let mut definition = with_spec(&json!({ "type": "object", "properties": {
        "color": { "type": "string" }, "size": { "type": "integer" }, "hostNetwork": { "type": "boolean" } } }));
    definition["spec"]["versions"][0]["selectableFields"] = json!([{ "jsonPath": ".spec.color" }, { "jsonPath": ".spec.size" }, { "jsonPath": ".spec.hostNetwork" }]);
    kubernetes.create(definition).unwrap();
    for (name, spec) in [
        ("a", json!({ "color": "red", "size": 1 })),
        ("b", json!({ "color": "blue", "size": 2, "hostNetwork": true })),
        ("c", json!({ "size": 1 })),
    ] {
        kubernetes.create(widget(name, &spec)).unwrap();
    }
    let selected = async |selector: &str| {
        let (code, list) = raw::get(&kubernetes, &format!("{WIDGETS}?fieldSelector={selector}"), "").await;
        let items = list["items"].as_array().into_iter().flatten();
        let names: Vec<String> =
            items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect();
        (code, names.join(" "))
    };
    for (selector, names) in [
        ("spec.color%3Dred", "a"),
        ("spec.size%3D1", "a c"),
        ("spec.size%3D1,spec.color%3D", "c"),
        ("spec.color!%3Dred,metadata.name!%3Dc", "b"),
        ("spec.hostNetwork%3Dtrue", "b"),
        ("spec.hostNetwork%3D", "a c"),
    ] {
        assert_eq!(selected(selector).await, (200, names.to_owned()), "{selector}");
    }
    let (code, refused) =
        raw::get(&kubernetes, &format!("{WIDGETS}?fieldSelector=spec.weight%3D1"), "").await;
    assert_eq!((code, refused["message"].as_str()), (400, Some("field label not supported: spec.weight")));

    let version = kubernetes.resource_version();
    kubernetes.merge("wd", "default", "c", &json!({ "spec": { "color": "red" } })).unwrap();
    kubernetes.merge("wd", "default", "a", &json!({ "spec": { "color": "blue" } })).unwrap();
    let path = format!(
        "{WIDGETS}?watch=1&timeoutSeconds=1&fieldSelector=spec.color%3Dred&resourceVersion={version}"
    );
    assert_eq!(raw::describe_events(&raw::watch(&kubernetes, &path).await), ["ADDED c", "DELETED a"]);
    let path = format!("{WIDGETS}?fieldSelector=spec.color%3Dblue");
    assert_eq!(raw::send(&kubernetes, http::Method::DELETE, &path, &[], "").await.0, 200);
    assert_eq!(selected("").await, (200, "c".to_owned()));
    let (_, document) = raw::get(&kubernetes, "/openapi/v3/apis/example.com/v1", "").await;
    let schema = &document["components"]["schemas"]["com.example.v1.Widget"];
    assert_eq!(schema["x-kubernetes-selectable-fields"][0], json!({ "fieldPath": "spec.color" }));
}

/// kube-apiserver rebuilds the storage of a kind when its definition changes, and ends the watches of the old one.
#[tokio::test(start_paused = true)]
async fn open_watches_end_with_the_definition_that_they_began_under() {
    let kubernetes = kubernetes();
    kubernetes.create(definition()).unwrap();
    kubernetes.create(widget("w", &json!({}))).unwrap();
    let watched = |version: &'static str| {
        let kubernetes = kubernetes.clone();
        tokio::spawn(async move {
            let start = tokio::time::Instant::now();
            let path =
                format!("/apis/example.com/{version}/namespaces/default/widgets?watch=1&timeoutSeconds=600");
            let events = raw::describe_events(&raw::watch(&kubernetes, &path).await);
            (start.elapsed().as_secs(), events)
        })
    };
    let pause = || tokio::time::sleep(std::time::Duration::from_secs(1));
    let change = |pointer: &str, value: Value| {
        let mut changed = kubernetes.get("crd", "", "widgets.example.com").unwrap().value().clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        kubernetes.update(changed).unwrap();
    };
    let (old, new) = (watched("v1beta1"), watched("v1"));
    pause().await;
    let annotated = json!({ "metadata": { "annotations": { "a": "b" } } });
    kubernetes.merge("crd", "", "widgets.example.com", &annotated).unwrap();
    pause().await;
    change("/spec/versions/1/served", json!(false));
    assert_eq!(old.await.unwrap(), (2, vec!["ADDED w".to_owned()]));
    assert_eq!(new.await.unwrap(), (2, vec!["ADDED w".to_owned()]), "clients begin anew");
    let new = watched("v1");
    pause().await;
    kubernetes.delete("crd", "", "widgets.example.com").unwrap();
    assert_eq!(new.await.unwrap(), (1, vec!["ADDED w".to_owned(), "DELETED w".to_owned()]));
}
