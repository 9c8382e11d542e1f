//! Long-running operations ("Track asynchronous Azure operations").

pub mod execution;
pub mod outside;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, VecDeque};

use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::refusal::{Code, Refusal};
use crate::types::protocol::{KeyForm, Protocol};

/// The effect of an operation when it succeeds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Completion {
    /// The written resource becomes `Succeeded`.
    Write,
    /// The resource is deleted, with everything below it.
    Delete,
    /// The resource type completes the action: its name and arguments.
    Action(String, Value),
    /// A later step of a service, after the request was answered: the resource type continues with it, and the
    /// resource's state stays.
    Step(String),
    /// Nothing changes: the operation ends with this answer.
    Report(Value),
}

/// An operation on a resource that has ended.
#[derive(Clone, Copy)]
pub struct EndedOperation<'a> {
    /// What it was to bring about.
    pub completion: &'a Completion,
    /// Whether it failed or was cancelled.
    pub failed: bool,
}

/// The hidden member of a record with the failure of its last operation: code and message.
pub const FAILURE: &str = "failure";

/// The status of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Status {
    /// It runs.
    InProgress,
    /// It succeeded.
    Succeeded,
    /// It failed, with the reason.
    Failed(Refusal),
    /// It was canceled, with the reason.
    Canceled(Refusal),
}

impl Status {
    /// Azure's name of the status.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::InProgress => "InProgress",
            Self::Succeeded => "Succeeded",
            Self::Failed(_) => "Failed",
            Self::Canceled(_) => "Canceled",
        }
    }
}

/// The form in which answers give the time of the next poll. Clients must understand all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum RetryAfterStyle {
    /// `Retry-After: 10`
    #[default]
    Seconds,
    /// `Retry-After: Thu, 01 Jan 2026 00:00:10 GMT`
    HttpDate,
    /// `retry-after-ms: 10000`
    Milliseconds,
    /// `x-ms-retry-after-ms: 10000`
    MsMilliseconds,
    /// `Retry-After: 10` on polls, nothing on the answer that starts the operation.
    OnPolls,
    /// Nothing at all.
    Absent,
}

/// The URLs in the answer that starts an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OperationUrls {
    /// `Azure-AsyncOperation` alone.
    AsyncOperation,
    /// `Location` alone.
    Location,
    /// `Azure-AsyncOperation` and `Location`.
    Both,
    /// Neither: clients follow the resource's own `provisioningState`.
    Neither,
}

/// How an operation can be followed, where that is not as its provider does it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationStyle {
    /// Which URLs the first answer has.
    pub urls: Option<OperationUrls>,
    /// How answers say when to ask again.
    pub retry_after: Option<RetryAfterStyle>,
    /// Polls find nothing, as if it had expired.
    pub forgotten: bool,
}

/// The public state of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OperationState {
    /// The key in its URLs.
    pub key: String,
    /// Such as `PutLoadBalancerOperation`.
    pub name: String,
    /// The resource it works on.
    pub resource: ResourceId,
    /// `InProgress`, `Succeeded`, `Failed` or `Canceled`.
    pub status: String,
    /// When it was started.
    pub started: Timestamp,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ended: Option<Timestamp>,
    /// Milliseconds until it ends; absent for one that is over or never ends by itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub remaining_ms: Option<u64>,
    /// Whether polls find it.
    pub readable: bool,
}

/// How to end an operation that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum OperationEnd {
    /// Well.
    Succeeded,
    /// With an error; the resource is `Failed` then.
    Failed {
        /// Azure's error code.
        code: String,
        /// Azure's error text.
        #[serde(default)]
        message: String,
    },
    /// `Canceled`; the resource is `Failed` then, or `Canceled` where its type has that state.
    Canceled,
}

impl OperationEnd {
    /// How an operation is then.
    pub fn status(&self) -> Status {
        match self {
            Self::Succeeded => Status::Succeeded,
            Self::Failed { code, message } => Status::Failed(Refusal::network(400, code, message)),
            Self::Canceled => {
                Status::Canceled(Code::azures(409, "Canceled").details("Operation was canceled."))
            }
        }
    }
}

/// A long-running operation.
#[derive(Clone)]
pub struct Operation {
    /// GUID; for resource groups an opaque text.
    pub key: String,
    /// From 1, in the order of their start.
    pub number: u64,
    /// Such as `PutLoadBalancerOperation`.
    pub name: String,
    /// How requests about its resource are answered.
    pub protocol: &'static Protocol,
    /// The resource it works on.
    pub subject: ResourceId,
    /// When it was started.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// When it ends; `None` for one that never does by itself.
    pub due: Option<Instant>,
    /// Where it is.
    pub status: Status,
    /// What happens when it ends well.
    pub completion: Completion,
    /// How it will end, where a fault says so.
    pub ending: Option<Status>,
    /// How it can be followed.
    pub operation_style: OperationStyle,
    /// What its resource's state is called while it runs, where that is not the state's usual name.
    pub shown: Option<Cow<'static, str>>,
    /// Until when it is readable, once it has ended.
    pub readable_until: Option<Instant>,
}

impl Operation {
    fn readable(&self, now: Instant) -> bool {
        !self.operation_style.forgotten && self.readable_until.is_none_or(|until| now < until)
    }

