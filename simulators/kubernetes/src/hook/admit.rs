//! Asking all hooks about one request. The state is not locked while they are asked, because they may ask this server
//! in turn; whatever changed meanwhile is noticed, and the request is tried again as a real server does.

use std::sync::Arc;

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::review::{Asked, Trouble};
use super::{Hook, Operation, Phase, Subject};
use crate::conversion::reshape;
use crate::kubernetes::Kubernetes;
use crate::object::Object;
use crate::registry::Kind;
use crate::status::ApiError;
use crate::verbs::{Part, Stage, State, Write, decode_changed, scale};

/// A write that hooks may have something to say about.
pub(crate) struct Admission<'a> {
    pub(crate) kubernetes: &'a Kubernetes,
    pub(crate) kind: &'a Arc<Kind>,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) user: &'a Value,
    /// What hooks said that the client is to hear.
    pub(crate) warnings: &'a Mutex<Vec<String>>,
}

/// An object as it is stored, and whether the write created it.
pub(crate) type Outcome = (Arc<Object>, bool);

/// How often a write is tried again because its object changed while hooks were asked.
const ATTEMPTS: usize = 5;

impl Admission<'_> {
    /// Does a write. `attempt` makes the object of what is stored now; it may be called several times.
    ///
    /// # Errors
    /// What the verb itself refuses, and what hooks refuse.
    pub(crate) async fn write(
        &self,
        write: &Write<'_>,
        attempt: impl Fn(&mut State, &Write<'_>) -> Result<Outcome, ApiError>,
    ) -> Result<Outcome, ApiError> {
        let operations = [Operation::Create, Operation::Update];
        let hooks = self.kubernetes.hooks_for(self.kind, self.subresource, self.namespace, &operations);
        if hooks.is_empty() {
            return self.kubernetes.settled(self.kind, |state| attempt(state, write)).await;
        }
        for _ in 0..ATTEMPTS {
            if let Some(outcome) = self.admitted(&hooks, write, &attempt).await? {
                return Ok(outcome);
            }
        }
        Err(ApiError::modified(self.kind, self.name))
    }

    /// One try. `None` when the object changed meanwhile.
    async fn admitted(
        &self,
        hooks: &[Arc<Hook>],
        write: &Write<'_>,
        attempt: &impl Fn(&mut State, &Write<'_>) -> Result<Outcome, ApiError>,
    ) -> Result<Option<Outcome>, ApiError> {
        let propose = |state: &mut State| {
            let (proposal, created) = attempt(state, &Write { stage: Stage::Proposal, ..write.clone() })?;
            let old = if created { None } else { Some(state.get(self.kind, self.namespace, self.name)?) };
            Ok((proposal, old))
        };
        let (proposal, old) = self.kubernetes.settled(self.kind, propose).await?;
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let scaled = self.subresource == "scale";
        // Who scales and who looks at it sees the Scale alone.
        let shown =
            |object: &Object| if scaled { scale::of(self.kind, object) } else { object.value().clone() };
        let seen = |old: &Arc<Object>| {
            if scaled { Arc::new(Object::new(shown(old), old.version())) } else { Arc::clone(old) }
        };
        let mut subject = Subject {
            kind: self.kind,
            subresource: self.subresource,
            namespace: self.namespace,
            name: if old.is_some() { self.name } else { proposal.name() },
            operation,
            object: Some(shown(&proposal)),
            old: old.as_ref().map(seen),
        };
        self.mutate(hooks, &mut subject, write).await?;
        let mut mutated = subject.object.take().unwrap_or_default();
        if scaled {
            let wanted = scale::wanted(&mutated);
            mutated = proposal.value().clone();
            scale::put(self.kind, &mut mutated, wanted);
        }
        let settle = |state: &mut State, object: &Value, write: &Write<'_>| {
            let object = object.clone();
            let Some(old) = &old else {
                return state
                    .settle_new(self.kind, self.namespace, object, write)
                    .map(|new| Some((new, true)));
            };
            if state.get(self.kind, self.namespace, self.name)?.version() != old.version() {
                return Ok(None);
            }
            let part = match self.subresource {
                "status" => Part::Status,
                "finalize" => Part::Finalize,
                _ => Part::Main,
            };
            state.settle_replacement(self.kind, old, object, part, write).map(|now| Some((now, false)))
        };
        let drafting = Write { stage: Stage::Draft, ..write.clone() };
        let draft = self.kubernetes.settled(self.kind, |state| settle(state, &mutated, &drafting)).await?;
        let Some((draft, created)) = draft else { return Ok(None) };
        subject.object = Some(shown(&draft));
        let name = draft.name().to_owned();
        subject.name = &name;
        self.validate(hooks, &subject, write).await?;
        if write.dry_run && !self.kind.is_converted() {
            return Ok(Some((draft, created)));
        }
        let drafted = Write { stage: Stage::Drafted, ..write.clone() };
        self.kubernetes.settled(self.kind, |state| settle(state, draft.value(), &drafted)).await
    }

    /// Asks about an object that a subresource takes and nobody stores, such as a Binding. Answers it as hooks have changed
    /// it.
    ///
    /// # Errors
    /// What hooks refuse.
    pub(crate) async fn connect(&self, object: Value, write: &Write<'_>) -> Result<Value, ApiError> {
        let operations = [Operation::Create];
        let hooks = self.kubernetes.hooks_for(self.kind, self.subresource, self.namespace, &operations);
        if hooks.is_empty() {
            return Ok(object);
        }
        let mut subject = Subject {
            kind: self.kind,
            subresource: self.subresource,
            namespace: self.namespace,
            name: self.name,
            operation: Operation::Create,
            object: Some(object),
            old: None,
        };
        self.mutate(&hooks, &mut subject, write).await?;
        self.validate(&hooks, &subject, write).await?;
        Ok(subject.object.unwrap_or_default())
    }

    /// Asks about the deletion of an object.
    ///
    /// # Errors
    /// What hooks refuse.
    pub(crate) async fn delete(&self, old: &Arc<Object>, write: &Write<'_>) -> Result<(), ApiError> {
        let operations = [Operation::Delete];
        let hooks = self.kubernetes.hooks_for(self.kind, self.subresource, self.namespace, &operations);
        if hooks.is_empty() {
            return Ok(());
        }
        let mut subject = Subject {
            kind: self.kind,
            subresource: self.subresource,
            namespace: self.namespace,
            name: old.name(),
            operation: Operation::Delete,
            object: None,
            old: Some(Arc::clone(old)),
        };
        self.mutate(&hooks, &mut subject, write).await?;
        self.validate(&hooks, &subject, write).await
    }

    /// Asks the hooks that mutate, one after the other. Those that want to be asked again are, once, when a later one
    /// changed the object.
    async fn mutate(
        &self,
        hooks: &[Arc<Hook>],
        subject: &mut Subject<'_>,
        write: &Write<'_>,
    ) -> Result<(), ApiError> {
        let mutating: Vec<&Arc<Hook>> = hooks.iter().filter(|hook| hook.phase == Phase::Mutating).collect();
        let mut asked: Vec<usize> = Vec::new();
        let mut again: Vec<usize> = Vec::new();
        for (place, hook) in mutating.iter().enumerate() {
            if self.changes(hook, subject, write).await? {
                again.append(&mut asked);
            }
            if hook.reinvocable {
                asked.push(place);
            }
        }
        again.sort_unstable();
        for place in again {
            if let Some(hook) = mutating.get(place) {
                self.changes(hook, subject, write).await?;
            }
        }
        Ok(())
    }

    /// Asks one hook that mutates; whether it changed the object.
    async fn changes(
        &self,
        hook: &Hook,
        subject: &mut Subject<'_>,
        write: &Write<'_>,
    ) -> Result<bool, ApiError> {
        let said = self.ask(hook, subject, write).await?;
        let Some(mut object) = said.filter(|object| subject.object.as_ref() != Some(object)) else {
            return Ok(false);
        };
        if !subject.is_of_its_own() {
            decode_changed(self.kind, &mut object)?;
        }
        subject.object = Some(object);
        Ok(true)
    }

    /// Asks the hooks that validate, all at once.
    async fn validate(
        &self,
        hooks: &[Arc<Hook>],
        subject: &Subject<'_>,
        write: &Write<'_>,
    ) -> Result<(), ApiError> {
        let validating = hooks.iter().filter(|hook| hook.phase == Phase::Validating);
        let answers = join_all(validating.map(|hook| self.ask(hook, subject, write))).await;
        answers.into_iter().find_map(Result::err).map_or(Ok(()), Err)
    }

    /// An object of one kind in the form of another that shows the same objects.
    async fn reshaped(
        &self,
        (from, to): (&Arc<Kind>, &Arc<Kind>),
        subject: &Subject<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Value>, ApiError> {
        let same = Arc::ptr_eq(from, to) || subject.is_of_its_own();
        let Some(object) = object.filter(|_| !same) else { return Ok(object.cloned()) };
        let reshaped = self.kubernetes.settled(to, |_| reshape(from, to, object)).await;
        // Also a hook that may fail does not help here.
        reshaped.map(Some).map_err(|error| ApiError::internal(&error.message))
    }

    /// Asks one hook, if it is for this request; the request goes on where an optional one fails. Answers the object that
    /// the hook wants instead.
    async fn ask(
        &self,
        hook: &Hook,
        subject: &Subject<'_>,
        write: &Write<'_>,
    ) -> Result<Option<Value>, ApiError> {
        let equivalents = self.kubernetes.equivalents(self.kind);
        let form = hook.matching_kind(
            subject.kind,
            &equivalents,
            subject.subresource,
            subject.namespace,
            subject.operation,
        );
        let (Some(form), true) = (form, hook.selects(subject, self.namespace_object(subject).as_ref()))
        else {
            return Ok(None);
        };
        let uid = self.kubernetes.shared.state.lock().new_uid();
        let old = subject.old.as_deref().map(Object::value);
        let asked = Asked {
            kubernetes: self.kubernetes,
            subject,
            form: &form,
            object: self.reshaped((self.kind, &form), subject, subject.object.as_ref()).await?,
            old_object: self.reshaped((self.kind, &form), subject, old).await?,
            user: self.user,
            options: &options(subject.operation, write),
            dry_run: write.dry_run,
            uid,
        };
        match asked.is_wanted(hook) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(_) if hook.optional => return Ok(None),
            Err(why) => return Err(ApiError::forbidden(self.kind, subject.name, &why)),
        }
        match asked.ask(hook).await {
            Ok(said) => {
                self.warnings.lock().extend(said.warnings);
                self.reshaped((&form, self.kind), subject, said.object.as_ref()).await
            }
            Err(Trouble::Refused(error)) => Err(error),
            Err(Trouble::Failed(why)) if hook.optional => {
                tracing::warn!(webhook = hook.name, why, "a webhook cannot be asked; the request goes on");
                Ok(None)
            }
            Err(Trouble::Failed(why)) => {
                Err(ApiError::internal(&format!("failed calling webhook {:?}: {why}", hook.name)))
            }
        }
    }

    /// The object by whose labels a `namespaceSelector` decides: the namespace of the subject, or the subject itself
    /// where that is one. `None` for all other objects without a namespace, which every selector fits.
    fn namespace_object(&self, subject: &Subject<'_>) -> Option<Value> {
        if *self.kind.shelf == *crate::verbs::namespace::SHELF {
            return subject.object.clone().or_else(|| subject.old.as_ref().map(|old| old.value().clone()));
        }
        if subject.namespace.is_empty() {
            return None;
        }
        self.kubernetes.get("namespaces", "", subject.namespace).map(|namespace| namespace.value().clone())
    }
}

/// The options of the request, as far as there are any.
fn options(operation: Operation, write: &Write<'_>) -> Value {
    let mut options = json!({ "kind": operation.options_kind(), "apiVersion": "meta.k8s.io/v1" });
    if operation != Operation::Delete {
        options["fieldManager"] = Value::from(write.manager);
    }
    if write.dry_run {
        options["dryRun"] = json!(["All"]);
    }
    options
}
