//! Follows a simulated Azure.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{Azure, DiskContents};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::delay::Delay;
use crate::error::HardwareError;
use crate::hardware::{Devices, Hardware};
use crate::observed::Observed;

/// How the hardware of machines is simulated.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of the contents of disks, and of a folder for each machine with its trees `dev` and `sys`.
    pub folder: PathBuf,
    /// The time from Azure's list of a machine's disks to the device.
    pub delay: Duration,
    /// What a disk is in these trees.
    pub devices: Devices,
}

/// The disks of the machines of an Azure as devices. They are released when this value is dropped, or at the token.
#[derive(Debug)]
pub struct MachineDisks {
    changed: watch::Receiver<u64>,
    task: JoinHandle<()>,
    folder: PathBuf,
    _stop: DropGuard,
}

/// How long after a failure the devices are compared again.
const RETRY: Duration = Duration::from_secs(1);

/// Returns the name of a machine that runs, by its document.
type Names = dyn Fn(&Value) -> Option<String> + Send + Sync;

impl MachineDisks {
    /// Takes the folder, removes what a killed simulation left there, and follows `azure` until `stop`. `name` returns
    /// the name of a machine that runs by its document; it must not use the Azure.
    ///
    /// # Errors
    /// The folder is in use, or devices cannot be made on this machine: the text has the remedy.
    pub fn start(
        azure: &Azure,
        options: Options,
        name: impl Fn(&Value) -> Option<String> + Send + Sync + 'static,
        stop: &CancellationToken,
    ) -> Result<Self, HardwareError> {
        let hardware = Hardware::take(&options.folder, options.devices)?;
        let (contents, folder) = (Arc::downgrade(&hardware.contents()), hardware.folder().to_owned());
        azure.attach(DiskContents::new(move |source, target| {
            let copied = contents.upgrade().map_or(Ok(()), |contents| contents.copy(source, target));
            if let Err(error) = copied {
                tracing::error!(%error, source, target, "a new disk or snapshot is empty: its source was not copied");
            }
        }));
        let stop = stop.child_token();
        let (tell, changed) = watch::channel(0);
        let follower = Follower {
            azure: azure.clone(),
            name: Box::new(name),
            delay: Delay::new(options.delay),
            tell,
            stop: stop.clone(),
        };
        let task = tokio::spawn(follower.run(hardware));
        Ok(Self { changed, task, folder, _stop: stop.drop_guard() })
    }

    /// A number that rises when the devices were compared with Azure.
    pub fn changed(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }

    /// The folder with the trees `dev` and `sys` of a machine.
    pub fn machine(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of all machines.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Releases all devices, and returns when that is done.
    pub async fn release(self) {
        let Self { task, _stop, .. } = self;
        drop(_stop);
        // It fails only where the runtime ends, which drops the devices, too.
        let _ended = task.await;
    }
}

struct Follower {
    azure: Azure,
    name: Box<Names>,
    delay: Delay,
    tell: watch::Sender<u64>,
    stop: CancellationToken,
}

impl Follower {
    async fn run(mut self, mut hardware: Hardware) {
        let mut changed = self.azure.subscribe();
        let mut last = None;
        loop {
            changed.mark_unchanged();
            let mut observed = Observed::read(&self.azure, &*self.name);
            let mut next = self.delay.hold_back(&mut observed, Instant::now());
            if last.as_ref() != Some(&observed) {
                let wanted = observed.clone();
                let work = move || {
                    let failed = hardware.follow(&wanted);
                    (hardware, failed)
                };
                let Ok((back, failed)) = spawn_blocking(work).await else { return };
                hardware = back;
                last = failed.is_empty().then_some(observed);
                for error in &failed {
                    tracing::warn!(%error, "the devices of machines are not as in Azure");
                }
                if !failed.is_empty() {
                    let retry = Instant::now() + RETRY;
                    next = Some(next.map_or(retry, |next| next.min(retry)));
                }
            }
            self.tell.send_modify(|number| *number += 1);
            let due = async {
                match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => break,
                still = changed.changed() => if still.is_err() { break },
                () = due => {}
            }
        }
        let _released = spawn_blocking(move || drop(hardware)).await;
    }
}
