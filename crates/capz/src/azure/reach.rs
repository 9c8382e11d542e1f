//! Executes plans: reads the observed state that goals need, starts every step that can be taken, and plans again
//! whenever one ends. Running operations are kept in the object's status, so that the next reconcile resumes them.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;
use std::time::Duration;

use arm::{Accepted, ApiVersion, Class, Client, Error, Operation};
use azure_types::ResourceId;
use capz_api::Future;
use capz_planner::kind::{Kind, ReadBy};
use capz_planner::plan::{Facts, plan};
use capz_planner::service::Service;
use capz_planner::{Action, Claimant, Goal, ObservedResources, Plan, Reading, State, Step};
use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join_all};
use futures::stream::{FuturesUnordered, StreamExt};
use http::{HeaderName, HeaderValue};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::azure::clients::AzureAccess;
use crate::azure::failure::Failure;
use crate::azure::operations;
use crate::azure::reads::{self, Answer, Reads};
use crate::azure::repeats::{RecentWrites, Writer, fingerprint};
use crate::azure::spans;
use crate::kubernetes::store::Changes;

/// The first wait before a resource is read again that Azure is working on without a known operation; it doubles each
/// time.
const FIRST_POLL_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_POLL_PAUSE: Duration = Duration::from_secs(15);
/// The wait before a document is read again after a conflict with another writer.
const CONTESTED: Duration = Duration::from_millis(200);
/// How many times in a row a resource is busy with the same message before that is reported: after some two minutes. It
/// is retried all the same.
const BUSY_FOR_LONG: u32 = 12;
/// The same for a conflict whose message does not mention a running operation: another resource is in the way.
const CONFLICT_STAYS: u32 = 2;

/// An object whose goals are reconciled.
pub trait Subject: Send {
    /// The goals, given the observed state.
    ///
    /// # Errors
    /// They cannot be derived from the declaration.
    fn goals(&mut self, observed: &ObservedResources) -> Result<Vec<Goal>, Failure>;

    /// Receives the state of the goals and the running operations, and saves them. It is called before any wait.
    fn report(
        &mut self,
        plan: &Plan,
        operations: Vec<Future>,
    ) -> impl std::future::Future<Output = Result<(), Failure>> + Send;

    /// Whether the desired state has changed, so that the reconcile starts anew.
    fn has_changed(&self) -> bool;

    /// The changes of the objects on which [`Self::has_changed`] depends.
    fn changes(&self) -> Changes;
}

/// The inputs for reconciling goals.
pub struct Reach<'a> {
    /// Azure, with the rights of the cluster's identity.
    pub access: &'a AzureAccess,
    /// Lists that reconciles share.
    pub reads: &'a Reads,
    /// Recently written differences, which reconciles share, too.
    pub written: &'a RecentWrites,
    /// On whose behalf ownership is judged.
    pub claimant: Claimant<'a>,
    /// The oldest permitted time of a read.
    pub not_before: Instant,
    /// The wait after a failure that names none.
    pub requeue: Duration,
}

/// The result of a task.
enum TaskResult {
    /// A step was sent.
    Sent(ReportedStep, Box<Step>, Result<Accepted<Value>, Error>),
    /// An operation has ended; this is the resource now.
    Done(ResourceId, Result<Option<Value>, Error>),
    /// A resource was read again.
    Reread(ResourceId, Result<Option<Value>, Error>),
}

/// Where work on a resource is reported: a service in the status, and a span.
struct ReportedStep {
    service: &'static Service,
    span: Span,
}

