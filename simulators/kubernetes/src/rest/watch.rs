//! Watches: a stream of changes from the log, at the client's own pace. A slow client delays no other: it reads the log
//! behind a cursor, and gets a 410 when the log no longer reaches back to it.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::Stream;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::conversion::{Pending, serve};
use crate::fault::Lag;
use crate::object::{Object, to_bytes};
use crate::registry::Kind;
use crate::rest::{Representation, bookmark, watch_line};
use crate::selector::Selection;
use crate::server::handle::Kubernetes;
use crate::status::ApiError;
use crate::store::{Change, Entry, with_version};
use crate::verbs::{ListOptions, State, VersionMatch};

/// Where a watch starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchStart {
    /// With all current objects, then the changes.
    Newest,
    /// With the changes after a version.
    After(u64),
    /// As `Newest`, with a bookmark between the two (Kubernetes: "Streaming lists").
    InitialEvents { not_older_than: u64 },
}

/// The options of a watch.
#[derive(Debug)]
pub(crate) struct WatchOptions {
    pub(crate) selection: Selection,
    pub(crate) start: WatchStart,
    /// The version of its initial objects; the newest one if `None`.
    pub(crate) stale: Option<u64>,
    /// How far the watch lags behind, because of a fault.
    pub(crate) lag: Option<Lag>,
    pub(crate) bookmarks: bool,
    pub(crate) timeout_seconds: Option<u64>,
}

/// Interval of bookmarks on an idle watch: about a minute, as in kube-apiserver.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum number of changes read from the log at once, under its lock.
const MAX_BATCH: usize = 512;

pub(crate) struct Watch {
    kubernetes: Kubernetes,
    kind: Arc<Kind>,
    selection: Selection,
    representation: Representation,
    bookmarks: bool,
    lag: Option<Lag>,
    /// All changes up to this version have been sent.
    cursor: u64,
    initial: VecDeque<Arc<Object>>,
    initial_bookmark: bool,
    table_headers: bool,
    changed: watch::Receiver<u64>,
    dropped: watch::Receiver<u64>,
    next_bookmark: Instant,
    deadline: Instant,
    /// Why the watch cannot start at the requested version; sent on the stream, as by kube-apiserver.
    refusal: Option<ApiError>,
    finished: bool,
}

enum WakeReason {
    Changed,
    Bookmark,
    Deadline,
    Dropped,
}

impl Watch {
    pub(crate) async fn new(
        kubernetes: Kubernetes,
        kind: Arc<Kind>,
        representation: Representation,
        options: WatchOptions,
    ) -> Result<Self, ApiError> {
        let WatchOptions { selection, start, stale, lag, bookmarks, timeout_seconds } = options;
        let dropped = kubernetes.shared.watch_generation.subscribe();
        let begin = |state: &mut State| {
            let current = state.store.version();
            let mut initial = VecDeque::new();
            let cursor = match start {
                WatchStart::After(version) if version > current => {
                    return Err(ApiError::version_too_large(version, current));
                }
                WatchStart::After(version) => version,
                WatchStart::InitialEvents { not_older_than } if not_older_than > current => {
                    return Err(ApiError::version_too_large(not_older_than, current));
                }
                WatchStart::Newest | WatchStart::InitialEvents { .. } => {
                    let version_match = stale.map(|_| VersionMatch::Exact);
                    let selection = selection.clone();
                    let options =
                        ListOptions { selection, version: stale, version_match, ..ListOptions::default() };
                    initial.extend(state.list(&kind, &options)?.items);
                    stale.unwrap_or(current)
                }
            };
            let seconds = timeout_seconds.unwrap_or_else(|| state.watch_seconds());
            let changed = state.store.shelf(&kind.shelf).subscribe();
            let refusal = match start {
                WatchStart::After(version) if version < state.store.compacted() => {
                    Some(ApiError::expired(version, current))
                }
                _ => None,
            };
            Ok((initial, cursor, seconds, changed, refusal))
        };
        let (initial, cursor, seconds, changed, refusal) = kubernetes.settled(&kind, begin).await?;
        let now = Instant::now();
        let mut this = Self {
            kubernetes,
            kind,
            selection,
            representation,
            bookmarks,
            lag,
            cursor,
            initial,
            initial_bookmark: matches!(start, WatchStart::InitialEvents { .. }) && bookmarks,
            table_headers: true,
            changed,
            dropped,
            next_bookmark: now + BOOKMARK_INTERVAL,
            deadline: now + Duration::from_secs(seconds),
            refusal,
            finished: false,
        };
        this.changed.mark_changed();
        Ok(this)
    }

