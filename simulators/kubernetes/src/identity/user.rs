//! The user behind a request.

use std::collections::BTreeMap;

use certificate_authority::ClientCertificate;
use serde_json::{Value, json};

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// The administrator: every sender with one of the server's tokens, and every sender without credentials if there
    /// are no tokens.
    pub(crate) fn administrator() -> Self {
        Self {
            name: "kubernetes-admin".to_owned(),
            uid: String::new(),
            groups: ["system:masters", "system:authenticated"].map(str::to_owned).into(),
            extra: BTreeMap::new(),
        }
    }

    pub(super) fn service_account(
        namespace: &str,
        name: &str,
        uid: &str,
        extra: BTreeMap<String, Vec<String>>,
    ) -> Self {
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{namespace}"),
                "system:authenticated".to_owned(),
            ],
            extra,
        }
    }

    pub(super) fn of_certificate(client: &ClientCertificate) -> Self {
        let mut groups = client.groups.clone();
        groups.push("system:authenticated".to_owned());
        Self { name: client.user.clone(), uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// The user as reviews and webhooks show it.
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({ "username": self.name, "groups": self.groups });
        if !self.uid.is_empty() {
            value["uid"] = Value::from(self.uid.as_str());
        }
        if !self.extra.is_empty() {
            value["extra"] = json!(self.extra);
        }
        value
    }
}
