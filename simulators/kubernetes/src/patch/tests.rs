use proptest::prelude::*;
use serde_json::{Value, json};

use super::types::PatchError;
use super::*;
use crate::registry::Registry;

/// A part of a built-in kind, which has one version.
fn subject_of(
    kind: &str,
    subresource: &'static str,
    test: impl FnOnce(&PatchTarget<'_>) -> Result<Value, PatchError>,
) -> Result<Value, PatchError> {
    let registry = Registry::default();
    let kind = registry.by_name(kind).unwrap();
    registry.subject(&kind, subresource, |subject| test(subject))
}

fn patch(kind: &str, current: Option<&Value>, change: &Value, how: &PatchType) -> Result<Value, PatchError> {
    if Registry::default().by_name(kind).is_none() {
        return plain(&crate::schema::ANYTHING, current, change, how);
    }
    subject_of(kind, "", |subject| super::patch(subject, current, change, how))
}

fn patch_subresource(
    kind: &str,
    subresource: Option<&'static str>,
    current: Option<&Value>,
    change: &Value,
    how: &PatchType,
) -> Result<Value, PatchError> {
    subject_of(kind, subresource.unwrap_or_default(), |subject| super::patch(subject, current, change, how))
}

fn track_update(
    kind: &str,
    subresource: Option<&'static str>,
    old: Option<&Value>,
    new: &mut Value,
    manager: &str,
) {
    subject_of(kind, subresource.unwrap_or_default(), |subject| {
        super::track_update(subject, old, new, manager).map(|()| Value::Null)
    })
    .unwrap();
}

fn strategic(kind: &str, current: Value, change: Value) -> Value {
    patch(kind, Some(&current), &change, &PatchType::Strategic).unwrap()
}

fn apply(manager: &str, force: bool, current: Option<&Value>, applied: &Value) -> Result<Value, PatchError> {
    let mut object =
        patch("Service", current, applied, &PatchType::Apply { field_manager: manager.into(), force })?;
    // The caller sets the times of entries, except of those without one.
    for entry in
        object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut).into_iter().flatten()
    {
        entry.as_object_mut().unwrap().retain(|member, value| member != "time" || !value.is_null());
    }
    Ok(object)
}

fn service(spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec})
}

fn fields_of<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    entries.iter().find(|entry| entry["manager"] == manager).map(|entry| &entry["fieldsV1"])
}

#[test]
fn merge_patch_of_rfc_7386() {
    let current = json!({"a": {"b": 1, "c": [1, 2]}, "d": "e"});
    let change = json!({"a": {"b": null, "c": [3]}, "f": {"g": null, "h": 1}});
    let merged = patch("ConfigMap", Some(&current), &change, &PatchType::Merge).unwrap();
    assert_eq!(merged, json!({"a": {"c": [3]}, "d": "e", "f": {"h": 1}}));
    assert!(matches!(
        patch("ConfigMap", Some(&current), &json!([]), &PatchType::Merge),
        Err(PatchError::Invalid(_))
    ));
}

