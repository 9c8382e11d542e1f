//! Handles failed writes: which intents wait, which continue alone, and which are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use logical_time::LogicalTime;
use parking_lot::Mutex;
use tokio::time::Instant;
use tracing::{debug, info, warn};

use crate::failure::{Failure, Kind};
use crate::group::{Entry, Group};
use crate::resource::Resource;
use crate::suspects::Search;
use crate::writer::Inner;

/// How often in a row a batch is written again because of concurrent changes. Ten lost races mean that another client
/// writes all the time: the owners fail and are retried with backoff.
pub(crate) const MAX_CONFLICTS: u32 = 10;
/// How many consecutive lost races are retried at once. While hundreds of machines join its pools, a load balancer
/// changes with each of them: without a pause ten races are lost within a second.
const FREE_CONFLICTS: u32 = 3;
/// The pause after the next one; doubled each time, so that ten races take some 13 s.
const CONFLICT_PAUSE: Duration = Duration::from_millis(100);
/// After how many lost races a batch is split to find an owner that may cause them: most races are over by then.
const MAX_CONFLICTS_BEFORE_SEARCH: u32 = 7;
/// How often a batch is written again because Azure was busy: with doubled waits some four minutes, in which most
/// problems of Azure pass without a failure of any owner.
const MAX_BUSY: u32 = 8;
/// After how many busy answers a batch is split likewise. If the search fails, Azure is busy for all, and the batch
/// waits as above.
const MAX_BUSY_BEFORE_SEARCH: u32 = 1;
/// The longest wait between two tries if Azure does not say how long: the end of a problem is noticed within a minute.
const MAX_WAIT: Duration = Duration::from_secs(60);

impl<R: Resource> Inner<R> {
    /// Splits a group after any failure: pending intents go by themselves, so that no repair delays them, followed by
    /// the repairs.
    pub(crate) fn part(&self, group: &mut Group<R>, write: &R::Write) -> Option<Vec<Group<R>>> {
        let concerned = group.maintained(self.resource.concerned(write, &group.batch()));
        let mut repairs = BTreeMap::new();
        for key in concerned {
            if let Some(entry) = group.take(&key) {
                repairs.insert(key, entry);
            }
        }
        group.entries.retain(|_, entry| !entry.is_maintained);
        if group.entries.is_empty() {
            // No owner waits for an answer.
            group.entries = repairs;
            group.open = false;
            return None;
        }
        if repairs.is_empty() {
            return None;
        }
        let asking = std::mem::take(&mut group.entries);
        Some(vec![Group::closed(repairs), Group::closed(asking)])
    }

    /// Merges the groups of a failed search because Azure is busy for all: they wait together.
    pub(crate) fn join_searched(&self, closed: &mut Vec<Group<R>>) {
        let is_in_vain = |group: &mut Group<R>| {
            let found = group.search.as_ref().and_then(|search| search.lock().in_vain());
            let Some((refused, _)) = found.filter(|(_, failure)| failure.may_be_a_conflict_of_one()) else {
                return false;
            };
            refused.iter().for_each(|key| self.suspects.lock().clear(key));
            true
        };
        let searched: Vec<_> = closed.extract_if(.., is_in_vain).collect();
        closed.extend(searched.into_iter().reduce(Group::join).map(|joined| Group {
            search: None,
            searched: true,
            ..joined
        }));
    }

    /// Reverts what a write that failed late left behind, if nothing was written since. Returns whether it tried.
    pub(crate) async fn restore(&self) -> bool {
        let Some(before) = self.left_behind.lock().take() else { return false };
        if let Err(problem) = self.resource.restore(&before).await {
            warn!(resource = %self.resource.name(), error = %problem.message,
                "failed to restore what Azure refused to change");
        }
        true
    }

    /// Handles a failure that passes by itself or is about the resource. If Azure names some owners of the group, the
    /// others do not wait for them.
    pub(crate) async fn after_trouble(
        &self,
        mut group: Group<R>,
        write: &R::Write,
        failure: Failure<R::Notice>,
    ) -> Vec<Group<R>> {
        let named = self.named(&group, &failure);
        if !named.is_empty() && named.len() < group.entries.len() {
            let (of_named, rest) =
                std::mem::take(&mut group.entries).into_iter().partition(|(key, _)| named.contains(key));
            group.entries = rest;
            let waiting = Group { busy: group.busy, conflicts: group.conflicts, ..Group::closed(of_named) };
            group.newer_than = LogicalTime::now();
            let mut parts = self.retry_or_fail(waiting, Some(write), failure);
            parts.push(group);
            return parts;
        }
        let failure = self.resource.overcome(failure).await;
        if !failure.concerns_all() {
            return self.bisect(group, write, failure);
        }
        self.retry_or_fail(group, Some(write), failure)
    }

    /// The owners of a group that Azure names.
    fn named(&self, group: &Group<R>, failure: &Failure<R::Notice>) -> BTreeSet<R::Key> {
        let named = self.resource.blame(&failure.full_text(), &group.batch());
        named.into_iter().filter(|key| group.entries.contains_key(key)).collect()
    }

