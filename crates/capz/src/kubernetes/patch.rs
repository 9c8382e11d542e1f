//! Writes objects as JSON merge patches of the differences, so that members of other writers and other versions stay.

use capz_api::{Condition, Future};
use capz_planner::condition;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Map, Value, json};

use crate::kubernetes::concerns;
use crate::kubernetes::contract::{self, Shown};
use crate::kubernetes::core::BLOCK_MOVE;
use crate::kubernetes::kinds::{self, Object, ObjectKind};
use crate::kubernetes::status::ReportedStatus;
use crate::kubernetes::store::Store;

/// The name under which this program's writes appear in `managedFields`.
pub const FIELD_MANAGER: &str = "capz-controller-manager";

/// Why an object was not written.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// It cannot be serialized.
    #[error("it cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The API server refused it.
    #[error("the API server refused it: {0}")]
    Api(#[from] kube::Error),
}

impl PatchError {
    /// Whether another writer changed the object meanwhile.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.is_conflict())
    }

    /// Whether the object is deleted.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if status.is_not_found())
    }
}

/// The merge patch that turns `before` into `after`; `None` if they are equal.
pub fn difference(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            let mut patch = Map::new();
            for (name, value) in after {
                let change = match before.get(name) {
                    Some(known) => difference(known, value),
                    None => Some(value.clone()),
                };
                patch.extend(change.map(|change| (name.clone(), change)));
            }
            for name in before.keys().filter(|name| !after.contains_key(*name)) {
                patch.insert(name.clone(), Value::Null);
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (before, after) => (before != after).then(|| after.clone()),
    }
}

/// An object during a reconcile: its original and its desired version.
pub struct Edited<K: ObjectKind> {
    api: Api<Object<K>>,
    name: String,
    /// The original, as JSON text: the parsed value is several times as large, and a thousand machines may be
    /// reconciled at a time.
    before: String,
    /// The desired version, which is large: reconciles pass it on.
    pub object: Box<Object<K>>,
    /// The generation of the spec that is reconciled.
    generation: Option<i64>,
    /// Whether an answer contained changes of other writers that preceded our write.
    overtaken: bool,
    /// Whether conditions of this generation have been set.
    is_judged: bool,
    /// Whether the object is left alone, once that is decided.
    is_paused: Option<bool>,
}

impl<K: ObjectKind> Edited<K> {
    /// Begins the reconcile of an object.
    ///
    /// # Errors
    /// It cannot be serialized.
    pub fn of(client: &Client, object: &Object<K>) -> Result<Self, PatchError> {
        let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
        let api = Api::namespaced_with(client.clone(), namespace, &kinds::resource(K::NAME));
        let name = object.metadata.name.clone().unwrap_or_default();
        let generation = object.metadata.generation;
        let before = serde_json::to_string(object)?;
        Ok(Self {
            api,
            name,
            before,
            object: Box::new(object.clone()),
            generation,
            overtaken: false,
            is_judged: false,
            is_paused: None,
        })
    }

    /// Whether another writer has changed the spec since the reconcile began, according to the newest version or to the
    /// answer to one of our own writes: the plan is then out of date.
    pub fn is_outdated(&self, newest: &ObjectMeta) -> bool {
        newest.generation.max(self.object.metadata.generation) > self.generation
    }

    /// The generation of the spec that is reconciled.
    pub fn generation(&self) -> Option<i64> {
        self.generation
    }

    /// Whether it has this finalizer.
    pub fn is_held(&self, finalizer: &str) -> bool {
        self.object.metadata.finalizers.iter().flatten().any(|known| known == finalizer)
    }

    /// Marks the object as reconciled: adds this finalizer, and blocks moves until it is paused.
    pub fn hold(&mut self, finalizer: &str) {
        if !self.is_held(finalizer) {
            self.object.metadata.finalizers.get_or_insert_default().push(finalizer.to_owned());
        }
        self.block_move();
    }

    /// Blocks moves.
    pub fn block_move(&mut self) {
        self.is_paused = Some(false);
        let annotations = self.object.metadata.annotations.get_or_insert_default();
        annotations.insert(BLOCK_MOVE.to_owned(), "true".to_owned());
    }

    /// Permits moves: the object is paused and not reconciled.
    pub fn pause(&mut self) {
        self.is_paused = Some(true);
        self.object.metadata.annotations.iter_mut().for_each(|all| drop(all.remove(BLOCK_MOVE)));
    }

    /// Removes this finalizer.
    pub fn let_go(&mut self, finalizer: &str) {
        self.object.metadata.finalizers.iter_mut().for_each(|all| all.retain(|known| known != finalizer));
    }

