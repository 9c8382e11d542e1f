//! Discovery, health and authentication.

use kube::discovery::{Discovery, Scope};
use kubernetes_simulator::{Kubernetes, Options, Token};

use crate::api::*;

#[tokio::test(start_paused = true)]
async fn clients_find_kinds_and_their_scope() {
    let kubernetes = kubernetes();
    let discovery = Discovery::new(client(&kubernetes)).run().await.unwrap();
    let find = |group: &str, kind: &str| {
        let group = discovery.groups().find(|g| g.name() == group).unwrap();
        let (resource, capabilities) =
            group.recommended_resources().into_iter().find(|(resource, _)| resource.kind == kind).unwrap();
        (resource.plural, capabilities.scope)
    };
    assert_eq!(find("", "Node"), ("nodes".to_owned(), Scope::Cluster));
    assert_eq!(find("apps", "Deployment"), ("deployments".to_owned(), Scope::Namespaced));
    assert_eq!(find("coordination.k8s.io", "Lease").0, "leases");
    let version = client(&kubernetes).apiserver_version().await.unwrap();
    assert_eq!((version.major.as_str(), version.minor.as_str()), ("1", "36"));
}

#[tokio::test(start_paused = true)]
async fn openapi_says_what_patches_may_be_asked_for() {
    let kubernetes = kubernetes();
    let (_, index) = raw::get(&kubernetes, "/openapi/v3", "").await;
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap();
    let (code, document) = raw::get(&kubernetes, url, "").await;
    assert_eq!(code, 200);
    let parameters =
        &document["paths"]["/api/v1/namespaces/{namespace}/services/{name}"]["patch"]["parameters"];
    assert!(parameters.as_array().unwrap().iter().any(|parameter| parameter["name"] == "fieldValidation"));
    assert_eq!(raw::get(&kubernetes, "/openapi/v3/apis/none/v1", "").await.0, 404);
    let accept = [("accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")];
    let (_, bytes) = raw::send(&kubernetes, http::Method::GET, "/openapi/v2", &accept, "").await;
    assert_eq!(bytes.get(..5).unwrap(), b"\x0a\x032.0");
    assert_eq!(raw::get(&kubernetes, "/openapi/v2", "application/json").await.1["swagger"], "2.0");
}