    /// Handles a failure that is not about one owner: the group is retried later, or fails for now.
    pub(crate) fn retry_or_fail(
        &self,
        mut group: Group<R>,
        write: Option<&R::Write>,
        failure: Failure<R::Notice>,
    ) -> Vec<Group<R>> {
        let name = self.resource.name();
        group.newer_than = LogicalTime::now();
        let is_busy = matches!(failure.kind, Kind::Unavailable | Kind::Unknown);
        let (tries, max, max_before_search) = match failure.kind {
            Kind::Aborted => (&mut group.conflicts, MAX_CONFLICTS, MAX_CONFLICTS_BEFORE_SEARCH),
            Kind::Unavailable | Kind::Unknown => (&mut group.busy, MAX_BUSY, MAX_BUSY_BEFORE_SEARCH),
            Kind::NotFound
            | Kind::InvalidArgument
            | Kind::FailedPrecondition
            | Kind::ResourceExhausted
            | Kind::PermissionDenied
            | Kind::Overdue => (&mut 0, 0, 0),
        };
        *tries += 1;
        let tried = *tries;
        if failure.may_be_a_conflict_of_one() && !group.searched {
            // An operation takes as long to fail as to succeed: it is not repeated for all.
            if group.entries.len() > 1 && (tried > max_before_search || failure.is_late()) {
                // Steps of a search are not retries.
                *tries = max_before_search;
                return self.search(group, &failure);
            }
            if let Some((search, key)) = group.search.as_ref().zip(group.only()) {
                search.lock().refused(key.clone(), &failure);
            }
        }
        group.is_doubtful = group.only().is_some() && failure.may_be_a_fault_of_one();
        // An owner that was waited for in vain before is retried by its queue, with growing delays.
        let is_known =
            group.is_doubtful && group.only().is_some_and(|key| self.suspects.lock().contains(key));
        let pause = match tried.checked_sub(FREE_CONFLICTS + 1) {
            _ if is_busy => {
                let doubled = self.pace.busy.saturating_mul(1 << tried.min(10)) / 2;
                failure.after.unwrap_or(doubled.min(MAX_WAIT))
            }
            Some(paused) => CONFLICT_PAUSE.saturating_mul(1 << paused.min(10)),
            None => Duration::ZERO,
        };
        let Some(wait) = (tried <= max && !is_known).then_some(pause) else {
            debug!(resource = %name, error = %failure.message, "failed to write to Azure");
            if let Some(key) =
                group.only().filter(|_| group.search.is_some() || failure.may_be_a_fault_of_one())
            {
                self.suspects.lock().add(key.clone());
                group.search.iter().for_each(|search| search.lock().refused(key.clone(), &failure));
            }
            let error = match failure.kind {
                // The refusal is not about a single intent, so it is terminal for none.
                Kind::InvalidArgument => failure.not_attributable(),
                // An owner that waits for this resource on the way to its own has not lost a race there.
                Kind::Aborted => Failure { kind: Kind::Unavailable, ..failure },
                _ => failure,
            };
            let concerned = write.map(|write| self.resource.concerned(write, &group.batch()));
            for (key, entry) in group.entries {
                let complaint = self.resource.complaint(&key, write, &error);
                let failure = error.clone().while_doing(&name).with_notices(complaint);
                // A maintained part only failed if it was to be written.
                if !entry.is_maintained
                    || concerned.as_ref().is_some_and(|concerned| concerned.contains(&key))
                {
                    self.refuse(key, entry, failure);
                }
            }
            return Vec::new();
        };
        debug!(resource = %name, error = %failure.message, wait_ms = wait.as_millis(),
            "failed to write to Azure, trying again");
        group.not_before = Instant::now() + wait;
        vec![group]
    }

    /// Handles a refused write: the owners that Azure names fail with its words, the rest is written again. If that is
    /// unclear, the group is halved until the culprit stands alone.
    pub(crate) fn bisect(
        &self,
        mut group: Group<R>,
        write: &R::Write,
        failure: Failure<R::Notice>,
    ) -> Vec<Group<R>> {
        let name = self.resource.name();
        let refuse = |key: &R::Key, entry: Entry<R>| {
            debug!(resource = %name, owner = %key, error = %failure.message, "Azure refused a change");
            if !entry.is_maintained {
                self.suspects.lock().add(key.clone());
            }
            self.refuse(key.clone(), entry, failure.clone().while_doing(&name));
        };
        if group.entries.len() == 1 && !self.resource.is_repair(write) {
            for (key, entry) in group.entries {
                group.search.iter().for_each(|search| search.lock().refused(key.clone(), &failure));
                refuse(&key, entry);
            }
            return Vec::new();
        }
        let named = self.named(&group, &failure);
        info!(resource = %name, intents = group.entries.len(), named = named.len(), error = %failure.message,
            "Azure refused a write, looking for the owner that it refuses");
        if named.is_empty() && self.resource.is_repair(write) {
            // An unknown part of another owner is in the way.
            return self.retry_or_fail(group, Some(write), failure);
        }
        if named.is_empty() || (named.len() == group.entries.len() && named.len() > 1) {
            return self.search(group, &failure);
        }
        group.newer_than = LogicalTime::now();
        if named.len() == 1 {
            for key in &named {
                group.take(key).into_iter().for_each(|entry| refuse(key, entry));
            }
            return vec![group];
        }
        // Several are named, perhaps because one blocks another: the rest first, then one by one.
        let mut parts = Vec::new();
        for key in named.iter().rev() {
            if let Some(entry) = group.take(key) {
                parts.push(Group::closed(BTreeMap::from([(key.clone(), entry)])));
            }
        }
        parts.push(group);
        parts
    }

    /// Halves a group of which Azure names no part. The search for a refusal that may be about the resource is limited.
    fn search(&self, mut group: Group<R>, failure: &Failure<R::Notice>) -> Vec<Group<R>> {
        if group.search.is_none() && failure.may_concern_all() {
            let search = Search::new(group.entries.len(), failure.clone());
            group.search = Some(Arc::new(Mutex::new(search)));
        }
        group.halve().into()
    }
}
