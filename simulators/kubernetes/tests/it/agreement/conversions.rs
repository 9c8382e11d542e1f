//! Conversion webhooks over TLS. They listen in this process; both servers call them over a socket.

use futures::StreamExt as _;
use http::Request;
use kube::client::Body;
use serde_json::{Value, json};

use crate::agreement::caller::{APPLY, Answer, Caller, JSON, MERGE, names, version};
use crate::agreement::listening::{Listening, pause};
use crate::agreement::webhooks::register;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// The webhook: `v1` has `host` and `port`, `v2` an `address`. The name of the object selects its misbehaviour.
fn convert(object: &Value, to: &str) -> Value {
    let mut converted = object.clone();
    converted["apiVersion"] = json!(to);
    let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    if let Some(spec) = converted["spec"].as_object_mut() {
        if to.ends_with("/v2") {
            let (host, port) = (spec.remove("host"), spec.remove("port"));
            if let (Some(Value::String(host)), Some(port)) = (host, port) {
                spec.insert("address".to_owned(), json!(format!("{host}:{port}")));
            }
            if let Some(replicas) = spec.remove("replicas") {
                spec.insert("count".to_owned(), replicas);
            }
        } else {
            if let Some(Value::String(address)) = spec.remove("address") {
                let (host, port) = address.split_once(':').unwrap();
                spec.insert("host".to_owned(), json!(host));
                spec.insert("port".to_owned(), json!(port.parse::<u64>().unwrap()));
            }
            if let Some(count) = spec.remove("count") {
                spec.insert("replicas".to_owned(), count);
            }
        }
        // The real server's apply does not support it.
        if name != "owned" {
            spec.insert("unknown".to_owned(), json!("dropped"));
        }
    }
    let metadata = &mut converted["metadata"];
    match name.as_str() {
        "labelled" => {
            metadata["labels"] = json!({"by": "webhook"});
            metadata["annotations"] = json!({"to": to});
            metadata["finalizers"] = json!(["example.com/forged"]);
            metadata["generation"] = json!(42);
            metadata["garbage"] = json!("x");
        }
        "other-version" => converted["apiVersion"] = json!("example.com/v9"),
        "other-kind" => converted["kind"] = json!("Gadget"),
        "other-name" => metadata["name"] = json!("x"),
        "other-namespace" => metadata["namespace"] = json!("x"),
        "other-uid" => metadata["uid"] = json!("x"),
        "no-metadata" => drop(converted.as_object_mut().unwrap().remove("metadata")),
        "bad-labels" => metadata["labels"] = json!({"a": 1}),
        "wrong-labels" => metadata["labels"] = json!({"a": "-"}),
        "text-labels" => metadata["labels"] = json!("text"),
        _ => {}
    }
    converted
}

fn answer(review: &Value) -> Value {
    let request = &review["request"];
    let objects = request["objects"].as_array().unwrap();
    let to = request["desiredAPIVersion"].as_str().unwrap();
    let mut converted: Vec<Value> = objects.iter().map(|object| convert(object, to)).collect();
    let mut result = json!({"status": "Success"});
    let mut uid = request["uid"].clone();
    match objects[0]["metadata"]["name"].as_str().unwrap_or_default() {
        "refused" => result = json!({"status": "Failure", "message": "not this one"}),
        "silent" => result = json!({"status": "Failure"}),
        "twice" => converted.push(converted[0].clone()),
        "nothing" => converted.clear(),
        "other-uid-of-review" => uid = json!("x"),
        _ => {}
    }
    json!({"apiVersion": review["apiVersion"], "kind": review["kind"],
        "response": {"uid": uid, "result": result, "convertedObjects": converted}})
}

/// A kind in two versions that a webhook converts.
struct Converted {
    caller: Caller,
    group: String,
    listening: Listening,
}

impl Converted {
    /// Defines the kind, whose objects are stored as `v1`, and waits until it is served.
    async fn new(caller: Caller) -> Converted {
        Self::with(caller, json!(["v1"])).await
    }

