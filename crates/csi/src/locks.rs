//! Locks by name that never block: a second call about the same volume is refused, and its caller tries again.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tonic::Status;

/// Names of which each is held at most once. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Locks(Arc<Mutex<HashSet<Arc<str>>>>);

/// The name is held by another call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("An operation with the given Volume ID {0} already exists")]
pub struct InProgress(String);

impl From<InProgress> for Status {
    fn from(error: InProgress) -> Self {
        Self::aborted(error.to_string())
    }
}

/// Holds a name until it is dropped.
#[derive(Debug)]
#[must_use = "the name is free again once this is dropped"]
pub struct Held {
    locks: Locks,
    name: Arc<str>,
}

impl Locks {
    /// Takes a name.
    ///
    /// # Errors
    /// It is held.
    pub fn hold(&self, name: &str) -> Result<Held, InProgress> {
        let name = Arc::<str>::from(name);
        if self.0.lock().insert(Arc::clone(&name)) {
            Ok(Held { locks: self.clone(), name })
        } else {
            Err(InProgress(name.to_string()))
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.locks.0.lock().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use tonic::Code;

    use super::*;

    /// CSI-060. Section 2.4 of the specification of the drivers.
    #[test]
    fn a_second_holder_is_refused_in_the_established_words() {
        let locks = Locks::default();
        let held = locks.hold("vol-1").unwrap();
        let status = Status::from(locks.hold("vol-1").unwrap_err());
        assert_eq!(status.code(), Code::Aborted);
        assert_eq!(status.message(), "An operation with the given Volume ID vol-1 already exists");
        let _other = locks.hold("vol-2").unwrap();
        drop(held);
        let _again = locks.hold("vol-1").unwrap();
    }

    proptest! {
        /// A name is had exactly when it is free, whatever else is held, and each refused attempt changes nothing.
        #[test]
        fn a_name_is_held_at_most_once(steps in prop::collection::vec((0_u8..4, any::<bool>()), 0..60)) {
            let (locks, mut held) = (Locks::default(), HashMap::new());
            for (name, wants) in steps {
                if !wants {
                    held.remove(&name);
                    continue;
                }
                match locks.hold(&name.to_string()) {
                    Ok(lock) => prop_assert!(held.insert(name, lock).is_none()),
                    Err(_) => prop_assert!(held.contains_key(&name)),
                }
            }
            drop(held);
            prop_assert!(locks.0.lock().is_empty());
        }
    }
}
