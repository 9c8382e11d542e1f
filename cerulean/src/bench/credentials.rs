//! Benchmark of the kubelet's credential provider: the time of one call, and its memory.
//!
//! It runs the release binary next to this one against simulated registries, and another build of such a program if one
//! is named; then it reports whether both give the same answers.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use azure_simulator::entra::Application;
use azure_simulator::imds::ManagedIdentity;
use azure_simulator::registry::Registry;
use clock::Clock;
use serde_json::{Value, json};
use simulated_cluster::{HostedRegistries, HostedRegistriesOptions};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::process::beside_this;
use super::resident::{megabytes, peak};
use super::statistics::fine_milliseconds;
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::Screen;

/// What to measure.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Binary of the credential provider; by default the one next to this program.
    #[arg(long)]
    provider: Option<PathBuf>,
    /// Binary of another credential provider, which is measured for comparison.
    #[arg(long)]
    peer: Option<PathBuf>,
    /// Number of measurements of each call; the median counts.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    calls: u32,
}

const TENANT: &str = "72f988bf-0000-4000-8000-000000000001";
const TOKEN_USER: &str = "00000000-0000-0000-0000-000000000000";
/// The usual paths of the system's trusted authorities: a real node reads all of them at each call.
const SYSTEM_BUNDLES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
/// The sampling interval of a process's memory.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(1);

/// One call.
struct Call {
    /// The text of azure.json.
    config: String,
    mirror: &'static str,
    request: Value,
}

const VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";
const IMAGE: &str = "foo.azurecr.io/app:v1";
const MANAGED: &str = r#"{"useManagedIdentityExtension": true}"#;
const PASSWORD: &str = r#"{"aadClientId": "app", "aadClientSecret": "open~sesame"}"#;

fn request(image: &str) -> Value {
    json!({ "kind": "CredentialProviderRequest", "apiVersion": VERSION, "image": image })
}

impl Call {
    fn new(config: &str, mirror: &'static str, request: Value) -> Self {
        Self { config: config.to_owned(), mirror, request }
    }

    fn describe(&self) -> String {
        format!("{} {} {}", self.config, self.mirror, self.request)
    }
}

/// Calls whose answers are compared: usual ones, and common mistakes.
fn compared() -> Vec<Call> {
    const CONFIGS: [&str; 9] = [
        MANAGED,
        PASSWORD,
        r#"{"useManagedIdentityExtension": true, "userAssignedIdentityID": "own-client", "cloud": "AzurePublicCloud"}"#,
        r#"{"useManagedIdentityExtension": true, "userAssignedIdentityID": "another-client"}"#,
        r#"{"cloud": "AzureChinaCloud", "aadClientId": "app", "aadClientSecret": "open~sesame"}"#,
        "cloud: AzureUSGovernment\naadClientId: app\naadClientSecret: open~sesame\n",
        "{}",
        r#"{"useManagedIdentityExtension": "true"}"#,
        "{",
    ];
    const IMAGES: [&str; 15] = [
        IMAGE,
        "foo.azurecr.io",
        "private.azurecr.io/app:v1",
        "absent.azurecr.io/app:v1",
        "foo.azurecr.cn/app:v1",
        "foo.azurecr.us/app@sha256:5d14e94ceb44a8d6a7e0ebe5b8d1c1ab9b3b2c9f4d6f3b1f0f0f0f0f0f0f0f0f",
        "foo.azurecr.de/app",
        "my-registry.azurecr.io/app",
        "foo.azurecr.io.example/app",
        "docker/foo.azurecr.io/app",
        "evilazurecr.io/app",
        "busybox",
        "docker.io/library/busybox:latest",
        "mcr.microsoft.com/oss/pause:3.9",
        "",
    ];
    const MIRRORS: [&str; 3] =
        ["", "mcr.microsoft.com:foo.azurecr.io", " mcr.microsoft.com : foo.azurecr.io, none"];
    let mut calls = Vec::new();
    for config in CONFIGS {
        for image in IMAGES {
            for mirror in MIRRORS {
                if mirror.is_empty() || image == IMAGE || image.starts_with("mcr.") {
                    calls.push(Call::new(config, mirror, request(image)));
                }
            }
        }
        let other = |name: &str, value: &str| {
            let mut request = request(IMAGE);
            request[name] = value.into();
            Call::new(config, "", request)
        };
        calls.push(other("apiVersion", "credentialprovider.kubelet.k8s.io/v1beta1"));
        calls.push(other("apiVersion", "v1"));
        calls.push(other("kind", "CredentialProviderFoo"));
        // A pod's token without the annotations that it needs.
        calls.push(other("serviceAccountToken", "token"));
        calls.push(Call::new(config, "", json!([])));
    }
    calls
}

/// The result of one call.
struct Outcome {
    time: Duration,
    peak: u64,
    answer: Value,
}

/// Measures and prints a table.
///
/// # Errors
/// A binary is missing or fails.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    let provider = beside_this(arguments.provider.clone(), "acr-credential-provider", "--provider")?;
    if let Some(peer) = &arguments.peer {
        beside_this(Some(peer.clone()), "", "--peer")?;
    }
    runtime(TWO_THREADS)?.block_on(measure(screen, arguments, &provider))
}

