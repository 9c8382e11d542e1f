//! Events on Kubernetes objects, written like client-go's.
//!
//! Recording never waits: events go through a bounded queue to one writer, and are dropped when it is full. The writer
//! merges and limits repeated events as client-go does ([`correlator`]).

mod correlator;
mod occurrence;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use k8s::api::api::core::v1::{Event, EventSource, ObjectReference};
use k8s::{ObjectMeta, Time};
use kube::api::{Patch, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::correlator::{Correlator, Verdict};
use self::occurrence::Occurrence;
pub use self::occurrence::{EventType, Reference};
use crate::api::{ApiError, call, patch_params};
use crate::observer::Observer;
use clock::Clock;

/// Capacity of the queue: two events for each of 2,000 Services that become ready at once.
const MAX_WAITING: usize = 4096;

/// Number and interval of attempts to send an event. Events are sent one after the other: after six seconds without an
/// answer the next ones are more important.
const MAX_ATTEMPTS: u32 = 4;
const ATTEMPT_INTERVAL: Duration = Duration::from_secs(2);

/// How long the writer continues after the stop, to send queued events: the rest of a stop within 20 s.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Records events for one component; clones share the queue.
#[derive(Clone)]
pub struct Recorder {
    component: &'static str,
    sender: mpsc::Sender<Occurrence>,
    dropped: Arc<AtomicU64>,
    observer: Arc<dyn Observer>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Recorder({})", self.component)
    }
}

impl Recorder {
    /// A recorder for another component over the same queue.
    pub fn speaking_for(&self, component: &'static str) -> Self {
        Self { component, ..self.clone() }
    }

    /// Records an event. Never waits; the event is dropped if the queue is full.
    pub fn record(
        &self,
        about: impl Into<Reference>,
        event_type: EventType,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let message = k8s::shorten(message.into(), k8s::MAX_EVENT_MESSAGE);
        let occurrence =
            Occurrence { component: self.component, about: about.into(), event_type, reason, message };
        if let Err(error) = self.sender.try_send(occurrence) {
            self.observer.event_dropped();
            // Thousands of nodes that join at once would be thousands of lines: the writer logs how many events were
            // dropped.
            if self.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
                tracing::warn!(reason, %error, "events are dropped");
            }
        }
    }

    /// Records a [`EventType::Normal`] event.
    pub fn normal(&self, about: impl Into<Reference>, reason: &'static str, message: impl Into<String>) {
        self.record(about, EventType::Normal, reason, message);
    }

    /// Records a [`EventType::Warning`] event.
    pub fn warning(&self, about: impl Into<Reference>, reason: &'static str, message: impl Into<String>) {
        self.record(about, EventType::Warning, reason, message);
    }
}

/// Sends the events of all recorders, one after the other.
pub struct EventWriter {
    client: Client,
    clock: Clock,
    host: String,
    receiver: mpsc::Receiver<Occurrence>,
    /// Number of events that were dropped since this was last logged.
    dropped: Arc<AtomicU64>,
    correlator: Correlator,
    observer: Arc<dyn Observer>,
    last_name: i64,
}

impl std::fmt::Debug for EventWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EventWriter({} waiting)", self.receiver.len())
    }
}

/// A recorder, and the writer that must [run](EventWriter::run) for it. `host` is part of the events' source, where
/// client-go puts the node's name; it may be empty.
pub fn recorder(
    client: Client,
    clock: Clock,
    host: impl Into<String>,
    component: &'static str,
    observer: Arc<dyn Observer>,
) -> (Recorder, EventWriter) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let dropped = Arc::<AtomicU64>::default();
    let writer = EventWriter {
        client,
        clock,
        host: host.into(),
        receiver,
        dropped: Arc::clone(&dropped),
        correlator: Correlator::default(),
        observer: Arc::clone(&observer),
        last_name: 0,
    };
    (Recorder { component, sender, dropped, observer }, writer)
}