/// A step to send, with its target.
type Begun = (ResourceId, BoxFuture<'static, TaskResult>);

impl Reach<'_> {
    /// Reconciles until the goals are reached as far as possible, and returns the observed state.
    ///
    /// # Errors
    /// A step was refused, a resource cannot be read, or a retry is needed. Steps that do not depend on the failure
    /// were executed all the same.
    pub async fn run<S: Subject>(
        &self,
        subject: &mut S,
        kept: &[Future],
    ) -> Result<(ObservedResources, Plan), Failure> {
        self.run_from(ObservedResources::default(), subject, kept).await
    }

    /// Like [`Self::run`], starting from the observed state that was read already.
    ///
    /// # Errors
    /// As for [`Self::run`].
    pub async fn run_from<S: Subject>(
        &self,
        seen: ObservedResources,
        subject: &mut S,
        kept: &[Future],
    ) -> Result<(ObservedResources, Plan), Failure> {
        let mut work = RunningReconcile { observed: seen, ..RunningReconcile::default() };
        let mut last = None;
        let failure = match self.pursue(subject, kept, &mut work, &mut last).await {
            Ok(plan) => return work.end(plan, self.claimant),
            Err(failure) => failure,
        };
        // Requests that are still unanswered become operations, which the status keeps for the next reconcile.
        while !work.unanswered.is_empty()
            && let Some(ended) = work.tasks.next().await
        {
            self.take(&mut work, ended);
        }
        if let Some(plan) = &last {
            subject.report(plan, work.futures()).await?;
        }
        Err(failure)
    }

    /// Reconciles until no task runs, and returns the plan at that time. `last` is the plan that was reported last.
    async fn pursue<S: Subject>(
        &self,
        subject: &mut S,
        kept: &[Future],
        work: &mut RunningReconcile,
        last: &mut Option<Plan>,
    ) -> Result<Plan, Failure> {
        // Before the first check, so that no change falls between the two.
        let mut changes = subject.changes();
        loop {
            let goals = subject.goals(&work.observed)?;
            self.resume(work, &goals, kept);
            if self.read_missing(&mut work.observed, &goals).await? {
                continue;
            }
            let facts = Facts {
                claimant: self.claimant,
                observed: &work.observed,
                running: &work.running,
                refused: &work.refused,
            };
            let plan = last.insert(plan(goals, facts));
            if subject.has_changed() {
                return Err(Failure::Changed);
            }
            let begun = self.start(work, plan);
            // Azure may be at work for many minutes, on many machines at a time, so documents are not held in memory
            // meanwhile.
            plan.let_documents_go();
            subject.report(plan, work.futures()).await?;
            work.send(begun);
            let ended = loop {
                tokio::select! {
                    biased;
                    ended = work.tasks.next() => break ended,
                    () = changes.next() => {
                        if subject.has_changed() {
                            return Err(Failure::Changed);
                        }
                    }
                }
            };
            match ended {
                Some(ended) => self.take(work, ended),
                // The answer to the last save may contain a newer declaration than the one that is reached.
                None if subject.has_changed() => return Err(Failure::Changed),
                None => return Ok(last.take().unwrap_or_default()),
            }
        }
    }

    /// Reads the resources that goals need and that are not observed yet. Returns whether anything was read.
    ///
    /// # Errors
    /// Azure does not answer.
    pub async fn read_missing(
        &self,
        observed: &mut ObservedResources,
        goals: &[Goal],
    ) -> Result<bool, Failure> {
        let missing = observed.missing(goals);
        if missing.is_empty() {
            return Ok(false);
        }
        let answers = missing.keys().map(|reading| async move {
            let answer = self.reads.read(self.access, reading, self.not_before).await;
            answer.map_err(|error| Failure::of(&error, self.requeue))
        });
        let answers = try_join_all(answers).await?;
        for ((reading, asked), answer) in missing.iter().zip(answers) {
            match (reading, answer) {
                (_, Answer::List(listed)) => observed.take_list(asked, &listed.these(asked)),
                (Reading::Get { id, .. }, Answer::One(text)) => observed.take(id, reads::document(text)),
                (Reading::List { .. }, Answer::One(_)) => {}
            }
        }
        Ok(true)
    }

    /// Returns all resources of a list.
    ///
    /// # Errors
    /// Azure does not answer.
    pub async fn list(&self, reading: &Reading) -> Result<Vec<Value>, Failure> {
        match self.reads.read(self.access, reading, self.not_before).await {
            Ok(Answer::List(listed)) => Ok(listed.all()),
            Ok(Answer::One(text)) => Ok(reads::document(text).into_iter().collect()),
            Err(error) => Err(Failure::of(&error, self.requeue)),
        }
    }

    /// Resumes the operations in the status.
    fn resume(&self, work: &mut RunningReconcile, goals: &[Goal], kept: &[Future]) {
        for goal in goals {
            work.versions.insert(goal.id.clone(), goal.api_version);
            if work.resumed.insert(goal.id.clone())
                && let Some((action, operation)) = operations::kept(kept, goal)
            {
                let span = spans::step(goal.service, action, &goal.id, true);
                work.wait_for(
                    &self.access.client,
                    &goal.id,
                    ReportedStep { service: goal.service, span },
                    action,
                    operation,
                );
            }
        }
    }

    /// Prepares every step that can be taken, and reads resources again that Azure is working on by itself.
    fn start(&self, work: &mut RunningReconcile, plan: &mut Plan) -> Vec<Begun> {
        let mut begun = Vec::new();
        for id in plan.left_to_others() {
            if work.read_again.insert(id.clone()) {
                work.reread_after(&self.access.client, id, Action::Delete, Duration::ZERO);
            }
        }
        let writer = Writer::from(self.claimant);
        for (goal, state) in &mut plan.items {
            if let State::Now(step) = state
                && let Some(words) = self.written.objection(&writer, goal, step)
            {
                work.refused.insert(goal.id.clone(), words.clone());
                *state = State::Refused(step.action, words);
            }
            match state {
                State::Now(step) if !work.held_back.contains_key(&goal.id) => {
                    if step.action == Action::Delete {
                        self.written.forget(&writer, &step.target);
                    }
                    if let Some(print) = fingerprint(step) {
                        work.prints.insert(goal.id.clone(), print);
                    }
                    work.running.insert(goal.id.clone(), step.action);
                    let document = step.document.take();
                    let span = spans::step(goal.service, step.action, &goal.id, false);
                    let reported = ReportedStep { service: goal.service, span: span.clone() };
                    let (client, step) = (self.client_for(goal), Step { document, ..step.clone() });
                    let version = ApiVersion::new(goal.api_version);
                    begun.push((
                        goal.id.clone(),
                        async move {
                            let sent = send(&client, &step, version).await;
                            spans::ended(&reported.span, &sent);
                            TaskResult::Sent(reported, Box::new(step), sent)
                        }
                        .instrument(span)
                        .boxed(),
                    ));
                }
                State::Running(action) if !work.running.contains_key(&goal.id) => {
                    work.reread_later(&self.access.client, &goal.id, *action);
                }
                _ => {}
            }
        }
        begun
    }

    /// The client for the writes of a goal.
    fn client_for(&self, goal: &Goal) -> Client {
        if goal.headers.is_empty() {
            return self.access.client.clone();
        }
        let header = |(name, value): (&String, &String)| {
            Some((HeaderName::from_str(name).ok()?, HeaderValue::from_str(value).ok()?))
        };
        self.access.client.with_headers(goal.headers.iter().filter_map(header).collect())
    }

    fn take(&self, work: &mut RunningReconcile, ended: TaskResult) {
        if let TaskResult::Sent(_, step, _) = &ended {
            work.unanswered.remove(&step.target);
        }
        match ended {
            TaskResult::Sent(reported, step, Ok(Accepted { operation: Some(operation), .. })) => {
                work.wait_for(&self.access.client, &step.target, reported, step.action, operation);
            }
            TaskResult::Sent(_, step, Ok(Accepted { body, operation: None })) => {
                self.note(work, &step.target);
                work.running.remove(&step.target);
                let document = if step.action == Action::Delete { None } else { body };
                match document {
                    // Azure accepts no condition on the creation of a group: another cluster may have created it at the
                    // same moment. The ID that it bears now decides who owns it.
                    _ if step.action == Action::Create && Kind::of(&step.target).is_group() => {
                        work.reread_after(&self.access.client, &step.target, step.action, Duration::ZERO);
                    }
                    // An answer without a body does not show the current state.
                    None if step.action != Action::Delete => {
                        work.reread_later(&self.access.client, &step.target, step.action);
                    }
                    document => work.observed.take(&step.target, document),
                }
            }
            TaskResult::Sent(_, step, Err(error)) if work.is_contested(&step, &error) => {
                // Another writer changed the same document meanwhile: read it again.
                work.running.remove(&step.target);
                if let Some(parent) = step.target.parent() {
                    work.reread_after(&self.access.client, &parent, Action::Update, CONTESTED);
                }
            }
            TaskResult::Sent(_, step, Err(error)) => self.failed(work, &step.target, step.action, &error),
            TaskResult::Done(id, answer) => {
                let action = work.running.remove(&id).unwrap_or(Action::Update);
                work.operations.remove(&id);
                match answer {
                    Ok(document) => {
                        self.note(work, &id);
                        work.observed.take(&id, document);
                    }
                    Err(error) => self.failed(work, &id, action, &error),
                }
            }
            TaskResult::Reread(id, answer) => {
                let action = work.running.remove(&id).unwrap_or(Action::Update);
                match answer {
                    Ok(document) => work.observed.take(&id, document),
                    Err(error) => self.failed(work, &id, action, &error),
                }
            }
        }
    }

    /// Azure has completed a step.
    fn note(&self, work: &mut RunningReconcile, id: &ResourceId) {
        work.busy.remove(id);
        if let Some(print) = work.prints.remove(id) {
            self.written.note(&Writer::from(self.claimant), id, print);
        }
    }

    fn failed(&self, work: &mut RunningReconcile, id: &ResourceId, action: Action, error: &Error) {
        work.running.remove(id);
        work.prints.remove(id);
        let is_outdated = error.is_precondition_failed()
            || error.is_conflict_in_progress()
            || error.is_superseded()
            || matches!(error, Error::OperationLost { .. } | Error::OperationDeadline { .. });
        if is_outdated && work.is_busy_for_long(id, error) {
            work.refused.insert(id.clone(), error.full_text());
            return;
        }
        if is_outdated {
            // Another writer was faster: read the current state.
            work.reread_later(&self.access.client, id, action);
            return;
        }
        match Failure::of(error, self.requeue) {
            Failure::Later { after, words } => {
                work.held_back.insert(id.clone(), (after, words));
            }
            other => {
                work.refused.insert(id.clone(), other.to_string());
            }
        }
    }
}

