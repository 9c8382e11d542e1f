//! Benchmark of the simulated Azure under load: five scale sets of a thousand machines and a thousand rules.
//!
//! The simulator runs in a process of its own, so that the kernel reports its memory, and serves on one thread, so that
//! it has one core at most; the clients run here.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{bail, ensure};
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::parallel::in_parallel;
use super::process::{Running, simulator};
use super::resident::{megabytes, processor_time, resident};
use super::statistics::{milliseconds, seconds};
use super::turnover::{self, COMPUTE, NETWORK, address};
use crate::http_client::{self, HttpClient};
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::{Screen, row};

/// The sizes of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of scale sets.
    #[arg(long, default_value_t = 5)]
    scale_sets: usize,
    /// Number of machines of each scale set.
    #[arg(long, default_value_t = 1_000)]
    instances: usize,
    /// Number of load balancer rules in all, in equal parts for as many load balancers as there are scale sets.
    #[arg(long, default_value_t = 1_000)]
    rules: usize,
    /// Number of mixed requests.
    #[arg(long, default_value_t = 20_000)]
    requests: usize,
    /// Number of clients that send them at the same time.
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Number of further requests, which create, change and delete new resources: a million show how much of the past
    /// stays in memory.
    #[arg(long, default_value_t = 0)]
    turnover: usize,
}

const GROUP: &str = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/bench";
/// The number of public addresses in addition to those of the load balancers.
const ADDRESSES: usize = 20;
/// The number of times that the list of all instances is read; the best counts.
const LISTS: u32 = 5;

/// Measures and prints a table.
///
/// # Errors
/// The simulator does not start, or refuses a request unexpectedly.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
    runtime(TWO_THREADS)?.block_on(async {
        let (simulator, base) = start(directory.path()).await?;
        let bench = Arc::new(Bench { client: http_client::client(), base, shape: Shape::of(arguments) });
        let bar = screen.waiting("laying out");
        let begun = Instant::now();
        bench.lay_out().await?;
        let laid_out = begun.elapsed();
        let process = simulator.id();
        let empty_handed = resident(process)?;
        bar.set_message("listing");
        let before = processor_time(process)?;
        let (plain, _) = bench.list_all("").await?;
        let busy = (processor_time(process)?.saturating_sub(before)) / LISTS;
        let (viewed, bytes) = bench.list_all("&$expand=instanceView").await?;
        bar.set_message("sending mixed requests");
        let begun = Instant::now();
        let before = processor_time(process)?;
        bench.clone().mixed(arguments.requests, arguments.clients).await?;
        let (elapsed, busy_in_mix) = (begun.elapsed(), processor_time(process)?.saturating_sub(before));
        let mixed = resident(process)?;
        bar.set_message("making and removing");
        let look = || resident(process);
        let turned = match arguments.turnover {
            0 => Vec::new(),
            requests => turnover::run(&bench.client, &bench.base, requests, arguments.clients, look).await?,
        };
        bar.finish_and_clear();
        let rate = arguments.requests as f64 / elapsed.as_secs_f64();
        let machines = arguments.scale_sets * arguments.instances;
        let busy_rate = arguments.requests as f64 / busy_in_mix.as_secs_f64().max(0.01);
        let listing = megabytes(bytes as u64);
        let mut rows = vec![
            row![format!("laying out {machines} machines, {} rules", arguments.rules), "", seconds(laid_out)],
            row![format!("LIST of all {machines} instances"), "150 ms", milliseconds(plain)],
            row!["processor time of that", "", milliseconds(busy)],
            row![format!("LIST with instance views ({listing})"), "", milliseconds(viewed)],
            row!["mixed requests a second, one core", "1000", format!("{rate:.0}")],
            row!["mixed requests a second of processor time", "", format!("{busy_rate:.0}")],
            row!["resident, laid out", "400 MB", megabytes(empty_handed)],
            row![format!("resident, after {} requests", arguments.requests), "400 MB", megabytes(mixed)],
        ];
        rows.extend(turned.into_iter().map(|(requests, bytes)| {
            let what = format!("resident, after {requests} requests that make and remove");
            row![what, "500 MB", megabytes(bytes)]
        }));
        screen.table(["WHAT", "GOAL", "MEASURED"], &rows);
        Ok(())
    })
}

