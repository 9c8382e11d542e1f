//! Plans of whole clusters, on an empty Azure and on the simulated one, where they are carried out.

#![allow(clippy::unwrap_used, clippy::panic)]

use arm::{ApiVersion, Class, Client, Cloud, Credential, Transport};
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use capz_planner::Action;
use capz_planner::kind::Kind;
use capz_planner::raw::{Record, Recorded};
use cloud_config::CloudEndpoints;
use serde_json::{Value, json};

use super::*;

const SUBSCRIPTION: &str = "12345678-0000-4000-8000-000000000009";

fn manifests(text: &str) -> Vec<Manifest> {
    Manifest::read_all(&[("test.yaml", text)]).unwrap()
}

async fn planned(source: &Source, text: &str) -> ClustersPlan {
    plan(source, &manifests(text), "default", Some(SUBSCRIPTION)).await.unwrap()
}

/// A simulated Azure, and its client.
fn azure() -> (Azure, Source) {
    let azure = Azure::new(Options {
        subscription: SUBSCRIPTION.to_owned(),
        region: "eastus".to_owned(),
        ..Options::default()
    });
    let cloud = Cloud::built_in(&CloudEndpoints::named("").0).unwrap();
    let transport = Transport::in_process(azure.router());
    let client = Client::builder(cloud, transport, Credential::fixed("token")).build();
    (azure, Source::Real(client))
}

/// Carries out a plan, step by step.
async fn carry_out(source: &Source, plan: &ClustersPlan) {
    let Source::Real(client) = source else { panic!("Azure is needed") };
    for foreseen in plan.sections.iter().flat_map(|section| section.outlook.steps()) {
        let step = &foreseen.step;
        assert_ne!(step.action, Action::Delete, "{step:?}");
        let version = ApiVersion::new(Kind::of(&step.target).api_version);
        let put =
            client.put_and_wait::<_, Value>(&step.target, version, &step.document, None, Class::Refresh);
        put.await.unwrap_or_else(|error| panic!("{}: {error}", step.target));
    }
}

const MEMBERS: &str = "
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: aks}
spec:
  clusterNetwork: {services: {cidrBlocks: [192.168.0.0/16]}}
  controlPlaneRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureManagedControlPlane, name: aks}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureManagedCluster, name: aks}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureManagedControlPlane
metadata: {name: aks}
spec:
  identityRef: {kind: AzureClusterIdentity, name: identity}
  location: eastus
  resourceGroupName: aks
  sshPublicKey: ''
  version: v1.33.1
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureManagedCluster
metadata: {name: aks}
spec: {}
";

const POOLS: [&str; 2] = ["
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: aks-pool0}
spec:
  clusterName: aks
  replicas: 2
  template:
    spec:
      bootstrap: {dataSecretName: ''}
      clusterName: aks
      version: v1.33.1
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureManagedMachinePool, name: aks-pool0}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureManagedMachinePool
metadata: {name: aks-pool0}
spec: {mode: System, name: pool0, sku: Standard_D2s_v3}
", "
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: aks-pool1}
spec:
  clusterName: aks
  replicas: 3
  template:
    spec:
      bootstrap: {dataSecretName: ''}
      clusterName: aks
      version: v1.33.1
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureManagedMachinePool, name: aks-pool1}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureManagedMachinePool
metadata: {name: aks-pool1}
spec: {mode: User, name: pool1, sku: Standard_D2s_v3}
"];

/// A pool of self-managed machines in the same cluster.
const OWN_POOL: &str = "
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: own}
spec:
  clusterName: aks
  replicas: 2
  template:
    spec:
      bootstrap: {dataSecretName: join}
      clusterName: aks
      version: v1.33.1
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureMachinePool, name: own}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureMachinePool
metadata: {name: own}
spec:
  location: eastus
  template: {vmSize: Standard_D2s_v3, osDisk: {osType: Linux, diskSizeGB: 64}}
";

/// The same in whole resources of Azure Service Operator.
const RESOURCES: &str = "
apiVersion: v1
kind: Secret
metadata: {name: credential}
stringData: {AZURE_SUBSCRIPTION_ID: 12345678-0000-4000-8000-000000000009}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: raw}
spec:
  clusterNetwork: {services: {cidrBlocks: [192.168.0.0/16]}}
  controlPlaneRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureASOManagedControlPlane, name: raw}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureASOManagedCluster, name: raw}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureASOManagedCluster
