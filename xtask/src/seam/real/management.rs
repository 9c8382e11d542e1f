//! A management cluster with a real API server, garbage collector and workload controllers; kubelet and cert-manager
//! are stand-ins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clock::Clock;
use kube::Client;
use kube::api::ListParams;
use real_kubernetes::RealKubernetes;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::certificates;
use super::clusterctl::{OUR_IMAGE, left_in, set_image};
use super::counterparts::Counterparts;
use super::pods::{Image, NAMESPACE, PodEnvironment, Pods};
use crate::e2e::capz::objects::{api, create, delete};
use crate::print;
use crate::record::objects::Objects;
use crate::record::rest;
use crate::world::World;

/// The time limit of a step.
const STEP: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(500);
/// The running controllers. The others are not needed, or stand-ins replace them.
const CONTROLLERS: [&str; 5] = [
    "garbage-collector-controller",
    "namespace-controller",
    "deployment-controller",
    "replicaset-controller",
    "clusterrole-aggregation-controller",
];
/// The audit policy: who sent each request, and the status of its answer.
const AUDIT: &str = r#"{"apiVersion":"audit.k8s.io/v1","kind":"Policy","omitStages":["RequestReceived"],"rules":[{"level":"Metadata"}]}"#;
/// The kinds of the operator's objects that the provider creates for a cluster.
const KINDS: [(&str, &str, &str); 6] = [
    ("resources.azure.com", "ResourceGroup", "resourcegroups"),
    ("network.azure.com", "VirtualNetwork", "virtualnetworks"),
    ("network.azure.com", "VirtualNetworksSubnet", "virtualnetworkssubnets"),
    ("network.azure.com", "NatGateway", "natgateways"),
    ("network.azure.com", "BastionHost", "bastionhosts"),
    ("network.azure.com", "PrivateEndpoint", "privateendpoints"),
];
const DEFINITIONS: (&str, &str) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";

/// The management cluster.
pub struct Management {
    servers: RealKubernetes,
    kubectl: PathBuf,
    /// A client with an administrator's rights.
    pub client: Client,
    pods: Pods,
    certificates: tokio::task::JoinHandle<()>,
    audit: PathBuf,
}

impl Drop for Management {
    fn drop(&mut self) {
        self.certificates.abort();
    }
}

/// The state at a moment.
pub struct View {
    /// The operator's objects.
    pub operators: Vec<Value>,
    /// The objects of the provider and the core.
    pub objects: Objects,
}

impl View {
    /// Whether the operator has objects, and all of them have this policy.
    pub fn all_have(&self, policy: &str) -> bool {
        let found: BTreeSet<&str> = self.operators.iter().map(policy_of).collect();
        found == BTreeSet::from([policy])
    }

    /// Whether all of the operator's objects are ready.
    pub fn all_are_ready(&self) -> bool {
        !self.operators.is_empty()
            && self.operators.iter().all(|it| {
                let conditions = it["status"]["conditions"].as_array();
                conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
            })
    }

    /// The operator's objects with their policies, for debugging.
    fn words(&self) -> BTreeMap<String, String> {
        let all = self.operators.iter();
        all.map(|it| (format!("{} {}", it["kind"], it["metadata"]["name"]), policy_of(it).to_owned()))
            .collect()
    }
}

fn policy_of(object: &Value) -> &str {
    object["metadata"]["annotations"][POLICY].as_str().unwrap_or_default()
}

