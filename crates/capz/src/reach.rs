//! Carries plans out: reads what goals need to know, starts every step that may be taken now, and plans again whenever one
//! ends. What runs is kept in the object's status, so that whoever comes next goes on with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use arm::{Accepted, ApiVersion, Class, Client, Error, Operation};
use azure_types::ResourceId;
use capz_api::Future;
use capz_planner::kind::{Kind, ReadBy};
use capz_planner::plan::{Facts, plan};
use capz_planner::service::Service;
use capz_planner::terminal::Terminal;
use capz_planner::{Action, Claimant, Goal, Observed, Plan, Reading, State, Step};
use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join_all};
use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::time::Instant;
use tracing::{Instrument as _, Span};

use crate::operations;
use crate::patch::PatchError;
use crate::reads::{self, Answer, Reads};
use crate::repeats::{Writer, Written, fingerprint};
use crate::spans;

/// The wait before a resource is looked at again that Azure is at work on, and of which no operation is known; the next one
/// is twice as long.
const FIRST_LOOK: Duration = Duration::from_secs(1);
const LONGEST_LOOK: Duration = Duration::from_secs(15);
/// How often it is looked whether what is wanted has changed, while Azure is at work.
const GLANCE: Duration = Duration::from_secs(1);
/// The wait before a document is read again into which somebody else wrote at the same time.
const CONTESTED: Duration = Duration::from_millis(200);
/// How often in a row the same words say that a resource is busy before somebody is told: after some two minutes. It is tried
/// on all the same.
const BUSY_FOR_LONG: u32 = 12;
/// The same for a conflict whose words do not speak of anything under way: it is another resource that is in the way.
const CONFLICT_STAYS: u32 = 2;
/// The wait after a throttled answer that names no time.
const THROTTLED: Duration = Duration::from_secs(60);

/// Whose goals are reached.
pub trait Subject: Send {
    /// What is wanted, given what is known.
    ///
    /// # Errors
    /// It cannot be had as it is declared.
    fn goals(&mut self, observed: &Observed) -> Result<Vec<Goal>, Failure>;

    /// Takes note of where goals stand and which operations run, and writes it down. It is told before anything is waited
    /// for.
    fn tell(
        &mut self,
        plan: &Plan,
        operations: Vec<Future>,
    ) -> impl std::future::Future<Output = Result<(), Failure>> + Send;

    /// Whether what is wanted has changed, so that the work begins anew.
    fn has_changed(&self) -> bool;
}

/// Why goals were not reached.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// It will be otherwise later: after this time, if it is known.
    #[error("{words}")]
    Later {
        /// When to try again.
        after: Duration,
        /// What is the matter.
        words: String,
    },
    /// Somebody has to change what is declared, or Azure.
    #[error("{0}")]
    Refused(String),
    /// It cannot be had as it is declared, and is not tried again before that changes.
    #[error("{0}")]
    Terminal(Terminal),
    /// What is wanted has changed meanwhile.
    #[error("what is declared has changed: the work begins anew")]
    Changed,
}

/// Why something that is deleted is still there. It stays until the next attempt has come as far as to Azure.
pub const DELETION_FAILED: &str = "DeletionFailed";

impl Failure {
    /// What a condition has to say of it, as reason and words; nothing where it passes by itself. What is there already runs on
    /// while nobody can look at it.
    pub fn told(&self, deleting: bool, is_there: bool) -> Option<(&'static str, &str)> {
        let reason = if deleting { DELETION_FAILED } else { "Failed" };
        match self {
            Self::Terminal(terminal) => Some((reason, &terminal.message)),
            Self::Refused(words) if deleting || !is_there => Some((reason, words)),
            _ => None,
        }
    }

    /// What an error of Azure's means for the work.
    pub fn of(error: &Error, requeue: Duration) -> Self {
        if error.is_throttled() {
            let after = error.retry_after().unwrap_or(THROTTLED);
            return Self::Later { after, words: error.full_text() };
        }
        if error.is_transient() || error.is_conflict_in_progress() {
            let after = error.retry_after().unwrap_or(requeue);
            return Self::Later { after, words: error.full_text() };
        }
        Self::Refused(error.full_text())
    }

    /// What it means that an object was not written: somebody else was there first, or the API server has to be asked again.
    pub fn of_write(error: &PatchError, requeue: Duration) -> Self {
        if error.is_conflict() || error.is_not_found() {
            return Self::Changed;
        }
        Self::Later { after: requeue, words: error.to_string() }
    }
}

/// What it takes to reach goals.
pub struct Reach<'a> {
    /// Azure, with the rights of the cluster's identity.
    pub client: &'a Client,
    /// Whose client it is.
    pub tenant: &'a Arc<str>,
    /// Lists that many loops share.
    pub reads: &'a Reads,
    /// Differences that were written lately, which all loops share, too.
    pub written: &'a Written,
    /// On whose behalf resources are judged.
    pub claimant: Claimant<'a>,
    /// What is read must be no older than this.
    pub not_before: Instant,
    /// The wait after a failure that names none.
    pub requeue: Duration,
}

