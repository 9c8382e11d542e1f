//! Watches of the Secrets that identities name: what is rotated counts at once.
//!
//! Each Secret is watched by its name and as metadata alone. So nothing is sent and kept but what says that it has changed, the
//! other Secrets of the management cluster cost nothing, and nobody needs the right to see them. There are as many watches as
//! there are such Secrets, which are few: workload identities, the default of templates, have none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use controllers::watch::{Selector, watch};
use futures::stream::{FuturesUnordered, StreamExt};
use k8s::api::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt};
use tokio_util::sync::CancellationToken;

use crate::identity::secret_of;
use crate::shared::Manager;
use crate::store::{Key, key_of};

impl Manager {
    /// Watches the Secrets that identities name, whichever these are, until `stop`.
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
        // The version that was shown last: a watch that begins anew shows it once more.
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

    /// Wakes everything that is done with what a Secret proves.
    fn wake_users_of_secret(&self, secret: &Key) {
        for identity in self.stores.identities.all() {
            if secret_of(&identity).as_ref() == Some(secret) {
                self.wake_users_of(&key_of(&*identity));
            }
        }
    }
}
