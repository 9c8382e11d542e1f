//! A machine's boot: the operating system, then its bootstrap data, then the result that its extensions observe.

use std::time::Duration;

use azure_simulator::{Guest, GuestExtension, GuestReport, GuestStart};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::cloud_config::{CloudConfig, Command};
use super::options::{Boot, Outcome};
use super::state::WorkloadClusters;

/// How long the bootstrapping extension waits for the file that marks success: sixty checks, five seconds apart.
const SENTINEL_TIMEOUT: Duration = Duration::from_secs(300);
/// The path of the file that marks success.
const SENTINEL: &str = "/run/cluster-api/bootstrap-success.complete";

impl Guest for WorkloadClusters {
    fn start(&self, start: GuestStart) -> BoxFuture<'static, GuestReport> {
        let this = self.clone();
        async move {
            let boot = (this.inner.options.boot)(&start);
            if start.boots {
                // Recorded before the first wait, so that a reader sees that bootstrapping goes on.
                let begun = start.first.then(|| this.begin(&start, &boot));
                sleep(boot.system).await;
                if let Outcome::SystemFails(why) = &boot.outcome {
                    return GuestReport::failed(why);
                }
                if let Some(begun) = begun {
                    tokio::spawn(this.inner.stop.clone().run_until_cancelled_owned(begun));
                }
            }
            let mut report = GuestReport::default();
            for extension in start.extensions.iter().filter(|one| waits_for_sentinel(one)) {
                let result = this.sentinel(&start).await;
                report = match &result {
                    Ok(()) => report.extension(&extension.name, Ok(SENTINEL)),
                    Err(why) => report.extension(&extension.name, Err(why.as_str())),
                };
            }
            report
        }
        .boxed()
    }
}

fn waits_for_sentinel(extension: &GuestExtension) -> bool {
    extension.publisher == "Microsoft.Azure.ContainerUpstream" && extension.kind.ends_with(".Bootstrapping")
}

impl WorkloadClusters {
    /// Records that a machine is bootstrapping. The returned future does the bootstrapping.
    fn begin(&self, start: &GuestStart, boot: &Boot) -> impl Future<Output = ()> + Send + 'static {
        let (done, seen) = watch::channel(None);
        self.inner.boots.lock().insert(start.machine.to_string().to_lowercase(), seen);
        let (this, start, boot) = (self.clone(), start.clone(), boot.clone());
        async move {
            let result = this.bootstrap(&start, boot).await;
            if let Err(why) = &result {
                tracing::debug!(machine = %start.machine, why, "a machine does not become a node");
            }
            // There may be no receiver.
            let _ = done.send(Some(result));
        }
    }

    async fn bootstrap(&self, start: &GuestStart, boot: Boot) -> Result<(), String> {
        let data = start.custom_data.as_deref().ok_or("there is no custom data")?;
        let config = CloudConfig::read(data, &start.computer_name)?;
        let (command, documents) = config.kubeadm().ok_or("the data does not speak of kubeadm")?;
        sleep(boot.bootstrap).await;
        match boot.outcome {
            Outcome::Works | Outcome::SystemFails(_) => {}
            Outcome::BootstrapFails(why) => return Err(why),
            Outcome::Hangs => return std::future::pending().await,
        }
        match command {
            Command::Init => self.init(start, &config, &documents),
            Command::Join => self.join(start, &config, &documents).await,
        }?;
        self.registered(&start.computer_name.to_ascii_lowercase()).await
    }

    /// The result of the bootstrapping extension.
    async fn sentinel(&self, start: &GuestStart) -> Result<(), String> {
        let seen = self.inner.boots.lock().get(&start.machine.to_string().to_lowercase()).cloned();
        let mut seen = seen.ok_or_else(|| format!("{SENTINEL} is not there"))?;
        let found = timeout(SENTINEL_TIMEOUT, async {
            loop {
                if let Some(result) = &*seen.borrow_and_update() {
                    return result.is_ok();
                }
                if seen.changed().await.is_err() {
                    return false;
                }
            }
        });
        match found.await {
            Ok(true) => Ok(()),
            // After any failure the file is missing: the extension waits for it until its timeout.
            Ok(false) => {
                sleep(SENTINEL_TIMEOUT).await;
                Err(format!("{SENTINEL} is not there"))
            }
            Err(_elapsed) => Err(format!("{SENTINEL} is not there")),
        }
    }
}