/// The state of a running reconcile.
#[derive(Default)]
struct RunningReconcile {
    observed: ObservedResources,
    running: BTreeMap<ResourceId, Action>,
    /// The operations for the status.
    operations: BTreeMap<ResourceId, Future>,
    refused: BTreeMap<ResourceId, String>,
    /// Failures that may pass, with their waits.
    held_back: BTreeMap<ResourceId, (Duration, String)>,
    /// How many times each resource was read again.
    rereads: BTreeMap<ResourceId, u32>,
    /// Refused children of documents that have other writers, too.
    contested: BTreeMap<ResourceId, Value>,
    tasks: FuturesUnordered<BoxFuture<'static, TaskResult>>,
    /// Requests without an answer yet.
    unanswered: BTreeSet<ResourceId>,
    /// Resources that were read once more before they were left to other owners.
    read_again: BTreeSet<ResourceId>,
    /// The last message with which each resource was busy, and how many times in a row.
    busy: BTreeMap<ResourceId, (String, u32)>,
    /// Fingerprints of the differences that are being written.
    prints: BTreeMap<ResourceId, u64>,
    /// Goals whose operations were looked up in the status.
    resumed: BTreeSet<ResourceId>,
    /// The versions of Azure's API in which resources are read again.
    versions: BTreeMap<ResourceId, &'static str>,
}

