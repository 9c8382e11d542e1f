//! The credential of a mount: looked for in the order that [`super::plan::login`] has decided.

use csi::secrets::Secrets;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tonic::Status;

use super::outside::{AccountName, CloudPlace, Key, TokenIdentity};
use super::plan::attributes::Attributes;
use super::plan::login::{Login, LoginFacts, SecretName, choose};
use super::service::NodeService;
use super::status::invalid;

/// A token of a service account, for the audience of workload identities.
const AUDIENCE: &str = "api://AzureADTokenExchange";
const TOKENS: &str = "csi.storage.k8s.io/serviceAccount.tokens";

/// Whether a key that was read lately is good enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    Lately,
    Now,
}

/// What a mount logs in with.
#[derive(Debug, Clone)]
pub(super) struct Access {
    pub login: Login,
    /// The account, which a Secret may name.
    pub account: String,
    /// The account's key.
    pub key: Option<SecretString>,
    pub place: CloudPlace,
}

/// The account and the key of a request.
pub(super) fn of_request(secrets: &Secrets) -> Option<(String, SecretString)> {
    let value = |names: [&str; 2]| {
        let own = secrets
            .names()
            .into_iter()
            .find(|own| names.iter().any(|name| name.eq_ignore_ascii_case(own)))?;
        secrets.expose(own).map(str::trim)
    };
    let account = value(["azurestorageaccountname", "accountname"]);
    let key = value(["azurestorageaccountkey", "accountkey"]);
    (account.is_some() || key.is_some())
        .then(|| (account.unwrap_or_default().to_owned(), SecretString::from(key.unwrap_or_default())))
}

/// The tokens of the pod's service account, of the request's secrets or of its context.
pub(super) fn tokens(secrets: &Secrets, attributes: &Attributes) -> Option<SecretString> {
    let given = secrets.expose(TOKENS).unwrap_or(&attributes.tokens);
    (!given.is_empty()).then(|| SecretString::from(given))
}

/// The token for the audience of workload identities.
pub(super) fn token(tokens: Option<&SecretString>) -> Result<SecretString, Status> {
    #[derive(Deserialize)]
    struct Token {
        token: String,
    }
    let text = tokens.map(|tokens| tokens.expose_secret()).unwrap_or_default();
    let read: Result<std::collections::BTreeMap<String, Token>, _> = serde_json::from_str(text);
    let found =
        read.ok().and_then(|mut tokens| tokens.remove(AUDIENCE)).filter(|found| !found.token.is_empty());
    found.map(|found| SecretString::from(found.token)).ok_or_else(|| {
        Status::invalid_argument(format!(
            "the kubelet gave no token of the pod's service account for {AUDIENCE}; add this audience to tokenRequests of the CSIDriver"
        ))
    })
}

impl NodeService {
    /// Looks for the credential of a mount.
    pub(super) async fn access(
        &self,
        attributes: &Attributes,
        secrets: &Secrets,
        freshness: Freshness,
    ) -> Result<Access, Status> {
        let place = match &self.outside.azure {
            Some(azure) => azure.place().await,
            None => CloudPlace::default(),
        };
        let request = of_request(secrets);
        let known = LoginFacts {
            has_request_secrets: request.is_some(),
            cluster_identity: &place.identity,
            cluster_tenant: &place.tenant,
        };
        let login = choose(attributes, known).map_err(invalid)?;
        let mut access = Access { login, account: attributes.account.clone(), key: None, place };
        match access.login.clone() {
            Login::None | Login::Managed { .. } | Login::Workload { .. } => {}
            Login::Token { secret } => {
                if access.account.is_empty() && attributes.server.is_empty() {
                    access.account = self.stored(&secret).await.map_err(Status::invalid_argument)?.account;
                }
            }
            Login::KeyByToken { client, tenant } => {
                let token = token(tokens(secrets, attributes).as_ref())?;
                let azure = self.outside.azure.as_ref().ok_or_else(no_azure)?;
                let identity = TokenIdentity { client, tenant, token };
                let keys = azure.keys_by_token(&account_name(attributes), &identity).await;
                access.key = Some(chosen(keys.map_err(Status::invalid_argument)?, attributes)?);
            }
            Login::Request => {
                let (account, key) = request.ok_or_else(no_azure)?;
                if !account.is_empty() {
                    access.account = account;
                }
                access.key = Some(key);
            }
            Login::Key { .. }
                if freshness == Freshness::Lately
                    && let Some(key) = self.remembered.key(&access.account) =>
            {
                // It stays as old as it is: a key that is used all the time is read again, too.
                access.key = Some(key);
                return Ok(access);
            }
            Login::Key { secret, may_list } => {
                self.find_key(&mut access, attributes, secret, may_list).await?
            }
        }
        if let Some(key) = access.key.as_ref().filter(|key| !key.expose_secret().is_empty()) {
            self.remembered.keep_key(&access.account, key);
        }
        Ok(access)
    }

