//! The side-cars beside a controller: they send its calls at once, try again what fails, and keep Kubernetes' objects.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use csi::v1::Volume;
use csi::v1::controller_client::ControllerClient;
use kubernetes_simulator::Kubernetes;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};
use tonic::Status;
use tonic::transport::Channel;

use super::driver::Started;
use super::requests;
use super::stage::Stage;
use crate::bench::parallel::in_parallel;

/// Calls that the provisioner and the attacher have in progress, and how long each may take, in the established chart
/// (section 5.1 of the specification of the drivers).
const PROVISIONER: (usize, Duration) = (100, Duration::from_secs(30));
const ATTACHER: (usize, Duration) = (1_000, Duration::from_secs(600));
/// The pause before the second attempt; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// How long a side-car tries here.
const PATIENCE: Duration = Duration::from_secs(600);

/// The side-cars of a driver, with the volumes that they have created.
pub struct SideCars {
    controller: ControllerClient<Channel>,
    kubernetes: Kubernetes,
    count: usize,
    volumes: Arc<Mutex<HashMap<usize, Volume>>>,
}

/// What came of calls that were sent at once.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// From the beginning until each was done, sorted.
    pub took: Vec<Duration>,
    /// Answers that were errors, by their code.
    pub failures: BTreeMap<String, u64>,
}

/// What each call of a phase needs.
#[derive(Clone)]
struct Call {
    controller: ControllerClient<Channel>,
    kubernetes: Kubernetes,
    volumes: Arc<Mutex<HashMap<usize, Volume>>>,
    outcome: Arc<Mutex<Outcome>>,
    deadline: Duration,
    begun: Instant,
}

impl SideCars {
    /// Side-cars for a number of volumes, none of which exists yet.
    pub fn new(stage: &Stage, started: &Started, volumes: u32) -> Self {
        Self {
            controller: started.controller(),
            kubernetes: stage.kubernetes.clone(),
            count: usize::try_from(volumes).unwrap_or(usize::MAX),
            volumes: Arc::default(),
        }
    }

    /// The side-cars of another driver, which takes over the volumes of these.
    pub fn handed_to(&self, started: &Started) -> Self {
        Self {
            controller: started.controller(),
            volumes: Arc::clone(&self.volumes),
            kubernetes: self.kubernetes.clone(),
            ..*self
        }
    }

    /// Asks for all volumes again, as a provisioner that has lost the answers.
    ///
    /// # Errors
    /// A call fails for a long time, or another volume is the answer.
    pub async fn create_again(&self) -> anyhow::Result<Outcome> {
        self.all(PROVISIONER, |call, number| async move {
            let created = call.until_done(|mut controller| async move {
                controller.create_volume(requests::create(number)).await
            });
            let volume = created.await?.into_inner().volume.context("the answer has no volume")?;
            let known = call.volume(number)?;
            ensure!(
                volume.volume_id.eq_ignore_ascii_case(&known.volume_id),
                "{} was {}, and is {} now",
                requests::volume_name(number),
                known.volume_id,
                volume.volume_id
            );
            Ok(())
        })
        .await
    }

    /// Asks again for the attaches to these nodes, as an attacher that has started again.
    ///
    /// # Errors
    /// A call fails for a long time, or a volume is at another LUN.
    pub async fn attach_again(&self, nodes: &[String]) -> anyhow::Result<Outcome> {
        let nodes = nodes.to_vec();
        self.all(ATTACHER, move |call, number| {
            let node = node_of(&nodes, number);
            async move {
                let volume = call.volume(number)?;
                let request = requests::publish(&volume, &node);
                let answer = call
                    .until_done(|mut controller| {
                        let request = request.clone();
                        async move { controller.controller_publish_volume(request).await }
                    })
                    .await?;
                let name = requests::attachment_name(&volume.volume_id, &node);
                let attachment = call.kubernetes.get("VolumeAttachment", "", &name);
                let attachment = attachment.with_context(|| format!("{name} is gone"))?;
                let known =
                    attachment.value()["status"]["attachmentMetadata"]["LUN"].as_str().map(str::to_owned);
                let lun = answer.into_inner().publish_context.remove("LUN");
                ensure!(lun == known, "{} was at LUN {known:?}, and is at {lun:?} now", volume.volume_id);
                Ok(())
            }
        })
        .await
    }

    /// Creates all volumes.
    ///
    /// # Errors
    /// A call fails for a long time.
    pub async fn create(&self) -> anyhow::Result<Outcome> {
        self.all(PROVISIONER, |call, number| async move {
            let created = call.until_done(|mut controller| async move {
                controller.create_volume(requests::create(number)).await
            });
            let volume = created.await?.into_inner().volume.context("the answer has no volume")?;
            let name = requests::volume_name(number);
            let object = requests::persistent_volume(&name, &volume.volume_id, &volume.volume_context);
            call.kubernetes.create(object)?;
            call.volumes.lock().insert(number, volume);
            Ok(())
        })
        .await
    }

