//! Objects of Azure Service Operator that users offer for adoption. Like all of its objects they are read and written in
//! their storage version.

use capz_planner::operator::OperatorKind;
use capz_planner::raw::Adoptable;
use kube::Api;
use kube::api::{DynamicObject, Patch};
use serde_json::Value;

use crate::kubernetes::operator::{Operator, OperatorError};
use crate::kubernetes::operator_objects::resource;
use crate::kubernetes::patch::params;
use crate::kubernetes::store::Key;

impl Operator {
    /// The offered objects; `None` if no kind is defined that can be offered.
    ///
    /// # Errors
    /// The API server refuses a request.
    pub async fn offered(&self) -> Result<Option<Vec<(Adoptable, Key)>>, OperatorError> {
        let mut found = None;
        for what in Adoptable::ALL {
            let Some(kind) = what.kind() else { continue };
            let Some(definition) = self.known_definition(kind).await? else { continue };
            let listed = self.objects().metadata(kind, &definition.storage).await;
            let listed = listed
                .map_err(|error| OperatorError::refused(format!("list {}", kind.definition()), &error))?;
            let offered = listed.iter().filter(|metadata| {
                serde_json::to_value(metadata).is_ok_and(|metadata| what.is_offered(&metadata))
            });
            found.get_or_insert_with(Vec::new).extend(offered.map(|metadata| (what, Key::of(metadata))));
        }
        Ok(found)
    }

    /// An object; `None` if there is none.
    ///
    /// # Errors
    /// The API server refuses the request.
    pub async fn object(&self, kind: &OperatorKind, key: &Key) -> Result<Option<Value>, OperatorError> {
        let Some(definition) = self.known_definition(kind).await? else { return Ok(None) };
        let api = self.api(kind, &definition.storage, key);
        let found = api
            .get_opt(&key.name)
            .await
            .map_err(|error| OperatorError::refused(format!("read {} {key}", kind.definition()), &error))?;
        Ok(found.and_then(|object| serde_json::to_value(object).ok()))
    }

    /// Changes an object. Returns whether it was as the patch assumes.
    ///
    /// # Errors
    /// The API server refuses the request.
    pub async fn change(&self, kind: &OperatorKind, key: &Key, patch: &Value) -> Result<bool, OperatorError> {
        let Some(definition) = self.known_definition(kind).await? else { return Ok(false) };
        let api = self.api(kind, &definition.storage, key);
        match api.patch(&key.name, &params(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => Ok(false),
            Err(error) => Err(OperatorError::refused(format!("patch {} {key}", kind.definition()), &error)),
        }
    }

    fn api(&self, kind: &OperatorKind, version: &str, key: &Key) -> Api<DynamicObject> {
        Api::namespaced_with(self.client().clone(), &key.namespace, &resource(kind, version))
    }
}