    /// The key of a Secret, else of Azure.
    async fn find_key(
        &self,
        access: &mut Access,
        attributes: &Attributes,
        secret: Option<SecretName>,
        may_list: bool,
    ) -> Result<(), Status> {
        let mut reasons = Vec::new();
        match &secret {
            Some(secret) => match self.stored(secret).await {
                Ok(stored) if stored.key.is_some() => {
                    if !stored.account.is_empty() {
                        access.account = stored.account;
                    }
                    access.key = stored.key;
                    return Ok(());
                }
                Ok(_) => reasons.push(format!(
                    "Secret {}/{} has no azurestorageaccountkey",
                    secret.namespace, secret.name
                )),
                Err(reason) => reasons.push(reason),
            },
            None => reasons.push("the volume names neither account nor Secret".to_owned()),
        }
        if !may_list {
            reasons.push(
                "and Azure is not asked for the key (getAccountKeyFromSecret, or no account is named)"
                    .to_owned(),
            );
        } else if let Some(azure) = &self.outside.azure {
            match azure.keys(&account_name(attributes)).await {
                Ok(keys) => {
                    access.key = Some(chosen(keys, attributes)?);
                    return Ok(());
                }
                Err(reason) => reasons.push(reason),
            }
        } else {
            reasons.push("and there is no cloud configuration with which Azure could be asked".to_owned());
        }
        let account = &access.account;
        Err(Status::invalid_argument(format!(
            "there is no key for account {account:?}: {}",
            reasons.join("; ")
        )))
    }

    /// What a Secret says of an account.
    pub(super) async fn stored(&self, secret: &SecretName) -> Result<super::outside::StoredSecret, String> {
        let SecretName { namespace, name } = secret;
        let Some(cluster) = &self.outside.cluster else {
            return Err(format!(
                "Secret {namespace}/{name} cannot be read: there is no connection to Kubernetes"
            ));
        };
        let found = cluster.secret(secret).await?;
        found.ok_or_else(|| format!("Secret {namespace}/{name} does not exist"))
    }

    /// Whether a key is one of the account's as they are now; `None` if Azure does not say.
    pub(super) async fn is_current(
        &self,
        attributes: &Attributes,
        account: &str,
        key: &SecretString,
    ) -> Option<bool> {
        let azure = self.outside.azure.as_ref()?;
        let name = AccountName { name: account.to_owned(), ..account_name(attributes) };
        let keys = azure.keys(&name).await.ok()?;
        Some(keys.iter().any(|own| own.value.expose_secret() == key.expose_secret()))
    }
}

fn no_azure() -> Status {
    Status::invalid_argument(
        "there is no cloud configuration with which Azure could be asked for the account's key",
    )
}

fn account_name(attributes: &Attributes) -> AccountName {
    AccountName {
        subscription: attributes.subscription.clone(),
        group: attributes.group.clone(),
        name: attributes.account.clone(),
    }
}

/// The first key, or the newest one.
fn chosen(keys: Vec<Key>, attributes: &Attributes) -> Result<SecretString, Status> {
    let key = match attributes.latest_key {
        true => keys.into_iter().max_by(|a, b| a.created.cmp(&b.created)),
        false => keys.into_iter().next(),
    };
    key.map(|key| key.value).ok_or_else(|| {
        let text = format!("account {} has no keys", attributes.account);
        Status::invalid_argument(text)
    })
}