#[test]
fn json_patch_of_rfc_6902() {
    let current = json!({"metadata": {"finalizers": ["a/b", "c/d"]}});
    let change = json!([
        {"op": "test", "path": "/metadata/finalizers/0", "value": "a/b"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
        {"op": "add", "path": "/metadata/labels", "value": {"x~1y": "1"}},
    ]);
    let patched = patch("Service", Some(&current), &change, &PatchType::Json).unwrap();
    assert_eq!(patched, json!({"metadata": {"finalizers": ["c/d"], "labels": {"x~1y": "1"}}}));
    let failing = json!([{"op": "test", "path": "/metadata/finalizers/0", "value": "z"}]);
    assert!(matches!(
        patch("Service", Some(&current), &failing, &PatchType::Json),
        Err(PatchError::TestFailed(_))
    ));
    let absent = json!([{"op": "remove", "path": "/spec"}]);
    assert!(matches!(
        patch("Service", Some(&current), &absent, &PatchType::Json),
        Err(PatchError::TestFailed(_))
    ));
    assert!(matches!(
        patch("Service", Some(&current), &json!({"op": 1}), &PatchType::Json),
        Err(PatchError::Invalid(_))
    ));
}

#[test]
fn strategic_lists_merge_by_key() {
    let current = service(json!({"ports": [{"port": 80, "name": "a", "nodePort": 30000}, {"port": 81}]}));
    let merged = strategic(
        "Service",
        current,
        json!({"spec": {"ports": [{"port": 80, "name": "b"}, {"port": 82}, {"port": 81, "$patch": "delete"}]}}),
    );
    assert_eq!(merged["spec"]["ports"], json!([{"port": 80, "name": "b", "nodePort": 30000}, {"port": 82}]));
}

#[test]
fn strategic_order_interleaves_what_the_server_alone_has() {
    let current = service(json!({"ports": [{"port": 1}, {"port": 2}, {"port": 3}]}));
    let merged = strategic(
        "Service",
        current,
        json!({"spec": {
            "$setElementOrder/ports": [{"port": 3}, {"port": 1}, {"port": 9}],
            "ports": [{"port": 9}],
        }}),
    );
    assert_eq!(merged["spec"]["ports"], json!([{"port": 2}, {"port": 3}, {"port": 1}, {"port": 9}]));
}

#[test]
fn strategic_replaces_addresses_as_a_whole_when_told() {
    let current = json!({"status": {"addresses": [
        {"type": "Hostname", "address": "n0"}, {"type": "InternalIP", "address": "10.0.0.4"}]}});
    let merged = strategic(
        "Node",
        current.clone(),
        json!({"status": {"addresses": [
            {"type": "InternalIP", "address": "10.0.0.5"}, {"type": "InternalIP", "address": "fd00::5"},
            {"$patch": "replace"}]}}),
    );
    assert_eq!(
        merged["status"]["addresses"],
        json!([{"type": "InternalIP", "address": "10.0.0.5"}, {"type": "InternalIP", "address": "fd00::5"}])
    );
    let merged = strategic(
        "Node",
        current,
        json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.6"}]}}),
    );
    assert_eq!(
        merged["status"]["addresses"],
        json!([{"type": "Hostname", "address": "n0"}, {"type": "InternalIP", "address": "10.0.0.6"}])
    );
    let merged = strategic(
        "Node",
        json!({"status": {}}),
        json!({"status": {"addresses": [{"type": "Hostname", "address": "n"}, {"$patch": "replace"}]}}),
    );
    assert_eq!(merged["status"]["addresses"], json!([{"type": "Hostname", "address": "n"}]));
}

#[test]
fn strategic_finalizers_are_a_set() {
    let current = json!({"metadata": {"finalizers": ["a/1", "b/2"]}});
    let merged = strategic("Service", current.clone(), json!({"metadata": {"finalizers": ["b/2", "c/3"]}}));
    assert_eq!(merged["metadata"]["finalizers"], json!(["a/1", "b/2", "c/3"]));
    let merged = strategic(
        "Service",
        current.clone(),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}}),
    );
    assert_eq!(merged["metadata"]["finalizers"], json!(["b/2"]));
    let merged = strategic("Service", current, json!({"metadata": {"finalizers": null}}));
    assert_eq!(merged, json!({"metadata": {}}));
}

#[test]
fn strategic_lists_without_a_key_are_replaced() {
    let current = json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}});
    let merged =
        strategic("Node", current, json!({"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}));
    assert_eq!(merged["spec"]["taints"], json!([{"key": "b", "effect": "NoExecute"}]));
}

#[test]
fn strategic_retain_keys_drops_the_other_members() {
    let current = json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
    let merged = strategic(
        "Pod",
        current,
        json!({"spec": {"volumes": [
            {"name": "v", "hostPath": {"path": "/"}, "$retainKeys": ["name", "hostPath"]}]}}),
    );
    assert_eq!(merged["spec"]["volumes"], json!([{"name": "v", "hostPath": {"path": "/"}}]));
}

#[test]
fn strategic_maps_are_replaced_or_emptied_by_directive() {
    let current = json!({"metadata": {"labels": {"a": "1"}, "annotations": {"b": "2"}}});
    let merged = strategic(
        "Service",
        current,
        json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}, "annotations": {"$patch": "delete"}}}),
    );
    assert_eq!(merged, json!({"metadata": {"labels": {"c": "3"}, "annotations": {}}}));
}

#[test]
fn strategic_refuses_items_without_their_key_and_unknown_directives() {
    let current = service(json!({"ports": []}));
    for change in [json!({"spec": {"ports": [{"name": "x"}]}}), json!({"spec": {"$patch": "foo"}}), json!([])]
    {
        assert!(matches!(
            patch("Service", Some(&current), &change, &PatchType::Strategic),
            Err(PatchError::Invalid(_))
        ));
    }
}

