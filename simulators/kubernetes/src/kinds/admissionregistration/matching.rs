//! The requests that a policy matches.

use crate::kinds::prelude::*;

/// Defaults of the members that say which requests match.
pub(crate) const MATCHED: &[Row] = &[
    ("matchPolicy", r#""Equivalent""#),
    ("namespaceSelector", "{}"),
    ("objectSelector", "{}"),
    ("resourceRules[].scope", r#""*""#),
    ("excludeResourceRules[].scope", r#""*""#),
];
