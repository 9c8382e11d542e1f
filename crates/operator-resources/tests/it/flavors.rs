//! The objects of the flavors aks-aso, aks-aso-clusterclass, aks-aso-topology and aks-aso-maintenance.

use serde_json::{Value, json};

use crate::known::{SUBSCRIPTION, Table, document, parse};

/// An object as the flavors write it, with the annotation that names its credential.
pub(crate) fn written(api_version: &str, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "annotations": { "serviceoperator.azure.com/credential-from": "aso-credential" },
        },
        "spec": spec,
    })
}

const CONTAINERS: &str = "containerservice.azure.com/v1api20240901";

fn group() -> Value {
    let spec = json!({ "location": "northeurope" });
    written("resources.azure.com/v1api20200601", "ResourceGroup", "blue", spec)
}

fn cluster() -> Value {
    let spec = json!({
        "dnsPrefix": "blue",
        "identity": { "type": "SystemAssigned" },
        "location": "northeurope",
        "networkProfile": { "networkPlugin": "azure" },
        "owner": { "name": "blue" },
        "servicePrincipalProfile": { "clientId": "msi" },
    });
    written(CONTAINERS, "ManagedCluster", "blue", spec)
}

fn pool(name: &str, mode: &str) -> Value {
    let spec = json!({
        "azureName": name,
        "mode": mode,
        "owner": { "name": "blue" },
        "type": "VirtualMachineScaleSets",
        "vmSize": "Standard_D2s_v5",
    });
    written(CONTAINERS, "ManagedClustersAgentPool", &format!("blue-{name}"), spec)
}

/// Flavor aks-aso: group, cluster and two pools, each with its ID and its document. With names of their own as in
/// aks-aso-topology, where objects are named after the Cluster and `azureName` is set by patches.
#[test]
fn the_flavor_aks_aso() {
    let mut known = Table::default();
    let within = |path: &str| format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/blue{path}");
    let cluster_id = within("/providers/Microsoft.ContainerService/managedClusters/blue");
    let pool_document = |mode: &str| {
        json!({
            "properties": { "mode": mode, "type": "VirtualMachineScaleSets", "vmSize": "Standard_D2s_v5" },
        })
    };
    for (object, id, expected) in [
        (group(), within(""), json!({ "location": "northeurope" })),
        (
            cluster(),
            cluster_id.clone(),
            json!({
                "identity": { "type": "SystemAssigned" },
                "location": "northeurope",
                "properties": {
                    "dnsPrefix": "blue",
                    "networkProfile": { "networkPlugin": "azure" },
                    "servicePrincipalProfile": { "clientId": "msi" },
                },
            }),
        ),
        (pool("pool0", "System"), format!("{cluster_id}/agentPools/pool0"), pool_document("System")),
        (pool("pool1", "User"), format!("{cluster_id}/agentPools/pool1"), pool_document("User")),
    ] {
        let resource = parse(&object);
        assert_eq!(resource.credential.as_deref(), Some("aso-credential"));
        assert!(resource.has_known_version(), "{resource:?}");
        assert_eq!(known.add(&resource).as_str(), id);
        let document = document(&resource, &known);
        assert_eq!(document.value, expected);
        assert_eq!((document.secrets, document.awaited), (vec![], vec![]));
    }
}

/// Flavor aks-aso-maintenance: three maintenance configurations with the names that Azure knows.
#[test]
fn the_flavor_aks_aso_maintenance() {
    let mut known = Table::default();
    known.add(&parse(&group()));
    known.add(&parse(&cluster()));
    let weekly = json!({
        "durationHours": 4,
        "schedule": { "weekly": { "dayOfWeek": "Sunday", "intervalWeeks": 1 } },
        "startTime": "02:00",
        "utcOffset": "-05:00",
    });
    let mut with_exceptions = weekly.clone();
    with_exceptions["notAllowedDates"] = json!([{ "start": "2026-12-23", "end": "2026-12-26" }]);
    for (azure_name, properties) in [
        ("default", json!({ "timeInWeek": [{ "day": "Sunday", "hourSlots": [0, 1, 2, 3] }] })),
        ("aksManagedAutoUpgradeSchedule", json!({ "maintenanceWindow": with_exceptions })),
        ("aksManagedNodeOSUpgradeSchedule", json!({ "maintenanceWindow": weekly })),
    ] {
        let mut spec = properties.clone();
        spec["azureName"] = azure_name.into();
        spec["owner"] = json!({ "name": "blue" });
        let name = format!("blue-{}", azure_name.to_lowercase());
        let resource = parse(&written(CONTAINERS, "MaintenanceConfiguration", &name, spec));
        let id = known.add(&resource);
        assert_eq!(
            id.resource_type(),
            "Microsoft.ContainerService/managedClusters/maintenanceConfigurations"
        );
        assert_eq!(id.name(), azure_name);
        assert_eq!(document(&resource, &known).value, json!({ "properties": properties }));
    }
}