async fn measure(screen: Screen, arguments: &Arguments, provider: &Path) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
    let stop = CancellationToken::new();
    let identity =
        ManagedIdentity { client_id: "own-client".into(), object_id: "own".into(), resource_id: None };
    let options = HostedRegistriesOptions {
        tenant: TENANT.into(),
        applications: vec![Application::new("app", "app").with_secret("open~sesame")],
        identities: vec![identity],
        registries: vec![
            Registry::new("foo.azurecr.io").with_puller("own"),
            Registry::new("private.azurecr.io"),
        ],
        clock: Arc::new(|| Clock::system().now()),
        directory: directory.path().to_owned(),
    };
    let hosted = HostedRegistries::start(options, &stop).await?;
    let system =
        SYSTEM_BUNDLES.iter().find_map(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
    let own = std::fs::read_to_string(&hosted.certificate_authority)?;
    std::fs::write(&hosted.certificate_authority, system + &own)?;

    let bar = screen.waiting("measuring");
    let mut programs = vec![provider];
    programs.extend(arguments.peer.as_deref());
    let mut rows = vec![vec!["binary".to_owned()]];
    for program in &programs {
        rows[0].push(megabytes(std::fs::metadata(program)?.len()));
    }
    for (name, config) in [("managed identity", MANAGED), ("password", PASSWORD)] {
        let call = Call::new(config, "", request(IMAGE));
        let (mut times, mut peaks) = (vec![format!("{name}: time")], vec![format!("{name}: resident")]);
        for program in &programs {
            let mut outcomes = Vec::new();
            for _ in 0..arguments.calls {
                outcomes.push(call.run(program, &hosted, directory.path()).await?);
            }
            outcomes.sort_by_key(|outcome| outcome.time);
            let median = &outcomes[outcomes.len() / 2];
            if median.answer["exit code"] != 0 {
                bail!("{} gives no credentials for {}", program.display(), call.describe());
            }
            times.push(fine_milliseconds(median.time));
            peaks.push(megabytes(outcomes.iter().map(|outcome| outcome.peak).max().unwrap_or_default()));
        }
        rows.extend([times, peaks]);
    }
    let Some(peer) = &arguments.peer else {
        bar.finish_and_clear();
        screen.table(["WHAT", "MEASURED"], &columns(&rows));
        return Ok(());
    };
    let (mut same, mut different) = (0, Vec::new());
    for call in compared() {
        let ours = call.run(provider, &hosted, directory.path()).await?.answer;
        let theirs = call.run(peer, &hosted, directory.path()).await?.answer;
        if ours == theirs {
            same += 1;
        } else {
            different.push((call, ours, theirs));
        }
    }
    bar.finish_and_clear();
    screen.table(["WHAT", "MEASURED", "PEER"], &columns(&rows));
    screen.line(format_args!("the same answer to {same} calls, another one to {}", different.len()));
    for (call, ours, theirs) in different {
        screen.line(format_args!("  {}\n    {ours}\n    peer: {theirs}", call.describe()));
    }
    stop.cancel();
    Ok(())
}

/// Rows of as many cells as the table has.
fn columns<const N: usize>(rows: &[Vec<String>]) -> Vec<[String; N]> {
    let cell = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
    rows.iter().map(|row| std::array::from_fn(|at| cell(row, at))).collect()
}

impl Call {
    async fn run(
        &self,
        program: &Path,
        hosted: &HostedRegistries,
        directory: &Path,
    ) -> anyhow::Result<Outcome> {
        let config = directory.join("azure.json");
        std::fs::write(&config, &self.config)?;
        let begun = Instant::now();
        let mut child = Command::new(program)
            .arg(&config)
            .arg(format!("--registry-mirror={}", self.mirror))
            .env_clear()
            .envs(hosted.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| program.display().to_string())?;
        let mut input = child.stdin.take().context("the program has no standard input")?;
        input.write_all(self.request.to_string().as_bytes()).await?;
        drop(input);
        let peak = watch(&mut child).await;
        let output = child.wait_with_output().await?;
        let time = begun.elapsed();
        let mut answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        // Nothing is printed without credentials. A registry's token differs each time.
        for (_, entry) in answer.get_mut("auth").and_then(Value::as_object_mut).into_iter().flatten() {
            if entry["username"] == TOKEN_USER {
                entry["password"] = "a token".into();
            }
        }
        let answer = json!({ "exit code": output.status.code(), "answer": answer });
        Ok(Outcome { time, peak, answer })
    }
}

/// The peak memory of a process, sampled until it ends.
async fn watch(child: &mut Child) -> u64 {
    let mut most = 0;
    while let (Some(process), Ok(None)) = (child.id(), child.try_wait()) {
        most = peak(process).map_or(most, |peak| most.max(peak));
        tokio::time::sleep(SAMPLE_INTERVAL).await;
    }
    most
}
