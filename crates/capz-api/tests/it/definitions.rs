//! The definitions that are generated from the types.

use capz_api::crd::{KINDS, definition};
use serde_json::Value;

/// Kubernetes accepts structural schemas only: each member has one type and a description.
#[test]
fn schemas_are_structural_and_described() {
    for kind in &KINDS {
        let definition = definition(kind);
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        check(schema, kind.name, true);
    }
}

fn check(schema: &Value, path: &str, described: bool) {
    let is_either = schema["x-kubernetes-int-or-string"] == true;
    assert!(is_either || schema["type"].is_string(), "{path} has one type: {schema}");
    assert!(!described || schema["description"].is_string(), "{path} says what it is for");
    assert!(schema.get("$ref").is_none() && schema.get("title").is_none(), "{path}: {schema}");
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        check(member, &format!("{path}.{name}"), name != "metadata" || path.contains('.'));
    }
    for member in ["items", "additionalProperties"] {
        if schema[member].is_object() {
            check(&schema[member], &format!("{path}.{member}"), false);
        }
    }
}

#[test]
fn names_are_those_that_clients_know() {
    let plurals: Vec<String> = KINDS.iter().map(capz_api::crd::Kind::plural).collect();
    assert_eq!(
        plurals,
        [
            "azureclusters",
            "azureclustertemplates",
            "azureclusteridentities",
            "azuremachines",
            "azuremachinetemplates",
            "azuremachinepools",
            "azuremachinepoolmachines"
        ]
    );
}
