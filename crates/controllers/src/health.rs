//! Health checks.

use std::fmt;
use std::sync::Arc;

use parking_lot::RwLock;

/// One named check.
#[derive(Clone)]
pub struct HealthCheck {
    name: String,
    check: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl HealthCheck {
    /// A check under a name that appears in URLs, such as `/healthz/leaderElection`. The closure must return at once;
    /// its error says what is wrong.
    pub fn new(
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), check: Arc::new(check) }
    }

    /// The check's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs the check; the error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        (self.check)()
    }
}

impl fmt::Debug for HealthCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HealthCheck({})", self.name)
    }
}

/// The current checks; clones share them. Controllers add theirs as they start.
#[derive(Debug, Clone, Default)]
pub struct HealthChecks(Arc<RwLock<Vec<HealthCheck>>>);

impl HealthChecks {
    /// Adds a check, in place of an earlier one of the same name.
    pub fn add(&self, check: HealthCheck) {
        let mut checks = self.0.write();
        checks.retain(|other| other.name != check.name);
        checks.push(check);
    }

    /// Removes a check.
    pub fn remove(&self, name: &str) {
        self.0.write().retain(|check| check.name != name);
    }

    /// All checks, in the order in which they were added.
    pub fn all(&self) -> Vec<HealthCheck> {
        self.0.read().clone()
    }
}
