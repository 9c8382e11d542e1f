//! Converts objects between the stored form and the served ones.

use std::sync::Arc;

use serde_json::Value;

use super::versions::Versions;
use super::webhook::{ConversionWebhook, Pending};
use crate::object::{Object, set_api_version, set_metadata, string_at};
use crate::registry::Kind;
use crate::status::ApiError;
use crate::structural;

impl Versions {
    /// Removes members that a version does not know.
    fn prune(&self, api_version: &str, value: &mut Value) {
        if let Some(tree) = self.trees.get(api_version) {
            structural::prune(tree, value);
        }
    }

    /// Prunes and defaults an object by the schema of its own version.
    fn settle(&self, value: &mut Value) {
        let tree = string_at(value, &["apiVersion"]).and_then(|own| self.trees.get(own));
        if let Some(tree) = tree {
            structural::settle(tree, value);
        }
    }

    /// Converts an object to another version, without that version's defaults.
    fn convert(&self, mut value: Value, to: &str) -> Result<Value, ApiError> {
        if string_at(&value, &["apiVersion"]) == Some(to) {
            return Ok(value);
        }
        match &self.webhook {
            Some(webhook) => {
                value = ConversionWebhook::converted(webhook, value, to)
                    .map_err(|missing| ApiError::pending(&webhook.uncalled(), Pending(vec![*missing])))?;
            }
            None => set_api_version(&mut value, to),
        }
        self.prune(to, &mut value);
        Ok(value)
    }
}

/// The object as `kind` serves it: the same object if its stored form is that form already.
///
/// # Errors
/// The webhook must be called first.
pub(crate) fn serve(kind: &Kind, object: &Arc<Object>) -> Result<Arc<Object>, ApiError> {
    if is_stored_as_served(kind, object.api_version()) {
        return Ok(Arc::clone(object));
    }
    Ok(match served(kind, object)? {
        Some(value) => Arc::new(Object::new(value, object.version())),
        None => Arc::clone(object),
    })
}

/// Whether all objects stored in a version are served unchanged.
fn is_stored_as_served(kind: &Kind, api_version: &str) -> bool {
    let revised = kind.versions.as_ref().is_some_and(|versions| versions.revised);
    kind.as_stored || (!revised && kind.has_api_version(api_version))
}

/// The served form of a stored object; `None` if it is the stored form.
fn served(kind: &Kind, object: &Value) -> Result<Option<Value>, ApiError> {
    let api_version = string_at(object, &["apiVersion"]).unwrap_or_default();
    if is_stored_as_served(kind, api_version) {
        return Ok(None);
    }
    let same = kind.has_api_version(api_version);
    let Some(versions) = &kind.versions else {
        let mut value = object.clone();
        read_stored(kind, &mut value);
        set_api_version(&mut value, &kind.api_version());
        return Ok(Some(value));
    };
    let mut value = object.clone();
    versions.settle(&mut value);
    let value = versions.convert(value, &kind.api_version())?;
    Ok((!same || value != *object).then_some(value))
}

/// Converts the stored shape of a built-in kind into its own.
fn read_stored(kind: &Kind, value: &mut Value) {
    if let Some(form) = kind.builtin().and_then(|builtin| builtin.stored_form) {
        (form.read)(value);
    }
}

/// Converts an object from a client's form into the stored form.
///
/// # Errors
/// The webhook must be called first.
pub(crate) fn to_stored(kind: &Kind, value: &mut Value) -> Result<(), ApiError> {
    if kind.as_stored {
        return Ok(());
    }
    let Some(versions) = &kind.versions else {
        if let Some(form) = kind.builtin().and_then(|builtin| builtin.stored_form) {
            (form.write)(value);
            set_api_version(value, form.api_version);
        }
        return Ok(());
    };
    if !kind.has_api_version(&versions.storage) {
        *value = versions.convert(value.take(), &versions.storage)?;
        versions.settle(value);
    }
    Ok(())
}

/// Converts an object from one version of its kind to another.
///
/// # Errors
/// The webhook must be called first.
pub(crate) fn reshape(from: &Kind, to: &Kind, value: &Value) -> Result<Value, ApiError> {
    let mut value = value.clone();
    if let Some(versions) = &to.versions {
        if string_at(&value, &["apiVersion"]).is_none() {
            set_api_version(&mut value, &from.api_version());
        }
        let mut value = versions.convert(value, &to.api_version())?;
        versions.settle(&mut value);
        return Ok(value);
    }
    to_stored(from, &mut value)?;
    read_stored(to, &mut value);
    set_api_version(&mut value, &to.api_version());
    Ok(value)
}

/// The form in which an object that is about to be stored will be read; `None` if no webhook is needed.
///
/// # Errors
/// The webhook must be called first.
pub(crate) fn read_back(kind: &Kind, value: &Value) -> Result<Option<Value>, ApiError> {
    if !kind.is_converted() {
        return Ok(None);
    }
    let mut stored = value.clone();
    to_stored(kind, &mut stored)?;
    let shown = served(kind, &stored)?;
    Ok(Some(shown.unwrap_or(stored)))
}

/// The response to a write: the object that was read back, in its stored version.
///
/// # Errors
/// The webhook must be called first, and nothing was read back.
pub(crate) fn answer(
    kind: &Kind,
    stored: &Arc<Object>,
    shown: Option<Value>,
) -> Result<Arc<Object>, ApiError> {
    let Some(mut shown) = shown else { return serve(kind, stored) };
    set_metadata(&mut shown, "resourceVersion", stored.version().to_string().into());
    Ok(Arc::new(Object::new(shown, stored.version())))
}