#[tokio::test(start_paused = true)]
async fn with_tokens_only_their_bearers_may_ask() {
    let options = Options { tokens: vec![Token::new("open-sesame")], ..Options::default() };
    let kubernetes = Kubernetes::new(options);
    let code = async |authorization: Option<&str>, path: &str| {
        let headers: Vec<(&str, &str)> =
            authorization.iter().map(|value| ("authorization", *value)).collect();
        let (code, body) = raw::send(&kubernetes, http::Method::GET, path, &headers, "").await;
        (code, String::from_utf8(body).unwrap())
    };
    let (refused, body) = code(None, "/api/v1/nodes").await;
    assert_eq!(refused, 401);
    assert!(body.contains("\"reason\":\"Unauthorized\""), "{body}");
    assert_eq!(code(Some("Bearer wrong"), "/api/v1/nodes").await.0, 401);
    assert_eq!(code(Some("Basic open-sesame"), "/api/v1/nodes").await.0, 401);
    assert_eq!(code(Some("Bearer open-sesame"), "/api/v1/nodes").await.0, 200);
    assert_eq!(code(None, "/readyz").await, (200, "ok".to_owned()));
    assert_eq!(code(None, "/api").await.0, 401);
    assert!(!format!("{kubernetes:?}").contains("sesame"));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_served_is_not_found() {
    let kubernetes = kubernetes();
    for path in [
        "/nothing",
        "/apis/none/v1",
        "/api/v2",
        "/api/v1/widgets",
        "/apis/apps/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/configmaps/a/status",
    ] {
        assert_eq!(raw::get(&kubernetes, path, "").await.0, 404, "{path}");
    }
    let (code, _) = raw::send(&kubernetes, http::Method::PUT, "/api/v1/nodes", &[], "").await;
    assert_eq!(code, 405);
}

/// The requests of `kubectl explain`: from a kind's path to its schema, and from there to the meaning of its members.
#[tokio::test(start_paused = true)]
async fn openapi_explains_the_members_of_kinds() {
    let kubernetes = kubernetes();
    let (_, index) = raw::get(&kubernetes, "/openapi/v3", "").await;
    let url = index["paths"]["api/v1"]["serverRelativeURL"].as_str().unwrap();
    let (_, document) = raw::get(&kubernetes, url, "").await;
    let identity = &document["paths"]["/api/v1/namespaces/{namespace}/services"]["get"]["x-kubernetes-group-version-kind"];
    assert_eq!(identity["kind"], "Service");
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let service = schemas.values().find(|schema| schema["x-kubernetes-group-version-kind"][0] == *identity);
    let spec = service.unwrap()["properties"]["spec"]["allOf"][0]["$ref"].as_str().unwrap();
    let spec = &schemas[spec.rsplit('/').next().unwrap()];
    assert!(spec["properties"]["clusterIP"]["description"].as_str().unwrap().starts_with("clusterIP is"));
    // Clients cache documents by their hash: it changes once a definition adds a kind.
    let hash = index["paths"]["apis/apps/v1"].clone();
    kubernetes.create(custom::definition()).unwrap();
    let (_, index) = raw::get(&kubernetes, "/openapi/v3", "").await;
    assert_eq!(index["paths"]["apis/apps/v1"], hash);
    let url = index["paths"]["apis/example.com/v1"]["serverRelativeURL"].as_str().unwrap();
    let (_, document) = raw::get(&kubernetes, url, "").await;
    assert_eq!(
        document["components"]["schemas"]["com.example.v1.Widget"]["x-kubernetes-preserve-unknown-fields"],
        true
    );
}

/// The requests of `kubectl auth can-i` and `kubectl auth whoami`, and of programs that let the server verify tokens.
#[tokio::test(start_paused = true)]
async fn questions_are_answered_and_not_stored() {
    let options = Options { tokens: vec![Token::new("open-sesame")], ..Options::default() };
    let kubernetes = Kubernetes::new(options);
    let ask = async |group: &str, plural: &str, body: serde_json::Value| {
        let path = format!("/apis/{group}/v1/{plural}");
        let headers = [("authorization", "Bearer open-sesame"), ("content-type", "application/json")];
        let (code, bytes) =
            raw::send(&kubernetes, http::Method::POST, &path, &headers, &body.to_string()).await;
        (code, serde_json::from_slice::<serde_json::Value>(&bytes).unwrap())
    };
    let spec = serde_json::json!({"resourceAttributes": {"verb": "create", "resource": "services"}});
    let (code, review) =
        ask("authorization.k8s.io", "selfsubjectaccessreviews", serde_json::json!({"spec": spec})).await;
    assert_eq!((code, &review["status"]["allowed"], &review["spec"]), (201, &true.into(), &spec));
    let (_, rules) = ask("authorization.k8s.io", "selfsubjectrulesreviews", serde_json::json!({})).await;
    assert_eq!(rules["status"]["resourceRules"][0]["verbs"][0], "*");
    for (token, authenticated) in
        [("open-sesame", serde_json::json!(true)), ("wrong", serde_json::Value::Null)]
    {
        let question = serde_json::json!({"spec": {"token": token}});
        let (_, review) = ask("authentication.k8s.io", "tokenreviews", question).await;
        assert_eq!(review["status"]["authenticated"], authenticated, "{token}");
    }
    let headers = [("authorization", "Bearer open-sesame")];
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    assert_eq!(raw::send(&kubernetes, http::Method::GET, path, &headers, "").await.0, 405);
}
