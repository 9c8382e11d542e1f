//! Custom resources: definitions, schemas, versions, subresources, tables, patches.

use futures::StreamExt as _;
use http::{Method, Request};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::agreement::caller::{APPLY, Answer, Caller, JSON, MERGE, STRATEGIC, version};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A kind of a group of the caller's own, and the path of its objects.
struct Custom {
    caller: Caller,
    group: String,
    at: String,
}

/// The schema of a spec.
fn spec_schema() -> Value {
    json!({ "type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 9},
        "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 20},
        "replicas": {"type": "integer", "default": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "port": {"type": "integer"},
                "protocol": {"type": "string", "default": "TCP"}}}},
        "plain": {"type": "array", "items": {"type": "string"}},
        "guard": {"type": "object", "properties": {"name": {"type": "string"}, "size": {"type": "integer"}}},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "amount": {"x-kubernetes-int-or-string": true},
    }})
}

fn version_of(name: &str, storage: bool, spec: Value) -> Value {
    json!({"name": name, "served": true, "storage": storage,
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
        "additionalPrinterColumns": [
            {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status",
                "description": "whether", "priority": 1}],
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec,
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}})
}

fn definition(group: &str, versions: Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "versions": versions,
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                "shortNames": ["wd"], "categories": ["all"]}}})
}

