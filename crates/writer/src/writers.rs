//! Writers of the resources of one type, each started on first use and ended when its resource is deleted.

use std::collections::HashMap;

use azure_types::ResourceId;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::resource::Resource;
use crate::writer::{Pace, Writer};

/// The writers of resources of one type, by id.
pub struct Writers<R: Resource> {
    pace: Pace,
    stop: CancellationToken,
    /// Each with the guard that ends its task.
    all: Mutex<HashMap<ResourceId, (Writer<R>, DropGuard)>>,
}

impl<R: Resource> Writers<R> {
    /// An empty collection. All writers end when `stop` is cancelled.
    pub fn new(pace: Pace, stop: CancellationToken) -> Self {
        Self { pace, stop, all: Mutex::default() }
    }

    /// The writer of a resource.
    pub fn of(&self, id: &ResourceId, resource: impl FnOnce() -> R) -> Writer<R> {
        let mut all = self.all.lock();
        if let Some((writer, _)) = all.get(id) {
            return writer.clone();
        }
        let stop = self.stop.child_token();
        let writer = Writer::start(resource(), self.pace, stop.clone());
        all.insert(id.clone(), (writer.clone(), stop.drop_guard()));
        writer
    }

    /// Ends the writers of deleted resources, unless they are in use.
    pub fn keep(&self, is_there: impl Fn(&ResourceId) -> bool) {
        self.all.lock().retain(|id, (writer, _)| is_there(id) || writer.is_in_use());
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.all.lock().len()
    }
}
