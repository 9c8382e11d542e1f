//! Watches of the Secrets that identities name, so that a rotated Secret takes effect at once.
//!
//! Each Secret is watched by name and as metadata only. So only the fact of a change is sent and cached, the other
//! Secrets of the management cluster cost nothing, and no right to read them is needed. There are as many watches as
//! such Secrets, which are few: workload identities, the default of templates, have none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use controllers::watch::{Selector, watch};
use futures::stream::{FuturesUnordered, StreamExt};
use k8s::api::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::context::identity::secret_of;
use crate::context::manager::Manager;
use crate::kubernetes::store::{Key, key_of};

impl Manager {
    /// Watches the Secrets that identities name, as these change, until `stop`.
    pub(crate) async fn watch_identity_secrets(self: &Arc<Self>, stop: &CancellationToken) {
        let mut watched: BTreeMap<Key, CancellationToken> = BTreeMap::new();
        let mut watches = FuturesUnordered::new();
        while !stop.is_cancelled() {
            let identities = self.stores.identities.all();
            let named: BTreeSet<Key> = identities.iter().filter_map(|identity| secret_of(identity)).collect();
            watched.retain(|key, ends| {
                let stays = named.contains(key);
                if !stays {
                    ends.cancel();
                }
                stays
            });
            for key in named {
                watched.entry(key.clone()).or_insert_with(|| {
                    let ends = stop.child_token();
                    watches.push(self.watch_identity_secret(key, ends.clone()));
                    ends
                });
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.identities_changed.notified() => {}
                Some(()) = watches.next() => {}
            }
        }
    }

    async fn watch_identity_secret(self: &Arc<Self>, key: Key, stop: CancellationToken) {
        let secrets: Api<PartialObjectMeta<Secret>> = Api::namespaced(self.client.clone(), &key.namespace);
        let this = Selector { fields: Some(format!("metadata.name={}", key.name)), labels: None };
        // The version that was shown last: a restarted watch shows it once more.
        let mut last = None;
        watch(secrets, this, "Secrets of AzureClusterIdentities", stop, |event| {
            let version = match event {
                Event::InitApply(secret) | Event::Apply(secret) => secret.resource_version(),
                Event::Delete(_) => None,
                Event::Init | Event::InitDone => return,
            };
            if version.is_none() || version != last {
                last = version;
                self.wake_users_of_secret(&key);
            }
        })
        .await;
    }

    /// Wakes every object that depends on the credential in a Secret.
    fn wake_users_of_secret(&self, secret: &Key) {
        for identity in self.stores.identities.all() {
            if secret_of(&identity).as_ref() == Some(secret) {
                self.wake_users_of(&key_of(&*identity));
            }
        }
    }
}
