//! Calls all hooks of a request. The state is not locked meanwhile, because hooks may call this server in turn; if the
//! object changes meanwhile, the request is tried again as on a real server.

use std::sync::Arc;

use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::call::{CallFailure, HookCall};
use super::hooks::{Hook, Phase};
use super::matching::AdmissionSubject;
use super::rule::Operation;
use crate::conversion::reshape;
use crate::object::{Object, metadata};
use crate::registry::Kind;
use crate::server::handle::Kubernetes;
use crate::status::ApiError;
use crate::verbs::shelves::NAMESPACES;
use crate::verbs::write::commit::Outcome;
use crate::verbs::write::decode::decode_mutated;
use crate::verbs::write::propose::Proposal;
use crate::verbs::write::scale;
use crate::verbs::{State, Write};

/// A write that may be subject to hooks.
pub(crate) struct Admission<'a> {
    pub(crate) kubernetes: &'a Kubernetes,
    pub(crate) kind: &'a Arc<Kind>,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) user: &'a Value,
    /// Warnings of hooks for the client.
    pub(crate) warnings: &'a Mutex<Vec<String>>,
}

/// How often a write is tried again because its object changed while hooks were called.
const ATTEMPTS: usize = 5;

impl Admission<'_> {
    /// Performs a write. `propose` builds the object from the currently stored one; it may be called several times.
    ///
    /// # Errors
    /// The verb's own errors, and refusals by hooks.
    pub(crate) async fn write(
        &self,
        write: &Write<'_>,
        propose: impl Fn(&mut State) -> Result<Proposal, ApiError>,
    ) -> Result<Outcome, ApiError> {
        let hooks = self.hooks(&[Operation::Create, Operation::Update]);
        if hooks.is_empty() {
            let whole = |state: &mut State| {
                let proposal = propose(state)?;
                state.store(self.kind, proposal, write)
            };
            return self.kubernetes.settled(self.kind, whole).await;
        }
        for _ in 0..ATTEMPTS {
            if let Some(outcome) = self.attempt(&hooks, write, &propose).await? {
                return Ok(outcome);
            }
        }
        Err(ApiError::modified(self.kind, self.name))
    }

    /// The hooks whose rules match the request with one of these operations.
    fn hooks(&self, operations: &[Operation]) -> Vec<Arc<Hook>> {
        self.kubernetes.hooks_for(self.kind, self.subresource, self.namespace, operations)
    }

    /// The subject of an operation, without its objects.
    fn subject<'s>(&'s self, name: &'s str, operation: Operation) -> AdmissionSubject<'s> {
        let Self { kind, subresource, namespace, .. } = *self;
        AdmissionSubject { kind, subresource, namespace, name, operation, object: None, old: None }
    }

    /// One attempt, from stage to stage. `None` if the object changed meanwhile.
    async fn attempt(
        &self,
        hooks: &[Arc<Hook>],
        write: &Write<'_>,
        propose: &impl Fn(&mut State) -> Result<Proposal, ApiError>,
    ) -> Result<Option<Outcome>, ApiError> {
        let mut proposal = self.kubernetes.settled(self.kind, propose).await?;
        let old = proposal.current.clone();
        let name = if old.is_some() { self.name } else { metadata(&proposal.object, "name") }.to_owned();
        let operation = if old.is_some() { Operation::Update } else { Operation::Create };
        let mut subject = AdmissionSubject {
            object: Some(self.shown(&proposal.object)),
            old: old.map(|old| match self.subresource {
                "scale" => Arc::new(Object::new(self.shown(&old), old.version())),
                _ => old,
            }),
            ..self.subject(&name, operation)
        };
        self.mutate(hooks, &mut subject, write).await?;
        let mutated = subject.object.take().unwrap_or_default();
        match self.subresource {
            "scale" => scale::put(self.kind, &mut proposal.object, scale::replicas(&mutated)),
            _ => proposal.object = mutated,
        }
        let admit = |state: &mut State| state.admit(self.kind, proposal.clone(), write);
        let Some(admitted) = self.kubernetes.settled(self.kind, admit).await? else { return Ok(None) };
        subject.object = Some(self.shown(&admitted.object));
        subject.name = admitted.name();
        self.validate(hooks, &subject, write).await?;
        let commit = |state: &mut State| state.commit(self.kind, admitted.clone(), write);
        self.kubernetes.settled(self.kind, commit).await
    }

    /// An object as hooks see it: a write to `scale`, and its hooks, see the Scale alone.
    fn shown(&self, object: &Value) -> Value {
        match self.subresource {
            "scale" => scale::of(self.kind, object),
            _ => object.clone(),
        }
    }

    /// Calls the hooks for an object that a subresource takes and that is not stored, such as a Binding. Returns it
    /// with the hooks' changes.
    ///
    /// # Errors
    /// Refusals by hooks.
    pub(crate) async fn connect(&self, object: Value, write: &Write<'_>) -> Result<Value, ApiError> {
        let hooks = self.hooks(&[Operation::Create]);
        if hooks.is_empty() {
            return Ok(object);
        }
        let object = Some(object);
        let mut subject = AdmissionSubject { object, ..self.subject(self.name, Operation::Create) };
        self.mutate(&hooks, &mut subject, write).await?;
        self.validate(&hooks, &subject, write).await?;
        Ok(subject.object.unwrap_or_default())
    }

    /// Calls the hooks for the deletion of an object.
    ///
    /// # Errors
    /// Refusals by hooks.
    pub(crate) async fn delete(&self, old: &Arc<Object>, write: &Write<'_>) -> Result<(), ApiError> {
        let hooks = self.hooks(&[Operation::Delete]);
        if hooks.is_empty() {
            return Ok(());
        }
        let subject = self.subject(old.name(), Operation::Delete);
        let mut subject = AdmissionSubject { old: Some(Arc::clone(old)), ..subject };
        self.mutate(&hooks, &mut subject, write).await?;
        self.validate(&hooks, &subject, write).await
    }

    /// Calls the mutating hooks, one after the other. Hooks with `reinvocationPolicy: IfNeeded` are called once more if
    /// a later hook changed the object.
    async fn mutate(
        &self,
        hooks: &[Arc<Hook>],
        subject: &mut AdmissionSubject<'_>,
        write: &Write<'_>,
    ) -> Result<(), ApiError> {
        let mutating: Vec<&Arc<Hook>> = hooks.iter().filter(|hook| hook.phase == Phase::Mutating).collect();
        let mut called: Vec<usize> = Vec::new();
        let mut again: Vec<usize> = Vec::new();
        for (place, hook) in mutating.iter().enumerate() {
            if self.changes(hook, subject, write).await? {
                again.append(&mut called);
            }
            if hook.reinvocable {
                called.push(place);
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

    /// Calls one mutating hook. Returns whether it changed the object.
    async fn changes(
        &self,
        hook: &Hook,
        subject: &mut AdmissionSubject<'_>,
        write: &Write<'_>,
    ) -> Result<bool, ApiError> {
        let replacement = self.call(hook, subject, write).await?;
        let Some(mut object) = replacement.filter(|object| subject.object.as_ref() != Some(object)) else {
            return Ok(false);
        };
        if !subject.is_of_its_own() {
            decode_mutated(self.kind, &mut object)?;
        }
        subject.object = Some(object);
        Ok(true)
    }

    /// Calls the validating hooks, all at once.
    async fn validate(
        &self,
        hooks: &[Arc<Hook>],
        subject: &AdmissionSubject<'_>,
        write: &Write<'_>,
    ) -> Result<(), ApiError> {
        let validating = hooks.iter().filter(|hook| hook.phase == Phase::Validating);
        let answers = join_all(validating.map(|hook| self.call(hook, subject, write))).await;
        answers.into_iter().find_map(Result::err).map_or(Ok(()), Err)
    }

    /// Converts an object from one kind to another that serves the same objects.
    async fn reshaped(
        &self,
        (from, to): (&Arc<Kind>, &Arc<Kind>),
        subject: &AdmissionSubject<'_>,
        object: Option<&Value>,
    ) -> Result<Option<Value>, ApiError> {
        let same = Arc::ptr_eq(from, to) || subject.is_of_its_own();
        let Some(object) = object.filter(|_| !same) else { return Ok(object.cloned()) };
        let reshaped = self.kubernetes.settled(to, |_| reshape(from, to, object)).await;
        // This error counts even for a hook with `failurePolicy: Ignore`.
        reshaped.map(Some).map_err(|error| ApiError::internal(&error.message))
    }

    /// Calls one hook, if its rules match the request; the failure of an optional hook is ignored. Returns the object
    /// that the hook wants instead.
    async fn call(
        &self,
        hook: &Hook,
        subject: &AdmissionSubject<'_>,
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
        let call = HookCall {
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
        match call.is_needed(hook) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(_) if hook.optional => return Ok(None),
            Err(why) => return Err(ApiError::forbidden(self.kind, subject.name, &why)),
        }
        match call.send(hook).await {
            Ok(response) => {
                self.warnings.lock().extend(response.warnings);
                self.reshaped((&form, self.kind), subject, response.object.as_ref()).await
            }
            Err(CallFailure::Refused(error)) => Err(error),
            Err(CallFailure::Failed(why)) if hook.optional => {
                tracing::warn!(
                    webhook = hook.name,
                    why,
                    "a webhook cannot be called; the request is allowed"
                );
                Ok(None)
            }
            Err(CallFailure::Failed(why)) => {
                Err(ApiError::internal(&format!("failed calling webhook {:?}: {why}", hook.name)))
            }
        }
    }

    /// The object whose labels a `namespaceSelector` selects: the namespace of the subject, or the subject itself if it
    /// is a namespace. `None` for all other cluster-scoped objects, which every selector matches.
    fn namespace_object(&self, subject: &AdmissionSubject<'_>) -> Option<Value> {
        if *self.kind.shelf == *NAMESPACES {
            return subject.object.clone().or_else(|| subject.old.as_ref().map(|old| old.value().clone()));
        }
        if subject.namespace.is_empty() {
            return None;
        }
        self.kubernetes.get("namespaces", "", subject.namespace).map(|namespace| namespace.value().clone())
    }
}

/// The options of the request, if there are any.
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
