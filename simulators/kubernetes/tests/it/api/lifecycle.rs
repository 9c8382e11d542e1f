//! Deletion by the server itself: dependents, contents of namespaces, events; and identities.

use std::time::Duration;

use http::Method;
use kube::api::{DeleteParams, PostParams};
use kubernetes_simulator::{Collection, Kubernetes, Options, Token};

use crate::api::*;

fn owned_by(name: &str, owners: &[(&Value, bool)]) -> Value {
    let mut object = config_map(name, json!({}));
    let references: Vec<Value> = owners
        .iter()
        .map(|(owner, blocks)| {
            json!({ "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
                "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks })
        })
        .collect();
    object["metadata"]["ownerReferences"] = json!(references);
    object
}

fn names(kubernetes: &Kubernetes) -> Vec<String> {
    kubernetes.list("cm").iter().map(|object| object.name().to_owned()).collect()
}

#[tokio::test(start_paused = true)]
async fn owners_that_are_not_there_are_found_by_name_namespace_and_uid() {
    let kubernetes = kubernetes();
    let owner = kubernetes.create(config_map("owner", json!({}))).unwrap();
    let mut elsewhere = owned_by("elsewhere", &[(&owner, false)]);
    elsewhere["metadata"]["namespace"] = json!("kube-system");
    kubernetes.create(elsewhere).unwrap();
    let mut impostor = owner.value().clone();
    impostor["metadata"]["uid"] = json!("other");
    kubernetes.create(owned_by("late", &[(&impostor, false)])).unwrap();
    kubernetes.create(owned_by("both", &[(&owner, false), (&impostor, false)])).unwrap();
    let mut unknown = owner.value().clone();
    unknown["kind"] = json!("Nothing");
    kubernetes.create(owned_by("unknown", &[(&unknown, false)])).unwrap();
    assert_eq!(names(&kubernetes), ["both", "owner", "unknown"]);
    let both = kubernetes.get("cm", "default", "both").unwrap();
    assert_eq!(
        both["metadata"]["ownerReferences"].as_array().unwrap().len(),
        1,
        "the wrong owner is forgotten"
    );
    // An owner reference that is added later counts, too.
    let late = json!({ "metadata": { "ownerReferences": owned_by("x", &[(&impostor, false)])["metadata"]["ownerReferences"] } });
    kubernetes.create(config_map("adopted", json!({}))).unwrap();
    kubernetes.merge("cm", "default", "adopted", &late).unwrap();
    assert_eq!(names(&kubernetes), ["both", "owner", "unknown"]);
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_those_that_block_it() {
    let kubernetes = kubernetes();
    let api = config_maps(&kubernetes);
    let owner = kubernetes.create(config_map("owner", json!({}))).unwrap();
    let other = kubernetes.create(config_map("other", json!({}))).unwrap();
    let held = |mut object: Value| {
        object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        object
    };
    kubernetes.create(held(owned_by("blocks", &[(&owner, true)]))).unwrap();
    kubernetes.create(held(owned_by("lags", &[(&owner, false)]))).unwrap();
    kubernetes.create(owned_by("shared", &[(&owner, true), (&other, true)])).unwrap();
    api.delete("owner", &DeleteParams::foreground()).await.unwrap();
    assert_eq!(names(&kubernetes), ["blocks", "lags", "other", "owner", "shared"]);
    let shared = kubernetes.get("cm", "default", "shared").unwrap();
    assert_eq!(shared["metadata"]["ownerReferences"][0]["name"], "other", "it has another owner and stays");
    assert!(kubernetes.get("cm", "default", "blocks").unwrap().is_terminating());
    assert!(kubernetes.get("cm", "default", "lags").unwrap().is_terminating());
    let free = json!({ "metadata": { "finalizers": null } });
    kubernetes.merge("cm", "default", "blocks", &free).unwrap();
    assert_eq!(names(&kubernetes), ["lags", "other", "shared"], "who does not block is not waited for");
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_owners_comes_to_an_end() {
    let kubernetes = kubernetes();
    let a = kubernetes.create(config_map("a", json!({}))).unwrap();
    let b = kubernetes.create(owned_by("b", &[(&a, true)])).unwrap();
    let back = json!({ "metadata": { "ownerReferences": owned_by("x", &[(&b, true)])["metadata"]["ownerReferences"] } });
    kubernetes.merge("cm", "default", "a", &back).unwrap();
    config_maps(&kubernetes).delete("a", &DeleteParams::foreground()).await.unwrap();
    assert!(names(&kubernetes).is_empty());
}

#[tokio::test(start_paused = true)]
async fn collection_takes_its_time_or_does_not_happen() {
    let run = async |seed: u64| {
        let collection = Collection::Within(Duration::from_secs(60));
        let kubernetes = Kubernetes::new(Options { collection, seed, ..Options::default() });
        let owner = kubernetes.create(config_map("owner", json!({}))).unwrap();
        kubernetes.create(owned_by("child", &[(&owner, false)])).unwrap();
        kubernetes.delete("cm", "default", "owner").unwrap();
        assert_eq!(names(&kubernetes), ["child"]);
        let start = tokio::time::Instant::now();
        kubernetes.until("cm", |all| all.is_empty().then_some(())).await.unwrap();
        start.elapsed()
    };
    let (one, two) = (run(1).await, run(2).await);
    assert!(one <= Duration::from_secs(60) && one != two, "{one:?} {two:?}");
    assert_eq!(one, run(1).await);

    let kubernetes = Kubernetes::new(Options { collection: Collection::Off, ..Options::default() });
    let owner = kubernetes.create(config_map("owner", json!({}))).unwrap();
    kubernetes.create(owned_by("child", &[(&owner, false)])).unwrap();
    kubernetes.delete("cm", "default", "owner").unwrap();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(names(&kubernetes), ["child"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_says_what_holds_it_up() {
    let kubernetes = kubernetes();
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } });
    kubernetes.create(namespace).unwrap();
    let mut object = config_map("held", json!({}));
    object["metadata"]["namespace"] = json!("n");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    kubernetes.create(object).unwrap();
    kubernetes.delete("ns", "", "n").unwrap();
    let conditions = |kubernetes: &Kubernetes| -> Vec<(String, String)> {
        let namespace = kubernetes.get("ns", "", "n").unwrap();
        let conditions = namespace["status"]["conditions"].as_array().unwrap().clone();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        conditions.iter().map(|c| (text(&c["type"]), text(&c["message"]))).collect()
    };
    let told = conditions(&kubernetes);
    let said =
        |kind: &str| told.iter().find(|(name, _)| name == kind).map(|(_, text)| text.as_str()).unwrap();
    assert_eq!(
        said("NamespaceContentRemaining"),
        "Some resources are remaining: configmaps. has 1 resource instances"
    );
    assert_eq!(
        said("NamespaceFinalizersRemaining"),
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    );
    kubernetes.merge("cm", "n", "held", &json!({ "metadata": { "finalizers": null } })).unwrap();
    assert!(kubernetes.get("ns", "", "n").is_none());
}

#[tokio::test(start_paused = true)]
async fn events_expire_an_hour_after_the_last_write() {
    let hour = Duration::from_secs(3600);
    let kubernetes = Kubernetes::new(Options { event_ttl: Some(hour), ..Options::default() });
    let event = |name: &str| {
        json!({ "apiVersion": "v1", "kind": "Event", "metadata": { "name": name },
        "involvedObject": { "kind": "Node", "name": "x" }, "message": "hello" })
    };
    kubernetes.create(event("once")).unwrap();
    kubernetes.create(event("again")).unwrap();
    tokio::time::sleep(hour / 2).await;
    kubernetes.merge("events", "default", "again", &json!({ "count": 2 })).unwrap();
    let left = || kubernetes.list("events").iter().map(|event| event.name().to_owned()).collect::<Vec<_>>();
    tokio::time::sleep(hour / 2 - Duration::from_secs(1)).await;
    assert_eq!(left(), ["again", "once"]);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(left(), ["again"]);
    tokio::time::sleep(hour / 2).await;
    assert!(left().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_service_account_speaks_with_its_token_until_it_expires() {
    let kubernetes = Kubernetes::new(Options { tokens: vec![Token::new("admin")], ..Options::default() });
    let account = json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "robot" } });
    kubernetes.create(account).unwrap();
    let post = async |token: &str, path: &str, body: Value| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let (code, bytes) = raw::send(&kubernetes, Method::POST, path, &headers, &body.to_string()).await;
        (code, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let request = json!({ "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "spec": { "expirationSeconds": 600 } });
    let (code, granted) = post("admin", path, request).await;
    assert_eq!((code, &granted["status"]["expirationTimestamp"]), (201, &json!("2026-01-01T00:10:00Z")));
    let token = granted["status"]["token"].as_str().unwrap();
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" } });
    kubernetes.create(secret).unwrap();
    let bound =
        json!({ "spec": { "boundObjectRef": { "apiVersion": "v1", "kind": "Secret", "name": "s" } } });
    let (_, bound) = post("admin", path, bound).await;
    let bound = bound["status"]["token"].as_str().unwrap();
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let (_, me) = post(token, who, json!({})).await;
    assert_eq!(me["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
    assert_eq!(post("admin", who, json!({})).await.1["status"]["userInfo"]["username"], "kubernetes-admin");
    assert_eq!(post("other", who, json!({})).await.0, 401);
    assert_eq!(post(bound, who, json!({})).await.0, 201);
    kubernetes.delete("secrets", "default", "s").unwrap();
    assert_eq!(post(bound, who, json!({})).await.0, 401, "a token lives as long as what it is bound to");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(post(token, who, json!({})).await.0, 401, "it has expired");
    let review = json!({ "spec": { "token": token } });
    let (_, review) = post("admin", "/apis/authentication.k8s.io/v1/tokenreviews", review).await;
    assert_eq!(review["status"]["error"], "[invalid bearer token, service account token has expired]");
    let api = config_maps(&kubernetes);
    assert_eq!(
        status(api.create(&PostParams::default(), &typed(config_map("a", json!({})))).await).code,
        401
    );
}

#[tokio::test(start_paused = true)]
async fn namespaces_are_furnished_where_there_is_a_certificate() {
    assert!(kubernetes().list("serviceaccounts").is_empty());
    let kubernetes =
        Kubernetes::new(Options { root_certificate: Some("PEM".to_owned()), ..Options::default() });
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "n" } });
    kubernetes.create(namespace).unwrap();
    for namespace in ["n", "default", "kube-system"] {
        assert!(kubernetes.get("sa", namespace, "default").is_some(), "{namespace}");
        let map = kubernetes.get("cm", namespace, "kube-root-ca.crt").unwrap();
        assert_eq!(map["data"]["ca.crt"], "PEM");
    }
    kubernetes.delete("sa", "n", "default").unwrap();
    assert!(kubernetes.get("sa", "n", "default").is_some(), "it comes again");
    let other = kubernetes.get("cm", "kube-system", "extension-apiserver-authentication").unwrap();
    assert_eq!(other["data"]["client-ca-file"], "PEM");
    kubernetes.delete("ns", "", "n").unwrap();
    assert!(kubernetes.get("ns", "", "n").is_none());
}
