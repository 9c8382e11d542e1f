//! The handle: one Kubernetes API in this process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use certificate_authority::{CertificateAuthority, TlsError};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::fault::{Fault, Faults};
use crate::hook::AllHooks;
use crate::identity::SigningKey;
use crate::rest::port_forward::Ports;
use crate::server::journal::{Journal, JournalBook};
use crate::server::options::Options;
use crate::verbs::{FieldValidation, State, Write};
use crate::webhook::Hosts;

pub(crate) struct Shared {
    pub(crate) options: Options,
    pub(crate) state: Mutex<State>,
    pub(crate) faults: Mutex<Faults>,
    pub(crate) journal: Mutex<JournalBook>,
    pub(crate) counts: Mutex<BTreeMap<(String, String), u64>>,
    pub(crate) authority: Mutex<Option<Arc<CertificateAuthority>>>,
    pub(crate) signing_key: Mutex<Option<Arc<SigningKey>>>,
    /// Watches end when this changes.
    pub(crate) watch_generation: watch::Sender<u64>,
    /// The hooks of admission.
    pub(crate) hooks: AllHooks,
    /// Notified when the next chore has changed.
    pub(crate) chores_changed: Notify,
    /// Hosts of webhooks that are overridden.
    pub(crate) webhook_hosts: Hosts,
    /// The servers of pods' ports.
    pub(crate) ports: Mutex<Ports>,
    pub(crate) created: Instant,
}

/// A Kubernetes API in this process. Clones are handles to the same one.
#[derive(Clone)]
pub struct Kubernetes {
    pub(crate) shared: Arc<Shared>,
}

impl fmt::Debug for Kubernetes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubernetes").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

/// The field manager of the direct accessors, in `metadata.managedFields`.
const DIRECT: &str = "kubernetes-simulator";

impl Kubernetes {
    /// A server without any object.
    pub(crate) fn empty(options: Options) -> Self {
        let state = State::new(&options);
        Self {
            shared: Arc::new(Shared {
                options,
                state: Mutex::new(state),
                faults: Mutex::default(),
                journal: Mutex::default(),
                counts: Mutex::default(),
                authority: Mutex::new(None),
                signing_key: Mutex::new(None),
                watch_generation: watch::Sender::new(0),
                hooks: AllHooks::default(),
                chores_changed: Notify::new(),
                webhook_hosts: Hosts::default(),
                ports: Mutex::default(),
                created: Instant::now(),
            }),
        }
    }

    /// The server's wall clock: the configured start, advanced by tokio's time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        since(self.shared.options.start, self.shared.created)
    }

    /// The same clock as a function, for components beside the server that must agree with it on time.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        let (start, created) = (self.shared.options.start, self.shared.created);
        Arc::new(move || since(start, created))
    }

    /// Forgets all past changes: every version that clients hold is too old from now on and causes a 410. Open watches
    /// go on; see [`Kubernetes::drop_watches`].
    pub fn compact(&self) {
        self.shared.state.lock().store.compact();
    }

    /// Ends every open watch, as a restarting server or a load balancer would.
    pub fn drop_watches(&self) {
        self.shared.watch_generation.send_modify(|generation| *generation += 1);
    }

    /// Version of the newest change.
    #[must_use]
    pub fn resource_version(&self) -> u64 {
        self.shared.state.lock().store.version()
    }

    /// The number of requests with a verb (`get`, `list`, `watch`, `create`, `update`, `patch`, `delete`,
    /// `deletecollection`) for a resource (`services`, `services/status`) over HTTP so far.
    #[must_use]
    pub fn requests(&self, verb: &str, resource: &str) -> u64 {
        self.shared.counts.lock().get(&(verb.to_owned(), resource.to_owned())).copied().unwrap_or(0)
    }

    pub(crate) fn count(&self, verb: &str, resource: &str) {
        *self.shared.counts.lock().entry((verb.to_owned(), resource.to_owned())).or_default() += 1;
    }

    /// The certificate authority of [`Kubernetes::serve_https`], created at first use.
    ///
    /// # Errors
    /// Keys or certificates cannot be created, read or written.
    pub fn authority(&self) -> Result<Arc<CertificateAuthority>, TlsError> {
        let mut slot = self.shared.authority.lock();
        if let Some(authority) = &*slot {
            return Ok(Arc::clone(authority));
        }
        let made = match &self.shared.options.authority_dir {
            Some(dir) => CertificateAuthority::load_or_generate(dir)?,
            None => CertificateAuthority::generate()?,
        };
        let made = Arc::new(made);
        *slot = Some(Arc::clone(&made));
        Ok(made)
    }

    pub(crate) fn direct(&self) -> Write<'static> {
        Write { now: self.now(), dry_run: false, manager: DIRECT, fields: FieldValidation::default() }
    }

    /// Declares a fault. If several match a request, the first one counts.
    pub fn inject(&self, fault: Fault) {
        self.shared.faults.lock().declare(fault);
    }

    /// The declared faults, in order.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        self.shared.faults.lock().list()
    }

    /// Clears all faults. Watches that lag because of one catch up.
    pub fn clear_faults(&self) {
        self.shared.faults.lock().clear();
        self.shared.state.lock().store.wake_all();
    }

    /// The requests that came over HTTP or through the router, and their counts.
    #[must_use]
    pub fn journal(&self) -> Journal {
        self.journal_after(0)
    }

    /// The same without the requests up to a number.
    #[must_use]
    pub fn journal_after(&self, sequence: u64) -> Journal {
        self.shared.journal.lock().after(sequence)
    }

    /// Clears the journal and its counts. The numbering of requests continues.
    pub fn clear_journal(&self) {
        self.shared.journal.lock().clear();
    }
}

fn since(start: Timestamp, created: Instant) -> Timestamp {
    let elapsed = SignedDuration::try_from(created.elapsed()).unwrap_or_default();
    start.checked_add(elapsed).unwrap_or(start)
}