impl EventWriter {
    /// Sends events until `stop`, and the queued ones for up to 3 s more.
    pub async fn run(mut self, stop: CancellationToken) {
        let send_all = async {
            loop {
                let occurrence = tokio::select! {
                    biased;
                    occurrence = self.receiver.recv() => occurrence,
                    () = stop.cancelled() => None,
                };
                let Some(occurrence) = occurrence else { return };
                self.write(occurrence).await;
                if self.receiver.is_empty() {
                    self.tell_dropped();
                }
            }
        };
        let give_up = async {
            stop.cancelled().await;
            tokio::time::sleep(FLUSH_TIMEOUT).await;
        };
        let flushed = tokio::select! {
            biased;
            () = send_all => true,
            () = give_up => false,
        };
        if !flushed {
            tracing::warn!(waiting = self.receiver.len(), "stopped before all events were sent");
        }
    }

    /// Logs how many events were dropped.
    fn tell_dropped(&self) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            tracing::warn!(dropped, "events were dropped: more came at once than may wait ({MAX_WAITING})");
        }
    }

    async fn write(&mut self, occurrence: Occurrence) {
        let now = self.clock.now();
        let (verdict, key) = self.correlator.judge(&occurrence, now);
        let about = &occurrence.about;
        let namespace = if about.namespace.is_empty() { "default" } else { about.namespace.as_str() };
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let written = match verdict {
            Verdict::Drop => {
                self.observer.event_dropped();
                return;
            }
            Verdict::Create { message } => self.create(&api, &occurrence, namespace, message, now).await,
            Verdict::Repeat { name, count, message } => {
                let patch = json!({"count": count, "lastTimestamp": Time(now), "message": message});
                match persist(&name, || {
                    let (api, patch, name) = (&api, &patch, name.as_str());
                    async move { api.patch(name, &patch_params(), &Patch::Merge(patch)).await.map(|_| ()) }
                })
                .await
                {
                    // Events live an hour; the next one starts a new count.
                    Err(error) if error.is_not_found() => {
                        self.create(&api, &occurrence, namespace, message, now).await
                    }
                    other => other.map(|()| None),
                }
            }
        };
        match written {
            Ok(Some(name)) => self.correlator.created(key, name),
            Ok(None) => {}
            Err(error) => {
                self.correlator.lost(&key);
                tracing::warn!(reason = occurrence.reason, object = about.name, %error, "an event was not written");
            }
        }
    }

    async fn create(
        &mut self,
        api: &Api<Event>,
        occurrence: &Occurrence,
        namespace: &str,
        message: String,
        now: Timestamp,
    ) -> Result<Option<String>, ApiError> {
        let about = &occurrence.about;
        // client-go's format of names; two events of one instant need different names.
        let nanoseconds = i64::try_from(now.as_nanosecond()).unwrap_or(i64::MAX - 1);
        self.last_name = nanoseconds.max(self.last_name.saturating_add(1));
        let name = format!("{}.{:x}", about.name, self.last_name);
        let event = Event {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(about.api_version.to_owned()),
                kind: Some(about.kind.to_owned()),
                namespace: (!about.namespace.is_empty()).then(|| about.namespace.clone()),
                name: Some(about.name.clone()),
                uid: (!about.uid.is_empty()).then(|| about.uid.clone()),
                ..ObjectReference::default()
            },
            reason: Some(occurrence.reason.to_owned()),
            message: Some(message),
            type_: Some(occurrence.event_type.as_str().to_owned()),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(EventSource {
                component: Some(occurrence.component.to_owned()),
                host: (!self.host.is_empty()).then(|| self.host.clone()),
            }),
            reporting_component: Some(occurrence.component.to_owned()),
            reporting_instance: Some(self.host.clone()),
            ..Event::default()
        };
        let (params, event) = (PostParams::default(), &event);
        persist(&name, || async { api.create(&params, event).await.map(|_| ()) }).await?;
        Ok(Some(name))
    }
}

/// Retries until the event is sent, while the failure may pass.
async fn persist<R>(name: &str, mut send: impl FnMut() -> R) -> Result<(), ApiError>
where
    R: Future<Output = kube::Result<()>>,
{
    let mut attempt = 1;
    loop {
        match call(|| format!("write event {name}"), send()).await {
            Err(error) if error.is_transient() && attempt < MAX_ATTEMPTS => {
                attempt += 1;
                tokio::time::sleep(ATTEMPT_INTERVAL).await;
            }
            other => return other,
        }
    }
}
