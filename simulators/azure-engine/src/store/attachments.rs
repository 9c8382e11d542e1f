//! Values of the embedding program for providers: another simulator behind resources of a type, the guest of machines.
//! They are not part of the state and not saved with it.

use std::any::Any;
use std::fmt;

/// Values of different types, at most one of each.
#[derive(Default)]
pub struct Attachments(Vec<Box<dyn Any + Send>>);

impl fmt::Debug for Attachments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attachments").field(&self.0.len()).finish()
    }
}

impl Attachments {
    /// The value of a type, if there is one.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.iter().find_map(|value| value.downcast_ref())
    }

    /// Sets a value; it replaces one of the same type.
    pub fn set<T: Any + Send>(&mut self, value: T) {
        self.0.retain(|known| !known.is::<T>());
        self.0.push(Box::new(value));
    }
}
