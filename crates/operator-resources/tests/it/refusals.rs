//! What is refused, with path, value and remedy.

use operator_resources::{Patch, Policy, Resource, find};
use serde_json::{Value, json};

use crate::known::{SUBSCRIPTION, Table, object};

const CLUSTER: &str = "containerservice.azure.com/v1api20240901";

/// A managed cluster with some members replaced; null removes them.
fn cluster(change: &Value) -> Value {
    let mut cluster = json!({
        "apiVersion": CLUSTER,
        "kind": "ManagedCluster",
        "metadata": { "name": "blue" },
        "spec": { "owner": { "name": "blue" }, "location": "northeurope" },
    });
    json_merge(&mut cluster, change);
    cluster
}

fn json_merge(target: &mut Value, change: &Value) {
    let Some(change) = change.as_object() else {
        *target = change.clone();
        return;
    };
    for (name, value) in change {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            if target[name].is_null() {
                target[name] = if value.is_object() { json!({}) } else { Value::Null };
            }
            json_merge(&mut target[name], value);
        }
    }
}

/// The refusal of an object, from whichever part.
fn refusal(written: &Value, known: &Table) -> String {
    let all = || {
        let resource = Resource::parse(written, "default")?;
        resource.exports()?;
        resource.id(SUBSCRIPTION, known)?;
        let id = azure_types::ResourceId::group(SUBSCRIPTION, "blue");
        resource.document(&id, known)
    };
    match all() {
        Ok(document) => panic!("{written} is taken: {document:?}"),
        Err(refusal) => refusal.to_string(),
    }
}

