//! Clusters that Azure manages, as whole resources of Azure Service Operator.

use capz_api::admission::{Denied, set_defaults, validate};
use capz_api::crd::{KINDS, Kind, definition, fill_defaults};
use capz_api::{Context, Gates};
use serde_json::{Value, json};

use super::Fixed;

fn object(kind: &str) -> Value {
    let resource = json!({
        "apiVersion": "containerservice.azure.com/v1api20250801", "kind": "ManagedCluster",
        "metadata": { "name": "c1", "labels": { "a": "b" } },
        "spec": { "location": "eastus", "anything": [{ "at": { "any": "level" } }] }
    });
    let spec = json!({ "resources": [resource] });
    let spec = if kind.ends_with("Template") { json!({ "template": { "spec": spec } }) } else { spec };
    json!({ "metadata": { "name": "c1" }, "spec": spec })
}

fn kinds() -> impl Iterator<Item = &'static Kind> {
    KINDS.iter().filter(|kind| kind.name.starts_with("AzureASOManaged"))
}

/// CAPZ-201: with the gate closed none is created; existing ones may still change.
#[test]
fn the_gate_decides_whether_any_is_created() {
    assert_eq!(kinds().count(), 6);
    let closed = Context { gates: Gates { aso_api: false, ..Gates::default() }, ..Context::default() };
    for kind in kinds().map(|kind| kind.name) {
        validate(kind, &object(kind), None, &Context::default()).unwrap();
        validate(kind, &object(kind), Some(&object(kind)), &closed).unwrap();
        let said = validate(kind, &object(kind), None, &closed);
        if kind.ends_with("Template") {
            said.unwrap();
            continue;
        }
        let denied = said.unwrap_err();
        assert!(matches!(denied, Denied::Forbidden(_)), "{denied:?}");
        let words = "spec: Forbidden: objects of this kind need the feature gate ASOAPI";
        assert!(denied.to_string().starts_with(words), "{denied}");
    }
}

/// Resources are arbitrary objects: nothing in them is completed, and nothing is pruned.
#[test]
fn resources_stay_as_they_were_written() {
    for kind in kinds() {
        let mut stored = object(kind.name);
        fill_defaults(kind.name, &mut stored);
        let stored = set_defaults(kind.name, stored, &Context::default(), &mut Fixed).unwrap();
        assert_eq!(stored, object(kind.name));
        let template =
            if kind.name.ends_with("Template") { "/properties/template/properties/spec" } else { "" };
        for version in definition(kind)["spec"]["versions"].as_array().unwrap() {
            let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            let items = spec.pointer(&format!("{template}/properties/resources/items")).unwrap();
            assert_eq!(items, &json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }));
        }
    }
}
