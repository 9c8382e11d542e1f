//! Accounts that the driver makes for a class, and accounts that may already have a share of it.

use serde_json::{Value, json};

use super::account::{AccountRequest, SKIP_TAG};
use crate::model::document::tag;
use crate::model::share_names::account_name;

/// The most accounts of one series: more than a region admits.
const SERIES: usize = 512;

impl AccountRequest {
    /// Whether an account of this name is one that the driver makes for this class.
    pub fn makes(&self, name: &str) -> bool {
        let wishes = self.wishes();
        (0..SERIES).any(|number| account_name(&[&wishes], number) == name)
    }

    /// Whether a share of the class may be in an account: the account suits, whether it is full or not.
    pub fn may_have(&self, account: &Value) -> bool {
        self.differs(&without_skip_tag(account)).is_none()
    }
}

/// Whether an account is marked as full.
pub fn is_marked_full(account: &Value) -> bool {
    tag(account, SKIP_TAG).is_some()
}

/// The change that marks an account as full. Azure replaces all tags of an account, so that they are in it.
pub fn mark_full(account: &Value) -> Value {
    let mut tags = tags(&without_skip_tag(account));
    tags[SKIP_TAG] = "true".into();
    json!({ "tags": tags })
}

/// The change that takes the mark away.
pub fn mark_free(account: &Value) -> Value {
    json!({ "tags": tags(&without_skip_tag(account)) })
}

fn tags(account: &Value) -> Value {
    account.get("tags").filter(|tags| tags.is_object()).cloned().unwrap_or_else(|| json!({}))
}

fn without_skip_tag(account: &Value) -> Value {
    let mut account = account.clone();
    if let Some(tags) = account.get_mut("tags").and_then(Value::as_object_mut) {
        tags.retain(|key, _| !key.eq_ignore_ascii_case(SKIP_TAG));
    }
    account
}

#[cfg(test)]
mod tests {
    use super::super::account::tests::{made, request};
    use super::*;
    use crate::shares::choice::Choice;

    /// FILE-047. An account that is full is passed over for new shares, and asked for those that it may have.
    #[test]
    fn a_full_account_still_has_its_shares() {
        let wanted = request(&[]);
        let Choice::Make(name) = wanted.choose(&[], &Default::default(), None, "s") else {
            panic!("nothing is there")
        };
        assert!(wanted.makes(&name) && !wanted.makes("other"));
        let mut account = made(&wanted, &name);
        account["tags"] = json!({ "a": "b" });
        account["tags"] = mark_full(&account)["tags"].clone();
        assert!(is_marked_full(&account) && wanted.may_have(&account) && wanted.differs(&account).is_some());
        assert_eq!(mark_free(&account), json!({ "tags": { "a": "b" } }));
        assert!(!request(&[("protocol", "nfs")]).may_have(&account));
    }
}
