//! What an object says of others: owners, references, Secrets and ConfigMaps, read and written.

use azure_contract::{Contract, Side};
use azure_types::ResourceId;
use operator_resources::{Awaited, Ids, Keeper, Location, Patch, Resource, Source, find};
use serde_json::{Value, json};

use crate::contract::folder;
use crate::flavors::written;
use crate::known::{SUBSCRIPTION, Table, document, id, object, parse};

const CONTAINERS: &str = "containerservice.azure.com/v1api20250801";
const NETWORK: &str = "network.azure.com/v1api20240301";

/// A cluster with a network, identities and extensions of its own, each in an object.
fn all_kinds() -> Vec<Value> {
    let in_group = json!({ "name": "blue" });
    let identity =
        json!({ "group": "managedidentity.azure.com", "kind": "UserAssignedIdentity", "name": "cluster" });
    let cluster = json!({ "group": "containerservice.azure.com", "kind": "ManagedCluster", "name": "blue" });
    let network =
        |kind: &str, name: &str| json!({ "group": "network.azure.com", "kind": kind, "name": name });
    let with = |kind: &str, name: &str, api: &str, owner: &Value, mut spec: Value| {
        spec["owner"] = owner.clone();
        written(api, kind, name, spec)
    };
    let here = json!({ "location": "northeurope" });
    vec![
        // Owners come after what lies in them: the order of the list has no meaning.
        with(
            "ManagedClustersAgentPool",
            "pool0",
            CONTAINERS,
            &json!({ "name": "blue" }),
            json!({
                "mode": "System",
                "vmSize": "Standard_D2s_v5",
                "vnetSubnetReference": network("VirtualNetworksSubnet", "nodes"),
                "networkProfile": {
                    "applicationSecurityGroupsReferences": [network("ApplicationSecurityGroup", "nodes")],
                },
            }),
        ),
        with(
            "ManagedCluster",
            "blue",
            CONTAINERS,
            &in_group,
            json!({
                "location": "northeurope",
                "dnsPrefix": "blue",
                "identity": { "type": "UserAssigned", "userAssignedIdentities": [{ "reference": identity }] },
                "identityProfile": { "kubeletidentity": {
                    "resourceReference": identity,
                    "clientIdFromConfig": { "name": "identity", "key": "client" },
                    "objectIdFromConfig": { "name": "identity", "key": "principal" },
                } },
                "agentPoolProfiles": [{
                    "name": "pool0",
                    "mode": "System",
                    "vnetSubnetReference": network("VirtualNetworksSubnet", "nodes"),
                }],
                "networkProfile": {
                    "networkPlugin": "azure",
                    "loadBalancerProfile": {
                        "outboundIPs": { "publicIPs": [{ "reference": network("PublicIPAddress", "out") }] },
                    },
                },
                "windowsProfile": {
                    "adminUsername": "azureuser",
                    "adminPassword": { "name": "windows", "key": "password" },
                },
                "autoScalerProfile": { "scan-interval": "10s", "expander": "random" },
                "operatorSpec": {
                    "secrets": { "adminCredentials": { "name": "blue-kubeconfig", "key": "value" } },
                    "configMaps": { "oidcIssuerProfile": { "name": "issuer", "key": "url" } },
                },
            }),
        ),
        with(
            "MaintenanceConfiguration",
            "default",
            CONTAINERS,
            &in_group,
            json!({ "timeInWeek": [{ "day": "Sunday", "hourSlots": [0] }] }),
        ),
        with(
            "UserAssignedIdentity",
            "cluster",
            "managedidentity.azure.com/v1api20230131",
            &in_group,
            here.clone(),
        ),
        with(
            "FederatedIdentityCredential",
            "workload",
            "managedidentity.azure.com/v1api20230131",
            &json!({ "name": "cluster" }),
            json!({
                "audiences": ["api://AzureADTokenExchange"],
                "issuerFromConfig": { "name": "issuer", "key": "url" },
                "subject": "system:serviceaccount:default:workload",
            }),
        ),
        with(
            "RoleAssignment",
            "network-contributor",
            "authorization.azure.com/v1api20220401",
            &network("VirtualNetwork", "net"),
            json!({
                "principalIdFromConfig": { "name": "identity", "key": "principal" },
                "roleDefinitionReference": { "wellKnownName": "network contributor" },
            }),
        ),
        with(
            "Extension",
            "flux",
            "kubernetesconfiguration.azure.com/v1api20241101",
            &cluster,
            json!({
                "extensionType": "microsoft.flux",
                "identity": { "type": "SystemAssigned" },
                "scope": { "cluster": { "releaseNamespace": "flux-system" } },
                "configurationProtectedSettings": { "name": "flux" },
            }),
        ),
        with(
            "FleetsMember",
            "blue",
            "containerservice.azure.com/v1api20250301",
            &json!({ "name": "fleet" }),
            json!({ "clusterResourceReference": cluster, "group": "one" }),
        ),
        with("Fleet", "fleet", "containerservice.azure.com/v1api20250301", &in_group, here.clone()),
        with(
            "VirtualNetworksSubnet",
            "nodes",
            NETWORK,
            &json!({ "name": "net" }),
            json!({
                "addressPrefix": "10.0.0.0/16",
                "natGateway": { "reference": network("NatGateway", "out") },
                "networkSecurityGroup": { "reference": network("NetworkSecurityGroup", "nodes") },
                "delegations": [{ "name": "pods", "serviceName": "Microsoft.ContainerService/managedClusters" }],
            }),
        ),
        with(
            "VirtualNetwork",
            "net",
            NETWORK,
            &in_group,
            json!({ "location": "northeurope", "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] } }),
        ),
        with(
            "PrivateEndpoint",
            "vault",
            NETWORK,
            &in_group,
            json!({
                "location": "northeurope",
                "privateLinkServiceConnections": [{
                    "name": "vault",
                    "groupIds": ["vault"],
                    "privateLinkServiceReference": { "armId": "/subscriptions/1/resourceGroups/v/providers/Microsoft.KeyVault/vaults/v" },
                }],
                "subnet": { "reference": network("VirtualNetworksSubnet", "nodes") },
            }),
        ),
        with("NetworkSecurityGroup", "nodes", NETWORK, &in_group, here.clone()),
        with("ApplicationSecurityGroup", "nodes", "network.azure.com/v1api20240101", &in_group, here.clone()),
        with(
            "NatGateway",
            "out",
            NETWORK,
            &in_group,
            json!({
                "location": "northeurope",
                "sku": { "name": "Standard" },
                "publicIpAddresses": [{ "reference": network("PublicIPAddress", "out") }],
            }),
        ),
        with(
            "PublicIPAddress",
            "out",
            NETWORK,
            &in_group,
            json!({
                "location": "northeurope",
                "sku": { "name": "Standard" },
                "publicIPAllocationMethod": "Static",
            }),
        ),
        written("resources.azure.com/v1api20200601", "ResourceGroup", "blue", here),
    ]
}

fn of_users() -> Table {
    let mut known = Table::default();
    for (name, key, value) in [("windows", "password", "hidden-password"), ("flux", "token", "hidden-token")]
    {
        known.secrets.insert((name.into(), key.into()), value.into());
    }
    for (name, key, value) in [
        ("identity", "client", "11111111-1111-1111-1111-111111111111"),
        ("identity", "principal", "22222222-2222-2222-2222-222222222222"),
        ("issuer", "url", "https://issuer"),
    ] {
        known.config_maps.insert((name.into(), key.into()), value.into());
    }
    known
}

fn ids(resources: &[Resource], known: &Table) -> Ids {
    Ids::of(resources, &|_| Some(SUBSCRIPTION.to_owned()), known)
}

/// The documents of a whole cluster are what Azure's contract asks of requests.
#[test]
fn the_documents_of_all_kinds_keep_the_contract() {
    let resources: Vec<Resource> = all_kinds().iter().map(parse).collect();
    let known = of_users();
    let ids = ids(&resources, &known);
    assert_eq!(ids.refused.len(), 0, "{:?}", ids.refused);
    assert_eq!(ids.known.len(), resources.len());
    let lookup = ids.over(&known);
    let contract = folder().map(|folder| Contract::read(&folder).unwrap());
    for resource in &resources {
        let document = document(resource, &lookup);
        assert_eq!((&document.awaited, &document.unknown), (&vec![], &vec![]), "{resource:?}");
        let Some(contract) = &contract else { continue };
        let (kind, version) = (resource.kind.resource_type, resource.api_version.as_str());
        let judged = contract.judge(kind, version, Side::Request, &document.value).unwrap();
        assert_eq!(judged.violations, [], "{resource:?} {document:?}");
    }
}

/// An owner that is not known yet is waited for, and so is each reference, Secret and ConfigMap; each once.
#[test]
fn what_is_not_known_yet_is_awaited() {
    let resources: Vec<Resource> = all_kinds().iter().map(parse).collect();
    let nothing = Table::default();
    let by_name = |kind: &str| resources.iter().find(|resource| resource.kind.kind == kind).unwrap();
    let cluster = by_name("ManagedCluster");
    let group = Awaited::Object(object("resources.azure.com", "ResourceGroup", "blue"));
    assert_eq!(cluster.id(SUBSCRIPTION, &nothing), Ok(Location::Awaiting(vec![group])));
    let document = document(cluster, &nothing);
    let awaited: Vec<String> = document.awaited.iter().map(ToString::to_string).collect();
    assert_eq!(
        awaited,
        [
            "UserAssignedIdentity cluster of managedidentity.azure.com",
            "PublicIPAddress out of network.azure.com",
            "VirtualNetworksSubnet nodes of network.azure.com",
            "key password of Secret windows",
            "key client of ConfigMap identity",
            "key principal of ConfigMap identity",
        ]
    );
    assert_eq!(document.value["properties"]["windowsProfile"], json!({ "adminUsername": "azureuser" }));
    // Without the group nothing below it is known; nothing is refused.
    let rest: Vec<Resource> =
        resources.iter().filter(|resource| resource.kind.kind != "ResourceGroup").cloned().collect();
    let ids = ids(&rest, &nothing);
    assert_eq!((ids.known.len(), ids.refused.len()), (0, 0));
    // A subscription that is not known yet is no refusal, either.
    let ids = Ids::of(&resources, &|_| None, &nothing);
    assert_eq!((ids.known.len(), ids.refused.len()), (0, 0));
}

/// The value of a Secret goes to Azure, and nowhere else.
#[test]
fn secrets_are_not_shown() {
    let known = of_users();
    for (kind, pointer, value) in [
        ("ManagedCluster", "/properties/windowsProfile/adminPassword", json!("hidden-password")),
        ("Extension", "/properties/configurationProtectedSettings", json!({ "token": "hidden-token" })),
    ] {
        let written = all_kinds().into_iter().find(|written| written["kind"] == kind).unwrap();
        let document = document(&parse(&written), &known);
        assert_eq!(document.secrets, [pointer]);
        assert_eq!(document.value.pointer(pointer), Some(&value));
        let patch =
            Patch::of(parse(&written).kind, &json!({ "spec": without_identity(&written) }), &known).unwrap();
        assert_eq!(patch.secrets, [pointer]);
        assert_eq!(patch.merge.pointer(pointer), Some(&value));
        let shown = format!("{:?} {document:?} {patch:?}", parse(&written));
        assert!(!shown.contains("hidden-"), "{shown}");
    }
    // A text where the operator has a reference is passed on, and not shown either.
    let mut written = all_kinds().remove(1);
    written["spec"]["windowsProfile"]["adminPassword"] = json!("hidden-text");
    written["spec"]["aadProfile"] = json!({ "serverAppSecret": "hidden-app" });
    let document = document(&parse(&written), &known);
    assert_eq!(
        document.secrets,
        ["/properties/aadProfile/serverAppSecret", "/properties/windowsProfile/adminPassword"]
    );
    assert!(!format!("{document:?}").contains("hidden-"), "{document:?}");
}

/// `spec` without what a patch must not have.
fn without_identity(written: &Value) -> Value {
    let mut spec = written["spec"].clone();
    for name in ["owner", "azureName"] {
        spec.as_object_mut().unwrap().remove(name);
    }
    spec
}

/// Patches of clusters and pools in the operator's shape, and what they are in Azure's.
#[test]
fn patches_in_the_operators_shape() {
    let known =
        of_users().with_id("network.azure.com", "VirtualNetworksSubnet", "nodes", "/subscriptions/1/nodes");
    for (kind, patch, expected) in [
        (
            "ManagedCluster",
            json!({ "spec": { "enablePodSecurityPolicy": true, "sku": { "tier": null }, "tags": { "a": null, "b": "c" } } }),
            json!({
                "properties": { "enablePodSecurityPolicy": true },
                "sku": { "tier": null },
                "tags": { "a": null, "b": "c" },
            }),
        ),
        (
            "ManagedCluster",
            json!({ "spec": { "autoScalerProfile": { "scan-interval": null }, "diskEncryptionSetReference": null } }),
            json!({ "properties": { "autoScalerProfile": { "scan-interval": null }, "diskEncryptionSetID": null } }),
        ),
        (
            "ManagedClustersAgentPool",
            json!({ "spec": {
                "enableNodePublicIP": true,
                "vnetSubnetReference": {
                    "group": "network.azure.com",
                    "kind": "VirtualNetworksSubnet",
                    "name": "nodes",
                    "armId": null,
                },
                "creationData": { "sourceResourceReference": { "armId": "/subscriptions/1/snapshot" } },
                "nodeTaints": null,
            } }),
            json!({ "properties": {
                "enableNodePublicIP": true,
                "vnetSubnetID": "/subscriptions/1/nodes",
                "creationData": { "sourceResourceId": "/subscriptions/1/snapshot" },
                "nodeTaints": null,
            } }),
        ),
    ] {
        let kind = find("containerservice.azure.com", kind).unwrap();
        let translated = Patch::of(kind, &patch, &known).unwrap();
        assert_eq!(translated.merge, expected);
        assert_eq!((translated.awaited, translated.unknown), (vec![], vec![]));
    }
    let kind = find("containerservice.azure.com", "ManagedCluster").unwrap();
    let exported = json!({ "secrets": { "userCredentials": { "name": "n", "key": "k" } } });
    let patch = json!({
        "apiVersion": "containerservice.azure.com/v20251002preview",
        "kind": "ManagedCluster",
        "spec": { "operatorSpec": exported, "madeUp": null },
    });
    let translated = Patch::of(kind, &patch, &known).unwrap();
    assert_eq!(translated.operator_spec, exported);
    assert_eq!(translated.api_version.as_deref(), Some("2025-10-02-preview"));
    assert_eq!(translated.unknown, ["spec.madeUp"]);
    assert_eq!(translated.policy, None);
}

/// Identities are replaced as a whole, as the operator's list is.
#[test]
fn a_patch_of_identities_replaces_them() {
    let kind = find("containerservice.azure.com", "ManagedCluster").unwrap();
    let patch = json!({ "spec": { "identity": {
        "userAssignedIdentities": [{ "reference": { "armId": "/subscriptions/1/new" } }],
    } } });
    let patch = Patch::of(kind, &patch, &Table::default()).unwrap();
    let mut document = json!({ "identity": { "type": "UserAssigned", "userAssignedIdentities": { "/subscriptions/1/old": {} } } });
    patch.apply(&mut document);
    assert_eq!(document["identity"]["userAssignedIdentities"], json!({ "/subscriptions/1/new": {} }));
    assert_eq!(document["identity"]["type"], json!("UserAssigned"));
}

/// What is exported comes from a call, from the document, or is the subscription.
#[test]
fn exports_say_what_goes_where() {
    let resources: Vec<Resource> = all_kinds().iter().map(parse).collect();
    let cluster = resources.iter().find(|resource| resource.kind.kind == "ManagedCluster").unwrap();
    let exports = cluster.exports().unwrap();
    let found: Vec<_> = exports
        .iter()
        .map(|export| {
            let to = &export.destination;
            (export.member.as_str(), to.keeper, to.name.as_str(), to.key.as_str(), export.source)
        })
        .collect();
    let call = Source::Call {
        action: "listClusterAdminCredential",
        member: "/kubeconfigs/0/value",
        is_base64: true,
    };
    let issuer = Source::Member("/properties/oidcIssuerProfile/issuerURL");
    assert_eq!(
        found,
        [
            ("configMaps.oidcIssuerProfile", Keeper::ConfigMap, "issuer", "url", issuer),
            ("secrets.adminCredentials", Keeper::Secret, "blue-kubeconfig", "value", call),
        ]
    );
}

/// A role assignment without a name in Azure gets the one that the operator derives, so that an assignment which the
/// operator has made is found again. The names were computed by Python's uuid5 in the operator's namespace.
#[test]
fn role_assignments_have_the_names_of_the_operator() {
    let network = json!({ "group": "network.azure.com", "kind": "VirtualNetwork", "name": "net" });
    let by_id = json!({ "armId": "/subscriptions/1/resourceGroups/blue" });
    let own = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa";
    for (name, owner, more, expected) in [
        ("network-contributor", &network, json!({}), NAMED),
        ("network-contributor", &network, json!({ "operatorSpec": { "namingConvention": "stable" } }), NAMED),
        ("network-contributor", &by_id, json!({}), NAMED_BY_ID),
        ("network-contributor", &network, json!({ "azureName": own }), own),
        (own, &network, json!({}), own),
    ] {
        let mut spec = more;
        spec["owner"] = owner.clone();
        spec["roleDefinitionReference"] = json!({ "wellKnownName": "Reader" });
        let resource = parse(&written("authorization.azure.com/v1api20220401", "RoleAssignment", name, spec));
        assert_eq!(resource.azure_name, expected, "{name} {owner}");
        assert_eq!(resource.exports(), Ok(vec![]));
        let network = "/subscriptions/1/resourceGroups/blue/providers/Microsoft.Network/virtualNetworks/net";
        let known = Table::default().with_id("network.azure.com", "VirtualNetwork", "net", network);
        let owner = if owner == &by_id { "/subscriptions/1/resourceGroups/blue" } else { network };
        let expected = format!("{owner}/providers/Microsoft.Authorization/roleAssignments/{expected}");
        assert_eq!(id(&resource, &known).as_str(), expected);
    }
    let random = json!({ "owner": network, "operatorSpec": { "namingConvention": "random" } });
    let refused = written("authorization.azure.com/v1api20220401", "RoleAssignment", "a", random);
    assert_eq!(
        Resource::parse(&refused, "default").unwrap_err().to_string(),
        "spec.operatorSpec.namingConvention is random: write a UUID in spec.azureName, or remove it"
    );
}

const NAMED: &str = "b156e107-65ee-5a8b-87cc-ad299320d23a";
const NAMED_BY_ID: &str = "95023830-4c2f-5572-a3f7-879d78bc2828";

/// A built-in role by name is one of the definitions of the assignment's subscription; another name is refused.
#[test]
fn built_in_roles_are_known_by_name() {
    let owner = json!({ "armId": "/subscriptions/1/resourceGroups/blue" });
    let assignment = |role: &str| {
        let spec = json!({ "owner": owner, "roleDefinitionReference": { "wellKnownName": role } });
        let resource = parse(&written("authorization.azure.com/v1api20220401", "RoleAssignment", "a", spec));
        resource.document(&ResourceId::group("1", "blue"), &Table::default())
    };
    let listed: Value = serde_json::from_str(include_str!(
        "../../../../simulators/azure-providers/src/authorization/built_in_roles.json"
    ))
    .unwrap();
    let mut count = 0;
    for role in listed.as_array().unwrap() {
        let (name, guid) = (role["name"].as_str().unwrap(), role["guid"].as_str().unwrap());
        let Ok(document) = assignment(&name.to_uppercase()) else { continue };
        let id = format!("/subscriptions/1/providers/Microsoft.Authorization/roleDefinitions/{guid}");
        assert_eq!(document.value["properties"]["roleDefinitionId"], json!(id), "{name}");
        count += 1;
    }
    assert!(count >= 20, "{count}");
    let refusal = assignment("Emperor").unwrap_err().to_string();
    assert!(
        refusal.starts_with(
            "spec.roleDefinitionReference.wellKnownName is Emperor: write {armId: <ID of the role's definition>}; known by \
             name are AcrPull, "
        ),
        "{refusal}"
    );
}
