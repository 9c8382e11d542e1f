//! Unknown members, values of wrong types, and their messages (`fieldValidation`).

use http::{Method, Request};
use tower::ServiceExt as _;

use crate::api::*;

const SERVICES: &str = "/api/v1/namespaces/default/services";

/// Status code, body and warnings.
async fn send(
    kubernetes: &Kubernetes,
    method: Method,
    path: &str,
    content: &str,
    body: &str,
) -> (u16, Value, Vec<String>) {
    let request = Request::builder().method(method).uri(path).header("content-type", content);
    let body = axum::body::Body::from(body.to_owned());
    let response = kubernetes.router().oneshot(request.body(body).unwrap()).await.unwrap();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|value| value.to_str().unwrap().to_owned()).collect();
    let code = response.status().as_u16();
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (code, serde_json::from_slice(&bytes).unwrap(), warnings)
}

async fn create(kubernetes: &Kubernetes, query: &str, object: &Value) -> (u16, Value, Vec<String>) {
    send(kubernetes, Method::POST, &format!("{SERVICES}{query}"), "application/json", &object.to_string())
        .await
}

fn strange(name: &str) -> Value {
    let mut object = service(name);
    object["spec"]["sesame"] = json!("open");
    object["spec"]["ports"][0]["prot"] = json!("TCP");
    object
}

#[tokio::test(start_paused = true)]
async fn unknown_members_are_dropped_warned_of_or_refused() {
    let kubernetes = kubernetes();
    let (code, created, warnings) = create(&kubernetes, "", &strange("a")).await;
    assert_eq!(code, 201, "{created}");
    assert_eq!(
        warnings,
        ["299 - \"unknown field \\\"spec.ports[0].prot\\\"\"", "299 - \"unknown field \\\"spec.sesame\\\"\""]
    );
    assert!(created["spec"].get("sesame").is_none() && created["spec"]["ports"][0].get("prot").is_none());

    let (code, _, warnings) = create(&kubernetes, "?fieldValidation=Ignore", &strange("b")).await;
    assert_eq!((code, warnings.len()), (201, 0));

    let (code, refused, _) = create(&kubernetes, "?fieldValidation=Strict", &strange("c")).await;
    assert_eq!((code, refused["reason"].as_str()), (400, Some("BadRequest")));
    assert_eq!(
        refused["message"],
        "Service in version \"v1\" cannot be handled as a Service: strict decoding error: unknown field \
         \"spec.ports[0].prot\", unknown field \"spec.sesame\""
    );
    assert!(kubernetes.get("Service", "default", "c").is_none());

    let (code, refused, _) = create(&kubernetes, "?fieldValidation=Loud", &service("d")).await;
    assert_eq!(code, 422, "{refused}");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .starts_with("CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation")
    );
}