#[test]
fn strategic_pod_templates_follow_the_rules_of_pods() {
    let current = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}]}}}});
    let merged = strategic(
        "Deployment",
        current,
        json!({"spec": {"template": {"spec": {"containers": [
            {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}]}]}}}}),
    );
    assert_eq!(
        merged["spec"]["template"]["spec"]["containers"],
        json!([
            {"name": "a", "image": "2", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}]},
            {"name": "b", "image": "1"},
        ])
    );
}

#[test]
fn apply_creates_with_the_fields_it_names() {
    let created = apply(
        "one",
        false,
        None,
        &service(json!({"ports": [{"port": 80, "name": "http"}], "selector": {"a": "b"}})),
    )
    .unwrap();
    assert_eq!(created["spec"]["ports"], json!([{"port": 80, "name": "http"}]));
    assert_eq!(
        created["metadata"]["managedFields"],
        json!([{
            "manager": "one", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}}},
                "f:selector": {},
            }},
        }])
    );
}

#[test]
fn apply_removes_what_it_no_longer_names_unless_another_owns_it() {
    let first =
        service(json!({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}], "type": "NodePort"}));
    let object = apply("one", false, None, &first).unwrap();
    // The same value: shared ownership, no conflict.
    let object = apply("two", false, Some(&object), &service(json!({"type": "NodePort"}))).unwrap();
    let object =
        apply("one", false, Some(&object), &service(json!({"ports": [{"port": 81, "name": "b"}]}))).unwrap();
    assert_eq!(object["spec"], json!({"ports": [{"port": 81, "name": "b"}], "type": "NodePort"}));
    let object = apply("two", false, Some(&object), &service(json!({}))).unwrap();
    assert_eq!(object["spec"].get("type"), None);
}

#[test]
fn apply_conflicts_name_manager_and_path() {
    let object = apply("one", false, None, &service(json!({"type": "NodePort"}))).unwrap();
    let change = service(json!({"type": "LoadBalancer"}));
    let refused = apply("two", false, Some(&object), &change).unwrap_err();
    assert_eq!(refused.to_string(), "Apply failed with 1 conflict: conflict with \"one\": .spec.type");

    let forced = apply("two", true, Some(&object), &change).unwrap();
    assert_eq!(forced["spec"]["type"], "LoadBalancer");
    assert_eq!(fields_of(&forced, "one"), None, "a manager that owns nothing has no entry");
    assert_eq!(fields_of(&forced, "two"), Some(&json!({"f:spec": {"f:type": {}}})));
}

#[test]
fn apply_counts_several_conflicts() {
    let ports = |name: &str| json!({"ports": [{"port": 80, "name": name}], "sessionAffinity": name});
    let object = apply("one", false, None, &service(ports("a"))).unwrap();
    let refused = apply("two", false, Some(&object), &service(ports("b"))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"one\":\n\
         - .spec.sessionAffinity\n- .spec.ports[port=80,protocol=\"TCP\"].name"
    );
}

#[test]
fn apply_keeps_items_that_others_added() {
    let object = apply("one", false, None, &service(json!({"ports": [{"port": 80}]}))).unwrap();
    let both = apply("two", false, Some(&object), &service(json!({"ports": [{"port": 443}]}))).unwrap();
    assert_eq!(both["spec"]["ports"], json!([{"port": 80}, {"port": 443}]));
    let one_left = apply("one", false, Some(&both), &service(json!({}))).unwrap();
    assert_eq!(one_left["spec"]["ports"], json!([{"port": 443}]));
}

/// The result of one manager's apply of items of a set to a live list: live, applied, merged.
#[test]
fn apply_merges_lists_from_their_beginnings() {
    for (live, applied, merged) in [
        ("abc", "", "abc"),
        ("ab", "cd", "abcd"),
        ("abc", "cxa", "bcxa"),
        ("axb", "abn", "axbn"),
        ("bax", "abn", "axbn"),
        ("ab", "xb", "axb"),
        ("xay", "by", "xaby"),
    ] {
        let list = |text: &str| json!(text.chars().map(|item| format!("a/{item}")).collect::<Vec<_>>());
        let object = |text: &str| {
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web",
            "finalizers": list(text)}})
        };
        let result = apply("one", true, Some(&object(live)), &object(applied)).unwrap();
        assert_eq!(result["metadata"]["finalizers"], list(merged), "{applied} into {live}");
    }
}

