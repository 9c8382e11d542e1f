//! A driver as a process, in one of its roles.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use csi::v1::controller_client::ControllerClient;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;
use tonic::transport::{Channel, Endpoint};

use super::requests::DRIVER;
use crate::bench::process::{Running, beside_this};
use crate::bench::resident::{Memory, anonymous};

/// A driver that is measured.
pub struct Driver {
    /// Its name in tables.
    pub name: &'static str,
    binary: PathBuf,
}

/// The files that a driver is started with.
pub struct Files<'a> {
    /// The cloud configuration.
    pub cloud_config: &'a Path,
    /// The kubeconfig.
    pub kubeconfig: &'a Path,
    /// The authority that signed the simulated Azure's certificate.
    pub certificate_authority: &'a Path,
    /// The folder for its socket and its output.
    pub directory: &'a Path,
}

/// The time within which a socket answers.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// The interval at which it is looked for.
const START_INTERVAL: Duration = Duration::from_millis(2);
/// The interval at which memory is read, and whether the process still runs.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(50);

impl Driver {
    /// Ours: the named binary, or else the one next to this program.
    ///
    /// # Errors
    /// The binary does not exist.
    pub fn ours(named: Option<PathBuf>) -> anyhow::Result<Self> {
        Ok(Self { name: "ours", binary: beside_this(named, "azurediskplugin", "--driver")? })
    }

    /// A build of the driver that ours replaces.
    ///
    /// # Errors
    /// The binary does not exist.
    pub fn peer(binary: PathBuf) -> anyhow::Result<Self> {
        if !binary.exists() {
            bail!("--peer {}: it is not there; give the path of a build", binary.display());
        }
        Ok(Self { name: "upstream", binary })
    }

    /// Starts the role of the controller, with the flags of the established chart that matter here.
    ///
    /// # Errors
    /// It cannot be started, or ends.
    pub async fn start_controller(&self, files: Files<'_>) -> anyhow::Result<Started> {
        self.start(files, &["--enable-list-volumes=true", "--check-disk-lun-collision=true"]).await
    }

    /// Starts the role of a node.
    ///
    /// # Errors
    /// As [`Self::start_controller`].
    pub async fn start_on_node(&self, files: Files<'_>, node: &str) -> anyhow::Result<Started> {
        let node = format!("--nodeid={node}");
        self.start(files, &[&node, "--taint-removal-initial-delay-seconds=1"]).await
    }

    async fn start(&self, files: Files<'_>, role: &[&str]) -> anyhow::Result<Started> {
        let socket = files.directory.join("csi.sock");
        let mut command = Command::new(&self.binary);
        command
            .arg(format!("--endpoint=unix://{}", socket.display()))
            .arg(format!("--kubeconfig={}", files.kubeconfig.display()))
            .arg(format!("--drivername={DRIVER}"))
            .args(["--cloud-config-secret-name=", "--metrics-address=", "--v=5"])
            .args(role)
            .env("AZURE_CREDENTIAL_FILE", files.cloud_config)
            .env("SSL_CERT_FILE", files.certificate_authority);
        let begun = Instant::now();
        let mut running = Running::launch(self.name, command, files.directory)?;
        while UnixStream::connect(&socket).await.is_err() {
            running.must_run()?;
            ensure!(
                begun.elapsed() < START_TIMEOUT,
                "{}: the socket does not answer; the end of its output:\n{}",
                self.name,
                running.last_words()
            );
            sleep(START_INTERVAL).await;
        }
        let after = begun.elapsed();
        let channel = connect(&socket).await.with_context(|| socket.display().to_string())?;
        let (most, process) = (Arc::new(AtomicU64::new(0)), running.id());
        let kept = Arc::clone(&most);
        let sampler = tokio::spawn(async move {
            while let Ok(private) = anonymous(process) {
                kept.fetch_max(private, Ordering::Relaxed);
                sleep(SAMPLE_INTERVAL).await;
            }
        });
        Ok(Started { after, running, channel, most, _sampler: AbortOnDropHandle::new(sampler) })
    }
}

/// A running driver; it is killed on drop.
pub struct Started {
    /// From the start until the socket took a connection.
    pub after: Duration,
    running: Running,
    channel: Channel,
    /// The most private memory so far, in bytes.
    most: Arc<AtomicU64>,
    _sampler: AbortOnDropHandle<()>,
}

impl Started {
    /// A client of the service Controller.
    pub fn controller(&self) -> ControllerClient<Channel> {
        ControllerClient::new(self.channel.clone())
    }

    /// Does work with the driver.
    ///
    /// # Errors
    /// The work fails, or the driver ends by itself.
    pub async fn beside<T>(&mut self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => {
                    return done.with_context(|| format!("the end of the driver's output:\n{}", self.running.last_words()));
                }
                () = sleep(SAMPLE_INTERVAL) => self.running.must_run()?,
            }
        }
    }

    /// Its memory.
    ///
    /// # Errors
    /// It has ended.
    pub fn memory(&self) -> anyhow::Result<Memory> {
        Memory::of(self.running.id())
    }

    /// The most private memory so far, in bytes.
    pub fn most_private(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

async fn connect(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    let socket = socket.to_owned();
    let connector = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    Endpoint::from_static("http://csi").connect_with_connector(connector).await
}
