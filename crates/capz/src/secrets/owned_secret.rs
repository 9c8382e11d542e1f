//! Secrets that are created for objects of ours. An existing Secret without our label is the user's: it is left
//! unchanged, which is how users supply their own.
//!
//! They are not watched: the key of their label contains the cluster's name, so that no selector matches them all, and
//! a watch of all Secrets would cache every Secret of the management cluster. A Secret that was changed by another
//! writer is repaired at the next reconcile of its object, which is a sync period away at most.

use std::collections::BTreeMap;

use controllers::Reference;
use k8s::api::ByteString;
use k8s::api::api::core::v1::Secret;
use k8s::api::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::Api;
use kube::api::{Patch, PostParams};
use serde_json::json;

use crate::context::manager::Manager;
use crate::kubernetes::kinds::{API_VERSION, GROUP};
use crate::kubernetes::operator_exports::EXPORT;
use crate::kubernetes::patch::{difference, params};
use crate::kubernetes::queue::Outcome;

/// The desired Secret. It cannot be printed.
pub(crate) struct OwnedSecret<'a> {
    /// The name.
    pub name: String,
    /// The label by which it is known as ours.
    pub label: (&'a str, &'a str),
    /// The kind of the object that owns it, in the same namespace.
    pub kind: &'static str,
    /// The metadata of that object.
    pub owner: &'a ObjectMeta,
    /// The data.
    pub data: BTreeMap<String, Vec<u8>>,
    /// Whether other keys are other objects', and stay.
    pub is_shared: bool,
    /// Whether it is written in place of Azure Service Operator ([`EXPORT`]).
    pub is_export: bool,
}

/// Whether an existing Secret or ConfigMap has this label, or this object controls it.
pub(crate) fn is_ours(existing: &ObjectMeta, (label, value): (&str, &str), owner: &ObjectMeta) -> bool {
    let is_labelled = existing.labels.as_ref().and_then(|all| all.get(label)).is_some_and(|it| it == value);
    let mut owners = existing.owner_references.iter().flatten();
    is_labelled || owners.any(|it| it.controller == Some(true) && Some(&it.uid) == owner.uid.as_ref())
}

impl OwnedSecret<'_> {
    fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: API_VERSION.to_owned(),
            kind: self.kind.to_owned(),
            name: self.owner.name.clone().unwrap_or_default(),
            uid: self.owner.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }

    fn content(&self) -> BTreeMap<String, ByteString> {
        self.data.iter().map(|(name, bytes)| (name.clone(), ByteString(bytes.clone()))).collect()
    }

    fn labels(&self) -> BTreeMap<String, String> {
        let export = self.is_export.then_some((EXPORT, ""));
        [self.label]
            .into_iter()
            .chain(export)
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    }

    fn fresh(&self) -> Secret {
        Secret {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: self.owner.namespace.clone(),
                labels: Some(self.labels()),
                owner_references: Some(vec![self.reference()]),
                ..ObjectMeta::default()
            },
            data: Some(self.content()),
            ..Secret::default()
        }
    }

    /// Whether an existing Secret is ours: it has the label, or our object controls it, as the established provider
    /// leaves some of them. A Secret that a user created first is not.
    fn is_ours(&self, existing: &Secret) -> bool {
        is_ours(&existing.metadata, self.label, self.owner)
    }

    /// The existing Secret with repairs; `None` if it needs none, or is not ours.
    fn mended(&self, existing: &Secret) -> Option<Secret> {
        if !self.is_ours(existing) {
            return None;
        }
        let mut mended = existing.clone();
        let others = existing.data.iter().flatten().filter(|_| self.is_shared);
        let others = others.map(|(key, bytes)| (key.clone(), bytes.clone()));
        mended.data = Some(others.chain(self.content()).collect());
        mended.metadata.labels.get_or_insert_default().extend(self.labels());
        let wanted = self.reference();
        let owners = mended.metadata.owner_references.get_or_insert_default();
        let same = |known: &OwnerReference| {
            known.kind == wanted.kind
                && known.name == wanted.name
                && known.api_version.split('/').next() == Some(GROUP)
        };
        if !owners.iter().any(|known| same(known) && known.uid == wanted.uid) {
            // A reference to an earlier object of the same name would let the garbage collector delete the Secret.
            owners.retain(|known| !same(known));
            let controlled = owners.iter().any(|known| known.controller == Some(true));
            owners.push(OwnerReference { controller: (!controlled).then_some(true), ..wanted });
        }
        let is_whole = mended.data == existing.data && mended.metadata == existing.metadata;
        (!is_whole).then_some(mended)
    }
}

