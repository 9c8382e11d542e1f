//! What the instances of scale sets were when their pool was looked at last. The pool's controller asks Azure, by one list for
//! all; those of its machines look here.

use std::collections::HashMap;
use std::sync::Arc;

use azure_types::ResourceId;
use capz_api::Condition;
use capz_planner::pool::Instance;
use parking_lot::Mutex;
use serde_json::Value;

use crate::store::Key;

/// An instance, as its pool saw it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Its provisioning state.
    pub state: String,
    /// The name of its computer.
    pub computer_name: String,
    /// Whether it is as the scale set says now.
    pub latest: bool,
    /// What is known of its start.
    pub bootstrapping: Option<Condition>,
}

/// All instances of a pool, by the ids that nodes have, in lower case.
#[derive(Debug, Default)]
pub struct View {
    /// The instances.
    pub instances: HashMap<String, Seen>,
}

impl View {
    /// What was seen of an instance.
    pub fn see(&self, provider_id: &str) -> Option<&Seen> {
        self.instances.get(&provider_id.to_lowercase())
    }
}

/// What all pools saw last.
#[derive(Default)]
pub struct Instances {
    views: Mutex<HashMap<Key, Arc<View>>>,
}

impl Instances {
    /// Takes in what a pool has seen.
    pub fn take(&self, pool: &Key, scale_set: &Value, instances: &[Instance]) {
        let seen = |instance: &Instance| Seen {
            state: instance.state.clone(),
            computer_name: instance.computer_name.clone(),
            latest: instance.has_latest_model(scale_set),
            bootstrapping: instance.bootstrap_condition(),
        };
        let instances = instances.iter().map(|it| (it.provider_id.to_lowercase(), seen(it))).collect();
        self.views.lock().insert(pool.clone(), Arc::new(View { instances }));
    }

    /// What a pool saw last; `None` if it has not looked yet.
    pub fn of(&self, pool: &Key) -> Option<Arc<View>> {
        self.views.lock().get(pool).cloned()
    }

    /// A pool is gone.
    pub fn forget(&self, pool: &Key) {
        self.views.lock().remove(pool);
    }
}

/// Whether an instance with this id, as nodes have it, is one of a uniform scale set.
pub fn is_within(provider_id: &str, scale_set: &ResourceId) -> bool {
    let id = provider_id.strip_prefix("azure://").unwrap_or(provider_id);
    ResourceId::parse(id).is_ok_and(|id| id.is_within(scale_set))
}