impl Custom {
    /// Waits until the kind is served by its latest definition.
    async fn served(caller: &Caller, group: &str, version: &str) {
        for _ in 0..1200 {
            let list = caller.get(&format!("/apis/{group}/{version}")).await;
            let named = |row: &Value| row["name"] == "widgets";
            if list.code == 200
                && list.body["resources"].as_array().is_some_and(|rows| rows.iter().any(named))
                // Its storage may not be ready yet (429).
                && caller.get(&format!("/apis/{group}/{version}/widgets")).await.code == 200
            {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("{group} is not served");
    }

    async fn new(caller: Caller) -> Custom {
        let group = format!("{}.example.com", caller.namespace);
        let versions = json!([version_of("v1", true, spec_schema())]);
        caller.post(DEFINITIONS, &definition(&group, versions)).await.ok(201);
        Custom::served(&caller, &group, "v1").await;
        let at = format!("/apis/{group}/v1/namespaces/{}/widgets", caller.namespace);
        Custom { caller, group, at }
    }

    fn widget(&self, name: &str, spec: Value) -> Value {
        json!({"apiVersion": format!("{}/v1", self.group), "kind": "Widget", "metadata": {"name": name}, "spec": spec})
    }

    async fn create(&self, name: &str, spec: Value) -> Answer {
        self.caller.post(&self.at, &self.widget(name, spec)).await
    }

    /// Code and messages of all causes, by field.
    async fn refused(&self, spec: Value) -> Vec<String> {
        let answer = self.create("bad", spec).await;
        answer.refused(422, "Invalid");
        let causes = answer.body["details"]["causes"].as_array().unwrap();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut told: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", text(&cause["field"]), text(&cause["message"])))
            .collect();
        told.sort();
        told
    }

    async fn apply(&self, manager: &str, force: bool, name: &str, spec: Value) -> Answer {
        let at = format!("{}/{name}?fieldManager={manager}&force={force}", self.at);
        self.caller.patch(&at, APPLY, &self.widget(name, spec)).await
    }
}

pub async fn unknown_members_go_and_defaults_come(caller: Caller) {
    let custom = Custom::new(caller).await;
    let spec = json!({"size": 1, "stray": {"a": 1}, "free": {"any": [1, {"b": null}]}, "name": null,
        "ports": [{"name": "a", "extra": true}]});
    let created = custom.create("w", spec).await.ok(201);
    assert_eq!(
        created["spec"],
        json!({"size": 1, "free": {"any": [1, {"b": null}]}, "color": "red", "replicas": 1,
            "ports": [{"name": "a", "protocol": "TCP"}]})
    );
    assert_eq!(created["metadata"]["generation"], 1);
    let read = custom.caller.get(&format!("{}/w", custom.at)).await.ok(200);
    assert_eq!(read, created);
}

pub async fn values_are_held_against_the_schema(caller: Caller) {
    let custom = Custom::new(caller).await;
    assert_eq!(
        custom.refused(json!({"size": "1"})).await,
        [r#"spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#]
    );
    assert_eq!(custom.refused(json!({})).await, ["spec.size: Required value"]);
    assert_eq!(
        custom.refused(json!({"size": 0, "color": "blue", "name": "A1"})).await,
        [
            r#"spec.color: Unsupported value: "blue": supported values: "red", "green""#,
            r#"spec.name: Invalid value: "A1": spec.name in body should match '^[a-z]+$'"#,
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ]
    );
    assert_eq!(
        custom.refused(json!({"size": 1, "tags": ["a", "b", "a"]})).await,
        [r#"spec.tags[2]: Duplicate value: "a""#]
    );
    assert_eq!(
        custom.refused(json!({"size": 1, "amount": true})).await,
        [
            r#"spec.amount: Invalid value: "boolean": spec.amount in body must be of type integer,string: "boolean""#
        ]
    );
    let twice = custom.create("bad", json!({"size": 1, "ports": [{"name": "a"}, {"name": "a"}]})).await;
    assert!(twice.refused(422, "Invalid").contains("spec.ports[1]: Duplicate value: "));
    for (name, amount) in [("int", json!(1)), ("text", json!("50%"))] {
        custom.create(name, json!({"size": 1, "amount": amount})).await.ok(201);
    }
    let nobody = json!({"apiVersion": format!("{}/v1", custom.group), "kind": "Widget",
        "metadata": {"name": "A"}, "spec": {"size": 1}});
    assert!(custom.caller.post(&custom.at, &nobody).await.refused(422, "Invalid").contains("metadata.name"));
}

pub async fn generation_counts_changes_of_all_but_status_and_metadata(caller: Caller) {
    let custom = Custom::new(caller).await;
    let at = format!("{}/w", custom.at);
    custom.create("w", json!({"size": 1})).await.ok(201);
    let labelled =
        custom.caller.patch(&at, MERGE, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok(200);
    assert_eq!(labelled["metadata"]["generation"], 1);
    let grown = custom.caller.patch(&at, MERGE, &json!({"spec": {"size": 2}})).await.ok(200);
    assert_eq!(grown["metadata"]["generation"], 2);
    let status = json!({"status": {"replicas": 1, "selector": "a=b"}, "spec": {"size": 5}});
    let status = custom.caller.patch(&format!("{at}/status"), MERGE, &status).await.ok(200);
    assert_eq!((&status["metadata"]["generation"], &status["spec"]["size"]), (&json!(2), &json!(2)));
    assert_eq!(status["status"], json!({"replicas": 1, "selector": "a=b"}));
    let ignored = custom.caller.patch(&at, MERGE, &json!({"status": {"replicas": 7}})).await.ok(200);
    assert_eq!(ignored["status"]["replicas"], 1);
    assert_eq!(version(&ignored), version(&status), "nothing was written");
    let mut nameless = status.clone();
    nameless["metadata"]["resourceVersion"] = Value::Null;
    let refused = custom.caller.put(&at, &nameless).await;
    assert!(refused.refused(422, "Invalid").contains("metadata.resourceVersion"));
}

pub async fn scale_follows_the_paths_of_the_definition(caller: Caller) {
    let custom = Custom::new(caller).await;
    let at = format!("{}/w", custom.at);
    custom.create("w", json!({"size": 1, "replicas": 3})).await.ok(201);
    let status = json!({"status": {"replicas": 2, "selector": "a=b"}});
    custom.caller.patch(&format!("{at}/status"), MERGE, &status).await.ok(200);
    let mut scale = custom.caller.get(&format!("{at}/scale")).await.ok(200);
    assert_eq!((&scale["kind"], &scale["apiVersion"]), (&json!("Scale"), &json!("autoscaling/v1")));
    assert_eq!(scale["spec"], json!({"replicas": 3}));
    assert_eq!(scale["status"], json!({"replicas": 2, "selector": "a=b"}));
    scale["spec"]["replicas"] = json!(5);
    let mut negative = scale.clone();
    negative["spec"]["replicas"] = json!(-1);
    let refused = custom.caller.put(&format!("{at}/scale"), &negative).await;
    let message = refused.refused(422, "Invalid");
    let why = "is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer";
    assert!(message.starts_with("Widget.") && message.ends_with(why), "{message}");
    let told = custom.refused(json!({"size": 1, "replicas": -1})).await;
    assert_eq!(told, [".spec.replicas: Invalid value: -1: should be a non-negative integer"]);
    let scaled = custom.caller.put(&format!("{at}/scale"), &scale).await.ok(200);
    assert_eq!(scaled["spec"]["replicas"], 5);
    let read = custom.caller.get(&at).await.ok(200);
    assert_eq!((&read["spec"]["replicas"], &read["metadata"]["generation"]), (&json!(5), &json!(2)));
}

pub async fn columns_are_those_of_the_definition(caller: Caller) {
    let custom = Custom::new(caller).await;
    custom.create("w", json!({"size": 4})).await.ok(201);
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
    custom.caller.patch(&format!("{}/w/status", custom.at), MERGE, &status).await.ok(200);
    let request = http::Request::builder()
        .uri(&custom.at)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(kube::client::Body::empty())
        .unwrap();
    let table = custom.caller.answer(request).await.ok(200);
    let columns: Vec<Value> = table["columnDefinitions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| json!([column["name"], column["type"], column["format"], column["priority"]]))
        .collect();
    assert_eq!(
        columns,
        [
            json!(["Name", "string", "name", 0]),
            json!(["Size", "integer", "", 0]),
            json!(["Ready", "string", "", 1])
        ]
    );
    assert_eq!(
        table["columnDefinitions"][1]["description"],
        "Custom resource definition column (in JSONPath format): .spec.size"
    );
    assert_eq!(table["rows"][0]["cells"], json!(["w", 4, "True"]));
}

pub async fn strategic_patches_are_for_built_in_kinds(caller: Caller) {
    let custom = Custom::new(caller).await;
    let at = format!("{}/w", custom.at);
    custom.create("w", json!({"size": 1})).await.ok(201);
    let refused = custom.caller.patch(&at, STRATEGIC, &json!({"spec": {"size": 2}})).await;
    assert_eq!(
        refused.refused(415, "UnsupportedMediaType"),
        "the body of the request was in an unknown format - accepted media types include: \
         application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    );
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 3}]);
    assert_eq!(custom.caller.patch(&at, JSON, &patch).await.ok(200)["spec"]["size"], 3);
    let bad = custom.caller.patch(&at, MERGE, &json!({"spec": {"size": 100}})).await;
    assert!(bad.refused(422, "Invalid").contains("should be less than or equal to 9"));
}

pub async fn apply_knows_lists_and_maps_of_custom_kinds(caller: Caller) {
    let custom = Custom::new(caller).await;
    let first = json!({"size": 1, "tags": ["a", "b"], "ports": [{"name": "x", "port": 1}], "plain": ["p"],
        "whole": {"k": "v"}, "free": {"deep": {"er": 1}}});
    let created = custom.apply("one", false, "w", first).await.ok(201);
    let entry = &created["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("one"), &json!("Apply")));
    assert_eq!(entry["apiVersion"], format!("{}/v1", custom.group));
    assert_eq!(
        entry["fieldsV1"],
        json!({"f:spec": {
            "f:size": {}, "f:tags": {"v:\"a\"": {}, "v:\"b\"": {}}, "f:plain": {}, "f:whole": {},
            "f:ports": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:port": {}}},
            "f:free": {"f:deep": {".": {}, "f:er": {}}},
        }})
    );
    let second = json!({"tags": ["b", "c"], "ports": [{"name": "y", "port": 2}]});
    let both = custom.apply("two", false, "w", second).await.ok(200);
    let mut tags: Vec<&str> =
        both["spec"]["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap()).collect();
    tags.sort_unstable();
    assert_eq!(tags, ["a", "b", "c"]);
    assert_eq!(both["spec"]["ports"].as_array().unwrap().len(), 2);
    for (spec, path) in [
        (json!({"plain": ["q"]}), ".spec.plain"),
        (json!({"whole": {"k": "w"}}), ".spec.whole"),
        (json!({"ports": [{"name": "x", "port": 9}]}), ".spec.ports[name=\"x\"].port"),
        (json!({"free": {"deep": {"er": 2}}}), ".spec.free.deep.er"),
    ] {
        let refused = custom.apply("two", false, "w", spec).await;
        let message = format!("Apply failed with 1 conflict: conflict with \"one\": {path}");
        assert_eq!(refused.refused(409, "Conflict"), message);
    }
    let less = custom.apply("one", false, "w", json!({"size": 1, "tags": ["a"]})).await.ok(200);
    assert_eq!(less["spec"].get("plain"), None);
    assert_eq!(less["spec"].get("whole"), None);
    assert_eq!(less["spec"]["ports"], json!([{"name": "y", "port": 2, "protocol": "TCP"}]));
    let unknown = custom.apply("one", false, "w", json!({"size": 1, "stray": 1})).await;
    assert_eq!(unknown.code, 500, "{unknown:?}");
    assert!(unknown.body["message"].as_str().unwrap().ends_with(".spec.stray: field not declared in schema"));
}

/// Admission fills an empty object that was applied: the values that it adds have no owner, and stay when the same
/// configuration is applied again.
pub async fn apply_keeps_what_is_nobodys_in_an_empty_object(caller: Caller) {
    let custom = Custom::new(caller).await;
    let spec = json!({"size": 1, "guard": {}});
    let created = custom.apply("one", false, "w", spec.clone()).await.ok(201);
    let at = format!("{}/w", custom.at);
    let mut filled = created.clone();
    filled["spec"]["guard"] = json!({"name": "a", "size": 2});
    let mut filled = custom.caller.put(&at, &filled).await.ok(200);
    assert_eq!(filled["spec"]["guard"], json!({"name": "a", "size": 2}));
    filled["metadata"]["managedFields"] = created["metadata"]["managedFields"].clone();
    let filled = custom.caller.put(&at, &filled).await.ok(200);
    let again = custom.apply("one", false, "w", spec).await.ok(200);
    assert_eq!(again["spec"], filled["spec"]);
    assert_eq!(version(&again), version(&filled), "the same again writes nothing");
}

pub async fn several_versions_show_one_object(caller: Caller) {
    let group = format!("{}.example.com", caller.namespace);
    let beta = json!({"type": "object", "properties": {"size": {"type": "integer"},
        "shade": {"type": "string", "default": "dark"}}});
    let versions = json!([version_of("v1beta1", false, beta.clone()), version_of("v1", true, spec_schema())]);
    let made = caller.post(DEFINITIONS, &definition(&group, versions)).await.ok(201);
    assert_eq!(made["status"]["storedVersions"], json!(["v1"]));
    Custom::served(&caller, &group, "v1").await;
    let groups = caller.get(&format!("/apis/{group}")).await.ok(200);
    assert_eq!(groups["preferredVersion"]["version"], "v1");
    let at = |version: &str| format!("/apis/{group}/{version}/namespaces/{}/widgets", caller.namespace);
    let object = json!({"apiVersion": format!("{group}/v1beta1"), "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"size": 3, "shade": "light"}});
    let old = caller.post(&at("v1beta1"), &object).await.ok(201);
    assert_eq!(old["apiVersion"], format!("{group}/v1beta1"));
    let new = caller.get(&format!("{}/w", at("v1"))).await.ok(200);
    assert_eq!(new["apiVersion"], format!("{group}/v1"));
    assert_eq!(
        new["spec"],
        json!({"size": 3, "color": "red", "replicas": 1}),
        "the other version's members go"
    );

    let name = format!("{DEFINITIONS}/widgets.{group}");
    let versions = json!([version_of("v1beta1", true, beta), version_of("v1", false, spec_schema())]);
    let change = json!({"spec": {"versions": versions}});
    let changed = caller.patch(&name, MERGE, &change).await.ok(200);
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v1beta1"]));
    assert_eq!(changed["metadata"]["generation"], 2);
    let gone = json!({"spec": {"versions": [version_of("v1beta1", true, json!({"type": "object"}))]}});
    let refused = caller.patch(&name, MERGE, &gone).await;
    assert!(refused.refused(422, "Invalid").contains("status.storedVersions[0]: Invalid value: \"v1\""));
}

pub async fn definitions_must_be_sound(caller: Caller) {
    let group = format!("{}.example.com", caller.namespace);
    let refused = |spec: Value| {
        let (caller, group) = (caller.clone(), group.clone());
        async move {
            let answer =
                caller.post(DEFINITIONS, &definition(&group, json!([version_of("v1", true, spec)]))).await;
            let causes = answer.body["details"]["causes"].as_array().cloned().unwrap_or_default();
            assert_eq!(answer.code, 422, "{answer:?}");
            causes
                .iter()
                .map(|cause| {
                    format!("{}: {}", cause["field"].as_str().unwrap(), cause["message"].as_str().unwrap())
                })
                .collect::<Vec<_>>()
        }
    };
    let at = "spec.validation.openAPIV3Schema.properties[spec]";
    assert_eq!(
        refused(json!({})).await,
        [format!("{at}.type: Required value: must not be empty for specified object fields")]
    );
    assert_eq!(
        refused(json!({"type": "object", "properties": {"a": {"type": "array"}}})).await,
        [format!("{at}.properties[a].items: Required value: must be specified")]
    );
    assert_eq!(
        refused(json!({"type": "object", "anyOf": [{"type": "object"}]})).await,
        [format!("{at}.anyOf[0].type: Forbidden: must be empty to be structural")]
    );
    assert_eq!(
        refused(json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"},
            "uniqueItems": true}}}))
        .await,
        [format!(
            "{at}.properties[a].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity \
             becomes quadratic"
        )]
    );
    let mut other = definition(&group, json!([version_of("v1", true, json!({"type": "object"}))]));
    other["metadata"]["name"] = json!("things.example.com");
    let answer = caller.post(DEFINITIONS, &other).await;
    assert!(answer.refused(422, "Invalid").contains("must be spec.names.plural+\".\"+spec.group"));
}

pub async fn a_name_in_use_is_not_granted(caller: Caller) {
    let custom = Custom::new(caller).await;
    let mut other = definition(&custom.group, json!([version_of("v1", true, json!({"type": "object"}))]));
    other["metadata"]["name"] = json!(format!("gadgets.{}", custom.group));
    other["spec"]["names"] =
        json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList"});
    custom.caller.post(DEFINITIONS, &other).await.ok(201);
    let at = format!("{DEFINITIONS}/gadgets.{}", custom.group);
    let conditions = async || -> Vec<Value> {
        let found = custom.caller.get(&at).await.ok(200);
        let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().map(|c| json!([c["type"], c["status"], c["reason"], c["message"]])).collect()
    };
    for _ in 0..1200 {
        if conditions().await.len() > 1 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(
        conditions().await,
        [
            json!(["NamesAccepted", "False", "KindConflict", "\"Widget\" is already in use"]),
            json!(["Established", "False", "NotAccepted", "not all names are accepted"])
        ]
    );
}

pub async fn a_definition_takes_its_objects_along(caller: Caller) {
    let custom = Custom::new(caller).await;
    let mut held = custom.widget("held", json!({"size": 1}));
    held["metadata"]["finalizers"] = json!(["example.com/hold", "hold.example.com"]);
    custom.caller.post(&custom.at, &held).await.ok(201);
    custom.create("free", json!({"size": 1})).await.ok(201);
    let definition = format!("{DEFINITIONS}/widgets.{}", custom.group);
    let marked = custom.caller.send(Method::DELETE, &definition, None).await.ok(200);
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    let at = format!("{}/held", custom.at);
    for _ in 0..200 {
        let free = custom.caller.get(&format!("{}/free", custom.at)).await;
        let held = custom.caller.get(&at).await;
        if free.code == 404 && held.body["metadata"]["deletionTimestamp"].is_string() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(custom.caller.get(&definition).await.code, 200, "it waits");
    let late = custom.create("late", json!({"size": 1})).await;
    assert_eq!(
        late.refused(403, "Forbidden"),
        format!(
            "widgets.{} \"late\" is forbidden: create not allowed while custom resource definition is terminating",
            custom.group
        )
    );
    custom.caller.patch(&at, MERGE, &json!({"metadata": {"finalizers": null}})).await.ok(200);
    for _ in 0..400 {
        if custom.caller.get(&definition).await.code == 404 && custom.caller.get(&custom.at).await.code == 404
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the definition is still there");
}

pub async fn fields_of_custom_kinds_are_not_selected_unless_named(caller: Caller) {
    let custom = Custom::new(caller).await;
    let refused = custom.caller.get(&format!("{}?fieldSelector=spec.size%3D1", custom.at)).await;
    assert_eq!(refused.refused(400, "BadRequest"), "field label not supported: spec.size");
    custom.create("w", json!({"size": 1})).await.ok(201);
    let list = custom.caller.get(&format!("{}?fieldSelector=metadata.name%3Dw", custom.at)).await.ok(200);
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1));
}

pub async fn watches_end_with_their_kind(caller: Caller) {
    let custom = Custom::new(caller).await;
    let caller = &custom.caller;
    let list = caller.get(&custom.at).await.ok(200);
    let mut watch =
        caller.watch(&format!("{}?watch=true&resourceVersion={}", custom.at, version(&list))).await;
    custom.create("w", json!({"size": 1})).await.ok(201);
    caller.delete(&format!("{DEFINITIONS}/widgets.{}", custom.group)).await.ok(200);
    let told = async {
        let mut told = vec![];
        while let Some((kind, _)) = watch.next().await {
            told.push(kind);
        }
        told
    };
    // A real server may or may not mark the object before it is deleted.
    let told = timeout(std::time::Duration::from_secs(60), told).await.expect("the end in time");
    assert_eq!(
        (told.first().map(String::as_str), told.last().map(String::as_str)),
        (Some("ADDED"), Some("DELETED"))
    );
}

pub async fn deprecated_versions_are_warned_of(caller: Caller) {
    let group = format!("{}.example.com", caller.namespace);
    let old = |name: &str, words: Value| {
        let mut version = version_of(name, false, spec_schema());
        version["deprecated"] = json!(true);
        version["deprecationWarning"] = words;
        version
    };
    let versions = json!([
        version_of("v1", true, spec_schema()),
        old("v1beta1", Value::Null),
        old("v1alpha1", json!("\"alpha\" goes"))
    ]);
    caller.post(DEFINITIONS, &definition(&group, versions)).await.ok(201);
    Custom::served(&caller, &group, "v1").await;
    for (version, warning) in [
        ("v1", None),
        ("v1beta1", Some(format!("{group}/v1beta1 Widget is deprecated; use {group}/v1 Widget"))),
        ("v1alpha1", Some("\\\"alpha\\\" goes".to_owned())),
    ] {
        let path = format!("/apis/{group}/{version}/namespaces/{}/widgets", caller.namespace);
        let request = Request::builder().uri(path).header("accept", "application/json");
        let answer = caller.client.send(request.body(Body::empty()).unwrap()).await.unwrap();
        let told = answer.headers().get("warning").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!(told, warning.map(|warning| format!("299 - \"{warning}\"")), "{version}");
    }
}
