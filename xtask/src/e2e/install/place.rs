//! The cluster before anything is installed on it: machines with azure.json, images in a registry, a role in Azure.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use azure_simulator::entra::Application;
use azure_types::ResourceId;
use k8s::api::api::core::v1::{Node, Pod};
use kube::Api;
use kube::api::{ListParams, LogParams, Patch, PatchParams};
use real_kubernetes::Enclosure;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::helm::Helm;
use super::reader::{CLUSTER, Reader, TAG};
use super::tools::Tools;
use super::{established, image};
use crate::e2e::machines::{EXCHANGES, EmptyCluster, Machines, PUBLIC_REGISTRY};
use crate::guide::Guide;
use crate::print;
use crate::program::root;

/// The address of the Service `kubernetes`. No kube-proxy runs: this program leads to the API server.
pub const KUBERNETES_SERVICE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// Two nodes of the control plane, and one for pods.
pub const MACHINES: [&str; 3] = ["node-a", "node-b", "node-c"];
/// How many of them are of the control plane, from the first on.
pub const CONTROL_PLANE: usize = 2;
/// The roles in Azure, as `docs/rights.md` demands for a cluster of virtual machines.
const ROLES: [&str; 3] = ["base.json", "subscription.json", "virtual-machines.json"];
const RIGHTS: &str = "deploy/rights/azure/cloud-controller-manager";
/// The application that has these roles and no others.
const CLIENT: (&str, &str) = ("c11e4700-0000-4000-8000-0000000000aa", "0b1ec700-0000-4000-8000-0000000000aa");
const SECRET: &str = "of-the-installation";

/// The environment, which ends when this value is dropped.
pub struct Place {
    /// Azure and the cluster.
    pub machines: Machines,
    /// Helm for the cluster.
    pub helm: Helm,
    /// The guide to switching, and the folder of its reader.
    pub guide: Guide,
    pub reader: Reader,
    /// A chart with the objects of the established one.
    pub established: PathBuf,
    /// The audit log of the API server.
    pub audit_log: PathBuf,
    path: String,
}

impl Place {
    /// Starts Azure and the cluster, and lets the machines know their cloud.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(enclosure: &Enclosure, tools: &Tools<'_>, images: &Path) -> anyhow::Result<Self> {
        let folder = enclosure.folder();
        own_etc(folder)?;
        let empty = EmptyCluster::start(enclosure, tools.assets, &MACHINES).await?;
        for name in image::NAMES {
            let image = image::read(&images.join(name))?;
            empty.push(&format!("{PUBLIC_REGISTRY}/{name}:{TAG}"), &image).await?;
        }
        let audit_log = folder.join("audit.log");
        let (log, policy) = (
            audit_log.display().to_string(),
            root().join("deploy/rights/audit-policy.yaml").display().to_string(),
        );
        let flags = [("--audit-log-path", log.as_str()), ("--audit-policy-file", &policy)];
        let machines = empty.start_nodes(None, &flags).await?;
        tokio::spawn(lead_to(machines.cluster.servers.address()).await?);
        let environment = describe_cloud(&machines)?;
        allow(&machines)?;
        join_control_plane(&machines).await?;
        let settings = established::Settings {
            registry: PUBLIC_REGISTRY,
            tag: TAG,
            cluster_name: CLUSTER,
            environment: &environment,
        };
        let established = established::write(folder, &settings)?;
        let reader = Reader::new(folder, &environment)?;
        let guide = Guide::read("docs/switching.md", &reader.folder, reader.variables(&machines, tools))?;
        Ok(Self {
            helm: Helm::new(tools.helm, &machines.cluster.servers.kubeconfig, folder),
            guide,
            reader,
            established,
            audit_log,
            path: tools.path(),
            machines,
        })
    }

    /// Prints how to install the programs.
    pub fn invite(&self) {
        let kubeconfig = self.machines.cluster.servers.kubeconfig.display();
        print::line(format_args!(
            "\nA cluster of three machines without programs. In another shell, at the root of the repository:\n\n  \
             nsenter --target $(pgrep --newest --full 'e2e install --inside') --net --mount --pid bash\n  \
             export KUBECONFIG={kubeconfig} PATH={}\n  \
             helm install azure deploy/charts/cloud-provider-azure --namespace kube-system --values {} --values {} --wait\n  \
             kubectl get nodes\n  kubectl apply -f examples/shop.yaml\n  kubectl get services --all-namespaces\n\n\
             What is written to Azure: {}\nCtrl-C here ends all of it.",
            self.path,
            self.reader.values.display(),
            self.reader.folder.join("images.yaml").display(),
            self.machines.folder.join(EXCHANGES).display(),
        ));
    }

    /// The chart of this repository.
    pub fn chart() -> PathBuf {
        root().join("deploy/charts/cloud-provider-azure")
    }

    /// Runs kubectl as an administrator, and returns what it prints.
    ///
    /// # Errors
    /// Its error.
    pub fn kubectl(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(self.machines.assets.join("kubectl"))
            .arg("--kubeconfig")
            .arg(&self.machines.cluster.servers.kubeconfig)
            .args(arguments)
            .output()?;
        if !output.status.success() {
            bail!("kubectl {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The pods of a program.
    ///
    /// # Errors
    /// The server's error.
    pub async fn pods(&self, selector: &str) -> anyhow::Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.machines.client.clone(), "kube-system");
        Ok(pods.list(&ListParams::default().labels(selector)).await?.items)
    }

    /// The log of a pod.
    ///
    /// # Errors
    /// The server's error.
    pub async fn log(&self, pod: &str, previous: bool) -> anyhow::Result<String> {
        let pods: Api<Pod> = Api::namespaced(self.machines.client.clone(), "kube-system");
        Ok(pods.logs(pod, &LogParams { previous, ..LogParams::default() }).await?)
    }

    /// Events and logs, for a failed step.
    pub fn last_words(&self) -> String {
        let words = |arguments: &[&str]| self.kubectl(arguments).unwrap_or_else(|error| error.to_string());
        [
            words(&["get", "pods,nodes", "-A", "-o", "wide"]),
            words(&["get", "events", "-A", "--sort-by=.lastTimestamp"]),
            words(&[
                "logs",
                "-n",
                "kube-system",
                "-l",
                "component=cloud-controller-manager",
                "--tail=40",
                "--prefix",
            ]),
            words(&[
                "logs",
                "-n",
                "kube-system",
                "-l",
                "k8s-app=cloud-node-manager",
                "--tail=20",
                "--prefix",
            ]),
        ]
        .join("\n---\n")
    }
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let status = Command::new(program).args(arguments).status()?;
    if !status.success() {
        bail!("{program} {}: {status}", arguments.join(" "));
    }
    Ok(())
}