impl RunningReconcile {
    fn send(&mut self, begun: Vec<Begun>) {
        for (id, step) in begun {
            self.unanswered.insert(id);
            self.tasks.push(step);
        }
    }

    /// The version of Azure's API in which a resource is read.
    fn version_of(&self, id: &ResourceId) -> &'static str {
        self.versions.get(id).copied().unwrap_or_else(|| Kind::of(id).api_version)
    }

    fn futures(&self) -> Vec<Future> {
        self.operations.values().cloned().collect()
    }

    fn wait_for(
        &mut self,
        client: &Client,
        id: &ResourceId,
        reported: ReportedStep,
        action: Action,
        operation: Operation,
    ) {
        let id = id.clone();
        if let Some(future) = operations::keep(&id, reported.service, action, &operation) {
            self.operations.insert(id.clone(), future);
        }
        self.running.insert(id.clone(), action);
        let (client, span, version) = (client.clone(), reported.span, self.version_of(&id));
        self.tasks.push(
            async move {
                let ended = match client.wait(&operation).await {
                    Ok(()) => reads::get(&client, &id, version, Class::Create).await,
                    Err(error) => Err(error),
                };
                spans::ended(&Span::current(), &ended);
                TaskResult::Done(id, ended)
            }
            .instrument(span)
            .boxed(),
        );
    }

    /// Whether a refusal may come from other writers' changes to the same document since it was read, so that a read
    /// and another plan may help. The same document refused twice stays refused.
    fn is_contested(&mut self, step: &Step, error: &Error) -> bool {
        let shared = matches!(Kind::of(&step.target).read_by, ReadBy::Parent(_));
        shared
            && step.action == Action::Create
            && error.is_refusal()
            && self.contested.insert(step.target.clone(), step.document.clone()).as_ref()
                != Some(&step.document)
    }

    /// Whether a resource has been busy with the same message too often: the cause may not pass by itself.
    fn is_busy_for_long(&mut self, id: &ResourceId, error: &Error) -> bool {
        let words = error.full_text();
        let (last, times) = self.busy.entry(id.clone()).or_default();
        *times = if *last == words { *times + 1 } else { 1 };
        let limit = if speaks_of_work(&words) { BUSY_FOR_LONG } else { CONFLICT_STAYS };
        *last = words;
        *times >= limit
    }

    fn reread_later(&mut self, client: &Client, id: &ResourceId, action: Action) {
        let rereads = self.rereads.entry(id.clone()).or_default();
        let pause = FIRST_POLL_PAUSE.saturating_mul(1 << (*rereads).min(4)).min(LONGEST_POLL_PAUSE);
        *rereads += 1;
        self.reread_after(client, id, action, pause);
    }

    fn reread_after(&mut self, client: &Client, id: &ResourceId, action: Action, pause: Duration) {
        self.running.insert(id.clone(), action);
        let (client, id, version) = (client.clone(), id.clone(), self.version_of(id));
        self.tasks.push(
            async move {
                tokio::time::sleep(pause).await;
                let document = reads::get(&client, &id, version, Class::Create).await;
                TaskResult::Reread(id, document)
            }
            .boxed(),
        );
    }

    /// Ends the reconcile when no task runs any more.
    fn end(self, plan: Plan, claimant: Claimant<'_>) -> Result<(ObservedResources, Plan), Failure> {
        // Resources that stay because they are in use are named by the event `ResourcesLeft`.
        let stays = |id: &ResourceId| matches!(plan.state_of(id), Some(State::InUse(_)));
        if let Some((_, words)) = self.refused.iter().find(|(id, _)| !stays(id)) {
            return Err(Failure::Refused(words.clone()));
        }
        for (goal, state) in &plan.items {
            if let State::Disputed(rival) = state {
                return Err(Failure::Refused(goal.disputed(claimant, rival)));
            }
        }
        if let Some((_, (after, words))) = self.held_back.iter().max_by_key(|(_, (after, _))| *after) {
            return Err(Failure::Later { after: *after, words: words.clone() });
        }
        if let Some((goal, _)) = plan.items.iter().find(|(_, state)| *state == State::Missing) {
            let name = goal.name_for_people();
            return Err(Failure::Refused(format!(
                "{name} does not exist, and this program does not create it: create it, or name another"
            )));
        }
        if let Some((goal, state)) = plan.items.iter().find(|(_, state)| !state.is_there()) {
            let name = goal.name_for_people();
            tracing::debug!(%name, ?state, "a goal can be neither reached nor pursued");
            return Err(Failure::Refused(format!("{name} cannot be reached: {}", why(state))));
        }
        Ok((self.observed, plan))
    }
}

