//! Brings objects into the form of their schema.

use serde_json::Value;

use super::defaults;
use crate::schema::Schema;
use crate::schema::decode::remove_unknown;

/// Brings an object into its stored form: members that the schema does not know are removed, and missing members with a
/// default are set.
pub(crate) fn settle(tree: &Schema, object: &mut Value) {
    prune(tree, object);
    defaults::apply(tree, object);
}

/// Removes members that the schema does not know, and nulls that it does not allow.
pub(crate) fn prune(tree: &Schema, object: &mut Value) {
    remove_unknown(tree, object);
    defaults::drop_nulls(tree, object);
}
