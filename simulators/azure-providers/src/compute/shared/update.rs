//! What a write comes to.

use serde_json::Value;

use azure_engine::document::{Object, drop_nulls, into_object, merge};
use azure_engine::provider::{Proposal, Source};

/// The document that a write comes to. A PUT of something that is there updates the parts that were
/// given, tags and identity as wholes; a PATCH brings the whole document.
pub(crate) fn updated(proposal: &mut Proposal<'_>) -> Object {
    let body = std::mem::take(&mut proposal.body);
    let mut whole = match proposal.old {
        Some(old) if proposal.source != Source::Patch => old.body.clone(),
        _ => Value::Object(Object::new()),
    };
    if let Value::Object(whole) = &mut whole {
        let replaced =
            |member: &&'static str| body.contains_key(*member) || proposal.emptied.contains(member);
        for member in ["tags", "identity"].iter().filter(|member| replaced(member)) {
            whole.remove(*member);
        }
    }
    merge(&mut whole, Value::Object(body));
    drop_nulls(&mut whole);
    into_object(whole)
}