/// Each refusal says where, what, and what to write instead.
#[test]
fn refusals_name_path_value_and_remedy() {
    let known = Table::default().with_id(
        "resources.azure.com",
        "ResourceGroup",
        "blue",
        "/subscriptions/1/resourceGroups/blue",
    );
    let reference = "write {armId: <ID in Azure>}, or {group, kind, name} of an object of the same namespace";
    for (change, expected) in [
        (json!({ "kind": null }), "kind is missing: write a kind of the operator"),
        (
            json!({ "apiVersion": "v1" }),
            "apiVersion is v1: write <group>/<version>, such as resources.azure.com/v1api20200601",
        ),
        (
            json!({ "kind": "ManagedClustersSnapshot" }),
            "kind is ManagedClustersSnapshot of containerservice.azure.com, which is not served without Azure Service \
             Operator: use one of ApplicationSecurityGroup, Extension, FederatedIdentityCredential, Fleet, ",
        ),
        (
            json!({ "apiVersion": "containerservice.azure.com/v1" }),
            "apiVersion is containerservice.azure.com/v1: write a version with a date; the kind has 2021-05-01, ",
        ),
        (json!({ "metadata": { "name": null } }), "metadata.name is missing: write the object's name"),
        (json!({ "metadata": { "name": 7 } }), "metadata.name is a number: write a text"),
        (
            json!({ "metadata": { "annotations": { "serviceoperator.azure.com/reconcile-policy": "run" } } }),
            "metadata.annotations[serviceoperator.azure.com/reconcile-policy] is run: write manage, skip or \
             detach-on-delete",
        ),
        (json!({ "spec": "text" }), "spec is a text: write an object"),
        (
            json!({ "spec": { "owner": null } }),
            "spec.owner is missing: write {name: <name of its ResourceGroup>} or {armId: <ID in Azure>}",
        ),
        (
            json!({ "spec": { "owner": { "name": "blue", "armId": "/subscriptions/1" } } }),
            "spec.owner is {\"armId\":\"/subscriptions/1\",\"name\":\"blue\"}: write {name: <name of its ResourceGroup>} or \
             {armId: <ID in Azure>}",
        ),
        (
            json!({ "spec": { "owner": { "kind": "VirtualNetwork" } } }),
            "spec.owner.kind is \"VirtualNetwork\": write {name: <name of its ResourceGroup>} or {armId: <ID in Azure>}",
        ),
        (
            json!({ "spec": { "owner": { "name": null, "armId": "blue" } } }),
            "spec.owner.armId is blue: write an ID that begins with /subscriptions/ or /providers/",
        ),
        (
            json!({ "spec": { "owner": { "name": null, "armId": "/providers/a.b/c/d" } } }),
            "spec.owner is /providers/a.b/c/d: write the ID of a resource of a subscription (",
        ),
        (
            json!({ "spec": { "owner": { "name": null, "armId": "/subscriptions/1" } } }),
            "spec.owner is /subscriptions/1: write the ID of one of Microsoft.Resources/resourceGroups, not of \
             Microsoft.Resources/subscriptions",
        ),
        (
            json!({ "spec": { "azureName": "a/b" } }),
            "spec.azureName is a/b: write a name that can be part of an ID in Azure",
        ),
        (
            json!({ "spec": { "properties": { "dnsPrefix": "blue" } } }),
            "spec.properties is an object: write its members directly in spec, as the operator has them",
        ),
        (
            json!({ "spec": { "diskEncryptionSetReference": "/subscriptions/1" } }),
            &format!("spec.diskEncryptionSetReference is a text: {reference}"),
        ),
        (
            json!({ "spec": { "diskEncryptionSetReference": { "kind": "DiskEncryptionSet", "name": "blue" } } }),
            &format!(
                "spec.diskEncryptionSetReference is {{\"kind\":\"DiskEncryptionSet\",\"name\":\"blue\"}}: {reference}"
            ),
        ),
        (
            json!({ "spec": { "agentPoolProfiles": [{}, { "vnetSubnetReference": {} }] } }),
            &format!("spec.agentPoolProfiles[1].vnetSubnetReference is {{}}: {reference}"),
        ),
        (
            json!({ "spec": { "diskEncryptionSetReference": { "wellKnownName": "Reader" } } }),
            "spec.diskEncryptionSetReference.wellKnownName is Reader: write {armId} or {group, kind, name}: only \
             roleDefinitionReference takes the name of a role",
        ),
        (
            json!({ "spec": {
                "diskEncryptionSetReference": { "armId": "/subscriptions/1" },
                "diskEncryptionSetID": "/subscriptions/1",
            } }),
            "spec.diskEncryptionSetID and spec.diskEncryptionSetReference state the same: remove one of them",
        ),
        (
            json!({ "spec": { "identity": { "userAssignedIdentities": { "/subscriptions/1": {} } } } }),
            "spec.identity.userAssignedIdentities is an object: write a list of {reference: {armId}} or {reference: {group, \
             kind, name}}",
        ),
        (
            json!({ "spec": { "identity": { "userAssignedIdentities": [{ "armId": "/subscriptions/1" }] } } }),
            "spec.identity.userAssignedIdentities[0] is missing: write a list of {reference: ",
        ),
        (
            json!({ "spec": { "windowsProfile": { "adminPassword": { "name": "hidden" } } } }),
            "spec.windowsProfile.adminPassword.key is missing: write {name, key} of a Secret of the same namespace",
        ),
        (
            json!({ "spec": { "windowsProfile": { "adminPassword": { "name": "n", "key": "k", "value": "hidden" } } } }),
            "spec.windowsProfile.adminPassword is an object with other members: write {name, key} of a Secret of the same \
             namespace",
        ),
        (
            json!({ "spec": { "identityProfile": { "kubeletidentity": { "clientIdFromConfig": "n" } } } }),
            "spec.identityProfile.kubeletidentity.clientIdFromConfig is a text: write {name, key} of a ConfigMap of the \
             same namespace",
        ),
        (
            json!({ "spec": { "operatorSpec": { "secrets": { "kubeconfig": { "name": "n", "key": "k" } } } } }),
            "spec.operatorSpec.secrets.kubeconfig is an object: write one of adminCredentials, userCredentials",
        ),
        (
            json!({ "spec": { "operatorSpec": { "configMaps": { "oidcIssuerProfile": { "name": "n" } } } } }),
            "spec.operatorSpec.configMaps.oidcIssuerProfile.key is missing: write {name, key} of a ConfigMap of the same \
             namespace",
        ),
        (
            json!({ "spec": { "operatorSpec": { "secrets": {
                "adminCredentials": { "name": "n", "key": "k" },
                "userCredentials": { "name": "n", "key": "k" },
            } } } }),
            "spec.operatorSpec.secrets.adminCredentials and spec.operatorSpec.secrets.userCredentials state the same: \
             remove one of them",
        ),
        (
            json!({ "spec": { "operatorSpec": { "configMapExpressions": [{ "name": "n", "value": "self.status.id" }] } } }),
            "spec.operatorSpec.configMapExpressions is a list: expressions are not served: use secrets and configMaps, or \
             read the value in Azure",
        ),
        (
            json!({ "spec": { "operatorSpec": { "madeUp": 1 } } }),
            "spec.operatorSpec.madeUp is a number: remove it: ",
        ),
    ] {
        let refusal = refusal(&cluster(&change), &known);
        assert!(refusal.starts_with(expected), "{change}\n{refusal}\n{expected}");
        assert!(!refusal.contains("hidden"), "{refusal}");
    }
    assert_eq!(refusal(&json!("text"), &known), "the resource is a text: write an object of the operator");
    let group = json!({
        "apiVersion": "resources.azure.com/v1api20200601",
        "kind": "ResourceGroup",
        "metadata": { "name": "blue" },
        "spec": { "owner": { "name": "blue" } },
    });
    assert_eq!(
        refusal(&group, &known),
        "spec.owner is {\"name\":\"blue\"}: remove it: a resource group has no owner"
    );
}