metadata: {name: raw}
spec:
  resources:
  - apiVersion: resources.azure.com/v1api20200601
    kind: ResourceGroup
    metadata: {name: raw, annotations: {serviceoperator.azure.com/credential-from: credential}}
    spec: {location: eastus}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureASOManagedControlPlane
metadata: {name: raw}
spec:
  version: v1.33.1
  resources:
  - apiVersion: containerservice.azure.com/v1api20240901
    kind: ManagedCluster
    metadata: {name: raw, annotations: {serviceoperator.azure.com/credential-from: credential}}
    spec:
      location: eastus
      owner: {name: raw}
      dnsPrefix: raw
      identity: {type: SystemAssigned}
      servicePrincipalProfile: {clientId: msi}
      networkProfile: {networkPlugin: azure, dnsServiceIP: 192.168.0.10}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: raw-pool0}
spec:
  clusterName: raw
  replicas: 2
  template:
    spec:
      bootstrap: {dataSecretName: ''}
      clusterName: raw
      version: v1.33.1
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureASOManagedMachinePool, name: raw-pool0}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: AzureASOManagedMachinePool
metadata: {name: raw-pool0}
spec:
  resources:
  - apiVersion: containerservice.azure.com/v1api20240901
    kind: ManagedClustersAgentPool
    metadata: {name: raw-pool0, annotations: {serviceoperator.azure.com/credential-from: credential}}
    spec: {azureName: pool0, owner: {name: raw}, mode: System, type: VirtualMachineScaleSets, vmSize: Standard_D2s_v3}
";

