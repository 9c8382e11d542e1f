//! Everyday kubectl commands give the same output at the simulated Kubernetes and at a real API server.
//!
//! The commands are those of `commands.txt`, one block each. They run in order at both servers, with the same
//! kubelets and controllers (`stand-ins`) beside them. Exit codes, standard output and error messages must be equal,
//! except for values that differ in every run: times, UIDs, versions, addresses, random names. Intended differences are
//! listed in the table "What kubectl shows" of `docs/kubernetes-differences.md`: a difference that is not listed fails
//! the test, and so does a row without a difference.
//!
//! The real server and one kubectl are those of `KUBEBUILDER_ASSETS`; another kubectl is `KUBECTL`, or the one in
//! `PATH`. If the variable is unset the test is skipped with a message; in CI it fails.
#![allow(
    clippy::disallowed_methods,
    reason = "kubectl reads the clock of the system, and runs beside the runtime"
)]

mod normal;
mod script;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubernetes_simulator::{Collection, Kubernetes, Options, Token};
use real_kubernetes::RealKubernetes;
use stand_ins::{Controllers, EndpointSlices, Kubelets, Machine, Machines, NodeMonitor};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use script::{Comparison, Step, rows, steps};

/// How often a read that differs is repeated: controllers need time.
const TRIES: u32 = 50;
/// The pause before each repetition.
const PAUSE: Duration = Duration::from_millis(400);
/// The timeout of one command, for `timeout`.
const LIMIT: &str = "60";

/// Two machines that always run.
struct TwoMachines(watch::Sender<u64>);

impl Machines for TwoMachines {
    fn machines(&self) -> Vec<Machine> {
        [("node-a", [10, 1, 0, 4]), ("node-b", [10, 1, 0, 5])]
            .map(|(name, address)| Machine::new(name, address.into()))
            .into()
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.0.subscribe()
    }
}

/// A server with a kubeconfig, and the working directory of its kubectl.
struct Place {
    folder: PathBuf,
    _real: Option<RealKubernetes>,
}

/// The result of a command, without values that differ in every run.
#[derive(Debug, PartialEq)]
struct Outcome {
    code: Option<i32>,
    output: String,
    failure: String,
}

impl Place {
    async fn simulated(folder: PathBuf, stop: &CancellationToken) -> Place {
        let kubernetes = Kubernetes::new(Options {
            start: Timestamp::now(),
            dual_stack: false,
            tokens: vec![Token::new("administrator-of-a-test")],
            // No garbage collector runs beside the real server.
            collection: Collection::Off,
            ..Options::default()
        });
        let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), stop.clone()).await.unwrap();
        fs::create_dir_all(&folder).unwrap();
        let config = kubernetes.kubeconfig(&format!("https://{address}")).unwrap();
        fs::write(folder.join("kubeconfig"), config).unwrap();
        stand_in(&client(&folder.join("kubeconfig")).await, stop).await;
        Place { folder, _real: None }
    }

    async fn real(folder: PathBuf, assets: &Path, stop: &CancellationToken) -> Place {
        let real = RealKubernetes::start(assets, &folder.join("server")).await.unwrap();
        fs::copy(&real.kubeconfig, folder.join("kubeconfig")).unwrap();
        stand_in(&client(&folder.join("kubeconfig")).await, stop).await;
        Place { folder, _real: Some(real) }
    }

    /// Runs a step with the kubectl in `programs`.
    fn run(&self, step: &Step, programs: &Path) -> Outcome {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut child = Command::new("timeout")
            .args([LIMIT, "sh", "-c", &step.command])
            .env("KUBECONFIG", self.folder.join("kubeconfig"))
            .env("HOME", &self.folder)
            .env("PATH", format!("{}:{path}", programs.display()))
            .env("TZ", "UTC")
            .current_dir(&self.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command need not read its input.
        let _ = child.stdin.take().unwrap().write_all(step.input.as_bytes());
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| normal::normal(&String::from_utf8_lossy(bytes));
        let succeeded = output.status.success();
        let output_text = text(&output.stdout);
        Outcome {
            code: output.status.code(),
            output: match step.comparison {
                Comparison::Whole => output_text,
                Comparison::End => output_text.lines().last().unwrap_or_default().to_owned(),
            },
            failure: if succeeded { String::new() } else { text(&output.stderr) },
        }
    }
}

async fn client(kubeconfig: &Path) -> kube::Client {
    let file = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await;
    kube::Client::try_from(config.unwrap()).unwrap()
}