/// Gives this namespace an `/etc` of its own, which the machines share, since charts mount folders of it.
fn own_etc(folder: &Path) -> anyhow::Result<()> {
    let copy = folder.join("etc").display().to_string();
    run("cp", &["--archive", "/etc", &copy])?;
    std::fs::create_dir_all(folder.join("etc/kubernetes"))?;
    run("mount", &["--bind", &copy, "/etc"])
}

/// Connects the address of the Service `kubernetes` with the API server.
async fn lead_to(server: SocketAddr) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let listener = TcpListener::bind((KUBERNETES_SERVICE, 443)).await?;
    Ok(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                if let Ok(mut server) = TcpStream::connect(server).await {
                    let _closed = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                }
            });
        }
    })
}

/// Writes azure.json as installers do, and returns the environment of a program that reaches this Azure from a machine.
fn describe_cloud(machines: &Machines) -> anyhow::Result<Value> {
    let mut document = machines.shape.azure_json("", SECRET);
    document["aadClientId"] = CLIENT.0.into();
    if let Some(members) = document.as_object_mut() {
        // Azure's own names, which lead through the proxy.
        members.remove("resourceManagerEndpoint");
    }
    std::fs::write("/etc/kubernetes/azure.json", document.to_string())?;
    let authority = "/etc/kubernetes/authority-of-azure.pem";
    std::fs::copy(&machines.azure.certificate_authority, authority)?;
    let proxy = machines.environment.iter().find(|(name, _)| name == "HTTPS_PROXY");
    Ok(json!([
        {"name": "HTTPS_PROXY", "value": proxy.map(|(_, value)| value)},
        {"name": "NO_PROXY", "value": KUBERNETES_SERVICE.to_string()},
        {"name": "SSL_CERT_FILE", "value": authority},
    ]))
}

/// Registers an application with exactly the documented roles, and lets Azure enforce them.
fn allow(machines: &Machines) -> anyhow::Result<()> {
    let azure = &machines.azure;
    azure.entra.register(Application::new(CLIENT.0, CLIENT.1).with_secret(SECRET));
    let subscription = ResourceId::subscription(&machines.shape.subscription);
    for (number, file) in ROLES.iter().enumerate() {
        let path = root().join(RIGHTS).join(file);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let role: Value = serde_json::from_str(&text)?;
        let name = format!("cccccccc-0000-4000-8000-0000000000{number:02}");
        let id = subscription.resource("Microsoft.Authorization", "roleDefinitions", &name);
        let properties = json!({
            "roleName": role["Name"],
            "assignableScopes": [subscription],
            "permissions": [{"actions": role["Actions"]}],
        });
        azure.azure.put(&id, json!({"properties": properties}))?;
        azure.azure.assign_role(&subscription, &name, CLIENT.1)?;
    }
    azure.azure.enforce_authorization(true);
    Ok(())
}

/// Marks the nodes of the control plane, as kubeadm does.
async fn join_control_plane(machines: &Machines) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(machines.client.clone());
    let label = json!({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}});
    for name in &MACHINES[..CONTROL_PLANE] {
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
        while nodes.get_opt(name).await?.is_none() {
            anyhow::ensure!(tokio::time::Instant::now() < deadline, "the kubelet of {name} has made no node");
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
        nodes.patch(name, &PatchParams::default(), &Patch::Merge(&label)).await?;
    }
    Ok(())
}