    /// Writes the differences: first the object, then its status. The reconcile continues with the newest version.
    /// Returns whether anything was written.
    ///
    /// The spec is written only over the version on which it is based; the status has no other writer.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn save(&mut self) -> Result<bool, PatchError> {
        if serde_json::to_string(&self.object)? == self.before {
            return Ok(false);
        }
        let mut after = serde_json::to_value(&self.object)?;
        let status_after = take(&mut after, "status");
        let mut before: Value = serde_json::from_str(&self.before)?;
        let status_before = take(&mut before, "status");
        let mut written = false;
        if let Some(mut patch) = difference(&before, &after) {
            let is_newest = self.object.metadata.generation == self.generation;
            let own_spec = is_newest && patch.get("spec").is_some();
            if patch.get("spec").is_some() || patch["metadata"].get("finalizers").is_some() {
                let version = self.object.metadata.resource_version.clone();
                patch["metadata"]["resourceVersion"] = json!(version);
            }
            let answer = self.api.patch(&self.name, &params(), &Patch::Merge(&patch)).await?;
            self.take(answer)?;
            if own_spec {
                self.generation = self.object.metadata.generation;
            }
            written = true;
        }
        if let Some(patch) = difference(&status_before, &status_after) {
            let patch = json!({ "status": patch });
            match self.api.patch_status(&self.name, &params(), &Patch::Merge(&patch)).await {
                Ok(answer) => {
                    let status = answer.status.clone();
                    self.take(answer)?;
                    self.object.status = status;
                    self.before = serde_json::to_string(&self.object)?;
                }
                // The last finalizer is removed, and the object with it.
                Err(kube::Error::Api(status)) if status.is_not_found() && written => {}
                Err(error) => return Err(error.into()),
            }
            written = true;
        }
        Ok(written)
    }

    /// Writes the differences, and stores the written version.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn save_in(&mut self, store: &Store<K>) -> Result<(), PatchError> {
        if self.save().await? {
            self.keep_in(store);
        }
        Ok(())
    }

    /// Stores the written version, so that the next reconcile sees it before the watch shows it.
    pub fn keep_in(&mut self, store: &Store<K>) {
        if std::mem::take(&mut self.overtaken) {
            store.put_overtaken((*self.object).clone());
        } else {
            store.put((*self.object).clone());
        }
    }

    /// Continues with the API server's answer; the status that is not written yet stays.
    fn take(&mut self, mut answer: Object<K>) -> Result<(), PatchError> {
        answer.metadata.managed_fields = None;
        self.overtaken |= !concerns::same_declaration(&self.object, &answer);
        self.before = serde_json::to_string(&answer)?;
        answer.status = self.object.status.clone();
        *self.object = answer;
        Ok(())
    }
}

impl<K: ObjectKind<Status: ReportedStatus>> Edited<K> {
    /// Its status.
    pub fn status(&mut self) -> &mut K::Status {
        self.object.status.get_or_insert_default()
    }

    /// Azure's operations that an earlier reconcile has begun.
    pub fn operations(&mut self) -> Vec<Future> {
        self.status().operations().clone().unwrap_or_default()
    }

    /// Records Azure's operations that are running.
    pub fn set_operations(&mut self, operations: Vec<Future>) {
        *self.status().operations() = (!operations.is_empty()).then_some(operations);
    }

    /// Shows the status in the form of Cluster API's contract v1beta2, too, if there is a status.
    pub fn show_contract(&mut self, now: &str) {
        let (generation, is_judged, is_paused) = (self.generation, self.is_judged, self.is_paused);
        if is_paused.is_some() || self.object.status.is_some() {
            contract::show(self.status(), Shown { generation, is_judged, is_paused }, now);
        }
    }

    /// Whether a condition has this reason.
    pub fn has_reason(&mut self, condition: &str, reason: &str) -> bool {
        condition::has_reason(self.status().conditions().as_ref(), condition, reason)
    }

    /// Sets conditions, and the one that sums them up.
    pub fn set(&mut self, new: impl IntoIterator<Item = Condition>, now: &str) {
        self.is_judged = true;
        condition::set_all(self.status().conditions().get_or_insert_default(), new, now);
    }
}

fn take(object: &mut Value, member: &str) -> Value {
    object.as_object_mut().and_then(|members| members.remove(member)).unwrap_or_else(|| json!({}))
}

/// The parameters of our patches.
pub fn params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_says_what_changed_and_nothing_else() {
        for (before, after, patch) in [
            (json!({ "a": 1 }), json!({ "a": 1 }), None),
            (json!({ "a": 1, "b": 2 }), json!({ "a": 1 }), Some(json!({ "b": null }))),
            (
                json!({ "a": { "b": 1, "c": 2 } }),
                json!({ "a": { "b": 3, "c": 2 } }),
                Some(json!({ "a": { "b": 3 } })),
            ),
            (json!({ "a": [1, 2] }), json!({ "a": [1] }), Some(json!({ "a": [1] }))),
            (json!({}), json!({ "a": { "b": 1 } }), Some(json!({ "a": { "b": 1 } }))),
        ] {
            assert_eq!(difference(&before, &after), patch, "{before} to {after}");
        }
    }
}