/// Runs the parts of a cluster beside its API server. Returns once its nodes exist.
async fn stand_in(client: &kube::Client, stop: &CancellationToken) {
    let clock: stand_ins::WallClock = Arc::new(Timestamp::now);
    let machines = Arc::new(TwoMachines(watch::Sender::new(0)));
    let _ = Kubelets::spawn(client.clone(), machines, clock.clone(), stop.clone());
    let _ = NodeMonitor::spawn(client.clone(), clock.clone(), stop.clone());
    let _ = Controllers::spawn(client.clone(), clock, stop.clone());
    let _ = EndpointSlices::spawn_evenly(client.clone(), 0, stop.clone());
    let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(client.clone());
    while nodes.list(&kube::api::ListParams::default()).await.map_or(0, |list| list.items.len()) < 2 {
        tokio::time::sleep(PAUSE).await;
    }
}

/// The versions of kubectl to compare: name of the version, and folder.
fn kubectls(assets: &Path, folder: &Path) -> Vec<(String, PathBuf)> {
    let other = std::env::var_os("KUBECTL").map(PathBuf::from).or_else(|| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.exists())
    });
    if other.is_none() {
        println!(
            "skipped: no kubectl beside the one of KUBEBUILDER_ASSETS; set KUBECTL or put one on the path"
        );
    }
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for program in [Some(assets.join("kubectl")), other].into_iter().flatten() {
        let output = Command::new(&program).args(["version", "--client", "-o", "json"]).output().unwrap();
        let version: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let part =
            |name: &str| version["clientVersion"][name].as_str().unwrap().trim_end_matches('+').to_owned();
        let version = format!("{}.{}", part("major"), part("minor"));
        if found.iter().all(|(known, _)| *known != version) {
            let programs = folder.join(&version);
            fs::create_dir_all(&programs).unwrap();
            std::os::unix::fs::symlink(fs::canonicalize(&program).unwrap(), programs.join("kubectl"))
                .unwrap();
            found.push((version, programs));
        }
    }
    found
}

#[test]
fn kubectl_shows_the_same() {
    let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS") else {
        assert!(
            std::env::var_os("CI").is_none(),
            "KUBEBUILDER_ASSETS is not set: in CI kubectl's output must be compared with a real server's"
        );
        println!("skipped: KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kubectl");
        return;
    };
    let house = Path::new(env!("CARGO_MANIFEST_DIR"));
    let steps = steps(include_str!("commands.txt"));
    let table = fs::read_to_string(house.join("../../docs/kubernetes-differences.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let kubectls = kubectls(assets.as_ref(), folder.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (version, programs) in &kubectls {
        let expected: BTreeSet<String> = rows(&table, version);
        let stop = CancellationToken::new();
        let (simulated, real) = runtime.block_on(async {
            let at = |name: &str| folder.path().join(format!("{name}-{version}"));
            let real = at("real");
            fs::create_dir_all(&real).unwrap();
            tokio::join!(Place::simulated(at("simulated"), &stop), Place::real(real, assets.as_ref(), &stop))
        });
        let mut differing = BTreeSet::new();
        for step in &steps {
            count += 1;
            let tries = if expected.contains(&step.command) { 1 } else { TRIES };
            let (ours, theirs) = compare(step, tries, &simulated, &real, programs);
            if ours == theirs {
                continue;
            }
            differing.insert(step.command.clone());
            if !expected.contains(&step.command) {
                wrong.push(format!(
                    "kubectl {version}: {}\n--- the simulated Kubernetes\n{}\n+++ the real one\n{}",
                    step.command,
                    show(&ours),
                    show(&theirs)
                ));
            }
        }
        for row in expected.difference(&differing) {
            wrong.push(format!("kubectl {version}: {row}\nno longer differs: take it out of the table"));
        }
        stop.cancel();
    }
    let versions: Vec<&str> = kubectls.iter().map(|(version, _)| version.as_str()).collect();
    println!("{count} commands compared, {} a kubectl, with {}", steps.len(), versions.join(" and "));
    assert!(wrong.is_empty(), "{} differences:\n\n{}", wrong.len(), wrong.join("\n\n"));
}

/// Runs a step at both servers; a read is repeated while it differs.
fn compare(step: &Step, most: u32, simulated: &Place, real: &Place, programs: &Path) -> (Outcome, Outcome) {
    let both = || {
        std::thread::scope(|scope| {
            let theirs = scope.spawn(|| real.run(step, programs));
            (simulated.run(step, programs), theirs.join().unwrap())
        })
    };
    let mut outcomes = both();
    let mut tries = 1;
    while outcomes.0 != outcomes.1 && step.only_reads() && tries < most {
        std::thread::sleep(PAUSE);
        outcomes = both();
        tries += 1;
    }
    outcomes
}

fn show(outcome: &Outcome) -> String {
    let code = outcome.code.map_or_else(|| "killed".to_owned(), |code| format!("exit code {code}"));
    format!("{code}\n{}{}", outcome.output, outcome.failure)
}