#[test]
fn apply_over_an_object_that_nobody_applied_before() {
    let object = service(json!({"type": "ClusterIP"}));
    let refused = apply("one", false, Some(&object), &service(json!({"type": "NodePort"}))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using v1: .spec.type"
    );
}

#[test]
fn ordinary_writes_take_the_fields_they_change() {
    let mut created = service(json!({"type": "ClusterIP", "ports": [{"port": 80, "protocol": "TCP"}]}));
    track_update("Service", None, None, &mut created, "kubectl");
    assert_eq!(
        fields_of(&created, "kubectl").unwrap()["f:spec"],
        json!({
            "f:type": {},
            "f:ports": {
                ".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:protocol": {},
                    // A structure in Go's type, which is therefore always present.
                    "f:targetPort": {}},
            },
        })
    );
    let applied = apply("one", true, Some(&created), &service(json!({"type": "NodePort"}))).unwrap();
    let mut edited = applied.clone();
    edited["spec"]["type"] = json!("LoadBalancer");
    track_update("Service", None, Some(&applied), &mut edited, "editor");
    assert_eq!(fields_of(&edited, "one"), None);
    assert_eq!(fields_of(&edited, "editor"), Some(&json!({"f:spec": {"f:type": {}}})));
    let refused = apply("one", false, Some(&edited), &service(json!({"type": "NodePort"}))).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 1 conflict: conflict with \"editor\" using v1: .spec.type"
    );
}

#[test]
fn status_has_its_own_entries() {
    let how = PatchType::Apply { field_manager: "one".into(), force: false };
    let object = apply("one", false, None, &service(json!({"type": "LoadBalancer"}))).unwrap();
    let status = json!({"apiVersion": "v1", "kind": "Service", "spec": {"type": "NodePort"},
        "status": {"loadBalancer": {"ingress": [{"ip": "20.0.0.1"}]}}});
    let object = patch_subresource("Service", Some("status"), Some(&object), &status, &how).unwrap();
    assert_eq!(object["spec"]["type"], "LoadBalancer", "the status sub-resource changes the status alone");
    assert_eq!(object["status"]["loadBalancer"]["ingress"][0]["ip"], "20.0.0.1");
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
    let object = apply("one", false, Some(&object), &service(json!({"type": "LoadBalancer"}))).unwrap();
    assert_eq!(object["status"]["loadBalancer"]["ingress"][0]["ip"], "20.0.0.1");
}

#[test]
fn apply_refuses_what_is_no_configuration() {
    let with_fields =
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a", "managedFields": []}});
    for bad in [with_fields, json!({"kind": "Service"}), json!(1)] {
        assert!(matches!(apply("one", false, None, &bad), Err(PatchError::Invalid(_))), "{bad}");
    }
    let untyped = |spec: Value| match apply("one", false, None, &service(spec)) {
        Err(PatchError::Untyped(message)) => message
            .strip_prefix("failed to create typed patch object (web; /v1, Kind=Service): ")
            .unwrap()
            .to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(
        untyped(json!({"ports": [{"port": 80}, {"port": 80, "protocol": "TCP"}]})),
        ".spec.ports: duplicate entries for key [port=80,protocol=\"TCP\"]"
    );
    assert_eq!(
        untyped(json!({"ports": [{"name": "a"}]})),
        ".spec.ports: element 0: associative list with keys has an element that omits key field \"port\" (and doesn't \
         have default value)"
    );
    assert_eq!(untyped(json!({"typ": 1})), ".spec.typ: field not declared in schema");
    assert_eq!(
        untyped(json!({"type": 1, "ports": 1})),
        "errors:\n  .spec.ports: expected list, got &{1}\n  .spec.type: expected string, got \
         &value.valueUnstructured{Value:1}"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_i64..5).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from), any_map(inner),]
    })
}

fn any_map(inner: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    proptest::collection::btree_map("[a-d]", inner, 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
        .boxed()
}

/// Configurations of a Service that are valid for server-side apply.
fn any_service() -> impl Strategy<Value = Value> {
    let ports = proptest::collection::btree_map(
        1_u16..5,
        (proptest::option::of("[a-c]"), proptest::option::of(prop_oneof![Just("TCP"), Just("UDP")])),
        0..4,
    );
    let labels = proptest::collection::btree_map("[a-d]", "[a-c]", 0..4);
    let finalizers = proptest::collection::btree_set("[a-d]/x", 0..3);
    (ports, labels, finalizers, proptest::option::of("[a-c]")).prop_map(
        |(ports, labels, finalizers, kind)| {
            let ports: Vec<Value> = ports
                .into_iter()
                .rev()
                .map(|(port, (name, protocol))| {
                    let mut item = json!({"port": port});
                    if let Some(name) = name {
                        item["name"] = json!(name);
                    }
                    if let Some(protocol) = protocol {
                        item["protocol"] = json!(protocol);
                    }
                    item
                })
                .collect();
            let mut object = json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "web", "labels": labels, "finalizers": finalizers,
                "annotations": {"example.com/always": "1"}},
                "spec": {"ports": ports},
            });
            if let Some(kind) = kind {
                object["spec"]["type"] = json!(kind);
            }
            object
        },
    )
}