#[tokio::test(start_paused = true)]
async fn values_of_wrong_types_are_refused_whatever_is_asked_for() {
    let kubernetes = kubernetes();
    for (pointer, value, why) in [
        (
            "/spec/type",
            json!(5),
            "json: cannot unmarshal number into Go struct field ServiceSpec.spec.type of type string",
        ),
        (
            "/spec/ports/0/port",
            json!("http"),
            "json: cannot unmarshal string into Go struct field ServicePort.spec.ports.port of type int32",
        ),
        (
            "/metadata/labels",
            json!({ "a": 5 }),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            "/spec/ports",
            json!({}),
            "json: cannot unmarshal object into Go struct field ServiceSpec.spec.ports of type []v1.ServicePort",
        ),
    ] {
        let mut object = service("a");
        object["metadata"]["labels"] = json!({});
        *object.pointer_mut(pointer).unwrap() = value;
        let (code, refused, _) = create(&kubernetes, "?fieldValidation=Ignore", &object).await;
        assert_eq!(code, 400, "{pointer}: {refused}");
        assert_eq!(
            refused["message"],
            format!("Service in version \"v1\" cannot be handled as a Service: {why}")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn members_that_are_there_twice_are_told() {
    let kubernetes = kubernetes();
    let body = r#"{"metadata":{"name":"m"},"data":{"a":"1","a":"2"},"data":{"a":"3"}}"#;
    let maps = "/api/v1/namespaces/default/configmaps";
    let (code, created, warnings) = send(&kubernetes, Method::POST, maps, "application/json", body).await;
    assert_eq!((code, &created["data"]), (201, &json!({ "a": "3" })));
    assert_eq!(
        warnings,
        ["299 - \"duplicate field \\\"data.a\\\"\"", "299 - \"duplicate field \\\"data\\\"\""]
    );
    let strict = format!("{maps}?fieldValidation=Strict");
    let (code, refused, _) = send(&kubernetes, Method::POST, &strict, "application/json", body).await;
    assert_eq!(code, 400);
    assert_eq!(
        refused["message"],
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: duplicate field \
         \"data.a\", duplicate field \"data\""
    );
}

/// sigs.k8s.io/json and kube-apiserver's patch handler: all findings of strict decoding are one error.
#[tokio::test(start_paused = true)]
async fn what_is_there_twice_and_what_is_unknown_is_told_together() {
    let kubernetes = kubernetes();
    let body = r#"{"metadata":{"name":"m"},"data":{"a":"1","a":"2"},"sesame":"open"}"#;
    let maps = "/api/v1/namespaces/default/configmaps";
    let strict = format!("{maps}?fieldValidation=Strict");
    let (code, refused, _) = send(&kubernetes, Method::POST, &strict, "application/json", body).await;
    let told = "strict decoding error: duplicate field \"data.a\", unknown field \"sesame\"";
    assert_eq!(code, 400);
    assert!(refused["message"].as_str().unwrap().ends_with(told), "{refused}");
    let (code, _, warnings) = send(&kubernetes, Method::POST, maps, "application/json", body).await;
    assert_eq!((code, warnings.len()), (201, 2));
    let patch = r#"{"data":{"a":"1","a":"2"},"sesame":"open"}"#;
    let strict = format!("{maps}/m?fieldValidation=Strict");
    let merge = "application/merge-patch+json";
    let (code, refused, _) = send(&kubernetes, Method::PATCH, &strict, merge, patch).await;
    assert_eq!(code, 422);
    assert!(refused["message"].as_str().unwrap().ends_with(told), "{refused}");
    let patch = r#"{"data":{"a":"1","a":"2"}}"#;
    let (code, refused, _) = send(&kubernetes, Method::PATCH, &strict, merge, patch).await;
    assert_eq!(code, 422, "{refused}");
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.starts_with(" \"\" is invalid: patch: Invalid value: \"{\\\"apiVersion\\\""),
        "{message}"
    );
}

#[tokio::test(start_paused = true)]
async fn patches_are_decoded_too() {
    let kubernetes = kubernetes();
    kubernetes.create(service("a")).unwrap();
    let path = format!("{SERVICES}/a");
    let patch = r#"{"spec":{"sesame":"open"}}"#;
    let merge = "application/merge-patch+json";
    let (code, _, warnings) = send(&kubernetes, Method::PATCH, &path, merge, patch).await;
    assert_eq!((code, warnings.len()), (200, 1));
    let strict = format!("{path}?fieldValidation=Strict");
    let (code, refused, _) = send(&kubernetes, Method::PATCH, &strict, merge, patch).await;
    let message = refused["message"].as_str().unwrap();
    assert_eq!((code, refused["reason"].as_str()), (422, Some("Invalid")));
    assert!(
        message.starts_with(" \"\" is invalid: patch: Invalid value: \"{\\\"apiVersion\\\":\\\"v1\\\""),
        "{message}"
    );
    assert!(message.ends_with("strict decoding error: unknown field \"spec.sesame\""), "{message}");
    let strategic = "application/strategic-merge-patch+json";
    let (code, refused, _) = send(&kubernetes, Method::PATCH, &strict, strategic, patch).await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        " \"\" is invalid: patch: Invalid value: \"map[spec:map[sesame:open]]\": strict decoding error: unknown field \
         \"spec.sesame\""
    );
    let (code, refused, _) =
        send(&kubernetes, Method::PATCH, &path, merge, r#"{"spec":{"ports":"none"}}"#).await;
    assert_eq!(code, 422, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn all_causes_come_in_one_status() {
    let kubernetes = kubernetes();
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "Web" },
        "spec": { "replicas": -1, "selector": { "matchLabels": { "a": "b" } }, "template": {
            "metadata": { "labels": { "a": "c" } }, "spec": { "restartPolicy": "Never", "containers": [
                { "name": "c", "imagePullPolicy": "Maybe" }] } } } });
    let error = kubernetes.create(deployment).unwrap_err();
    let fields: Vec<&str> = error.details["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    assert_eq!(
        fields,
        [
            "metadata.name",
            "spec.replicas",
            "spec.template.metadata.labels",
            "spec.template.spec.containers[0].image",
            "spec.template.spec.containers[0].imagePullPolicy",
            "spec.template.spec.restartPolicy",
        ]
    );
    assert!(
        error.message.starts_with("Deployment.apps \"Web\" is invalid: [metadata.name: Invalid value"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn protobuf_is_for_built_in_kinds_and_answers_are_json() {
    let kubernetes = kubernetes();
    kubernetes.create(custom::definition()).unwrap();
    let widgets = "/apis/example.com/v1/namespaces/default/widgets";
    let protobuf = "application/vnd.kubernetes.protobuf";
    let (code, refused, _) = send(&kubernetes, Method::POST, widgets, protobuf, "k8s").await;
    assert_eq!((code, refused["reason"].as_str()), (415, Some("UnsupportedMediaType")));
    let (code, refused, _) = send(&kubernetes, Method::POST, SERVICES, protobuf, "{}").await;
    assert_eq!((code, refused["reason"].as_str()), (400, Some("BadRequest")));
    // A ConfigMap m with data a: b.
    let object = b"k8s\0\n\x0f\n\x02v1\x12\tConfigMap\x12\x0d\n\x03\n\x01m\x12\x06\n\x01a\x12\x01b";
    let text = String::from_utf8(object.to_vec()).unwrap();
    let maps = "/api/v1/namespaces/default/configmaps";
    let (code, created, _) = send(&kubernetes, Method::POST, maps, protobuf, &text).await;
    assert_eq!((code, &created["data"]), (201, &json!({ "a": "b" })), "{created}");
    let accept = [("accept", "application/vnd.kubernetes.protobuf,application/json")];
    let (code, bytes) = raw::send(&kubernetes, Method::GET, &format!("{maps}/m"), &accept, "").await;
    assert_eq!((code, bytes.first()), (200, Some(&b'{')));
}