#[tokio::test]
async fn a_managed_cluster_is_planned_with_its_pools_and_its_network() {
    let plan = planned(&Source::Empty, &[MEMBERS, POOLS[0], POOLS[1]].concat()).await;
    let text = plan.to_string();
    assert_eq!((plan.fails(), &plan.refused), (false, &Vec::new()), "{text}");
    for words in [
        "AzureManagedControlPlane default/aks\n   1. + resource group aks\n",
        "+ virtual network aks",
        "+ subnet aks/aks",
        "+ managed cluster aks",
        "AzureManagedMachinePool default/aks-pool0: created with its cluster\n",
        "AzureManagedMachinePool default/aks-pool1: created with its cluster\n",
        "Plan: 4 to create, 0 to change, 0 to delete.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = plan.to_json();
    let steps = json["steps"].as_array().unwrap();
    let cluster = &steps.last().unwrap()["document"]["properties"];
    assert_eq!(cluster["kubernetesVersion"], "1.33.1");
    assert_eq!(cluster["networkProfile"]["serviceCidr"], "192.168.0.0/16");
    let pools: Vec<_> = cluster["agentPoolProfiles"].as_array().unwrap().iter().collect();
    assert_eq!(pools.iter().map(|pool| &pool["count"]).collect::<Vec<_>>(), [&json!(2), &json!(3)]);
}

/// What is planned is what Azure takes, and afterwards there is nothing to do; a new pool and a changed one are steps.
#[tokio::test]
async fn plans_of_managed_clusters_are_carried_out_and_nothing_is_left() {
    for (first, then, words) in [
        (
            [MEMBERS, POOLS[0]].concat(),
            [MEMBERS, POOLS[0], POOLS[1]].concat(),
            "AzureManagedMachinePool default/aks-pool1 (once the cluster is ready)\n   1. + node pool aks/pool1",
        ),
        (
            RESOURCES.to_owned(),
            RESOURCES.replace("replicas: 2", "replicas: 5"),
            "AzureASOManagedMachinePool default/raw-pool0 (once the cluster is there)\n   1. ~ node pool raw/pool0\n        count: 2 becomes 5",
        ),
    ] {
        let (_azure, source) = azure();
        let plan = planned(&source, &first).await;
        assert!(!plan.fails() && !plan.is_empty(), "{plan}");
        carry_out(&source, &plan).await;
        let mut rest = planned(&source, &first).await;
        if first.contains("AzureASO") {
            // What Azure has and no annotation records is not taken.
            let (object, why) = &rest.refused[0];
            assert_eq!(object, "AzureASOManagedCluster default/raw");
            assert!(why.contains("exists already, and this object has not made it"), "{why}");
            rest = planned(&source, &recorded(&first)).await;
        }
        assert!(rest.is_empty() && !rest.fails(), "{rest}");
        let then = if first.contains("AzureASO") { recorded(&then) } else { then };
        let plan = planned(&source, &then).await;
        assert!(plan.to_string().contains(words), "{words}: {plan}");
        assert_eq!(
            (plan.fails(), plan.sections.iter().flat_map(|it| it.outlook.steps()).count()),
            (false, 1),
            "{plan}"
        );
    }
}

/// The manifests with the annotations by which the controllers record what they have made.
fn recorded(text: &str) -> String {
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/raw");
    let cluster = format!("{group}/providers/Microsoft.ContainerService/managedClusters/raw");
    let pool = format!("{cluster}/agentPools/pool0");
    let mut text = text.to_owned();
    for (kind, id, resource, group, name) in [
        ("AzureASOManagedCluster", group.clone(), "ResourceGroup", "resources.azure.com", "raw"),
        ("AzureASOManagedControlPlane", cluster, "ManagedCluster", "containerservice.azure.com", "raw"),
        (
            "AzureASOManagedMachinePool",
            pool,
            "ManagedClustersAgentPool",
            "containerservice.azure.com",
            "raw-pool0",
        ),
    ] {
        let recorded = Recorded {
            group: group.to_owned(),
            version: "v1api20240901".to_owned(),
            kind: resource.to_owned(),
            name: name.to_owned(),
            is_managed: true,
        };
        let record = Record([(ResourceId::parse(&id).unwrap(), recorded)].into());
        let annotations: BTreeMap<String, String> = record.annotations().into();
        let metadata = json!({ "name": name, "annotations": annotations });
        text = text.replace(
            &format!("kind: {kind}\nmetadata: {{name: {name}}}\n"),
            &format!("kind: {kind}\nmetadata: {metadata}\n"),
        );
    }
    text
}

/// CAPZ-156: the scale set is in the nodes' resource group, in the cluster's subnet, and behind the load balancer that Azure
/// creates for outbound traffic.
#[tokio::test]
async fn a_pool_of_the_users_own_is_planned_in_the_managed_cluster_that_it_joins() {
    let plan = planned(&Source::Empty, &[MEMBERS, POOLS[0], OWN_POOL].concat()).await;
    let text = plan.to_string();
    assert!(!plan.fails(), "{text} {:?}", plan.notes);
    let words = "AzureMachinePool default/own (once the cluster is ready)\n   1. + scale set own: Standard_D2s_v3; machines 2";
    assert!(text.contains(words), "{text}");
    let json = plan.to_json();
    let steps = json["steps"].as_array().unwrap();
    let set = steps
        .iter()
        .find(|step| step["resourceType"] == "Microsoft.Compute/virtualMachineScaleSets")
        .unwrap();
    assert!(set["resourceId"].as_str().unwrap().contains("/resourceGroups/MC_aks_aks_eastus/"), "{set}");
    let document = set["document"].to_string();
    for id in [
        "/resourceGroups/aks/providers/Microsoft.Network/virtualNetworks/aks/subnets/aks",
        "/resourceGroups/MC_aks_aks_eastus/providers/Microsoft.Network/loadBalancers/kubernetes/backendAddressPools/\
         aksOutboundBackendPool",
    ] {
        assert!(document.contains(id), "{id}: {document}");
    }
    let raw = OWN_POOL.replace("clusterName: aks", "clusterName: raw");
    let plan = planned(&Source::Empty, &[RESOURCES, &raw].concat()).await;
    let (object, why) = &plan.refused[0];
    assert_eq!(object, "AzureMachinePool default/own");
    assert!(why.contains("AzureASOManagedControlPlane"), "{why}");
}

/// Every resource of a managed cluster has a name in plans.
#[tokio::test]
async fn resources_of_managed_clusters_are_named_by_their_kinds() {
    let more = "
  - apiVersion: containerservice.azure.com/v1api20240901
    kind: MaintenanceConfiguration
    metadata: {name: window, annotations: {serviceoperator.azure.com/credential-from: credential}}
    spec: {azureName: aksManagedAutoUpgradeSchedule, owner: {name: raw}}
  - apiVersion: managedidentity.azure.com/v1api20230131
    kind: UserAssignedIdentity
    metadata: {name: kubelets, annotations: {serviceoperator.azure.com/credential-from: credential}}
    spec: {location: eastus, owner: {name: raw}}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: raw-pool0}";
    let text = RESOURCES.replace(
        "\n---\napiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata: {name: raw-pool0}",
        more,
    );
    let plan = planned(&Source::Empty, &text).await;
    let said = plan.to_string();
    assert!(!plan.fails(), "{said}");
    for words in ["+ maintenance window raw/aksManagedAutoUpgradeSchedule", "+ identity kubelets"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("+ resource raw"), "{said}");
}