    /// The lines of the watch; it ends after its duration, or after an error.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
        futures::stream::unfold(self, |mut watch| async move {
            let lines = watch.next().await?;
            Some((Ok(lines), watch))
        })
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.finished {
            return None;
        }
        let mut lines = BytesMut::new();
        if let Some(refusal) = self.refusal.take() {
            self.error_line(&refusal, &mut lines);
            return Some(lines.freeze());
        }
        if !self.initial.is_empty() || self.initial_bookmark {
            self.initial_lines(&mut lines);
            return Some(lines.freeze());
        }
        loop {
            match self.wait().await {
                WakeReason::Changed => {
                    self.changed_lines(&mut lines).await;
                    if !lines.is_empty() {
                        return Some(lines.freeze());
                    }
                    if self.finished {
                        return None;
                    }
                }
                WakeReason::Bookmark => {
                    self.changed_lines(&mut lines).await;
                    if !self.finished {
                        self.bookmark_line(&mut lines, false);
                    }
                    return Some(lines.freeze());
                }
                WakeReason::Deadline => {
                    self.changed_lines(&mut lines).await;
                    if self.bookmarks && !self.finished {
                        // A last bookmark saves the client the changes of other kinds.
                        self.bookmark_line(&mut lines, false);
                    }
                    self.finished = true;
                    return Some(lines.freeze()).filter(|lines| !lines.is_empty());
                }
                WakeReason::Dropped => return None,
            }
        }
    }

    async fn wait(&mut self) -> WakeReason {
        let (next_bookmark, deadline, bookmarks) = (self.next_bookmark, self.deadline, self.bookmarks);
        tokio::select! {
            biased;
            changed = self.changed.changed() => if changed.is_ok() { WakeReason::Changed } else { WakeReason::Dropped },
            _ = self.dropped.changed() => WakeReason::Dropped,
            () = tokio::time::sleep_until(deadline) => WakeReason::Deadline,
            () = tokio::time::sleep_until(next_bookmark), if bookmarks => {
                self.next_bookmark = next_bookmark + BOOKMARK_INTERVAL;
                WakeReason::Bookmark
            }
        }
    }

    fn initial_lines(&mut self, lines: &mut BytesMut) {
        for _ in 0..MAX_BATCH {
            let Some(object) = self.initial.pop_front() else { break };
            self.line("ADDED", &object, lines);
        }
        if self.initial.is_empty() && self.initial_bookmark {
            self.initial_bookmark = false;
            self.bookmark_line(lines, true);
        }
    }

    /// Writes the changes after the cursor. The watch of a kind that is no longer served, or has been redefined, ends
    /// after them.
    async fn changed_lines(&mut self, lines: &mut BytesMut) {
        loop {
            self.changed.borrow_and_update();
            let lag = self.lag();
            let (entries, reached, served) = {
                let mut state = self.kubernetes.shared.state.lock();
                let served = state.registry.still_serves(&self.kind);
                let version = state.store.version();
                // The remaining changes of a custom kind are sent by its current definition.
                if let Some(newest) = redefined(&state, &self.kind) {
                    self.kind = newest;
                }
                let shelf = state.store.shelf(&self.kind.shelf);
                let reached = match lag {
                    // Without its kind, a lagging cache ends.
                    Some(changes) if served => {
                        shelf.version_before(changes).unwrap_or_default().max(self.cursor)
                    }
                    _ => version,
                };
                (shelf.changes_between(self.cursor, reached, MAX_BATCH), reached, served)
            };
            let entries = match entries {
                Ok(entries) => entries,
                Err(oldest) => {
                    self.error_line(&ApiError::expired(self.cursor, oldest), lines);
                    return;
                }
            };
            for entry in &entries {
                match self.served(entry).await {
                    Ok((object, previous)) => self.entry_line(entry, &object, previous.as_ref(), lines),
                    Err(error) => {
                        self.error_line(&error, lines);
                        return;
                    }
                }
            }
            if entries.len() < MAX_BATCH {
                self.cursor = reached;
                self.finished |= !served;
                return;
            }
            self.cursor = entries.last().map_or(reached, |entry| entry.version);
            if !lines.is_empty() {
                // The rest waits until the client has read this much.
                self.changed.mark_changed();
                return;
            }
        }
    }

    /// The number of changes that the lagging cache lacks.
    fn lag(&self) -> Option<usize> {
        let faults = self.kubernetes.shared.faults.lock();
        self.lag.filter(|lag| faults.lasts(lag)).map(|lag| lag.changes)
    }

    /// An entry's object and the one before it, as the kind serves them.
    async fn served(&self, entry: &Entry) -> Result<(Arc<Object>, Option<Arc<Object>>), ApiError> {
        let kind = &self.kind;
        let both = || {
            let mut pending = Pending::default();
            let object = pending.note(serve(kind, &entry.object.open()))?;
            let previous = entry.previous.as_ref().map(|previous| serve(kind, &previous.open())).transpose();
            let previous = pending.note(previous)?;
            pending.settle()?;
            Ok((object, previous))
        };
        let (object, previous) =
            if kind.is_converted() { self.kubernetes.settled(kind, |_| both()).await? } else { both()? };
        Ok((object.unwrap_or_else(|| entry.object.open()), previous.flatten()))
    }

    /// A change in this selection: an object may enter or leave it by changing.
    fn entry_line(
        &mut self,
        entry: &Entry,
        object: &Arc<Object>,
        previous: Option<&Arc<Object>>,
        lines: &mut BytesMut,
    ) {
        let was = previous.is_some_and(|previous| self.selection.matches(previous));
        let is = entry.change != Change::Deleted && self.selection.matches(object);
        match (was, is) {
            (false, true) => self.line("ADDED", object, lines),
            (true, true) => self.line("MODIFIED", object, lines),
            (true, false) if entry.change == Change::Deleted => self.line("DELETED", object, lines),
            (true, false) => {
                // An object that leaves the selection is sent as it was last inside it.
                let Some(previous) = previous else { return };
                self.line("DELETED", &Arc::new(with_version(previous, entry.version)), lines);
            }
            (false, false) => {}
        }
    }

    fn line(&mut self, change: &str, object: &Arc<Object>, lines: &mut BytesMut) {
        let bytes = self.representation.object(&self.kind, object, self.kubernetes.now(), self.table_headers);
        self.table_headers = false;
        watch_line(change, &bytes, lines);
    }

    fn error_line(&mut self, error: &ApiError, lines: &mut BytesMut) {
        watch_line("ERROR", &to_bytes(&error.to_status()), lines);
        self.finished = true;
    }

    fn bookmark_line(&mut self, lines: &mut BytesMut, initial_events_end: bool) {
        let object = bookmark(&self.kind, &self.representation, self.cursor, initial_events_end);
        watch_line("BOOKMARK", &object, lines);
    }
}

/// A custom kind by its current definition.
fn redefined(state: &State, kind: &Kind) -> Option<Arc<Kind>> {
    let find = || state.registry.by_path(&kind.group, &kind.version, &kind.plural);
    kind.is_custom().then(find).flatten()
}