    async fn with(caller: Caller, reviews: Value) -> Converted {
        let listening = Listening::start(|review| (answer(&review), review)).await;
        let group = format!("{}.example.com", caller.namespace);
        let this = Converted { caller, group, listening };
        let webhook =
            json!({"clientConfig": this.listening.client_config(), "conversionReviewVersions": reviews});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": this.definition()},
            "spec": {"group": this.group, "scope": "Namespaced", "versions": this.versions("v1"),
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "conversion": {"strategy": "Webhook", "webhook": webhook}},
        });
        this.caller.post(DEFINITIONS, &definition).await.ok(201);
        for version in ["v1", "v2"] {
            for _ in 0..200 {
                let probe = format!("{}?dryRun=All", this.at(version));
                if this.caller.post(&probe, &this.widget("v1", "probe", json!({}))).await.code != 404 {
                    break;
                }
                pause().await;
            }
        }
        this.listening.asked.lock().clear();
        this
    }

    fn definition(&self) -> String {
        format!("widgets.{}", self.group)
    }

    /// Both versions, one of which is the storage version.
    fn versions(&self, storage: &str) -> Value {
        let text = || json!({"type": "string"});
        let number = || json!({"type": "integer"});
        let defaulted = |name: &str| json!({"type": "string", "default": format!("{name}'s")});
        let version = |name: &str, replicas: &str, column: &str, spec: Value| {
            let scale = json!({"specReplicasPath": format!(".spec.{replicas}"), "statusReplicasPath": ".status.replicas"});
            json!({
                "name": name, "served": true, "storage": name == storage,
                "subresources": {"status": {}, "scale": scale},
                "additionalPrinterColumns": [
                    {"name": "Where", "type": "string", "jsonPath": format!(".spec.{column}")}],
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": spec},
                    "defaults": {"type": "object", "properties": {
                        "v1": if name == "v1" { defaulted("v1") } else { text() },
                        "v2": if name == "v2" { defaulted("v2") } else { text() },
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            })
        };
        json!([
            version(
                "v1",
                "replicas",
                "host",
                json!({"host": text(), "port": number(), "replicas": number()})
            ),
            version("v2", "count", "address", json!({"address": text(), "count": number()})),
        ])
    }

    fn at(&self, version: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{}/widgets", self.group, self.caller.namespace)
    }

    fn widget(&self, version: &str, name: &str, spec: Value) -> Value {
        json!({"apiVersion": format!("{}/{version}", self.group), "kind": "Widget", "metadata": {"name": name},
            "spec": spec})
    }

    async fn create(&self, version: &str, name: &str, spec: Value) -> Answer {
        self.caller.post(&self.at(version), &self.widget(version, name, spec)).await
    }

    async fn get(&self, version: &str, name: &str) -> Answer {
        self.caller.get(&format!("{}/{name}", self.at(version))).await
    }
}

fn old() -> Value {
    json!({"host": "a.example.com", "port": 80})
}

fn new() -> Value {
    json!({"address": "a.example.com:80"})
}

pub async fn a_webhook_shows_objects_in_every_version(caller: Caller) {
    let converted = Converted::new(caller).await;
    let caller = &converted.caller;
    let created = converted.create("v2", "w", new()).await.ok(201);
    assert_eq!(created["apiVersion"], format!("{}/v2", converted.group));
    assert_eq!((&created["spec"], &created["metadata"]["generation"]), (&new(), &json!(1)));
    let stored = converted.get("v1", "w").await.ok(200);
    assert_eq!((&stored["spec"], version(&stored)), (&old(), version(&created)));
    assert_eq!(stored["metadata"]["uid"], created["metadata"]["uid"]);
    assert_eq!(converted.get("v2", "w").await.ok(200)["spec"], new());

    // Both versions can be written.
    let path = format!("{}/w", converted.at("v2"));
    let mut replaced = created.clone();
    replaced["spec"]["address"] = json!("b.example.com:81");
    let replaced = caller.put(&path, &replaced).await.ok(200);
    assert_eq!(replaced["spec"]["address"], "b.example.com:81");
    let merged = caller.patch(&path, MERGE, &json!({"spec": {"count": 3}})).await.ok(200);
    assert_eq!(merged["metadata"]["generation"], 3);
    let operations = json!([{"op": "test", "path": "/spec/address", "value": "b.example.com:81"},
        {"op": "replace", "path": "/spec/address", "value": "c.example.com:82"}]);
    caller.patch(&path, JSON, &operations).await.ok(200);
    let stored = converted.get("v1", "w").await.ok(200);
    assert_eq!(stored["spec"], json!({"host": "c.example.com", "port": 82, "replicas": 3}));
    let unchanged = caller.patch(&path, MERGE, &json!({"spec": {"count": 3}})).await.ok(200);
    assert_eq!(version(&unchanged), version(&stored));

    // So can the subresources.
    let status =
        caller.patch(&format!("{path}/status"), MERGE, &json!({"status": {"replicas": 2}})).await.ok(200);
    assert_eq!((&status["status"]["replicas"], &status["spec"]["count"]), (&json!(2), &json!(3)));
    let scale = caller.get(&format!("{path}/scale")).await.ok(200);
    assert_eq!((&scale["spec"]["replicas"], &scale["status"]["replicas"]), (&json!(3), &json!(2)));
    let scale =
        caller.patch(&format!("{path}/scale"), MERGE, &json!({"spec": {"replicas": 5}})).await.ok(200);
    assert_eq!(scale["spec"]["replicas"], 5);
    assert_eq!(converted.get("v1", "w").await.ok(200)["spec"]["replicas"], 5);

    // A dry run returns the result.
    let dry = format!("{}?dryRun=All", converted.at("v2"));
    let dry = caller.post(&dry, &converted.widget("v2", "dry", new())).await.ok(201);
    assert_eq!(dry["spec"], new());
    converted.get("v2", "dry").await.refused(404, "NotFound");

    // Deletions wait for finalizers.
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    caller.patch(&path, MERGE, &held).await.ok(200);
    let waiting = caller.delete(&path).await.ok(200);
    assert_eq!(waiting["apiVersion"], format!("{}/v2", converted.group));
    assert!(waiting["metadata"]["deletionTimestamp"].is_string());
    let freed = caller.patch(&path, MERGE, &json!({"metadata": {"finalizers": null}})).await.ok(200);
    assert_eq!(freed["spec"]["address"], "c.example.com:82");
    converted.get("v1", "w").await.refused(404, "NotFound");
    converted.create("v2", "x", new()).await.ok(201);
    let gone = caller.delete(&format!("{}/x", converted.at("v2"))).await.ok(200);
    assert_eq!((&gone["kind"], &gone["status"]), (&json!("Status"), &json!("Success")));
}

pub async fn a_webhook_is_asked_for_one_object_at_a_time(caller: Caller) {
    let converted = Converted::new(caller).await;
    let first = converted.create("v1", "a", old()).await.ok(201);
    converted.create("v1", "b", old()).await.ok(201);
    // A server that caches its lists may have requested some of it already.
    let list = converted.caller.get(&converted.at("v2")).await.ok(200);
    assert_eq!((names(&list), &list["kind"]), (vec!["a", "b"], &json!("WidgetList")));
    assert!(list["items"].as_array().unwrap().iter().all(|item| item["spec"] == new()), "{list}");
    let asked = converted.listening.asked.lock().clone();
    assert!(asked.len() >= 2, "{asked:?}");
    for review in &asked {
        assert_eq!(review["kind"], "ConversionReview");
        assert_eq!(review["apiVersion"], "apiextensions.k8s.io/v1");
        assert_eq!(review["request"]["desiredAPIVersion"], format!("{}/v2", converted.group));
        assert!(review["request"]["uid"].is_string());
        assert_eq!(review["request"]["objects"].as_array().unwrap().len(), 1);
        let empty = json!({"uid": "", "convertedObjects": null, "result": {"metadata": {}}});
        assert_eq!(review["response"], empty);
    }
    let mut of_first = first.clone();
    of_first["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    assert!(asked.iter().any(|review| review["request"]["objects"][0] == of_first), "{asked:?}");
    // Deleting a collection reads it first.
    let gone = converted.caller.delete(&converted.at("v2")).await.ok(200);
    assert_eq!(names(&gone), ["a", "b"]);
    assert_eq!(gone["items"][0]["spec"], new());
}

pub async fn a_webhook_changes_labels_and_annotations_alone(caller: Caller) {
    let converted = Converted::new(caller).await;
    let mut widget = converted.widget("v1", "labelled", old());
    widget["metadata"]["labels"] = json!({"own": "yes"});
    let created = converted.caller.post(&converted.at("v1"), &widget).await.ok(201);
    let read = converted.get("v2", "labelled").await.ok(200);
    assert_eq!(read["metadata"]["labels"], json!({"by": "webhook"}));
    assert_eq!(read["metadata"]["annotations"], json!({"to": format!("{}/v2", converted.group)}));
    let bare = |object: &Value| {
        let mut metadata = object["metadata"].clone();
        let _ = ["labels", "annotations"].map(|member| metadata.as_object_mut().unwrap().remove(member));
        metadata
    };
    assert_eq!(bare(&read), bare(&created));
    let select = |selector: &str| format!("{}?labelSelector={selector}", converted.at("v2"));
    assert_eq!(names(&converted.caller.get(&select("by")).await.ok(200)), ["labelled"]);
    assert!(names(&converted.caller.get(&select("own")).await.ok(200)).is_empty());
}

pub async fn a_webhook_that_fails(caller: Caller) {
    let converted = Converted::new(caller).await;
    let (group, namespace) = (&converted.group, &converted.caller.namespace);
    let subject = format!("conversion webhook for {group}/v1, Kind=Widget");
    let invalid = format!("{subject} returned invalid");
    for (name, message) in [
        ("refused", format!("{subject} failed: not this one")),
        ("silent", format!("{subject} failed: response.result.status was 'Failure', not 'Success'")),
        ("twice", format!("{subject} returned 2 objects, expected 1")),
        ("nothing", format!("{subject} returned 0 objects, expected 1")),
        (
            "other-version",
            format!(
                "{invalid} object at index 0: invalid groupVersion (expected {group}/v2, received example.com/v9)"
            ),
        ),
        (
            "other-kind",
            format!("{invalid} object at index 0: invalid kind (expected Widget, received Gadget)"),
        ),
        ("other-name", format!("{invalid} object: must have the same name: other-name != x")),
        ("other-namespace", format!("{invalid} object: must have the same namespace: {namespace} != x")),
        (
            "bad-labels",
            format!(
                "{invalid} metadata: metadata.labels[a] must be a string, but is int64 in converted object"
            ),
        ),
        (
            "text-labels",
            format!("{invalid} metadata: invalid metadata.labels of type string in converted object"),
        ),
    ] {
        // Stored as it comes, and impossible to convert.
        converted.create("v1", name, old()).await.ok(201);
        let read = converted.get("v2", name).await;
        assert_eq!(read.refused(500, ""), message);
        let path = format!("{}/{name}", converted.at("v2"));
        let patched = converted.caller.patch(&path, MERGE, &json!({"spec": {"count": 1}})).await;
        assert_eq!(patched.refused(500, ""), message);
        assert_eq!(converted.caller.delete(&path).await.refused(500, ""), message);
        let list = converted.caller.get(&converted.at("v2")).await;
        assert_eq!(list.refused(500, ""), message);
        converted.caller.delete(&format!("{}/{name}", converted.at("v1"))).await.ok(200);
    }
    for (name, part) in [
        ("other-uid-of-review", " failed: expected response.uid="),
        ("other-uid", " returned invalid object: must have the same UID: "),
        ("wrong-labels", " returned invalid metadata: metadata.labels: Invalid value: \"-\": "),
        ("no-metadata", " returned invalid object: must have the same name: no-metadata != "),
    ] {
        converted.create("v1", name, old()).await.ok(201);
        let read = converted.get("v2", name).await;
        let message = read.refused(500, "");
        assert!(message.starts_with(&format!("{subject}{part}")), "{message}");
        converted.caller.delete(&format!("{}/{name}", converted.at("v1"))).await.ok(200);
    }
    // An object that cannot be converted is not stored.
    let subject = format!("conversion webhook for {group}/v2, Kind=Widget");
    let refused = converted.create("v2", "refused", new()).await;
    assert_eq!(refused.refused(500, ""), format!("{subject} failed: not this one"));
    converted.get("v1", "refused").await.refused(404, "NotFound");
}

pub async fn a_webhook_of_the_older_review(caller: Caller) {
    let converted = Converted::with(caller, json!(["v9", "v1beta1", "v1"])).await;
    converted.create("v1", "other-uid-of-review", old()).await.ok(201);
    assert_eq!(converted.get("v2", "other-uid-of-review").await.ok(200)["spec"], new(), "it is not checked");
    let asked = converted.listening.asked.lock().clone();
    assert!(asked.iter().all(|review| review["apiVersion"] == "apiextensions.k8s.io/v1beta1"));
    assert!(!asked.is_empty());
}

pub async fn watches_and_tables_show_converted_objects(caller: Caller) {
    let converted = Converted::new(caller).await;
    let caller = &converted.caller;
    let first = converted.create("v1", "a", old()).await.ok(201);
    let all = caller.watch(&format!("{}?watch=true", converted.at("v2"))).await;
    let later = format!("{}?watch=true&resourceVersion={}", converted.at("v2"), version(&first));
    let later = caller.watch(&later).await;
    converted.create("v2", "b", new()).await.ok(201);
    let patch = json!({"spec": {"port": 81}});
    caller.patch(&format!("{}/a", converted.at("v1")), MERGE, &patch).await.ok(200);
    caller.delete(&format!("{}/b", converted.at("v1"))).await.ok(200);
    let seen = |(kind, object): (String, Value)| {
        assert_eq!(object["apiVersion"], format!("{}/v2", converted.group), "{object}");
        let name = object["metadata"]["name"].as_str().unwrap();
        format!("{kind} {name} {}", object["spec"]["address"].as_str().unwrap())
    };
    let changes = ["ADDED b a.example.com:80", "MODIFIED a a.example.com:81", "DELETED b a.example.com:80"];
    assert_eq!(later.take(3).map(seen).collect::<Vec<_>>().await, changes);
    let all: Vec<String> = all.take(4).map(seen).collect().await;
    assert_eq!(all[0], "ADDED a a.example.com:80");
    assert_eq!(all[1..], changes);

    let read = async |accept: &str| {
        let accept = format!("application/json;as={accept};v=v1;g=meta.k8s.io");
        let request = Request::builder().uri(converted.at("v2")).header("accept", accept);
        caller.answer(request.body(Body::empty()).unwrap()).await.ok(200)
    };
    let table = read("Table").await;
    assert_eq!(table["rows"][0]["cells"], json!(["a", "a.example.com:81"]));
    let metadata = read("PartialObjectMetadataList").await;
    assert_eq!(names(&metadata), ["a"]);
}

/// Stored objects stay unchanged until they are written again, even without a change.
pub async fn the_storage_version_changes_under_a_webhook(caller: Caller) {
    let converted = Converted::new(caller).await;
    let created = converted.create("v1", "w", old()).await.ok(201);
    let change = json!({"spec": {"versions": converted.versions("v2")}});
    let path = format!("{DEFINITIONS}/{}", converted.definition());
    let changed = converted.caller.patch(&path, MERGE, &change).await.ok(200);
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    let path = format!("{}/w", converted.at("v1"));
    let nothing = json!({"spec": {"port": 80}});
    for _ in 0..100 {
        let written = converted.caller.patch(&path, MERGE, &nothing).await.ok(200);
        if version(&written) != version(&created) {
            break;
        }
        pause().await;
    }
    let written = converted.caller.patch(&path, MERGE, &nothing).await.ok(200);
    assert_ne!(version(&written), version(&created));
    assert_eq!((&written["spec"], &written["metadata"]["generation"]), (&old(), &json!(1)));
    let again = converted.caller.patch(&path, MERGE, &nothing).await.ok(200);
    assert_eq!(version(&again), version(&written));
    // It is stored in the new version now: the webhook is called for the old one alone.
    assert_eq!(converted.get("v2", "w").await.ok(200)["spec"], new());
    assert_eq!(converted.get("v1", "w").await.ok(200)["spec"], old());
}

pub async fn defaults_are_those_of_the_stored_version(caller: Caller) {
    let converted = Converted::new(caller).await;
    for (version, expected) in [
        ("v1", json!({"v1": "v1's"})),
        // An object gets the defaults of the version in which it is written, and is then converted.
        ("v2", json!({"v1": "v1's", "v2": "v2's"})),
    ] {
        let name = format!("of-{version}");
        let mut widget = converted.widget(version, &name, json!({}));
        widget["defaults"] = json!({});
        let created = converted.caller.post(&converted.at(version), &widget).await.ok(201);
        assert_eq!(created["defaults"], expected);
        for read in ["v1", "v2"] {
            assert_eq!(converted.get(read, &name).await.ok(200)["defaults"], expected, "{name} as {read}");
        }
    }
}

pub async fn fields_have_owners_in_every_version(caller: Caller) {
    let converted = Converted::new(caller).await;
    let caller = &converted.caller;
    let apply = async |version: &str, manager: &str, spec: Value, force: bool| {
        let path = format!("{}/owned?fieldManager={manager}&force={force}", converted.at(version));
        caller.patch(&path, APPLY, &converted.widget(version, "owned", spec)).await
    };
    let owners = |object: &Value| -> Vec<Value> {
        let entries = object["metadata"]["managedFields"].as_array().unwrap().iter();
        let owner = |entry: &Value| {
            let version = entry["apiVersion"].as_str().unwrap().rsplit('/').next().unwrap();
            json!([entry["manager"], version, entry["fieldsV1"]["f:spec"]])
        };
        entries.map(owner).collect()
    };
    let made =
        apply("v1", "a", json!({"host": "a.example.com", "port": 80, "replicas": 1}), false).await.ok(201);
    let fields = json!({"f:host": {}, "f:port": {}, "f:replicas": {}});
    assert_eq!(owners(&made), [json!(["a", "v1", fields])]);
    // The same value in another version is no conflict. It changes nothing, so the entry has no time and comes first.
    let shared = apply("v2", "b", new(), false).await.ok(200);
    assert_eq!(owners(&shared), [json!(["b", "v2", {"f:address": {}}]), json!(["a", "v1", fields])]);
    let conflict = apply("v2", "c", json!({"address": "b.example.com:80"}), false).await;
    let message = conflict.refused(409, "Conflict");
    assert!(message.starts_with("Apply failed with 2 conflicts: "), "{message}");
    assert!(message.contains("\"a\"") && message.contains(".spec.host"), "{message}");
    assert!(message.contains("\"b\"") && message.contains(".spec.address"), "{message}");
    let forced = apply("v2", "c", json!({"address": "b.example.com:80"}), true).await.ok(200);
    assert_eq!(forced["spec"], json!({"address": "b.example.com:80", "count": 1}));
    assert_eq!(
        owners(&forced),
        [json!(["a", "v1", {"f:port": {}, "f:replicas": {}}]), json!(["c", "v2", {"f:address": {}}]),]
    );
    // Fields that their manager no longer applies are removed, in every version.
    let dropped = apply("v1", "a", json!({"port": 80}), false).await.ok(200);
    assert_eq!(dropped["spec"], json!({"host": "b.example.com", "port": 80}));
    // An ordinary write in one version takes fields from owners in another.
    let path = format!("{}/owned?fieldManager=d", converted.at("v1"));
    let patched = caller.patch(&path, MERGE, &json!({"spec": {"host": "d.example.com"}})).await.ok(200);
    assert_eq!(owners(&patched), [json!(["a", "v1", {"f:port": {}}]), json!(["d", "v1", {"f:host": {}}])]);
}

pub async fn admission_sees_what_the_conversion_made(caller: Caller) {
    let converted = Converted::new(caller).await;
    let caller = &converted.caller;
    let admits = Listening::admits(|request| {
        use base64::Engine as _;
        let mut operations = vec![];
        if request["object"]["spec"].get("host").is_some() {
            operations.push(json!({"op": "replace", "path": "/spec/host", "value": "hooked.example.com"}));
        }
        let patch = base64::prelude::BASE64_STANDARD.encode(json!(operations).to_string());
        json!({"allowed": true, "patchType": "JSONPatch", "patch": patch})
    })
    .await;
    let mut webhook = admits.webhook(caller, &["CREATE"]);
    webhook["rules"] = json!([
        {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]},
        {"operations": ["*"], "apiGroups": [converted.group], "apiVersions": ["v1"], "resources": ["widgets"]},
    ]);
    register(caller, "MutatingWebhookConfiguration", &admits, webhook).await;
    let mut widget = converted.widget("v2", "w", new());
    widget["metadata"]["labels"] = json!({"hooked": caller.namespace});
    let created = caller.post(&converted.at("v2"), &widget).await.ok(201);
    assert_eq!(created["spec"], json!({"address": "hooked.example.com:80"}));
    caller.delete(&format!("{}/w", converted.at("v2"))).await.ok(200);
    let asked = admits.asked.lock().clone();
    let asked: Vec<&Value> = asked.iter().filter(|request| request["kind"]["kind"] == "Widget").collect();
    let operations: Vec<&str> = asked.iter().map(|request| request["operation"].as_str().unwrap()).collect();
    assert_eq!(operations, ["CREATE", "DELETE"]);
    assert_eq!(asked[0]["object"]["spec"]["host"], "a.example.com");
    assert_eq!(asked[0]["object"]["apiVersion"], format!("{}/v1", converted.group));
    assert_eq!(asked[0]["requestKind"]["version"], "v2");
    assert_eq!(asked[1]["oldObject"]["spec"]["host"], "hooked.example.com");
}

pub async fn a_conversion_webhook_that_is_down(caller: Caller) {
    let converted = Converted::new(caller).await;
    converted.create("v1", "w", old()).await.ok(201);
    // No program listens on port 1.
    let client = json!({"url": "https://127.0.0.1:1/ask", "caBundle": null});
    let change = json!({"spec": {"conversion": {"webhook": {"clientConfig": client}}}});
    let path = format!("{DEFINITIONS}/{}", converted.definition());
    converted.caller.patch(&path, MERGE, &change).await.ok(200);
    let start = format!(
        "conversion webhook for {}/v1, Kind=Widget failed: Post \"https://127.0.0.1:1/ask?timeout=30s\": dial tcp \
         127.0.0.1:1: ",
        converted.group
    );
    for _ in 0..100 {
        let read = converted.get("v2", "w").await;
        if read.code != 200 {
            let message = read.refused(500, "");
            assert!(message.starts_with(&start), "{message}");
            // The storage version needs no webhook.
            assert_eq!(converted.get("v1", "w").await.ok(200)["spec"], old());
            converted.caller.delete(&format!("{}/w", converted.at("v1"))).await.ok(200);
            return;
        }
        pause().await;
    }
    panic!("the webhook is still asked where it was");
}
