//! Which credential a mount takes, and from where (section 4.6).

use super::attributes::{Attributes, Identity, Protocol};
use super::{Invalid, invalid};

/// What is known beside the attributes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LoginFacts<'a> {
    /// Whether the request has an account's name and key.
    pub has_request_secrets: bool,
    /// The identity of the cloud configuration (`userAssignedIdentityID`).
    pub cluster_identity: &'a str,
    /// The tenant of the cloud configuration.
    pub cluster_tenant: &'a str,
}

/// A Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The credential of a mount, and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// None: NFS has no logins.
    None,
    /// A ticket by the machine's managed identity of this client ID.
    Managed {
        /// The client ID.
        client: String,
    },
    /// A ticket by the token in a Secret, key `oauthtoken`.
    Token {
        /// The Secret.
        secret: SecretName,
    },
    /// A ticket by the token of the pod's service account.
    Workload {
        /// The client ID of the identity that trusts the service account.
        client: String,
        /// The identity's tenant.
        tenant: String,
    },
    /// The account's key, listed by an identity that trusts the pod's service account.
    KeyByToken {
        /// The client ID.
        client: String,
        /// The identity's tenant.
        tenant: String,
    },
    /// The account and the key of the request.
    Request,
    /// The key as it was lately, else of a Secret, else listed by the cluster's identity.
    Key {
        /// The Secret; absent without a name for it.
        secret: Option<SecretName>,
        /// Whether Azure may be asked.
        may_list: bool,
    },
}

impl Login {
    /// Whether a token makes the ticket, which is renewed with each new token.
    pub fn has_token(&self) -> bool {
        matches!(self, Self::Token { .. } | Self::Workload { .. })
    }
}

/// The Secret in which the controller stores an account's key.
pub fn usual_secret(account: &str) -> String {
    format!("azure-storage-account-{account}-secret")
}

/// The Secret that a volume's key comes from, if it has a name.
pub fn secret_of(attributes: &Attributes) -> Option<SecretName> {
    let name = match (attributes.secret_name.as_str(), attributes.account.as_str()) {
        ("", "") => return None,
        ("", account) => usual_secret(account),
        (name, _) => name.to_owned(),
    };
    Some(SecretName { namespace: attributes.secret_namespace.clone(), name })
}

/// Chooses the credential of a mount.
///
/// # Errors
/// An identity lacks its client ID.
pub fn choose(attributes: &Attributes, known: LoginFacts<'_>) -> Result<Login, Invalid> {
    let makes_folder = attributes.creates_folder && !attributes.folder.is_empty();
    if attributes.protocol == Protocol::Nfs && !makes_folder {
        return Ok(Login::None);
    }
    let client = match attributes.client_id.as_str() {
        "" => known.cluster_identity,
        own => own,
    };
    let tenant = match attributes.tenant_id.as_str() {
        "" => known.cluster_tenant,
        own => own,
    };
    let missing = |mode: &str| {
        invalid(format!(
            "{mode} needs clientID, because the cloud configuration has no userAssignedIdentityID"
        ))
    };
    match attributes.identity {
        Some(Identity::Managed) if client.is_empty() => return missing("mountWithManagedIdentity"),
        Some(Identity::Managed) => return Ok(Login::Managed { client: client.to_owned() }),
        Some(Identity::OauthToken) => {
            let (namespace, name) = (attributes.secret_namespace.clone(), attributes.secret_name.clone());
            return Ok(Login::Token { secret: SecretName { namespace, name } });
        }
        Some(Identity::WorkloadToken) if client.is_empty() => {
            return missing("mountWithWorkloadIdentityToken");
        }
        Some(Identity::WorkloadToken) => {
            return Ok(Login::Workload { client: client.to_owned(), tenant: tenant.to_owned() });
        }
        None => {}
    }
    if !attributes.client_id.is_empty() {
        return Ok(Login::KeyByToken { client: client.to_owned(), tenant: tenant.to_owned() });
    }
    if known.has_request_secrets {
        return Ok(Login::Request);
    }
    let may_list = !attributes.key_from_secret_only && !attributes.account.is_empty();
    Ok(Login::Key { secret: secret_of(attributes), may_list })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(change: impl FnOnce(&mut Attributes)) -> Attributes {
        let mut attributes = Attributes {
            account: "acc".to_owned(),
            share: "s".to_owned(),
            secret_namespace: "ns".to_owned(),
            ..Attributes::default()
        };
        change(&mut attributes);
        attributes
    }

    /// FILE-111. Section 4.6: the order in which a credential is looked for.
    #[test]
    fn the_first_credential_that_applies_is_taken() {
        let known =
            LoginFacts { has_request_secrets: false, cluster_identity: "cluster", cluster_tenant: "tenant" };
        let given = LoginFacts { has_request_secrets: true, ..known };
        let secret = |name: &str| SecretName { namespace: "ns".to_owned(), name: name.to_owned() };
        let usual = Some(secret("azure-storage-account-acc-secret"));
        let nfs = |a: &mut Attributes| a.protocol = Protocol::Nfs;
        let folder = |a: &mut Attributes| {
            a.protocol = Protocol::Nfs;
            a.creates_folder = true;
            a.folder = "f".to_owned();
        };
        let own = |a: &mut Attributes| a.client_id = "own".to_owned();
        let managed = |a: &mut Attributes| a.identity = Some(Identity::Managed);
        let managed_own = |a: &mut Attributes| {
            a.identity = Some(Identity::Managed);
            a.client_id = "own".to_owned();
        };
        let token = |a: &mut Attributes| {
            a.identity = Some(Identity::OauthToken);
            a.secret_name = "t".to_owned();
        };
        let workload = |a: &mut Attributes| {
            a.identity = Some(Identity::WorkloadToken);
            a.tenant_id = "own".to_owned();
        };
        let nothing = |_: &mut Attributes| {};
        let named = |a: &mut Attributes| a.secret_name = "mine".to_owned();
        let only = |a: &mut Attributes| a.key_from_secret_only = true;
        let unknown = |a: &mut Attributes| a.account.clear();
        type Change<'a> = &'a dyn Fn(&mut Attributes);
        let rows: [(Change<'_>, LoginFacts<'_>, Login); 14] = [
            (&nfs, given, Login::None),
            (&folder, known, Login::Key { secret: usual.clone(), may_list: true }),
            (&managed, given, Login::Managed { client: "cluster".to_owned() }),
            (&managed_own, given, Login::Managed { client: "own".to_owned() }),
            (&token, given, Login::Token { secret: secret("t") }),
            (&workload, given, Login::Workload { client: "cluster".to_owned(), tenant: "own".to_owned() }),
            (&own, given, Login::KeyByToken { client: "own".to_owned(), tenant: "tenant".to_owned() }),
            (&nothing, given, Login::Request),
            (&only, given, Login::Request),
            (&nothing, known, Login::Key { secret: usual.clone(), may_list: true }),
            (&named, known, Login::Key { secret: Some(secret("mine")), may_list: true }),
            (&only, known, Login::Key { secret: usual, may_list: false }),
            (&unknown, known, Login::Key { secret: None, may_list: false }),
            (&unknown, given, Login::Request),
        ];
        for (change, known, login) in rows {
            let attributes = attributes(change);
            assert_eq!(choose(&attributes, known), Ok(login), "{attributes:?}");
        }
        let error = choose(&attributes(managed), LoginFacts::default()).unwrap_err();
        assert!(error.0.contains("mountWithManagedIdentity needs clientID"), "{error}");
    }
}
