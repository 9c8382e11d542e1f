//! `cerulean rights`, from outside.

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::commands::Simulation;

const CONFIG: &str = r#"{"tenantId": "t", "subscriptionId": "s", "resourceGroup": "cluster", "location": "westeurope",
    "vnetName": "net", "subnetName": "nodes", "securityGroupName": "guard", "routeTableName": "routes",
    "loadBalancerSku": "Standard", "vmType": "vmss", "aadClientId": "c", "aadClientSecret": "x"}"#;

const OBJECTS: &str = "apiVersion: v1
kind: List
items:
  - {apiVersion: v1, kind: Node, metadata: {name: a}, spec: {providerID: 'azure:///subscriptions/s/resourceGroups/pool/providers/Microsoft.Compute/virtualMachineScaleSets/a/virtualMachines/0'}}
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}
  - apiVersion: v1
    kind: Service
    metadata: {name: web, namespace: shop, annotations: {service.beta.kubernetes.io/azure-load-balancer-resource-group: addresses}}
    spec: {type: LoadBalancer, ports: [{port: 80}]}
";

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("azure.json"), CONFIG).unwrap();
    std::fs::write(folder.path().join("cluster.yaml"), OBJECTS).unwrap();
    folder
}

/// Runs it in a folder, without a cluster in the environment.
fn rights(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cerulean"));
    command.env_remove("KUBECONFIG").env("HOME", folder).current_dir(folder);
    command.arg("rights").args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

const OFFLINE: [&str; 6] = ["--cloud-config", "azure.json", "--cluster-name", "prod", "-f", "cluster.yaml"];

#[test]
fn rights_follow_from_azure_json_manifests_and_flags() {
    let folder = folder();
    let text = said(&rights(folder.path(), &OFFLINE));
    for expected in [
        "Features of cluster prod, by 1 Services and 1 Nodes:",
        "\n  /subscriptions/s\n    Microsoft.Network/privateLinkServices/read",
        "\n  /subscriptions/s/resourceGroups/addresses\n    Microsoft.Network/publicIPAddresses/delete",
        "\n  /subscriptions/s/resourceGroups/pool\n    Microsoft.Compute/",
        "\n  cloud-controller-manager-election, in namespace kube-system\n",
        "services/status: patch  addresses, and the finalizer",
    ] {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }
    assert!(!text.contains("routeTables") && !text.contains("virtualMachines/read  assumed"), "{text}");
    let flags = ["--", "--cluster-cidr=10.244.0.0/16", "--leader-elect-resource-namespace=cloud"];
    let text = said(&rights(folder.path(), &[&OFFLINE[..], &flags].concat()));
    assert!(text.contains("Microsoft.Network/routeTables/write"), "{text}");
    assert!(text.contains("cloud-controller-manager-election, in namespace cloud\n"), "{text}");
}

/// The commands run in a real shell, and give az what JSON has.
#[test]
fn the_commands_are_those_of_the_azure_cli() {
    let folder = folder();
    let json: Value =
        serde_json::from_str(&said(&rights(folder.path(), &[&OFFLINE[..], &["-o", "json"]].concat())))
            .unwrap();
    let script = said(&rights(folder.path(), &[&OFFLINE[..], &["-o", "az"]].concat()));
    let az = "az() { printf '%s\\0' \"$@\" end >&2; }\n";
    let run = |assignee: &str| {
        Command::new("bash")
            .args(["-ec", &format!("{az}{script}")])
            .env("ASSIGNEE", assignee)
            .output()
            .unwrap()
    };
    assert!(!run("").status.success(), "an identity is missing");
    let ran = run("principal");
    assert!(ran.status.success(), "{ran:?}");
    let words = String::from_utf8(ran.stderr).unwrap();
    let calls: Vec<Vec<&str>> =
        words.split("end\0").map(|call| call.split_terminator('\0').collect()).collect();
    let (mut definitions, mut assignments) = (Vec::new(), Vec::new());
    for call in calls.iter().filter(|call| !call.is_empty()) {
        match call[..] {
            ["role", "definition", "create", "--role-definition", definition] => {
                definitions.push(serde_json::from_str::<Value>(definition).unwrap());
            }
            [
                "role",
                "assignment",
                "create",
                "--role",
                role,
                "--assignee-object-id",
                "principal",
                "--assignee-principal-type",
                "ServicePrincipal",
                "--scope",
                scope,
            ] => {
                assignments.push(serde_json::json!({"role": role, "scope": scope}));
            }
            _ => panic!("{call:?}"),
        }
    }
    assert_eq!(
        (Value::from(definitions), Value::from(assignments)),
        (json["roleDefinitions"].clone(), json["roleAssignments"].clone())
    );
    assert_eq!(json["formatVersion"], 1);
}

#[test]
fn mistakes_are_named_with_their_remedy() {
    let folder = folder();
    let cases: [(&[&str], &str); 5] = [
        (&[], "--cloud-config FILE is missing"),
        (&["--cloud-config", "absent.json"], "absent.json"),
        (&["--cloud-config", "azure.json", "--with", "everything"], "application-security-groups"),
        (&["--cloud-config", "azure.json", "--", "--controllers=servise"], "service"),
        (&["--cloud-config", "azure.json", "--", "--help"], "--help belongs before --"),
    ];
    for (arguments, expected) in cases {
        let output = rights(folder.path(), arguments);
        let words = String::from_utf8(output.stderr.clone()).unwrap();
        assert!(!output.status.success() && words.contains(expected), "{arguments:?}: {output:?}");
    }
}

#[tokio::test]
async fn a_cluster_gives_its_services_and_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = Simulation::start("cluster", folder.path());
    let azure_json = cluster.folder.join("azure.json");
    let kubeconfig = cluster.folder.join("kubeconfig");
    let named = |path: &Path| path.display().to_string();
    let (azure_json, kubeconfig) = (named(&azure_json), named(&kubeconfig));
    let arguments = ["--cloud-config", &azure_json, "--kubeconfig", &kubeconfig];
    let begin = Instant::now();
    loop {
        let read = said(&rights(folder.path(), &arguments));
        if !read.contains(" and 0 Nodes") {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{read}");
        sleep(Duration::from_millis(100)).await;
    }
    let offline = said(&rights(folder.path(), &["--cloud-config", &azure_json]));
    assert!(
        offline.contains("by 0 Services and 0 Nodes") && offline.contains("note: no Node with"),
        "{offline}"
    );
}