#[tokio::test]
async fn what_managed_clusters_lack_is_said() {
    let last_value = RESOURCES.replace("dnsPrefix: raw", "dnsPrefix: raw\n      windowsProfile: {adminUsername: me, adminPassword: {name: windows, key: password}}");
    for (text, words) in [
        // The System pool is missing.
        (
            [MEMBERS, POOLS[1]].concat(),
            "AzureManagedControlPlane default/aks is refused: failed to fetch azuremanagedMachine pool with mode System",
        ),
        ([MEMBERS, &POOLS[0].replace("sku:", "skew:")].concat(), "unknown field \"spec.skew\""),
        (
            RESOURCES
                .replace("name: raw-pool0, annotations", "name: x, annotations")
                .replace("owner: {name: raw}, mode", "owner: {name: other}, mode"),
            "waits for",
        ),
        (last_value, "waits for key password of Secret windows"),
        (
            RESOURCES.replace("kind: ManagedCluster\n", "kind: ManagedClusterX\n"),
            "spec.resources has no ManagedCluster",
        ),
        (RESOURCES.replace("dnsPrefix: raw", "kubernetesVersion: 1.30.0"), "which is incompatible with"),
    ] {
        let plan = planned(&Source::Empty, &text).await;
        assert!(plan.fails() && plan.to_string().contains(words), "{words}: {plan}");
    }
    let alone = POOLS[0];
    let plan = planned(&Source::Empty, alone).await;
    let notes = plan.notes.join("\n");
    assert!(notes.contains("AzureManagedMachinePool default/aks-pool0: no MachinePool of a cluster with an AzureManagedControlPlane"), "{notes}");
}

/// A template of clusterctl's with values for its variables.
fn template(text: &str) -> String {
    let values = [
        ("CLUSTER_NAME", "quay"),
        ("CLUSTER_CLASS_NAME", "class"),
        ("CLUSTER_IDENTITY_NAME", "identity"),
        ("AZURE_LOCATION", "swedencentral"),
        ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
        ("AZURE_TENANT_ID", "abcdef00-0000-4000-8000-00000000000a"),
        ("AZURE_CLIENT_ID_USER_ASSIGNED_IDENTITY", "c0ffee00-0000-4000-8000-00000000000b"),
        ("AZURE_CONTROL_PLANE_MACHINE_TYPE", "Standard_D4s_v3"),
        ("AZURE_NODE_MACHINE_TYPE", "Standard_D2s_v3"),
        ("KUBERNETES_VERSION", "v1.33.1"),
        ("AZURE_SSH_PUBLIC_KEY_B64:=\"\"", "\"\""),
        ("CONTROL_PLANE_MACHINE_COUNT:=1", "3"),
        ("WORKER_MACHINE_COUNT:=2", "2"),
        ("CLUSTER_IDENTITY_TYPE:=WorkloadIdentity", "WorkloadIdentity"),
    ];
    values.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}

const TOPOLOGY: &str = include_str!("../../../../deploy/capz/templates/cluster-template-topology.yaml");