/// An object in normal form: a key with its default equals a missing one, and empty equals missing.
fn normal(mut object: Value) -> Value {
    let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        port.as_object_mut().unwrap().entry("protocol").or_insert(json!("TCP"));
    }
    for section in ["metadata", "spec"] {
        if let Some(section) = object.get_mut(section).and_then(Value::as_object_mut) {
            section.retain(|_, value| {
                !(value.as_object().is_some_and(serde_json::Map::is_empty)
                    || value.as_array().is_some_and(Vec::is_empty))
            });
        }
    }
    if object.get("spec").is_some_and(|spec| *spec == json!({})) {
        object.as_object_mut().unwrap().remove("spec");
    }
    object
}

proptest! {
    #[test]
    fn merge_patch_twice_is_merge_patch_once(
        current in any_map(any_json()), change in any_map(any_json())
    ) {
        let once = patch("X", Some(&current), &change, &PatchType::Merge).unwrap();
        let twice = patch("X", Some(&once), &change, &PatchType::Merge).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn merge_patch_of_nothing_changes_nothing(current in any_map(any_json())) {
        prop_assert_eq!(&patch("X", Some(&current), &json!({}), &PatchType::Merge).unwrap(), &current);
        prop_assert_eq!(&patch("X", Some(&current), &json!([]), &PatchType::Json).unwrap(), &current);
        prop_assert_eq!(&patch("X", Some(&current), &json!({}), &PatchType::Strategic).unwrap(), &current);
    }

    #[test]
    fn strategic_is_merge_patch_where_no_list_has_a_key(
        current in any_map(any_json()), change in any_map(any_json())
    ) {
        // Strategic merge patch drops nulls inside of lists, merge patch keeps them.
        prop_assume!(!change.to_string().contains("null"));
        let strategic = patch("X", Some(&current), &change, &PatchType::Strategic).unwrap();
        prop_assert_eq!(strategic, patch("X", Some(&current), &change, &PatchType::Merge).unwrap());
    }

    #[test]
    fn strategic_twice_is_strategic_once(current in any_service(), change in any_service()) {
        let once = patch("Service", Some(&current), &change, &PatchType::Strategic).unwrap();
        let twice = patch("Service", Some(&once), &change, &PatchType::Strategic).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn applying_again_is_a_no_op(first in any_service(), second in any_service()) {
        let object = apply("one", false, None, &first).unwrap();
        prop_assert_eq!(&apply("one", false, Some(&object), &first).unwrap(), &object);
        let object = apply("two", true, Some(&object), &second).unwrap();
        prop_assert_eq!(&apply("two", true, Some(&object), &second).unwrap(), &object);
        prop_assert_eq!(&apply("two", false, Some(&object), &second).unwrap(), &object);
    }

    #[test]
    fn a_sole_manager_gets_exactly_what_it_applies(first in any_service(), second in any_service()) {
        let object = apply("one", false, None, &first).unwrap();
        let mut object = apply("one", false, Some(&object), &second).unwrap();
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        prop_assert_eq!(normal(object), normal(second));
    }

    #[test]
    fn what_nobody_applies_any_more_is_gone(first in any_service(), second in any_service()) {
        let bare = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}});
        let object = apply("one", false, None, &first).unwrap();
        let object = apply("two", true, Some(&object), &second).unwrap();
        let object = apply("one", false, Some(&object), &bare).unwrap();
        let object = apply("two", false, Some(&object), &bare).unwrap();
        prop_assert_eq!(normal(object), bare);
    }

    #[test]
    fn fields_v1_reads_back(object in any_service()) {
        let set = typed::fields(Registry::default().by_name("Service").unwrap().tree(), &object);
        prop_assert_eq!(field_set::FieldSet::from_fields_v1(&set.to_fields_v1()), set);
    }
}