    /// Its public state.
    pub fn state(&self, now: Instant) -> OperationState {
        let running = self.status == Status::InProgress;
        OperationState {
            key: self.key.clone(),
            name: self.name.clone(),
            resource: self.subject.clone(),
            status: self.status.as_str().into(),
            started: self.started,
            ended: self.ended,
            remaining_ms: self
                .due
                .filter(|_| running)
                .map(|due| due.saturating_duration_since(now).as_millis() as u64),
            readable: self.readable(now),
        }
    }
}

/// How many ended operations stay readable. A client polls an operation within minutes of its end, and in that time not
/// even hundreds of clients end as many.
const MAX_ENDED: usize = 10_000;

/// How long an ended operation stays readable. Azure promises no time; a day is our choice.
const READABLE_FOR: std::time::Duration = std::time::Duration::from_secs(24 * 3_600);

/// The operation's name in a key of [`KeyForm::Named`].
fn name_in(key: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(key).ok()?).ok()?;
    text.split(';').nth(1).map(str::to_owned)
}

/// All operations, running and past.
#[derive(Default)]
pub struct Operations {
    by_key: HashMap<String, Operation>,
    /// Running operations in the order in which they end.
    queue: BTreeSet<(Instant, u64, String)>,
    /// Ended operations, oldest first; the oldest expire.
    ended: VecDeque<String>,
    count: u64,
}

impl Operations {
    /// The number of the next operation.
    pub fn next_number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Keeps an operation that has begun.
    pub fn start(&mut self, operation: Operation) {
        if let Some(due) = operation.due {
            self.queue.insert((due, operation.number, operation.key.clone()));
        }
        self.by_key.insert(operation.key.clone(), operation);
    }

    /// Chooses how a running operation will end; `false` where none of that key runs.
    pub fn set_ending(&mut self, key: &str, ending: Status) -> bool {
        let running = self.by_key.get_mut(key).filter(|operation| operation.status == Status::InProgress);
        running.map(|operation| operation.ending = Some(ending)).is_some()
    }

    /// Ends a running operation and gives it back; `None` when it is not running.
    pub fn end(&mut self, key: &str, now: Timestamp) -> Option<&mut Operation> {
        let operation =
            self.by_key.get_mut(key).filter(|operation| operation.status == Status::InProgress)?;
        operation.ended = Some(now);
        if let Some(due) = operation.due {
            self.queue.remove(&(due, operation.number, operation.key.clone()));
        }
        operation.readable_until = Some(Instant::now() + READABLE_FOR);
        self.ended.push_back(key.to_owned());
        if self.ended.len() > MAX_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.by_key.remove(&oldest);
        }
        self.by_key.get_mut(key)
    }

    /// The operation of a key.
    pub fn get(&self, key: &str) -> Option<&Operation> {
        self.by_key.get(&key.to_ascii_lowercase()).or_else(|| self.by_key.get(key))
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Operation> {
        self.by_key.get_mut(key)
    }

    /// How many were ever started.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Keys of those that are over and remembered, the oldest first.
    pub fn ended(&self) -> Vec<String> {
        self.ended.iter().cloned().collect()
    }

    /// Replaces everything by what was saved.
    pub fn restore(&mut self, operations: Vec<Operation>, ended: Vec<String>, count: u64) {
        *self = Self { count, ended: ended.into(), ..Self::default() };
        for operation in operations {
            if operation.status == Status::InProgress {
                self.start(operation);
            } else {
                self.by_key.insert(operation.key.clone(), operation);
            }
        }
    }

    /// The operation that a poll in a subscription finds. The nil GUID names the one that was started last:
    /// so that people need not copy GUIDs, and that requests whose identifiers were taken out can be sent
    /// again. For the same reason a key that another Azure gave out, and that holds the operation's name, names
    /// the last one of that name.
    pub fn readable(&self, key: &str, subscription: &str) -> Option<&Operation> {
        let here =
            |operation: &&Operation| operation.subject.subscription_id().eq_ignore_ascii_case(subscription);
        let found = match uuid::Uuid::parse_str(key) {
            Ok(guid) if guid.is_nil() => {
                self.by_key.values().filter(here).max_by_key(|operation| operation.number)
            }
            _ => self.get(key).filter(here).or_else(|| {
                let name = name_in(key)?;
                let same = |operation: &&Operation| {
                    matches!(operation.protocol.polling.key, KeyForm::Named(_)) && operation.name == name
                };
                self.by_key.values().filter(here).filter(same).max_by_key(|operation| operation.number)
            }),
        };
        found.filter(|operation| operation.readable(Instant::now()))
    }

    /// All of them, in the order in which they were started.
    pub fn all(&self) -> Vec<&Operation> {
        let mut all: Vec<&Operation> = self.by_key.values().collect();
        all.sort_by_key(|operation| operation.number);
        all
    }

    /// The operation of a key, if it still runs.
    pub fn running(&self, key: Option<&String>) -> Option<&Operation> {
        self.by_key.get(key?).filter(|operation| operation.status == Status::InProgress)
    }

    /// When the next operation ends.
    pub fn next_due(&self) -> Option<Instant> {
        self.queue.first().map(|first| first.0)
    }

    /// Takes the next operation that is over at `now`.
    pub fn take_due(&mut self, now: Instant) -> Option<String> {
        while let Some(first) = self.queue.first() {
            if first.0 > now {
                return None;
            }
            let (_, _, key) = self.queue.pop_first()?;
            if self.by_key.get(&key).is_some_and(|operation| operation.status == Status::InProgress) {
                return Some(key);
            }
        }
        None
    }

    /// How many run.
    pub fn running_count(&self) -> usize {
        self.by_key.values().filter(|operation| operation.status == Status::InProgress).count()
    }
}
