//! Labels of objects.

use std::collections::BTreeMap;

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;