/// A patch changes the document, the policy and what is exported, and not which resource it is.
#[test]
fn patches_are_refused_that_change_which_resource_it_is() {
    let kind = find("containerservice.azure.com", "ManagedCluster").unwrap();
    for (patch, expected) in [
        (json!([]), "the patch is a list: write an object"),
        (json!({ "spec": null }), "spec is null: write an object"),
        (json!({ "dnsPrefix": "blue" }), "dnsPrefix is a text: remove it: a patch changes spec"),
        (json!({ "kind": "Fleet" }), "kind is a text: remove it: a patch changes spec"),
        (
            json!({ "apiVersion": "network.azure.com/v1api20240301" }),
            "apiVersion is network.azure.com/v1api20240301: write containerservice.azure.com/<a version with a date>, or \
             remove it",
        ),
        (
            json!({ "spec": { "azureName": "red" } }),
            "spec.azureName is \"red\": remove it: a patch cannot change which resource it is",
        ),
        (
            json!({ "spec": { "owner": null } }),
            "spec.owner is null: remove it: a patch cannot change which resource it is",
        ),
        (json!({ "spec": { "operatorSpec": [] } }), "spec.operatorSpec is a list: write an object"),
    ] {
        let refusal = Patch::of(kind, &patch, &Table::default()).unwrap_err().to_string();
        assert_eq!(refusal, expected);
    }
}

/// Two objects of one name, two objects for one resource, and an object that lies in itself.
#[test]
fn objects_that_contradict_each_other_are_refused() {
    let parse = |written: Value| Resource::parse(&written, "default").unwrap();
    let named = |name: &str, azure_name: &str| {
        let owner = json!({ "name": null, "armId": "/subscriptions/1/resourceGroups/blue" });
        let spec = json!({ "owner": owner, "azureName": azure_name });
        parse(cluster(&json!({ "metadata": { "name": name }, "spec": spec })))
    };
    let ids = |resources: &[Resource]| {
        let subscription = |_: &Resource| Some(SUBSCRIPTION.to_owned());
        operator_resources::Ids::of(resources, &subscription, &Table::default())
    };
    let (one, two) = (named("one", "blue"), named("two", "Blue"));
    let found = ids(&[two.clone(), one.clone()]);
    assert_eq!(found.known.len(), 1);
    let refusal = found.refused[&two.object()].to_string();
    assert!(refusal.ends_with("state the same: remove one of them"), "{refusal}");
    let found = ids(&[one.clone(), one.clone()]);
    assert_eq!((found.known.len(), found.refused.len()), (0, 1));

    let extension = |name: &str, owner: &str| {
        parse(json!({
            "apiVersion": "authorization.azure.com/v1api20220401",
            "kind": "RoleAssignment",
            "metadata": { "name": name },
            "spec": { "owner": { "group": "authorization.azure.com", "kind": "RoleAssignment", "name": owner } },
        }))
    };
    let found = ids(&[extension("a", "b"), extension("b", "a"), extension("c", "a")]);
    assert_eq!(found.known.len(), 0);
    let circles: Vec<_> = found.refused.keys().map(|object| object.name.as_str()).collect();
    assert_eq!(circles, ["a", "b"]);
    assert_eq!(
        found.refused[&object("authorization.azure.com", "RoleAssignment", "a")].to_string(),
        "spec.owner leads back to RoleAssignment a of authorization.azure.com: an object cannot lie in itself"
    );
}

/// The policies of the operator, and what a patch makes of them.
#[test]
fn policies_are_the_operators() {
    for (text, policy) in
        [("manage", Policy::Manage), ("skip", Policy::Skip), ("detach-on-delete", Policy::DetachOnDelete)]
    {
        let metadata = json!({ "annotations": { "serviceoperator.azure.com/reconcile-policy": text } });
        let resource = Resource::parse(&cluster(&json!({ "metadata": metadata })), "default").unwrap();
        assert_eq!(resource.policy, policy);
        let patch = Patch::of(resource.kind, &json!({ "metadata": metadata }), &Table::default()).unwrap();
        assert_eq!((patch.policy, patch.merge), (Some(policy), json!({})));
    }
}