impl Manager {
    /// Creates a Secret, or repairs it if it is ours. Returns whether it is ours.
    pub(crate) async fn keep_secret(&self, wanted: &OwnedSecret<'_>) -> Result<bool, kube::Error> {
        let namespace = wanted.owner.namespace.as_deref().unwrap_or_default();
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let Some(existing) = secrets.get_opt(&wanted.name).await? else {
            let field_manager = params().field_manager;
            let params = PostParams { field_manager, ..PostParams::default() };
            secrets.create(&params, &wanted.fresh()).await?;
            return Ok(true);
        };
        let Some(mended) = wanted.mended(&existing) else { return Ok(wanted.is_ours(&existing)) };
        let as_json = |secret: &Secret| serde_json::to_value(secret).map_err(kube::Error::SerdeError);
        if let Some(mut patch) = difference(&as_json(&existing)?, &as_json(&mended)?) {
            patch["metadata"]["resourceVersion"] = json!(existing.metadata.resource_version);
            secrets.patch(&wanted.name, &params(), &Patch::Merge(&patch)).await?;
        }
        Ok(true)
    }

    /// Creates or repairs a Secret, and reports a refusal in an event with this reason.
    pub(crate) async fn keep_or_report(&self, secret: &OwnedSecret<'_>, failed: &'static str) -> Outcome {
        let Err(error) = self.keep_secret(secret).await else { return Outcome::Rest };
        let about = Reference::of(API_VERSION, secret.kind, secret.owner);
        self.recorder.warning(about, failed, format!("Secret {}: {error}", secret.name));
        self.after_refusal(&secret.name, &error)
    }

    /// The outcome of a reconcile after the API server refused a request.
    pub(crate) fn after_refusal(&self, what: &str, error: &kube::Error) -> Outcome {
        let is_race =
            matches!(error, kube::Error::Api(status) if status.is_conflict() || status.is_already_exists());
        if !is_race {
            tracing::warn!(secret = what, %error, "a Secret was not written");
        }
        Outcome::Retry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> ObjectMeta {
        ObjectMeta {
            name: Some("md-0".into()),
            namespace: Some("default".into()),
            uid: Some("new".into()),
            ..ObjectMeta::default()
        }
    }

    fn wanted(owner: &ObjectMeta) -> OwnedSecret<'_> {
        OwnedSecret {
            name: "md-0-azure-json".into(),
            label: ("my-cluster", "owned"),
            kind: "AzureMachineTemplate",
            owner,
            data: [("azure.json".to_owned(), b"{}".to_vec())].into(),
            is_shared: false,
            is_export: false,
        }
    }

    /// CAPZ-126: our Secret is repaired, a user's Secret is not, and an unchanged Secret is not written.
    #[test]
    fn only_what_is_ours_and_differs_is_written() {
        let owner = owner();
        let wanted = wanted(&owner);
        let whole = wanted.fresh();
        assert_eq!(wanted.mended(&whole), None);

        let mut other_data = whole.clone();
        other_data.data = Some([("azure.json".to_owned(), ByteString(b"old".to_vec()))].into());
        assert_eq!(wanted.mended(&other_data), Some(whole.clone()));

        let mut beside = whole.clone();
        beside.data.as_mut().unwrap().insert("other".to_owned(), ByteString(b"theirs".to_vec()));
        assert_eq!(wanted.mended(&beside), Some(whole.clone()));
        let shared = OwnedSecret { is_shared: true, ..self::wanted(&owner) };
        assert_eq!(shared.mended(&beside), None, "other keys are other objects'");

        let mut orphan = whole.clone();
        orphan.metadata.owner_references = None;
        assert_eq!(wanted.mended(&orphan), Some(whole.clone()));

        let mut heir = whole.clone();
        heir.metadata.owner_references.as_mut().unwrap()[0].uid = "old".into();
        assert_eq!(wanted.mended(&heir), Some(whole.clone()));

        // Older releases set no controller reference: that is no reason to write.
        let mut older = whole.clone();
        older.metadata.owner_references.as_mut().unwrap()[0].controller = None;
        assert_eq!(wanted.mended(&older), None);

        // There can be only one controller reference.
        let mut shared = whole.clone();
        let first = shared.metadata.owner_references.as_mut().unwrap();
        first[0].kind = "Other".into();
        let mended = wanted.mended(&shared).unwrap().metadata.owner_references.unwrap();
        assert_eq!(mended.iter().map(|it| it.controller).collect::<Vec<_>>(), [Some(true), None]);

        for labels in [None, Some([("my-cluster".to_owned(), "shared".to_owned())].into())] {
            let mut unlabelled = other_data.clone();
            unlabelled.metadata.labels = labels;
            // The established provider writes some without a label.
            assert_eq!(wanted.mended(&unlabelled), Some(whole.clone()));
            let mut foreign = unlabelled.clone();
            foreign.metadata.owner_references.as_mut().unwrap()[0].uid = "theirs".into();
            assert_eq!(wanted.mended(&foreign), None);
            foreign.metadata.owner_references = None;
            assert_eq!(wanted.mended(&foreign), None);
        }

        let export = OwnedSecret { is_export: true, ..self::wanted(&owner) };
        let labelled = export.mended(&whole).unwrap();
        assert_eq!(labelled.metadata.labels.as_ref().unwrap().get(EXPORT).map(String::as_str), Some(""));
        assert_eq!((export.mended(&labelled), wanted.mended(&labelled)), (None, None));
    }
}
