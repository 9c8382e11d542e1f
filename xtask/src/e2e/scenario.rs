//! The scenario: from manifests to traffic, a lost node, a changed port, a restart, and a complete deletion.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s::api::api::core::v1::{Event, Node, Service};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::cluster::Cluster;
use super::manager;
use super::real_kubernetes::RealKubernetes;
use crate::print;
use crate::program::{Built, Program, root, until, with_logs};

/// The time limit of a step. Azure is fast here; a real API server on a busy machine is not.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// A Service that Azure refuses: its private address is reserved by Azure.
const REFUSED: &str = "
apiVersion: v1
kind: Service
metadata:
  name: misplaced
  namespace: default
  annotations:
    service.beta.kubernetes.io/azure-load-balancer-internal: 'true'
    service.beta.kubernetes.io/azure-load-balancer-ipv4: 10.240.0.1
spec:
  type: LoadBalancer
  selector: { app: misplaced }
  ports: [{ port: 80 }]
";

/// Runs all steps.
pub async fn run(
    built: &Built,
    directory: &Path,
    cluster: Cluster,
    real: Option<&RealKubernetes>,
) -> anyhow::Result<()> {
    let mut manager = manager::start(built, directory, &cluster, "manager-1")?;
    let scenario = Scenario { cluster, real };
    let first = scenario.until_traffic_flows(directory, &mut manager).await;
    first.map_err(|problem| with_logs(problem, &[&manager, &scenario.cluster.program]))?;

    let stopped = manager.terminate(Duration::from_secs(30)).await?;
    ensure!(
        stopped.success(),
        "after SIGTERM the controller manager ended with {stopped}:\n{}",
        manager.last_words()
    );
    print::line("  ok  SIGTERM: the controller manager stopped in good order");

    // Counted while no manager runs, so that the first call of the next manager is included.
    let before = scenario.call_counts().await?;
    let mut manager = manager::start(built, directory, &scenario.cluster, "manager-2")?;
    let second = scenario.restart_until_nothing_is_left(before, &mut manager).await;
    second.map_err(|problem| with_logs(problem, &[&manager, &scenario.cluster.program]))
}

struct Scenario<'a> {
    cluster: Cluster,
    real: Option<&'a RealKubernetes>,
}

