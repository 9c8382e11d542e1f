//! What the embedding program gives to providers: another simulator that stands behind resources of a type, what a
//! machine does when it starts. It is no part of the state and is not saved with it.

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
    /// The value of a type, if it was given.
    pub fn get<T: Any>(&self) -> Option<&T> {
        self.0.iter().find_map(|value| value.downcast_ref())
    }

    /// Gives a value, in place of one of the same type.
    pub fn set<T: Any + Send>(&mut self, value: T) {
        self.0.retain(|known| !known.is::<T>());
        self.0.push(Box::new(value));
    }
}
