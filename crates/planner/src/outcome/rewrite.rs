//! Writes of a whole document without a change of ours: completing what Azure did not finish, reverting what it
//! refused.

use azure_types::{LoadBalancer, PublicIpAddress, ResourceId, RouteTable, SecurityGroup, Word};
use ownership::Proof;

use super::change::{Change, Unfinished};
use super::plan::{Document, Step};

/// A document that is written as a whole.
pub(crate) trait WholeDocument: Clone {
    /// The state of the latest operation on it.
    fn provisioning_state(&self) -> Option<&Word>;

    /// Its version.
    fn version(&self) -> &Option<String>;

    /// The same document under another version.
    fn with_version(self, version: Option<String>) -> Self;

    fn into_document(self) -> Document;

    /// Whether the latest operation failed: writing it again repairs it.
    fn is_failed(&self) -> bool {
        self.provisioning_state().is_some_and(|state| state.is("Failed") || state.is("Canceled"))
    }

    /// The document without a change that Azure accepted and later refused, under its current version: `self` is the
    /// document that the change was planned against, `now` is its state in Azure. Absent if nothing was changed.
    fn undone(&self, now: &Self) -> Option<Self> {
        let is_changed = now.is_failed() && self.version() != now.version();
        is_changed.then(|| self.clone().with_version(now.version().clone()))
    }

    /// The write of this document as it is over one of this version, for a reason that is no difference.
    fn rewrite(&self, target: ResourceId, over: &Self, why: Change, proof: Proof) -> Step {
        Step::update(target, over.version().clone(), self.clone().into_document(), vec![why], vec![proof])
    }

    /// The write that repairs a resource whose latest operation failed: the same document again.
    fn repair(&self, target: ResourceId, proof: Proof) -> Option<Step> {
        let why = Change::Repaired(Unfinished::Operation);
        self.is_failed().then(|| self.rewrite(target, self, why, proof))
    }

    /// The write that reverts a refused change ([`Self::undone`]).
    fn restore(&self, target: ResourceId, now: &Self, proof: Proof) -> Option<Step> {
        self.undone(now).map(|_| self.rewrite(target, now, Change::Restored, proof))
    }
}

macro_rules! whole_documents {
    ($($type:ident is $variant:ident),*) => {$(
        impl WholeDocument for $type {
            fn provisioning_state(&self) -> Option<&Word> {
                self.properties.as_ref()?.provisioning_state.as_ref()
            }

            fn version(&self) -> &Option<String> {
                &self.etag
            }

            fn with_version(self, etag: Option<String>) -> Self {
                Self { etag, ..self }
            }

            fn into_document(self) -> Document {
                Document::$variant(Box::new(self))
            }
        }
    )*};
}

whole_documents!(
    LoadBalancer is LoadBalancer,
    PublicIpAddress is PublicIp,
    RouteTable is RouteTable,
    SecurityGroup is SecurityGroup
);