/// What ended.
enum Ended {
    /// A step was sent.
    Sent(Told, Box<Step>, Result<Accepted<Value>, Error>),
    /// An operation is over, and this is there now.
    Done(ResourceId, Result<Option<Value>, Error>),
    /// A resource was looked at again.
    Looked(ResourceId, Result<Option<Value>, Error>),
}

/// Where the work on a resource is told of: a part of the status, and a trace.
struct Told {
    service: &'static Service,
    span: Span,
}

/// A step that is about to be sent, and to what.
type Begun = (ResourceId, BoxFuture<'static, Ended>);

impl Reach<'_> {
    /// Works until everything is as wanted, as far as it can be, and gives what Azure holds then.
    ///
    /// # Errors
    /// Something was refused, cannot be read, or has to be tried later. What does not depend on it was done all the same.
    pub async fn run<S: Subject>(
        &self,
        subject: &mut S,
        kept: &[Future],
    ) -> Result<(Observed, Plan), Failure> {
        self.run_from(Observed::default(), subject, kept).await
    }

    /// The same from what was seen already, which is not read once more.
    ///
    /// # Errors
    /// As above.
    pub async fn run_from<S: Subject>(
        &self,
        seen: Observed,
        subject: &mut S,
        kept: &[Future],
    ) -> Result<(Observed, Plan), Failure> {
        let mut work = Work {
            observed: seen,
            running: BTreeMap::new(),
            operations: BTreeMap::new(),
            refused: BTreeMap::new(),
            held_back: BTreeMap::new(),
            looks: BTreeMap::new(),
            contested: BTreeMap::new(),
            tasks: FuturesUnordered::new(),
            unanswered: BTreeSet::new(),
            resumed: BTreeSet::new(),
            read_again: BTreeSet::new(),
            prints: BTreeMap::new(),
            busy: BTreeMap::new(),
        };
        let mut last = None;
        let failure = match self.pursue(subject, kept, &mut work, &mut last).await {
            Ok(plan) => return work.end(plan, self.claimant),
            Err(failure) => failure,
        };
        // What was sent last becomes an operation, which the status keeps for whoever comes next.
        while !work.unanswered.is_empty()
            && let Some(ended) = work.tasks.next().await
        {
            self.take(&mut work, ended);
        }
        if let Some(plan) = &last {
            subject.tell(plan, work.futures()).await?;
        }
        Err(failure)
    }

    /// Works until nothing runs any more, and gives the plan of then. `last` is the plan that was told last.
    async fn pursue<S: Subject>(
        &self,
        subject: &mut S,
        kept: &[Future],
        work: &mut Work,
        last: &mut Option<Plan>,
    ) -> Result<Plan, Failure> {
        loop {
            let goals = subject.goals(&work.observed)?;
            self.resume(work, &goals, kept);
            if self.look(&mut work.observed, &goals).await? {
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
            // Azure may be at work for many minutes, on many machines at a time.
            plan.let_documents_go();
            subject.tell(plan, work.futures()).await?;
            work.send(begun);
            let ended = loop {
                match tokio::time::timeout(GLANCE, work.tasks.next()).await {
                    Ok(ended) => break ended,
                    Err(_) if subject.has_changed() => return Err(Failure::Changed),
                    Err(_) => {}
                }
            };
            match ended {
                Some(ended) => self.take(work, ended),
                // What was told last may have been answered with another declaration than the one that is reached.
                None if subject.has_changed() => return Err(Failure::Changed),
                None => return Ok(last.take().unwrap_or_default()),
            }
        }
    }

    /// Reads what goals need to know and what has not been seen yet. Says whether anything was read.
    ///
    /// # Errors
    /// Azure does not answer.
    pub async fn look(&self, observed: &mut Observed, goals: &[Goal]) -> Result<bool, Failure> {
        let missing = observed.missing(goals);
        if missing.is_empty() {
            return Ok(false);
        }
        let answers = missing.keys().map(|reading| async move {
            let answer = self.reads.read(self.tenant, self.client, reading, self.not_before).await;
            answer.map_err(|error| Failure::of(&error, self.requeue))
        });
        let answers = try_join_all(answers).await?;
        for ((reading, asked), answer) in missing.iter().zip(answers) {
            match (reading, answer) {
                (_, Answer::List(listed)) => observed.take_list(asked, &listed.these(asked)),
                (Reading::Get { id, .. }, Answer::One(document)) => observed.take(id, document),
                (Reading::List { .. }, Answer::One(_)) => {}
            }
        }
        Ok(true)
    }

    /// All that a list shows.
    ///
    /// # Errors
    /// Azure does not answer.
    pub async fn list(&self, reading: &Reading) -> Result<Vec<Value>, Failure> {
        match self.reads.read(self.tenant, self.client, reading, self.not_before).await {
            Ok(Answer::List(listed)) => Ok(listed.all()),
            Ok(Answer::One(document)) => Ok(document.into_iter().collect()),
            Err(error) => Err(Failure::of(&error, self.requeue)),
        }
    }

    /// Goes on with what the status keeps.
    fn resume(&self, work: &mut Work, goals: &[Goal], kept: &[Future]) {
        for goal in goals {
            if work.resumed.insert(goal.id.clone())
                && let Some((action, operation)) = operations::kept(kept, goal)
            {
                let span = spans::step(goal.service, action, &goal.id, true);
                work.wait_for(self.client, &goal.id, Told { service: goal.service, span }, action, operation);
            }
        }
    }

    /// Begins every step that may be taken now, and looks again at what Azure is at work on by itself.
    fn start(&self, work: &mut Work, plan: &mut Plan) -> Vec<Begun> {
        let mut begun = Vec::new();
        for id in plan.left_to_others() {
            if work.read_again.insert(id.clone()) {
                work.look_soon(self.client, id, Action::Delete, Duration::ZERO);
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
                    let told = Told { service: goal.service, span: span.clone() };
                    let (client, step) = (self.client.clone(), Step { document, ..step.clone() });
                    begun.push((
                        goal.id.clone(),
                        async move {
                            let sent = send(&client, &step).await;
                            spans::ended(&told.span, &sent);
                            Ended::Sent(told, Box::new(step), sent)
                        }
                        .instrument(span)
                        .boxed(),
                    ));
                }
                State::Running(action) if !work.running.contains_key(&goal.id) => {
                    work.look_again(self.client, &goal.id, *action);
                }
                _ => {}
            }
        }
        begun
    }

    fn take(&self, work: &mut Work, ended: Ended) {
        if let Ended::Sent(_, step, _) = &ended {
            work.unanswered.remove(&step.target);
        }
        match ended {
            Ended::Sent(told, step, Ok(Accepted { operation: Some(operation), .. })) => {
                work.wait_for(self.client, &step.target, told, step.action, operation);
            }
            Ended::Sent(_, step, Ok(Accepted { body, operation: None })) => {
                self.note(work, &step.target);
                work.running.remove(&step.target);
                let document = if step.action == Action::Delete { None } else { body };
                match document {
                    // Azure takes no condition on the creation of a group: another cluster may have made it at the same moment. It
                    // is whose id it bears now.
                    _ if step.action == Action::Create && Kind::of(&step.target).is_group() => {
                        work.look_soon(self.client, &step.target, step.action, Duration::ZERO);
                    }
                    // An answer without a body says nothing of what is there now.
                    None if step.action != Action::Delete => {
                        work.look_again(self.client, &step.target, step.action);
                    }
                    document => work.observed.take(&step.target, document),
                }
            }
            Ended::Sent(_, step, Err(error)) if work.is_contested(&step, &error) => {
                // Somebody else put the same there meanwhile: see what is left.
                work.running.remove(&step.target);
                if let Some(parent) = step.target.parent() {
                    work.look_soon(self.client, &parent, Action::Update, CONTESTED);
                }
            }
            Ended::Sent(_, step, Err(error)) => self.failed(work, &step.target, step.action, &error),
            Ended::Done(id, answer) => {
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
            Ended::Looked(id, answer) => {
                let action = work.running.remove(&id).unwrap_or(Action::Update);
                match answer {
                    Ok(document) => work.observed.take(&id, document),
                    Err(error) => self.failed(work, &id, action, &error),
                }
            }
        }
    }

    /// Azure has done what it was asked for.
    fn note(&self, work: &mut Work, id: &ResourceId) {
        work.busy.remove(id);
        if let Some(print) = work.prints.remove(id) {
            self.written.note(&Writer::from(self.claimant), id, print);
        }
    }

    fn failed(&self, work: &mut Work, id: &ResourceId, action: Action, error: &Error) {
        work.running.remove(id);
        work.prints.remove(id);
        let look = error.is_precondition_failed()
            || error.is_conflict_in_progress()
            || error.is_superseded()
            || matches!(error, Error::OperationLost { .. } | Error::OperationDeadline { .. });
        if look && work.is_busy_for_long(id, error) {
            work.refused.insert(id.clone(), error.full_text());
            return;
        }
        if look {
            // Somebody else was there first: see what there is now.
            work.look_again(self.client, id, action);
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

/// What is under way.
struct Work {
    observed: Observed,
    running: BTreeMap<ResourceId, Action>,
    /// Operations that the status keeps.
    operations: BTreeMap<ResourceId, Future>,
    refused: BTreeMap<ResourceId, String>,
    /// What failed and may succeed later.
    held_back: BTreeMap<ResourceId, (Duration, String)>,
    /// How often a resource was looked at again.
    looks: BTreeMap<ResourceId, u32>,
    /// What was refused once inside a document that others write, too.
    contested: BTreeMap<ResourceId, Value>,
    tasks: FuturesUnordered<BoxFuture<'static, Ended>>,
    /// What was sent and is not answered yet.
    unanswered: BTreeSet<ResourceId>,
    /// What was read once more before it was left to others.
    read_again: BTreeSet<ResourceId>,
    /// The words with which each was busy last, and how often in a row.
    busy: BTreeMap<ResourceId, (String, u32)>,
    /// Fingerprints of the differences that are being written.
    prints: BTreeMap<ResourceId, u64>,
    /// Whose operations the status was asked for.
    resumed: BTreeSet<ResourceId>,
}

impl Work {
    fn send(&mut self, begun: Vec<Begun>) {
        for (id, step) in begun {
            self.unanswered.insert(id);
            self.tasks.push(step);
        }
    }

    fn futures(&self) -> Vec<Future> {
        self.operations.values().cloned().collect()
    }

    fn wait_for(
        &mut self,
        client: &Client,
        id: &ResourceId,
        told: Told,
        action: Action,
        operation: Operation,
    ) {
        let id = id.clone();
        if let Some(future) = operations::keep(&id, told.service, action, &operation) {
            self.operations.insert(id.clone(), future);
        }
        self.running.insert(id.clone(), action);
        let (client, span) = (client.clone(), told.span);
        self.tasks.push(
            async move {
                let ended = match client.wait(&operation).await {
                    Ok(()) => get(&client, &id).await,
                    Err(error) => Err(error),
                };
                spans::ended(&Span::current(), &ended);
                Ended::Done(id, ended)
            }
            .instrument(span)
            .boxed(),
        );
    }

    /// Whether a refusal may come from what others wrote into the same document since it was read: then something else is
    /// tried next. What is refused twice as it is stays refused.
    fn is_contested(&mut self, step: &Step, error: &Error) -> bool {
        let shared = matches!(Kind::of(&step.target).read_by, ReadBy::Parent(_));
        shared
            && step.action == Action::Create
            && error.is_refusal()
            && self.contested.insert(step.target.clone(), step.document.clone()).as_ref()
                != Some(&step.document)
    }

    /// Whether a resource has been busy in the same words for long: these may mean something that does not pass by itself.
    fn is_busy_for_long(&mut self, id: &ResourceId, error: &Error) -> bool {
        let words = error.full_text();
        let (last, times) = self.busy.entry(id.clone()).or_default();
        *times = if *last == words { *times + 1 } else { 1 };
        let limit = if speaks_of_work(&words) { BUSY_FOR_LONG } else { CONFLICT_STAYS };
        *last = words;
        *times >= limit
    }

    fn look_again(&mut self, client: &Client, id: &ResourceId, action: Action) {
        let looks = self.looks.entry(id.clone()).or_default();
        let pause = FIRST_LOOK.saturating_mul(1 << (*looks).min(4)).min(LONGEST_LOOK);
        *looks += 1;
        self.look_soon(client, id, action, pause);
    }

    fn look_soon(&mut self, client: &Client, id: &ResourceId, action: Action, pause: Duration) {
        self.running.insert(id.clone(), action);
        let (client, id) = (client.clone(), id.clone());
        self.tasks.push(
            async move {
                tokio::time::sleep(pause).await;
                let document = get(&client, &id).await;
                Ended::Looked(id, document)
            }
            .boxed(),
        );
    }

    /// Nothing runs any more.
    fn end(self, plan: Plan, claimant: Claimant<'_>) -> Result<(Observed, Plan), Failure> {
        // What stays because others use it is named by the event `ResourcesLeft`.
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
                "{name} does not exist, and is not for this program to make: create it, or name another"
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

/// Whether the words of a conflict speak of something that is under way, and passes.
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
        State::Unknown => "it is not known what Azure holds".to_owned(),
        State::Refused(_, words) => words.clone(),
        _ => "it is not as declared".to_owned(),
    }
}

async fn get(client: &Client, id: &ResourceId) -> Result<Option<Value>, Error> {
    reads::get(client, id, Kind::of(id).api_version, Class::Create).await
}

async fn send(client: &Client, step: &Step) -> Result<Accepted<Value>, Error> {
    let version = ApiVersion::new(Kind::of(&step.target).api_version);
    let if_match = step.if_match.as_deref();
    match step.action {
        Action::Update if step.partial => {
            client.patch(&step.target, version, &step.document, if_match, Class::Create).await
        }
        // What was not seen may be there all the same: lists lag. What somebody has written into it is not replaced.
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