/// U6: the shipped classes are planned from what their templates become.
#[tokio::test]
async fn a_topology_is_planned_from_what_its_templates_become() {
    let class = include_str!("../../../../deploy/capz/templates/cluster-template-clusterclass.yaml");
    let plan = planned(&Source::Empty, &template(&format!("{class}\n---\n{TOPOLOGY}"))).await;
    let text = plan.to_string();
    assert_eq!((plan.fails(), &plan.refused), (false, &Vec::new()), "{text} {:?}", plan.notes);
    for words in [
        "AzureCluster default/quay-aaaaa\n   1. + resource group quay-aaaaa\n",
        "AzureMachine default/quay-aaaaa-aaaac (once the one before has joined; of KubeadmControlPlane quay-aaaaa, its name is an example)",
        "+ virtual machine quay-aaaaa-aaaaa: Standard_D4s_v3",
        "+ virtual machine quay-md-0-aaaaa-aaaab: Standard_D2s_v3",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let notes = plan.notes.join("\n");
    assert!(
        notes.contains("Cluster default/quay: its topology is planned from ClusterClass default/class"),
        "{notes}"
    );
    assert!(!notes.contains("is not in the manifests") && !notes.contains("the plan is without"), "{notes}");
}

#[tokio::test]
async fn variables_of_a_topology_reach_the_infrastructure() {
    let class = include_str!("../../../../deploy/capz/templates/cluster-template-clusterclass-rke2.yaml");
    let variables = "    variables:\n    - {name: subscriptionID, value: 12345678-0000-4000-8000-000000000009}\n    - {name: location, value: eastus}\n    - {name: resourceGroup, value: shared}\n    - {name: azureClusterIdentityName, value: identity}\n    - {name: vmSize, value: Standard_D8s_v3}\n";
    let topology = TOPOLOGY.replace("    version:", &format!("{variables}    version:"));
    let plan = planned(&Source::Empty, &template(&format!("{class}\n---\n{topology}"))).await;
    let text = plan.to_string();
    assert_eq!((plan.fails(), &plan.refused), (false, &Vec::new()), "{text} {:?}", plan.notes);
    for words in ["+ resource group shared\n", "Standard_D8s_v3", "of RKE2ControlPlane quay-aaaaa"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let without = planned(&Source::Empty, &template(&format!("{class}\n---\n{TOPOLOGY}"))).await;
    let said = without.to_string();
    assert!(
        said.contains(
            "Cluster default/quay is refused: variable subscriptionID of its ClusterClass is required"
        ),
        "{said}"
    );
}

/// A class of managed clusters, in whole resources: pools are of templates, too.
#[tokio::test]
async fn a_topology_becomes_a_managed_cluster_of_either_generation() {
    let class = |generation: &str, patches: &str| {
        let kind = |kind: &str| {
            format!(
                "{{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: {generation}{kind}Template, name: t}}"
            )
        };
        let (cluster, control, pool) =
            (kind("ManagedCluster"), kind("ManagedControlPlane"), kind("ManagedMachinePool"));
        format!(
            "apiVersion: cluster.x-k8s.io/v1beta2
kind: ClusterClass
metadata: {{name: class}}
spec:
  infrastructure: {{templateRef: {cluster}}}
  controlPlane: {{templateRef: {control}}}
  workers:
    machinePools:
    - class: system
      infrastructure: {{templateRef: {pool}}}
      bootstrap: {{templateRef: {{apiVersion: bootstrap.cluster.x-k8s.io/v1beta2, kind: KubeadmConfigTemplate, name: t}}}}
  patches: {patches}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta2
kind: KubeadmConfigTemplate
metadata: {{name: t}}
spec: {{template: {{spec: {{}}}}}}
---
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {{name: quay}}
spec:
  clusterNetwork: {{services: {{cidrBlocks: [192.168.0.0/16]}}}}
  topology:
    classRef: {{name: class}}
    version: v1.33.1
    workers: {{machinePools: [{{class: system, name: mp-0, replicas: 4}}]}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: {generation}ManagedClusterTemplate
metadata: {{name: t}}
spec: {{template: {{spec: {{}}}}}}
"
        )
    };
    let own = |generation: &str, kind: &str, spec: &str| {
        format!(
            "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: {generation}{kind}Template\nmetadata: {{name: t}}\nspec: {{template: {{spec: {spec}}}}}\n"
        )
    };
    let members = [
        class("Azure", "[]"),
        own(
            "Azure",
            "ManagedControlPlane",
            "{location: eastus, version: v1.33.1, identityRef: {kind: AzureClusterIdentity, name: i}}",
        ),
        own("Azure", "ManagedMachinePool", "{mode: System, name: pool0, sku: Standard_D2s_v3}"),
    ];
    let selector = |kind: &str, resources: &str| {
        format!(
            "{{apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: {kind}, matchResources: {resources}}}"
        )
    };
    let patch = |name: &str, selector: &str, template: &str| {
        format!(
            "\n  - name: {name}\n    definitions:\n    - selector: {selector}\n      jsonPatches: [{{op: replace, path: /spec/template/spec, valueFrom: {{template: {}}}}}]",
            json!(template)
        )
    };
    let patches = [
        patch(
            "a",
            &selector("AzureASOManagedClusterTemplate", "{infrastructureCluster: true}"),
            "resources: [{apiVersion: resources.azure.com/v1api20200601, kind: ResourceGroup, metadata: {name: '{{ .builtin.cluster.name }}'}, spec: {location: eastus}}]",
        ),
        patch(
            "b",
            &selector("AzureASOManagedControlPlaneTemplate", "{controlPlane: true}"),
            "resources: [{apiVersion: containerservice.azure.com/v1api20240901, kind: ManagedCluster, metadata: {name: '{{ .builtin.cluster.name }}'}, spec: {location: eastus, owner: {name: '{{ .builtin.cluster.name }}'}, dnsPrefix: x, identity: {type: SystemAssigned}}}]",
        ),
        patch(
            "c",
            &selector("AzureASOManagedMachinePoolTemplate", "{machinePoolClass: {names: [system]}}"),
            "resources: [{apiVersion: containerservice.azure.com/v1api20240901, kind: ManagedClustersAgentPool, metadata: {name: p}, spec: {azureName: pool0, owner: {name: '{{ .builtin.cluster.name }}'}, mode: System, vmSize: Standard_D2s_v3}}]",
        ),
    ];
    let resources = [
        class("AzureASO", &patches.concat()),
        own("AzureASO", "ManagedControlPlane", "{}"),
        own("AzureASO", "ManagedMachinePool", "{}"),
    ];
    for (text, kind, name) in
        [(members.concat(), "AzureManaged", "quay-aaaaa"), (resources.concat(), "AzureASOManaged", "quay")]
    {
        let plan = planned(&Source::Empty, &text).await;
        let said = plan.to_string();
        assert_eq!((plan.fails(), &plan.refused), (false, &Vec::new()), "{said} {:?}", plan.notes);
        for words in [
            "+ resource group quay\n".to_owned(),
            format!("+ managed cluster {name}"),
            format!("{kind}MachinePool default/quay-mp-0-aaaaa: created with its cluster"),
        ] {
            assert!(said.contains(&words), "{words}: {said}");
        }
        let cluster = plan.to_json();
        let steps = cluster["steps"].as_array().unwrap();
        let cluster = steps
            .iter()
            .find(|it| it["resourceType"] == "Microsoft.ContainerService/managedClusters")
            .unwrap();
        assert_eq!(cluster["document"]["properties"]["agentPoolProfiles"][0]["count"], 4);
    }
}

#[tokio::test]
async fn what_a_topology_lacks_is_said_and_the_rest_is_planned() {
    let class = include_str!("../../../../deploy/capz/templates/cluster-template-clusterclass.yaml");
    let both = template(&format!("{class}\n---\n{TOPOLOGY}"));
    // The template of the workers is missing.
    let (before, after) =
        both.split_once("kind: AzureMachineTemplate\nmetadata:\n  name: quay-md-0").unwrap();
    let plan = planned(
        &Source::Empty,
        &format!("{before}kind: AzureMachineTemplate\nmetadata:\n  name: other{after}"),
    )
    .await;
    assert!(plan.fails() && plan.to_string().contains("virtual machine quay-aaaaa-aaaaa"), "{plan}");
    assert!(plan.notes.iter().any(|it| it.contains("AzureMachineTemplate default/quay-md-0, of which a part of Cluster default/quay is made, is not in the manifests")), "{:?}", plan.notes);
    // The class is missing.
    let plan = planned(&Source::Empty, &template(TOPOLOGY)).await;
    assert!(plan.fails() && plan.notes.iter().any(|it| it.contains("Cluster default/quay is made of ClusterClass class (spec.topology), which is not in the manifests")), "{:?}", plan.notes);
    // A class of workers is missing.
    let plan = planned(
        &Source::Empty,
        &both.replace("- class: quay-worker\n        name", "- class: other\n        name"),
    )
    .await;
    assert!(plan.to_string().contains("Cluster default/quay is refused: spec.topology.workers.machineDeployments: ClusterClass default/class has no class other"), "{plan}");
    // Cluster API has made its objects already.
    let there = both.replace("  topology:", "  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: AzureCluster, name: quay-x1y2z}\n  topology:");
    let there = format!(
        "{there}\n---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: AzureCluster\nmetadata: {{name: quay-x1y2z, namespace: default}}\nspec: {{location: swedencentral, identityRef: {{kind: AzureClusterIdentity, name: identity}}}}\n"
    );
    let plan = planned(&Source::Empty, &there).await;
    assert!(
        plan.notes.iter().any(|it| it.contains(
            "AzureCluster default/quay-x1y2z is in the manifests: the cluster is planned from its objects"
        )),
        "{:?}",
        plan.notes
    );
}
