//! The tasks that run until the stop: watches, queues and controllers.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use kube::runtime::watcher::Event;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::health::HealthCheck;
use crate::options::Options;
use crate::queue::{Next, Queue, propagate_panic};
use crate::spans;
use crate::watch::{Selector, watch};

/// Everything that runs until the stop.
pub(crate) struct Tasks<'a> {
    options: &'a Options,
    pub stop: CancellationToken,
    running: JoinSet<()>,
    started: Vec<&'static str>,
}

impl<'a> Tasks<'a> {
    pub fn new(options: &'a Options, stop: CancellationToken) -> Self {
        Self { options, stop, running: JoinSet::new(), started: vec![] }
    }

    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.spawn(task);
    }

    /// Spawns a task that begins once `known` completes, unless the stop comes first.
    pub fn spawn_after(
        &mut self,
        known: impl Future<Output = ()> + Send + 'static,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let stop = self.stop.clone();
        self.spawn(async move {
            if stop.run_until_cancelled(known).await.is_some() && !stop.is_cancelled() {
                task.await;
            }
        });
    }

    /// A task that passes the events of a watch to `on` until the stop.
    pub fn watch<K, F>(
        &self,
        client: &Client,
        selector: Selector,
        what: &'static str,
        on: F,
    ) -> impl Future<Output = ()> + Send + use<K, F>
    where
        F: FnMut(Event<K>) + Send + 'static,
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        watch(Api::<K>::all(client.clone()), selector, what, self.stop.clone(), on)
    }

    /// A task that lets a controller reconcile the keys of a queue, at most `parallelism` at a time, until the stop.
    pub fn work<C, K, F, R>(
        &self,
        queue: Queue<K>,
        parallelism: usize,
        controller: &Arc<C>,
        reconcile: F,
    ) -> impl Future<Output = ()> + Send + use<C, K, F, R>
    where
        F: Fn(Arc<C>, K) -> R + Send + 'static,
        C: Send + Sync + 'static,
        K: spans::Key + Clone + Eq + Hash + Send + Sync + 'static,
        R: Future<Output = Next> + Send + 'static,
    {
        let (stop, drain, controller) = (self.stop.clone(), self.options.drain, Arc::clone(controller));
        let name = queue.name();
        queue.work(parallelism, stop, drain, move |key| {
            let span = spans::reconcile(name, &key);
            let reconciling = reconcile(Arc::clone(&controller), key).instrument(span.clone());
            async move {
                let next = reconciling.await;
                spans::reconciled(&span, next);
                next
            }
        })
    }

    /// Spawns a task that is dropped at the stop.
    pub fn spawn_until_stop(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.spawn(async move { _ = stop.run_until_cancelled(task).await });
    }

    /// Records that a controller runs.
    pub fn started(&mut self, check: &'static str, metric: &'static str) {
        self.options.health.add(HealthCheck::new(check, || Ok(())));
        self.options.observer.controller_running(metric, true);
        self.started.push(metric);
        tracing::info!(controller = check, "started");
    }

    /// Waits for all tasks to end.
    pub async fn join(mut self) {
        while let Some(ended) = self.running.join_next().await {
            propagate_panic(ended);
        }
        for controller in self.started {
            self.options.observer.controller_running(controller, false);
        }
    }
}