impl Management {
    /// Starts the management cluster, with a stand-in for Cluster API.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(counterparts: &Counterparts, directory: &Path, world: &World) -> anyhow::Result<Self> {
        std::fs::create_dir_all(directory)?;
        let policy = directory.join("audit.json");
        let audit = directory.join("audit.log");
        std::fs::write(&policy, AUDIT)?;
        let (policy, log) = (policy.display().to_string(), audit.display().to_string());
        let flags = [
            // Webhooks are called at the addresses of pods: there is no kube-proxy.
            ("--enable-aggregator-routing", "true"),
            ("--audit-policy-file", policy.as_str()),
            ("--audit-log-path", &log),
        ];
        let mut servers =
            RealKubernetes::start_with(&counterparts.assets, &directory.join("kubernetes"), &flags).await?;
        servers.start_some_controllers(&CONTROLLERS)?;
        let client = servers.client().await?;
        certificates::define(&client).await?;
        let certificates = tokio::spawn(certificates::play(client.clone()));
        let kubeconfig: Value = serde_saphyr::from_str(&std::fs::read_to_string(&servers.kubeconfig)?)?;
        let pods = directory.join("pods");
        std::fs::create_dir_all(&pods)?;
        let environment = PodEnvironment {
            directory: pods,
            kubeconfig,
            proxy: world.proxy.clone(),
            certificate_authority: world.azure.certificate_authority.clone(),
        };
        let pods = Pods::run(client.clone(), images(counterparts), environment)?;
        world.play_cluster_api(&client, Arc::new(|| Clock::system().now())).await?;
        let kubectl = counterparts.assets.join("kubectl");
        Ok(Self { servers, kubectl, client, pods, certificates, audit })
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.servers.kubeconfig
    }

    /// kubectl for this cluster.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        command
    }

    /// Replaces the image of the manager as in the guide, and waits until only the new one runs.
    ///
    /// # Errors
    /// It takes too long.
    pub async fn set_image(&self, image: &str) -> anyhow::Result<()> {
        let output = self.kubectl().args(set_image(image)).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let what =
            if image == OUR_IMAGE { "our image runs alone" } else { "the established image runs alone" };
        self.until_runs(what, |pod| pod["spec"]["containers"][0]["image"] == image).await
    }

    /// Waits until the provider's Deployments are rolled out, and `is_it` holds for all pods of the manager.
    ///
    /// # Errors
    /// It takes too long.
    pub async fn until_runs(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            self.must_run()?;
            let all = api(&self.client, "v1", "Pod", Some(NAMESPACE)).list(&ListParams::default()).await?;
            let pods: Result<Vec<Value>, _> = all.items.iter().map(serde_json::to_value).collect();
            let pods = pods?;
            let managers: Vec<&Value> = pods
                .iter()
                .filter(|pod| pod["metadata"]["labels"]["control-plane"] == "capz-controller-manager")
                .collect();
            if !managers.is_empty() && managers.iter().all(|pod| is_it(pod)) && pods.iter().all(is_ready) {
                break;
            }
            if begun.elapsed() > STEP {
                bail!("not within {} s: {what}\n{pods:#?}", STEP.as_secs());
            }
            tokio::time::sleep(LOOK).await;
        }
        print::line(format_args!("  {what}: {:.0} s", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Waits until no pod of the providers is there.
    ///
    /// # Errors
    /// It takes too long.
    pub async fn until_stopped(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        let pods = api(&self.client, "v1", "Pod", Some(NAMESPACE));
        while !pods.list_metadata(&ListParams::default()).await?.items.is_empty() {
            ensure!(begun.elapsed() < STEP, "pods run still in {NAMESPACE}:\n{}", self.words());
            tokio::time::sleep(LOOK).await;
        }
        Ok(())
    }

    /// The current state.
    ///
    /// # Errors
    /// The server's error.
    pub async fn view(&self) -> anyhow::Result<View> {
        let mut operators = Vec::new();
        for (group, kind, plural) in KINDS {
            let definitions = api(&self.client, DEFINITIONS.0, DEFINITIONS.1, None);
            let Some(definition) = definitions.get_opt(&format!("{plural}.{group}")).await? else { continue };
            let versions = definition.data["spec"]["versions"].as_array().into_iter().flatten();
            // Objects are read in their storage version, which needs no conversion.
            let stored = versions.filter(|it| it["storage"] == true).find_map(|it| it["name"].as_str());
            let version = format!("{group}/{}", stored.context("a definition that stores nothing")?);
            for object in api(&self.client, &version, kind, None).list(&ListParams::default()).await? {
                let mut object = serde_json::to_value(object)?;
                object["kind"] = kind.into();
                operators.push(object);
            }
        }
        Ok(View { operators, objects: Objects::read(&self.client).await? })
    }

    /// Waits until a condition holds.
    ///
    /// # Errors
    /// It takes too long, or a program ends.
    pub async fn until(&self, what: &str, holds: impl Fn(&View) -> bool) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            self.must_run()?;
            let view = self.view().await;
            match &view {
                Ok(view) if holds(view) => break,
                Ok(_) | Err(_) if begun.elapsed() <= STEP => {}
                Ok(view) => {
                    let clusters = view.objects.of("AzureCluster");
                    bail!(
                        "not within {} s: {what}\n{:#}\n{clusters:#?}",
                        STEP.as_secs(),
                        json!(view.words())
                    );
                }
                Err(problem) => bail!("not within {} s: {what}: {problem:#}", STEP.as_secs()),
            }
            tokio::time::sleep(LOOK).await;
        }
        print::line(format_args!("  {what}: {:.0} s", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Waits until the guide's command lists no object of a cluster any more.
    ///
    /// # Errors
    /// The command fails, or it takes too long.
    pub async fn until_none_left(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        loop {
            self.must_run()?;
            // Lists fail while objects are there that are not converted any more.
            let left = match left_in(&mut self.kubectl()) {
                Ok(left) if left.is_empty() => break,
                Ok(left) => left,
                Err(problem) => vec![problem.to_string()],
            };
            ensure!(begun.elapsed() < STEP, "left after {} s:\n{}", STEP.as_secs(), left.join("\n"));
            tokio::time::sleep(LOOK).await;
        }
        print::line(format_args!(
            "  kubectl shows no object of the operator: {:.0} s",
            begun.elapsed().as_secs_f64()
        ));
        Ok(())
    }

    /// Waits until the cluster has its desired state, and nothing has been written for a while.
    ///
    /// # Errors
    /// It takes too long, or a program ends.
    pub async fn rests(&self) -> anyhow::Result<()> {
        rest(&self.client, || self.must_run()).await
    }

    /// The image of the manager's Deployment.
    ///
    /// # Errors
    /// The Deployment does not exist.
    pub async fn image(&self) -> anyhow::Result<String> {
        let deployments = api(&self.client, "apps/v1", "Deployment", Some(NAMESPACE));
        let found = deployments.get("capz-controller-manager").await?;
        let image = found.data["spec"]["template"]["spec"]["containers"][0]["image"].as_str();
        image.map(str::to_owned).context("the Deployment has no image")
    }

    /// Whether the operator's Deployment or the Service of its webhooks exists.
    ///
    /// # Errors
    /// The server's error.
    pub async fn has_operator(&self) -> anyhow::Result<bool> {
        let deployments = api(&self.client, "apps/v1", "Deployment", Some(NAMESPACE));
        let services = api(&self.client, "v1", "Service", Some(NAMESPACE));
        Ok(deployments.get_opt("azureserviceoperator-controller-manager").await?.is_some()
            || services.get_opt("azureserviceoperator-webhook-service").await?.is_some())
    }

    /// Labels the operator's definitions as in the guide.
    ///
    /// # Errors
    /// kubectl's error.
    pub fn label_definitions(&self) -> anyhow::Result<()> {
        let label = ["label", "crd", "-l", "app.kubernetes.io/name=azure-service-operator"];
        let output =
            self.kubectl().args(label).arg("cluster.x-k8s.io/provider=infrastructure-azure").output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout);
        print::line(format_args!("  kubectl labels {} definitions", said.lines().count()));
        Ok(())
    }

    /// Checks that a namespace can be created and deleted: the namespace controller lists objects of all kinds in it.
    ///
    /// # Errors
    /// It is not deleted.
    pub async fn namespace_comes_and_goes(&self) -> anyhow::Result<()> {
        let named = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "passing" } });
        create(&self.client, &named).await?;
        delete(&self.client, &named).await?;
        let begun = Instant::now();
        while let Some(found) = api(&self.client, "v1", "Namespace", None).get_opt("passing").await? {
            ensure!(begun.elapsed() < STEP, "the namespace does not go: {}", found.data["status"]);
            tokio::time::sleep(LOOK).await;
        }
        print::line(format_args!("  a namespace comes and goes: {:.0} s", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Checks that all pods run without errors.
    ///
    /// # Errors
    /// The first error.
    pub fn must_run(&self) -> anyhow::Result<()> {
        self.pods.must_run()?;
        let ended = self.pods.restarts(OURS_NAME);
        ensure!(ended == 0, "our manager ended by itself {ended} times:\n{}", self.pods.words());
        Ok(())
    }

    /// The ends of the programs' logs.
    pub fn words(&self) -> String {
        self.pods.words()
    }

    /// The requests of the provider's manager that were forbidden so far, and never allowed: while clusterctl exchanges roles,
    /// or a role is aggregated, a request may be forbidden for a moment.
    ///
    /// # Errors
    /// The audit log cannot be read.
    pub fn forbidden(&self) -> anyhow::Result<BTreeSet<String>> {
        let log = std::fs::read_to_string(&self.audit)?;
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let account = format!("system:serviceaccount:{NAMESPACE}:capz-manager");
        let (mut refused, mut allowed) = (BTreeSet::new(), BTreeSet::new());
        for line in lines.filter(|line| line["user"]["username"] == account.as_str()) {
            let of = &line["objectRef"];
            let text = |member: &str| of[member].as_str().unwrap_or_default();
            let verb = line["verb"].as_str().unwrap_or_default();
            let said = format!("{verb} {} {} {}", text("apiGroup"), text("resource"), text("name"));
            match line["responseStatus"]["code"].as_u64() {
                Some(403) => refused.insert(said),
                _ => allowed.insert(said),
            };
        }
        Ok(refused.difference(&allowed).cloned().collect())
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == "Ready" && one["status"] == "True")
}

/// The name of our image, without the tag.
const OURS_NAME: &str = "registry.example/capz-controller-manager";

/// The programs of the images.
fn images(counterparts: &Counterparts) -> Vec<Image> {
    let sooner = &["--reconciler-requeue=2s", "--debouncing-timer=1s"];
    let manager = |name, program: &PathBuf, more| Image {
        name,
        program: program.clone(),
        folder: counterparts.folder.clone(),
        metrics: "--diagnostics-address",
        more,
    };
    let operator = counterparts.operator.as_ref().map(|program| Image {
        name: "azureserviceoperator",
        program: program.clone(),
        // The operator's image has its definitions in `crds`.
        folder: counterparts.folder.clone(),
        metrics: "--metrics-addr",
        more: &[],
    });
    let managers = [
        manager("cluster-api-azure-controller", &counterparts.provider, sooner),
        manager(
            OURS_NAME,
            &counterparts.ours,
            &["--reconciler-requeue=2s", "--debouncing-timer=1s", "--sync-period=30s"],
        ),
    ];
    operator.into_iter().chain(managers).collect()
}