impl Scenario<'_> {
    async fn until_traffic_flows(&self, directory: &Path, manager: &mut Program) -> anyhow::Result<()> {
        let nodes = self
            .until("three nodes are initialised", manager, async || self.initialised_nodes(3).await)
            .await?;
        print::line(format_args!("  ok  nodes initialised: {}", nodes.join(", ")));

        self.until("every node has a range, its route, and says so", manager, async || {
            self.routes_lead_to(&nodes).await
        })
        .await?;
        print::line("  ok  every node has a range for its pods, a route leads there, and it says so");

        self.apply(&[root().join("examples")]).await.context("applying examples/")?;
        self.until("every Service has its address", manager, async || {
            self.addresses(&["web", "resolver", "orders"]).await
        })
        .await?;
        let web = self.address_of("shop", "web").await?.context("web has no address")?;
        let resolver = self.address_of("default", "resolver").await?.context("resolver has no address")?;
        let orders = self.address_of("default", "orders").await?.context("orders has no address")?;
        print::line(format_args!("  ok  addresses: web {web}, resolver {resolver}, orders {orders}"));

        self.arrives("internet", &web, 80, "tcp", true).await?;
        self.arrives("internet", &web, 443, "tcp", true).await?;
        self.arrives("internet", &web, 8080, "tcp", false).await?;
        self.arrives("198.51.100.7", &resolver, 53, "udp", true).await?;
        self.arrives("192.0.2.1", &resolver, 53, "udp", false).await?;
        self.arrives("internet", &orders, 5432, "tcp", false).await?;
        self.arrives(&nodes[0], &orders, 5432, "tcp", true).await?;

        self.change_port("shop", "web", 443, 9443).await?;
        self.until("the changed port lets traffic through", manager, async || {
            Ok(self.verdict("internet", &web, 9443, "tcp").await?.arrives.then_some(()))
        })
        .await?;
        self.arrives("internet", &web, 443, "tcp", false).await?;
        print::line("  ok  port 443 became 9443");

        let lost = &nodes[1];
        let (scale_set, instance) = self.machine_of(lost).await?;
        self.cluster
            .post("/_cerulean/remove-instance", json!({"id": scale_set, "instance": instance}))
            .await?;
        self.until("the lost machine's node is gone", manager, async || {
            Ok((!self.node_names().await?.contains(lost)).then_some(()))
        })
        .await?;
        let left: Vec<String> = nodes.iter().filter(|node| *node != lost).cloned().collect();
        self.until("the lost machine's route is gone", manager, async || self.routes_lead_to(&left).await)
            .await?;
        self.arrives("internet", &web, 80, "tcp", true).await?;
        print::line(format_args!("  ok  {lost} was lost, its node removed, traffic goes on"));

        let file = directory.join("refused.yaml");
        std::fs::write(&file, REFUSED)?;
        self.apply(&[file]).await?;
        let words = self
            .until("Azure's refusal is in an event", manager, async || self.refusal("misplaced").await)
            .await?;
        print::line(format_args!("  ok  refused in Azure's own words: {words}"));
        self.delete_service("default", "misplaced").await?;
        self.until("the refused Service is gone", manager, async || {
            Ok(self.services().get_opt_in("default", "misplaced").await?.is_none().then_some(()))
        })
        .await
    }

    /// The numbers of writes and deletions, and of reads, so far.
    async fn call_counts(&self) -> anyhow::Result<(u64, u64)> {
        Ok((self.calls(&["writes", "deletes"]).await?, self.calls(&["reads"]).await?))
    }

    /// Restarts the manager, which must not write to Azure, and then deletes all Services. `writes` and `reads` are the
    /// call counts while no manager ran.
    async fn restart_until_nothing_is_left(
        &self,
        (writes, reads): (u64, u64),
        manager: &mut Program,
    ) -> anyhow::Result<()> {
        self.until("the restarted manager has looked at Azure", manager, async || {
            // Load balancers, addresses, security group, scale sets and instances: five lists at least.
            Ok((self.calls(&["reads"]).await? >= reads + 5).then_some(()))
        })
        .await?;
        // A write would follow within moments.
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = self.calls(&["writes", "deletes"]).await?;
        ensure!(after == writes, "a restart wrote to Azure: {writes} writes became {after}");
        print::line("  ok  restart: nothing was written to Azure");

        for (namespace, name) in [("shop", "web"), ("default", "resolver"), ("default", "orders")] {
            self.delete_service(namespace, name).await?;
        }
        self.until("every Service is gone", manager, async || {
            let left = self.services().all().await?;
            Ok((!left.iter().any(|service| {
                service.spec.as_ref().is_some_and(|s| s.type_.as_deref() == Some("LoadBalancer"))
            }))
            .then_some(()))
        })
        .await?;
        let state = self.cluster.get("/_cerulean/state").await?;
        let resources = state["resources"].as_array().context("the saved state has no list `resources`")?;
        let left = serde_json::to_string(resources)?;
        ensure!(
            left.contains("/networkSecurityGroups/"),
            "the saved state does not even have the security group of the beginning"
        );
        for leftover in ["k8s-azure-lb_", "/loadBalancers/", "/publicIPAddresses/"] {
            ensure!(!left.contains(leftover), "something is left behind in Azure: {leftover}...");
        }
        print::line("  ok  deleted: nothing is left behind in Azure");
        Ok(())
    }

    /// Waits until `condition` returns a value.
    async fn until<T>(
        &self,
        what: &str,
        manager: &mut Program,
        condition: impl AsyncFn() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        until(manager, Program::must_run, what, STEP_TIMEOUT, async |_| condition().await).await
    }

    /// Applies manifests: with kubectl to a real server, server-side to the simulated one.
    async fn apply(&self, paths: &[std::path::PathBuf]) -> anyhow::Result<()> {
        if let Some(real) = self.real {
            let mut command: Command = real.kubectl();
            command.arg("apply");
            for path in paths {
                command.arg("-f").arg(path);
            }
            let output = command.output()?;
            ensure!(output.status.success(), "kubectl apply: {}", String::from_utf8_lossy(&output.stderr));
            return Ok(());
        }
        let mut files = Vec::new();
        for path in paths {
            if path.is_dir() {
                // As kubectl does: subfolders such as examples/clusters are skipped.
                let mut inside: Vec<_> = std::fs::read_dir(path)?
                    .map(|entry| entry.map(|e| e.path()))
                    .collect::<Result<_, _>>()?;
                inside.retain(|file| file.is_file());
                inside.sort();
                files.extend(inside);
            } else {
                files.push(path.clone());
            }
        }
        for file in files {
            let text = std::fs::read_to_string(&file)?;
            let objects = simulated_cluster::manifests::read(&file.display().to_string(), &text)?;
            simulated_cluster::manifests::apply(&self.cluster.kubernetes, &objects).await?;
        }
        Ok(())
    }

    fn services(&self) -> Services {
        Services(self.cluster.kubernetes.clone())
    }

    async fn node_names(&self) -> anyhow::Result<BTreeSet<String>> {
        let api: Api<Node> = Api::all(self.cluster.kubernetes.clone());
        Ok(api
            .list(&ListParams::default())
            .await?
            .into_iter()
            .filter_map(|node| node.metadata.name)
            .collect())
    }

    /// The names of the nodes, once `count` of them have a provider ID and no uninitialized taint.
    async fn initialised_nodes(&self, count: usize) -> anyhow::Result<Option<Vec<String>>> {
        let api: Api<Node> = Api::all(self.cluster.kubernetes.clone());
        let mut names = Vec::new();
        for node in api.list(&ListParams::default()).await? {
            let spec = node.spec.unwrap_or_default();
            let tainted = spec.taints.iter().flatten().any(|taint| taint.key.ends_with("/uninitialized"));
            if !tainted && spec.provider_id.is_some_and(|id| id.starts_with("azure:///subscriptions/")) {
                names.extend(node.metadata.name);
            }
        }
        Ok((names.len() == count).then_some(names))
    }

    /// Whether each of these nodes has a pod range with a route to it, the table has no other routes, and the nodes
    /// report that their network is available.
    async fn routes_lead_to(&self, names: &[String]) -> anyhow::Result<Option<()>> {
        let mut wanted = BTreeSet::new();
        for name in names {
            let node = Api::<Node>::all(self.cluster.kubernetes.clone()).get(name).await?;
            let (spec, status) = (node.spec.unwrap_or_default(), node.status.unwrap_or_default());
            let is_there = status.conditions.iter().flatten().any(|condition| {
                condition.type_ == "NetworkUnavailable"
                    && condition.status == "False"
                    && condition.reason.as_deref() == Some("RouteCreated")
            });
            let address = status.addresses.iter().flatten().find(|address| address.type_ == "InternalIP");
            let (Some(range), Some(address), true) = (spec.pod_cidr, address, is_there) else {
                return Ok(None);
            };
            ensure!(
                spec.pod_cidrs.as_deref() == Some(std::slice::from_ref(&range)),
                "{name} has podCIDR {range} and podCIDRs {:?}",
                spec.pod_cidrs
            );
            wanted.insert((range, address.address.clone()));
        }
        let state = self.cluster.get("/_cerulean/state").await?;
        let mut tables =
            state["resources"].as_array().into_iter().flatten().filter(|resource| {
                resource["id"].as_str().is_some_and(|id| id.ends_with("/routeTables/routes"))
            });
        let table = tables.next().context("the saved state has no route table")?;
        let routes = table["properties"]["routes"].as_array().context("a table without routes")?;
        let text =
            |route: &Value, member: &str| route["properties"][member].as_str().unwrap_or_default().to_owned();
        let found: BTreeSet<_> = routes
            .iter()
            .map(|route| (text(route, "addressPrefix"), text(route, "nextHopIpAddress")))
            .collect();
        Ok((wanted == found).then_some(()))
    }

    /// The id of a node's scale set and the number of its instance, from the provider ID.
    async fn machine_of(&self, node: &str) -> anyhow::Result<(String, String)> {
        let node = Api::<Node>::all(self.cluster.kubernetes.clone()).get(node).await?;
        let id = node.spec.and_then(|spec| spec.provider_id).context("the node has no provider id")?;
        let id = id.strip_prefix("azure://").context("the provider id is not Azure's")?;
        let (scale_set, instance) =
            id.split_once("/virtualMachines/").context("the provider id names no instance of a scale set")?;
        Ok((scale_set.to_owned(), instance.to_owned()))
    }

    async fn addresses(&self, names: &[&str]) -> anyhow::Result<Option<()>> {
        let services = self.services().all().await?;
        let have = |name: &str| {
            services
                .iter()
                .any(|service| service.metadata.name.as_deref() == Some(name) && address(service).is_some())
        };
        Ok(names.iter().all(|name| have(name)).then_some(()))
    }

    async fn address_of(&self, namespace: &str, name: &str) -> anyhow::Result<Option<String>> {
        Ok(self.services().get_opt_in(namespace, name).await?.as_ref().and_then(address))
    }

    async fn change_port(&self, namespace: &str, name: &str, from: i32, to: i32) -> anyhow::Result<()> {
        let api: Api<Service> = Api::namespaced(self.cluster.kubernetes.clone(), namespace);
        let mut ports = api.get(name).await?.spec.and_then(|spec| spec.ports).unwrap_or_default();
        ports.iter_mut().filter(|port| port.port == from).for_each(|port| port.port = to);
        let patch = json!({"spec": {"ports": ports}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await?;
        Ok(())
    }

    async fn delete_service(&self, namespace: &str, name: &str) -> anyhow::Result<()> {
        let api: Api<Service> = Api::namespaced(self.cluster.kubernetes.clone(), namespace);
        api.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// The event with Azure's message about a Service.
    async fn refusal(&self, name: &str) -> anyhow::Result<Option<String>> {
        let api: Api<Event> = Api::namespaced(self.cluster.kubernetes.clone(), "default");
        let events = api.list(&ListParams::default()).await?;
        let about = |event: &Event| {
            event.involved_object.name.as_deref() == Some(name)
                && event.type_.as_deref() == Some("Warning")
                && event
                    .message
                    .as_deref()
                    .is_some_and(|message| message.contains("PrivateIPAddressInReservedRange"))
        };
        Ok(events.into_iter().find(about).and_then(|event| event.message))
    }

    /// Fails unless a packet is delivered or dropped as expected.
    async fn arrives(
        &self,
        from: &str,
        to: &str,
        port: u16,
        protocol: &str,
        expected: bool,
    ) -> anyhow::Result<()> {
        // Health probes take effect a moment after a change.
        let deadline = Instant::now() + Duration::from_secs(15);
        loop {
            let verdict = self.verdict(from, to, port, protocol).await?;
            if verdict.arrives == expected {
                print::line(format_args!("  ok  {}", verdict.sentence));
                return Ok(());
            }
            ensure!(
                Instant::now() < deadline,
                "a packet from {from} to {to}:{port}/{protocol}: {}",
                verdict.sentence
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn verdict(&self, from: &str, to: &str, port: u16, protocol: &str) -> anyhow::Result<Verdict> {
        let from = match from {
            "internet" => String::new(),
            address if address.parse::<std::net::IpAddr>().is_ok() => format!("&from={address}"),
            node => format!("&node={node}"),
        };
        let path = format!("/_cerulean/packet?to={to}&port={port}&protocol={protocol}{from}");
        let answer = self.cluster.get(&path).await?;
        let arrives = answer["arrives"].as_bool().with_context(|| format!("no verdict in {answer}"))?;
        Ok(Verdict { arrives, sentence: answer["sentence"].as_str().unwrap_or_default().to_owned() })
    }

    /// The number of calls of a kind in the journal.
    async fn calls(&self, kinds: &[&str]) -> anyhow::Result<u64> {
        let journal = self.cluster.get(&format!("/_cerulean/journal?after={}", u64::MAX)).await?;
        let count = |kind: &&str| {
            journal["counts"][*kind].as_u64().with_context(|| format!("no {kind} in {journal}"))
        };
        kinds.iter().map(count).sum()
    }
}

struct Verdict {
    arrives: bool,
    sentence: String,
}

/// Services of all namespaces.
struct Services(kube::Client);

impl Services {
    async fn all(&self) -> anyhow::Result<Vec<Service>> {
        Ok(Api::<Service>::all(self.0.clone()).list(&ListParams::default()).await?.items)
    }

    async fn get_opt_in(&self, namespace: &str, name: &str) -> anyhow::Result<Option<Service>> {
        Ok(Api::<Service>::namespaced(self.0.clone(), namespace).get_opt(name).await?)
    }
}

fn address(service: &Service) -> Option<String> {
    service.status.as_ref()?.load_balancer.as_ref()?.ingress.as_ref()?.first()?.ip.clone()
}
