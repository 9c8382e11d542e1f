//! A real Prometheus that scrapes given targets and answers all queries.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::queries::{Query, without_variables};
use crate::print;

/// How often targets are scraped: often, so that a short run has rates.
const SCRAPE_INTERVAL: &str = "1s";
/// The window of rates where Grafana would choose one.
const WINDOW: &str = "5m";
/// How long Prometheus may take to start, and targets to be scraped.
const START: Duration = Duration::from_secs(60);
/// How long is scraped before the first query, so that each series has several samples.
const SCRAPED: Duration = Duration::from_secs(5);

/// What to scrape.
#[derive(Debug, clap::Args)]
pub struct Targets {
    /// JOB=SCHEME://HOST:PORT, such as azure-cloud-controller-manager=https://127.0.0.1:10258; can be repeated.
    #[arg(long = "target", value_name = "JOB=URL", required = true)]
    targets: Vec<String>,
    /// A file with the token of a service account that may read /metrics.
    #[arg(long)]
    token_file: Option<PathBuf>,
    /// Folder of prometheus and promtool, if they are not in PATH.
    #[arg(long)]
    programs: Option<PathBuf>,
}

impl Targets {
    /// The jobs to scrape.
    pub fn jobs(&self) -> Vec<&str> {
        self.targets.iter().filter_map(|target| target.split_once('=')).map(|(job, _)| job).collect()
    }
}

/// Ends the process with its owner.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// A program of Debian's package `prometheus`.
pub fn program(folder: Option<&Path>, name: &str) -> PathBuf {
    folder.map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
}

/// Whether a program can be run.
pub fn exists(program: &Path) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Starts Prometheus, waits until all targets are scraped, and runs all queries.
///
/// # Errors
/// Prometheus does not start, a target cannot be scraped, a query is an error, or one that is not rare returns nothing.
pub async fn ask(targets: &Targets, rules: &Path, queries: &[Query]) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("prometheus.json");
    std::fs::write(&config, serde_json::to_vec_pretty(&configuration(targets, rules)?)?)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let prometheus = program(targets.programs.as_deref(), "prometheus");
    let log = std::fs::File::create(folder.path().join("prometheus.log"))?;
    let started = Command::new(&prometheus)
        .arg(format!("--config.file={}", config.display()))
        .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
        .arg(format!("--web.listen-address=127.0.0.1:{port}"))
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .with_context(|| {
            format!("cannot start {} (Debian's package prometheus has it)", prometheus.display())
        })?;
    let _ended = Ended(started);
    let server = Server { promtool: program(targets.programs.as_deref(), "promtool"), port };
    server.wait(targets.targets.len()).await?;
    sleep(SCRAPED).await;
    let mut failed = 0;
    for query in queries {
        let expression = without_variables(&query.expression, WINDOW);
        let problem = match (server.query(&expression), &query.rare) {
            (Ok(0), None) => "returns nothing".to_owned(),
            (Ok(_), _) => continue,
            (Err(error), _) => format!("{error:#}"),
        };
        failed += 1;
        print::line(format_args!("{}: {expression}: {problem}", query.place));
    }
    ensure!(failed == 0, "{failed} of {} queries have no answer", queries.len());
    print::line(format_args!("all {} queries are answered", queries.len()));
    Ok(())
}

/// The configuration of Prometheus: YAML contains JSON.
fn configuration(targets: &Targets, rules: &Path) -> anyhow::Result<Value> {
    let mut jobs = Vec::new();
    for target in &targets.targets {
        let parts = target.split_once('=').and_then(|(job, url)| Some((job, url.split_once("://")?)));
        let Some((job, (scheme, host))) = parts else {
            bail!("--target={target} is not JOB=URL, such as capz-controller-manager=http://127.0.0.1:8080")
        };
        let mut config = json!({
            "job_name": job,
            "scheme": scheme,
            "static_configs": [{ "targets": [host.trim_end_matches('/')] }],
            "tls_config": { "insecure_skip_verify": true },
        });
        if let Some(file) = &targets.token_file {
            let file = std::path::absolute(file)?;
            config["authorization"] = json!({ "credentials_file": file });
        }
        jobs.push(config);
    }
    Ok(json!({
        "global": { "scrape_interval": SCRAPE_INTERVAL, "evaluation_interval": SCRAPE_INTERVAL },
        "rule_files": [std::path::absolute(rules)?],
        "scrape_configs": jobs,
    }))
}

struct Server {
    promtool: PathBuf,
    port: u16,
}

impl Server {
    /// Waits until all targets are scraped.
    async fn wait(&self, targets: usize) -> anyhow::Result<()> {
        let deadline = Instant::now() + START;
        loop {
            match self.query("up == 1") {
                Ok(up) if up >= targets => return Ok(()),
                outcome if Instant::now() >= deadline => {
                    let up = outcome.context("Prometheus does not answer")?;
                    bail!("only {up} of {targets} targets can be scraped after {} s", START.as_secs());
                }
                _ => sleep(Duration::from_millis(500)).await,
            }
        }
    }

    /// The number of series that answer a query.
    fn query(&self, expression: &str) -> anyhow::Result<usize> {
        let output = Command::new(&self.promtool)
            .args(["query", "instant", "-o", "json", &format!("http://127.0.0.1:{}", self.port), expression])
            .output()
            .with_context(|| format!("cannot run {}", self.promtool.display()))?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        Ok(answer.as_array().map_or(0, Vec::len))
    }
}