    /// Attaches all volumes, in turn to these nodes.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn attach(&self, nodes: &[String]) -> anyhow::Result<Outcome> {
        self.publish(nodes, true).await
    }

    /// The same with a single attempt for each.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn attach_once(&self, nodes: &[String]) -> anyhow::Result<Outcome> {
        self.publish(nodes, false).await
    }

    async fn publish(&self, nodes: &[String], again: bool) -> anyhow::Result<Outcome> {
        let nodes = nodes.to_vec();
        self.all(ATTACHER, move |call, number| {
            let node = node_of(&nodes, number);
            async move {
                let volume = call.volume(number)?;
                let disk = volume.volume_id.clone();
                call.kubernetes.create(requests::attachment(&disk, &requests::volume_name(number), &node))?;
                let name = requests::attachment_name(&disk, &node);
                let request = requests::publish(&volume, &node);
                let publish = |mut controller: ControllerClient<Channel>| {
                    let request = request.clone();
                    async move { controller.controller_publish_volume(request).await }
                };
                let answer = if again {
                    call.until_done(publish).await?
                } else {
                    let Some(answer) = call.once(&publish).await.ok() else { return Ok(()) };
                    answer
                };
                let status = requests::attached(&answer.into_inner().publish_context);
                call.kubernetes.merge_status("VolumeAttachment", "", &name, &status)?;
                Ok(())
            }
        })
        .await
    }

    /// Detaches all volumes from the nodes that they were attached to.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn detach(&self, nodes: &[String]) -> anyhow::Result<Outcome> {
        let nodes = nodes.to_vec();
        self.all(ATTACHER, move |call, number| {
            let node = node_of(&nodes, number);
            async move {
                let volume = call.volume(number)?;
                let name = requests::attachment_name(&volume.volume_id, &node);
                call.kubernetes.delete("VolumeAttachment", "", &name)?;
                let request = requests::unpublish(&volume, &node);
                call.until_done(|mut controller| {
                    let request = request.clone();
                    async move { controller.controller_unpublish_volume(request).await }
                })
                .await?;
                let released = json!({"metadata": {"finalizers": null}});
                call.kubernetes.merge("VolumeAttachment", "", &name, &released)?;
                Ok(())
            }
        })
        .await
    }

    /// Deletes all volumes.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub async fn delete(&self) -> anyhow::Result<Outcome> {
        self.all(PROVISIONER, |call, number| async move {
            let volume = call.volume(number)?;
            call.until_done(|mut controller| {
                let request = requests::delete(&volume);
                async move { controller.delete_volume(request).await }
            })
            .await?;
            call.kubernetes.delete("PersistentVolume", "", &requests::volume_name(number))?;
            Ok(())
        })
        .await
    }

    /// Does the same with all volumes, as many at once as the side-car has workers.
    async fn all<W>(
        &self,
        (workers, deadline): (usize, Duration),
        work: impl Fn(Call, usize) -> W + Clone + Send + 'static,
    ) -> anyhow::Result<Outcome>
    where
        W: Future<Output = anyhow::Result<()>> + Send,
    {
        let call = Call {
            controller: self.controller.clone(),
            kubernetes: self.kubernetes.clone(),
            volumes: Arc::clone(&self.volumes),
            outcome: Arc::default(),
            deadline,
            begun: Instant::now(),
        };
        let each = call.clone();
        let one = move |_, number| {
            let (done, work) = (each.clone(), work(each.clone(), number));
            async move {
                work.await?;
                done.outcome.lock().took.push(done.begun.elapsed());
                Ok(())
            }
        };
        in_parallel(0..self.count, workers.min(self.count), one).await?;
        let mut outcome = call.outcome.lock().clone();
        outcome.took.sort();
        Ok(outcome)
    }
}

impl Call {
    fn volume(&self, number: usize) -> anyhow::Result<Volume> {
        self.volumes.lock().get(&number).cloned().context("the volume was never created")
    }

    /// Sends a call once.
    async fn once<T, F>(&self, send: &impl Fn(ControllerClient<Channel>) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let answer = timeout(self.deadline, send(self.controller.clone())).await;
        let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("the side-car's deadline")));
        if let Err(status) = &answer {
            *self.outcome.lock().failures.entry(format!("{:?}", status.code())).or_default() += 1;
        }
        answer
    }

    /// Sends a call until it succeeds.
    async fn until_done<T, F>(&self, send: impl Fn(ControllerClient<Channel>) -> F) -> anyhow::Result<T>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let mut pause = FIRST_PAUSE;
        loop {
            let status = match self.once(&send).await {
                Ok(answer) => return Ok(answer),
                Err(status) => status,
            };
            ensure!(self.begun.elapsed() < PATIENCE, "{:?}: {}", status.code(), status.message());
            sleep(pause).await;
            pause *= 2;
        }
    }
}

/// Volumes are spread evenly.
fn node_of(nodes: &[String], number: usize) -> String {
    nodes.get(number % nodes.len().max(1)).cloned().unwrap_or_default()
}