/// Whether the message of a conflict mentions something that is under way and passes.
fn speaks_of_work(words: &str) -> bool {
    let words = words.to_lowercase();
    [
        "progress",
        "another operation",
        "retry",
        "try again",
        "being",
        "pending",
        "busy",
        "precondition",
        "changed",
    ]
    .iter()
    .any(|word| words.contains(word))
}

fn why(state: &State) -> String {
    match state {
        State::Waits(first) => {
            let names: Vec<&str> = first.iter().map(ResourceId::name).collect();
            format!("it waits for {}", names.join(", "))
        }
        State::Unknown => "its state in Azure is unknown".to_owned(),
        State::Refused(_, words) => words.clone(),
        _ => "it is not as declared".to_owned(),
    }
}

async fn send(client: &Client, step: &Step, version: ApiVersion) -> Result<Accepted<Value>, Error> {
    let if_match = step.if_match.as_deref();
    match step.action {
        Action::Update if step.partial => {
            client.patch(&step.target, version, &step.document, if_match, Class::Create).await
        }
        // An unlisted resource may exist all the same, because lists lag. Values in it that other writers set are not
        // replaced.
        Action::Create => client.create(&step.target, version, &step.document, Class::Create).await,
        Action::Update => client.put(&step.target, version, &step.document, if_match, Class::Create).await,
        Action::Delete => {
            let query: &[(&str, &str)] = if step.forced { &[("forceDeletion", "true")] } else { &[] };
            match client.delete_with(&step.target, version, query, if_match, Class::Delete).await {
                Ok(deleted) => Ok(Accepted { body: None, operation: deleted.operation }),
                Err(error) if reads::says_absent(&error) => Ok(Accepted { body: None, operation: None }),
                Err(error) => Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests;
