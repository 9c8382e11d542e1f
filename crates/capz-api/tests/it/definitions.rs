//! The definitions that are generated from the types.

use capz_api::crd::{KINDS, definition};
use serde_json::{Value, json};

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
            "azuremachinepoolmachines",
            "azuremanagedcontrolplanes",
            "azuremanagedcontrolplanetemplates",
            "azuremanagedclusters",
            "azuremanagedclustertemplates",
            "azuremanagedmachinepools",
            "azuremanagedmachinepooltemplates",
            "azureasomanagedclusters",
            "azureasomanagedclustertemplates",
            "azureasomanagedcontrolplanes",
            "azureasomanagedcontrolplanetemplates",
            "azureasomanagedmachinepools",
            "azureasomanagedmachinepooltemplates",
        ]
    );
}

/// Versions as the established provider serves them, with a warning; all versions of a kind have the same schema.
#[test]
fn deprecated_versions_are_served_with_a_warning() {
    let group = "infrastructure.cluster.x-k8s.io";
    for kind in &KINDS {
        let name = kind.name;
        let definition = definition(kind);
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let found: Vec<(&str, bool, &str)> = versions
            .iter()
            .map(|version| {
                assert_eq!(
                    (&version["schema"], &version["served"]),
                    (&versions[0]["schema"], &Value::Bool(true))
                );
                assert_eq!(version.get("deprecated").is_some(), version.get("deprecationWarning").is_some());
                let warning = version["deprecationWarning"].as_str().unwrap_or_default();
                (version["name"].as_str().unwrap(), version["storage"] == true, warning)
            })
            .collect();
        let raw =
            format!("v1alpha1 of {name} is deprecated: write {group}/v1beta1, which has the same members");
        let managed = kind.deprecation().unwrap_or_default();
        let expected = if name.starts_with("AzureASOManaged") {
            vec![("v1beta1", true, ""), ("v1alpha1", false, raw.as_str())]
        } else {
            vec![("v1beta1", true, managed.as_str())]
        };
        assert_eq!(name.starts_with("AzureManaged"), !managed.is_empty(), "{name}");
        assert!(managed.is_empty() || managed.contains(&name.replace("Managed", "ASOManaged")), "{managed}");
        assert_eq!(found, expected, "{name}");
        assert!(
            found.iter().all(|(.., warning)| warning.len() <= 256),
            "an API server permits 256 characters"
        );
    }
}

/// A template has no members whose value belongs to one cluster.
#[test]
fn templates_of_managed_clusters_lack_what_is_one_clusters() {
    let schema = |kind: &str, pointer: &str| {
        let definition = definition(KINDS.iter().find(|known| known.name == kind).unwrap());
        let schema = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        schema.pointer(pointer).unwrap().clone()
    };
    let cluster = schema("AzureManagedControlPlane", "");
    let template = schema("AzureManagedControlPlaneTemplate", "/properties/template/properties/spec");
    let members =
        |schema: &Value| schema["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut all = members(&template);
    all.extend(
        ["controlPlaneEndpoint", "dnsPrefix", "nodeResourceGroupName", "sshPublicKey"].map(str::to_owned),
    );
    all.sort();
    let mut of_cluster = members(&cluster);
    of_cluster.sort();
    assert_eq!(all, of_cluster);
    let fleet = |schema: &Value| members(&schema["properties"]["fleetsMember"]);
    assert_eq!(fleet(&template), ["group", "managerName", "managerResourceGroup"]);
    assert_eq!(fleet(&cluster).len(), 4);
    assert_eq!(template["required"], json!(["identityRef", "location", "resourceGroupName", "version"]));
    assert_eq!(template["required"], cluster["required"]);
}