/// Starts the simulator, whose output is in this directory; returns it and its address.
async fn start(directory: &Path) -> anyhow::Result<(Running, String)> {
    let address = directory.join("address");
    let mut command = simulator("azure")?;
    // A new subscription's quotas are too small; everything else is within Azure's limits.
    command.args(["--without-tokens", "--without-budgets"]).args(quotas());
    command.arg("--directory").arg(directory.join("azure")).arg("--address-file").arg(&address);
    let running = Running::launch("simulator", command, directory)?;
    for _ in 0..500 {
        match std::fs::read_to_string(&address) {
            Ok(text) if text.ends_with('\n') => return Ok((running, text.trim().to_owned())),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    bail!("the simulator did not start:\n{}", running.last_words())
}

/// Core quotas with room for all machines.
fn quotas() -> Vec<String> {
    let limits = crate::simulate::limits::enough_cores().into_iter();
    limits.map(|(name, limit)| format!("--limits={name}={limit}")).collect()
}

/// The created resources.
#[derive(Debug, Clone, Copy)]
struct Shape {
    scale_sets: usize,
    instances: usize,
    rules: usize,
}

impl Shape {
    fn of(arguments: &Arguments) -> Self {
        let scale_sets = arguments.scale_sets.max(1);
        Self { scale_sets, instances: arguments.instances, rules: arguments.rules / scale_sets }
    }
}

struct Bench {
    client: HttpClient,
    base: String,
    shape: Shape,
}

fn network(rest: &str) -> String {
    format!("{GROUP}/providers/Microsoft.Network/{rest}")
}

fn scale_set(number: usize) -> String {
    format!("{GROUP}/providers/Microsoft.Compute/virtualMachineScaleSets/set{number}")
}

impl Bench {
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Bytes> {
        let text = body.map(Value::to_string).unwrap_or_default();
        let url = if path.starts_with("http") { path.to_owned() } else { format!("{}{path}", self.base) };
        let (status, body) = http_client::send(&self.client, method.clone(), &url, text).await?;
        ensure!(status < 300, "{method} {path} answers {status}: {}", String::from_utf8_lossy(&body));
        Ok(body)
    }

    async fn put(&self, path: &str, version: &str, body: Value) -> anyhow::Result<()> {
        self.send(Method::PUT, &format!("{path}?{version}"), Some(&body)).await.map(drop)
    }

    async fn lay_out(&self) -> anyhow::Result<()> {
        self.put(GROUP, "api-version=2021-04-01", json!({"location": "westeurope"})).await?;
        let net = network("virtualNetworks/net");
        self.put(
            &net,
            NETWORK,
            json!({"location": "westeurope", "properties": {
                "addressSpace": {"addressPrefixes": ["10.0.0.0/8"]},
                "subnets": [{"name": "nodes", "properties": {"addressPrefix": "10.64.0.0/12"}}]}}),
        )
        .await?;
        for number in 0..ADDRESSES + self.shape.scale_sets {
            self.put(&network(&format!("publicIPAddresses/ip{number}")), NETWORK, address(0)).await?;
        }
        for number in 0..self.shape.scale_sets {
            let balancer = network(&format!("loadBalancers/lb{number}"));
            self.put(&balancer, NETWORK, load_balancer(&balancer, number, self.shape.rules)).await?;
            let pool = format!("{balancer}/backendAddressPools/pool");
            let subnet = format!("{net}/subnets/nodes");
            self.put(&scale_set(number), COMPUTE, machines(self.shape.instances, &subnet, &pool)).await?;
        }
        Ok(())
    }

    /// The best time for all pages of all scale sets, one after the other, and the size of the bodies.
    async fn list_all(&self, more: &str) -> anyhow::Result<(Duration, usize)> {
        let mut best = (Duration::MAX, 0);
        for _ in 0..LISTS {
            let begun = Instant::now();
            let mut pages = Vec::new();
            for number in 0..self.shape.scale_sets {
                let mut next = Some(format!("{}/virtualMachines?{COMPUTE}{more}", scale_set(number)));
                while let Some(url) = next.take() {
                    let page = self.send(Method::GET, &url, None).await?;
                    next = next_link(&page);
                    pages.push(page);
                }
            }
            let took = begun.elapsed();
            let bytes = pages.iter().map(Bytes::len).sum();
            // Parsing the list is the client's work, not the simulator's.
            let mut listed = 0;
            for page in &pages {
                let page: Value = serde_json::from_slice(page)?;
                listed += page["value"].as_array().map_or(0, Vec::len);
            }
            let machines = self.shape.scale_sets * self.shape.instances;
            ensure!(listed == machines, "{listed} instances were listed instead of {machines}");
            best = best.min((took, bytes));
        }
        Ok(best)
    }

    async fn mixed(self: Arc<Self>, requests: usize, clients: usize) -> anyhow::Result<()> {
        let send = move |_, number| {
            let bench = self.clone();
            async move { bench.one_of_the_mix(number).await }
        };
        in_parallel(0..requests, clients, send).await
    }

    /// Of a hundred requests 84 read and 16 write: 36 an instance, 12 of these with its view; 20 an address;
    /// 8 an interface; 8 addresses in a list; 5 a probe; 5 what is absent; 1 a page of instances; 1 a load
    /// balancer with its rules; 10 write an address, 6 an instance.
    async fn one_of_the_mix(&self, number: usize) -> anyhow::Result<()> {
        // A prime step visits every resource, and differently for each kind of request.
        let draw = number * 7_919;
        let set = scale_set(draw % self.shape.scale_sets);
        let instance = format!("{set}/virtualMachines/{}", draw % self.shape.instances.max(1));
        let ip = network(&format!("publicIPAddresses/ip{}", self.shape.scale_sets + draw % ADDRESSES));
        let balancer = network(&format!("loadBalancers/lb{}", draw % self.shape.scale_sets));
        let get = async |path: String| self.send(Method::GET, &path, None).await.map(drop);
        match number % 100 {
            0..24 => get(format!("{instance}?{COMPUTE}")).await,
            24..36 => get(format!("{instance}?{COMPUTE}&$expand=instanceView")).await,
            36..56 => get(format!("{ip}?{NETWORK}")).await,
            56..64 => get(format!("{instance}/networkInterfaces/nic?api-version=2018-10-01")).await,
            64..72 => get(format!("{}?{NETWORK}", network("publicIPAddresses"))).await,
            72..77 => get(format!("{balancer}/probes/probe?{NETWORK}")).await,
            77..82 => {
                let url = format!("{}{ip}-absent?{NETWORK}", self.base);
                let (status, _) = http_client::send(&self.client, Method::GET, &url, Bytes::new()).await?;
                ensure!(status == 404, "what is absent answers {status}");
                Ok(())
            }
            82 => get(format!("{set}/virtualMachines?{COMPUTE}")).await,
            83 => get(format!("{balancer}?{NETWORK}")).await,
            84..94 => self.put(&ip, NETWORK, address(number)).await,
            _ => {
                let body = json!({"location": "westeurope", "tags": {"asked": number.to_string()}});
                self.put(&instance, COMPUTE, body).await
            }
        }
    }
}

/// The next page, without parsing the whole one, which would distort the measured time.
fn next_link(page: &Bytes) -> Option<String> {
    let text = std::str::from_utf8(page).ok()?;
    let (_, rest) = text.rsplit_once("\"nextLink\":\"")?;
    rest.split_once('"').map(|(url, _)| url.to_owned())
}

fn load_balancer(id: &str, number: usize, rules: usize) -> Value {
    let rule = |port: usize| {
        json!({"name": format!("rule{port}"), "properties": {
            "frontendIPConfiguration": {"id": format!("{id}/frontendIPConfigurations/front")},
            "backendAddressPool": {"id": format!("{id}/backendAddressPools/pool")},
            "probe": {"id": format!("{id}/probes/probe")},
            "protocol": "Tcp", "frontendPort": 1000 + port, "backendPort": 1000 + port}})
    };
    json!({"location": "westeurope", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [{"name": "front", "properties":
            {"publicIPAddress": {"id": network(&format!("publicIPAddresses/ip{number}"))}}}],
        "backendAddressPools": [{"name": "pool"}],
        "probes": [{"name": "probe", "properties": {"protocol": "Tcp", "port": 10256}}],
        "loadBalancingRules": (0..rules).map(rule).collect::<Vec<_>>()}})
}

fn machines(capacity: usize, subnet: &str, pool: &str) -> Value {
    json!({"location": "westeurope", "zones": ["1", "2", "3"],
        "sku": {"name": "Standard_D2s_v5", "capacity": capacity},
        "properties": {"orchestrationMode": "Uniform", "singlePlacementGroup": false, "overprovision": false,
            "upgradePolicy": {"mode": "Manual"}, "virtualMachineProfile": {
            "osProfile": {"computerNamePrefix": "node", "adminUsername": "someone", "adminPassword": "Correct-Horse-7"},
            "storageProfile": {
                "imageReference": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"},
                "osDisk": {"createOption": "FromImage", "managedDisk": {"storageAccountType": "Premium_LRS"}}},
            "networkProfile": {"networkInterfaceConfigurations": [{"name": "nic", "properties": {
                "primary": true, "ipConfigurations": [{"name": "ipconfig", "properties": {
                    "primary": true, "subnet": {"id": subnet},
                    "loadBalancerBackendAddressPools": [{"id": pool}]}}]}}]}}}})
}
