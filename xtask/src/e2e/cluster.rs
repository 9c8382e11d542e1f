//! The simulated cluster, served by the release binary, and its control API.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use simulated_cluster::client_of;

use super::real_kubernetes::RealKubernetes;
use crate::program::{Built, Program, until, with_logs};

/// The time limit for the cluster to start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A running `cerulean simulate cluster`.
pub struct Cluster {
    /// The folder with `azure.json`, `kubeconfig` and `ca.pem`.
    pub files: PathBuf,
    /// A client of the cluster's Kubernetes API.
    pub kubernetes: kube::Client,
    /// The process.
    pub program: Program,
    control: String,
    http: Client<HttpConnector, Full<Bytes>>,
}

impl Cluster {
    /// Starts the cluster with a route table, with its own Kubernetes or with a real one, and waits until it is ready.
    pub async fn start(
        built: &Built,
        directory: &Path,
        real: Option<&RealKubernetes>,
    ) -> anyhow::Result<Self> {
        Self::start_with(built, directory, real, &["--nodes", "3", "--routes"]).await
    }

    /// Like [`Self::start`], with other machines or listeners.
    pub async fn start_with(
        built: &Built,
        directory: &Path,
        real: Option<&RealKubernetes>,
        options: &[&str],
    ) -> anyhow::Result<Self> {
        let files = directory.join("cluster");
        let mut command = Command::new(&built.cerulean);
        command.args(["simulate", "cluster", "--latency", "quick", "--node-grace", "3s"]).args(options);
        command.arg("--directory").arg(&files);
        if let Some(real) = real {
            command.arg("--kubeconfig").arg(real.kubeconfig());
        }
        let mut program = Program::start("simulate-cluster", directory, &mut command)?;
        // This file is written last: once it exists, all listeners are ready.
        let endpoints = files.join("endpoints.json");
        let written =
            async |_: &Program| Ok(Some(serde_json::from_str(&std::fs::read_to_string(&endpoints)?)?));
        let what = "the simulated cluster is ready";
        let endpoints = until(&mut program, Program::must_run, what, START_TIMEOUT, written).await;
        let endpoints: Value = endpoints.map_err(|problem| with_logs(problem, &[&program]))?;
        let control =
            endpoints["control"].as_str().context("endpoints.json names no control API")?.to_owned();
        let kubernetes = client_of(&std::fs::read_to_string(files.join("kubeconfig"))?).await?;
        let http = Client::builder(TokioExecutor::new()).build_http();
        Ok(Self { files, kubernetes, program, control, http })
    }

    /// Sends a GET request to the control API.
    pub async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.ask("GET", path, Value::Null).await
    }

    /// Sends a POST request to the control API.
    pub async fn post(&self, path: &str, body: Value) -> anyhow::Result<Value> {
        self.ask("POST", path, body).await
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> anyhow::Result<Value> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.control))
            .header("content-type", "application/json")
            .body(Full::new(body))?;
        let response = self.http.request(request).await.with_context(|| format!("{method} {path}"))?;
        let status = response.status();
        let text = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{method} {path}: {status}: {}", String::from_utf8_lossy(&text));
        }
        Ok(if text.is_empty() { Value::Null } else { serde_json::from_slice(&text)? })
    }
}
