//! Services for which something may exist in the cloud.

use std::collections::HashMap;
use std::sync::Arc;

use k8s::{ObjectKey, Service};
use parking_lot::Mutex;

use crate::service_change::needs_update;

/// Services for which something may exist in the cloud, as they were when it was requested: the only record of a
/// Service that is deleted without its finalizer, or replaced under its name.
#[derive(Debug, Default)]
pub(crate) struct Served(Mutex<HashMap<ObjectKey, Arc<Service>>>);

impl Served {
    /// Records that something is requested.
    pub fn insert(&self, key: &ObjectKey, service: &Arc<Service>) {
        self.0.lock().insert(key.clone(), Arc::clone(service));
    }

    /// Records that nothing is left.
    pub fn remove(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    pub fn get(&self, key: &ObjectKey) -> Option<Arc<Service>> {
        self.0.lock().get(key).cloned()
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// All Services whose keys satisfy `wanted`.
    pub fn those(&self, wanted: impl Fn(&ObjectKey) -> bool) -> Vec<Arc<Service>> {
        let served = self.0.lock();
        served.iter().filter(|(key, _)| wanted(key)).map(|(_, service)| Arc::clone(service)).collect()
    }

    /// Replaces the stored object by a newer one with the same load balancer: otherwise an object with a new status or
    /// finalizer would be in memory twice from then on.
    pub fn follow(&self, newer: &Arc<Service>) {
        if let Some(known) = self.0.lock().get_mut(&newer.key())
            && !needs_update(known, newer)
            && known.metadata.uid == newer.metadata.uid
        {
            *known = Arc::clone(newer);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// NODE-288: the record shares the object that is in memory anyway.
    #[test]
    fn node_288_a_served_service_is_in_memory_once() {
        let service = |uid: &str, version: &str, port: u16| {
            let service: Service = serde_json::from_value(json!({
                "metadata": {"namespace": "shop", "name": "web", "uid": uid, "resourceVersion": version},
                "spec": {"type": "LoadBalancer", "ports": [{"port": port}]},
            }))
            .unwrap();
            Arc::new(service)
        };
        let served = Served::default();
        let requested = service("1", "1", 80);
        let key = requested.key();
        served.follow(&requested);
        assert!(served.is_empty(), "it was not requested");
        served.insert(&key, &requested);
        let newer = service("1", "2", 80);
        served.follow(&newer);
        assert!(Arc::ptr_eq(&served.get(&key).unwrap(), &newer));
        for other in [service("1", "3", 81), service("2", "3", 80)] {
            served.follow(&other);
            assert!(Arc::ptr_eq(&served.get(&key).unwrap(), &newer), "{other:?} was not requested");
        }
    }
}
