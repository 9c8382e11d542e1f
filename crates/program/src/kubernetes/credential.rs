//! Credentials for the Kubernetes API: those of a kubeconfig's user, or a pod's service account. Certificates belong to
//! TLS ([`super::tls`]).

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail};
use arm::Clock;
use base64::Engine as _;
use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::config::{AuthInfo, ExecConfig, ExecInteractiveMode};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::renewed_file::RenewedFile;
use super::tls::{self, Identity};

/// How long before its expiry a plugin's token is no longer used.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// A credential for the API.
pub(super) enum Credential {
    /// None, or only a certificate.
    None,
    /// A token or a password in the kubeconfig.
    Fixed(HeaderValue),
    /// A token in a file that changes.
    File(RenewedFile<HeaderValue>),
    /// The output of a program that the kubeconfig names (`exec`).
    Plugin(Box<Plugin>),
}

impl Credential {
    /// The user's credential; of several, the first of: password, token in a file, token, program.
    ///
    /// # Errors
    /// It cannot be read, or the program fails.
    pub(super) async fn new(user: &AuthInfo) -> anyhow::Result<Self> {
        if let Some(provider) = &user.auth_provider {
            let name = &provider.name;
            bail!("Kubernetes no longer supports the user's auth-provider {name:?}: use exec, or a token");
        }
        if let (Some(name), Some(password)) = (&user.username, &user.password) {
            let both = format!("{name}:{}", password.expose_secret());
            let encoded = base64::engine::general_purpose::STANDARD.encode(both);
            return header("Basic", &encoded).map(Self::Fixed).context("the user's password");
        }
        if let Some(path) = user.token_file.as_ref().filter(|path| !path.is_empty()) {
            return token_file(path.into()).map(Self::File);
        }
        if let Some(token) =
            user.token.as_ref().map(|token| token.expose_secret()).filter(|it| !it.is_empty())
        {
            return header("Bearer", token).map(Self::Fixed).context("the user's token");
        }
        match &user.exec {
            Some(exec) => Ok(Self::Plugin(Box::new(Plugin::new(exec.clone()).await?))),
            None => Ok(Self::None),
        }
    }

    /// The value of the header `Authorization`, if the credential has one.
    ///
    /// # Errors
    /// The program has to run again and fails.
    pub(super) async fn header(&self) -> anyhow::Result<Option<HeaderValue>> {
        match self {
            Self::None => Ok(None),
            Self::Fixed(value) => Ok(Some(value.clone())),
            Self::File(file) => Ok(Some(file.current())),
            Self::Plugin(plugin) => plugin.header().await,
        }
    }

    /// The certificate that a program returned.
    pub(super) fn identity(&self) -> Option<Identity> {
        match self {
            Self::Plugin(plugin) => {
                plugin.identity.as_ref().map(|(certificates, key)| (certificates.clone(), key.clone_key()))
            }
            _ => None,
        }
    }
}

/// A header that is never printed. The error does not contain it either.
fn header(scheme: &str, secret: &str) -> anyhow::Result<HeaderValue> {
    let value = HeaderValue::try_from(format!("{scheme} {}", secret.trim()));
    let mut value = value.map_err(|_| anyhow!("it holds characters that no header may hold"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The token in a file.
fn token_file(path: PathBuf) -> anyhow::Result<RenewedFile<HeaderValue>> {
    RenewedFile::new("token stays", move || {
        let shown = path.display();
        let token =
            std::fs::read_to_string(&path).with_context(|| format!("cannot read the token {shown}"))?;
        header("Bearer", &token).with_context(|| format!("the token {shown}"))
    })
}

/// A program that provides a credential, by the rules of Kubernetes' client libraries.
pub(super) struct Plugin {
    exec: ExecConfig,
    clock: Clock,
    identity: Option<Identity>,
    issued: tokio::sync::Mutex<IssuedCredential>,
}

/// The credential that the program returned.
struct IssuedCredential {
    header: Option<HeaderValue>,
    expires: Option<Timestamp>,
}

/// The program's output (`ExecCredential`). It has no `Debug`, so that it cannot be printed.
#[derive(Deserialize)]
struct ExecCredential {
    status: Option<ExecStatus>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExecStatus {
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
    expiration_timestamp: Option<Timestamp>,
}

impl Plugin {
    async fn new(exec: ExecConfig) -> anyhow::Result<Self> {
        let status = run(&exec).await?;
        let identity = match (&status.client_certificate_data, &status.client_key_data) {
            (Some(certificates), Some(key)) => Some(tls::identity(certificates.as_bytes(), key.as_bytes())?),
            _ => None,
        };
        let issued = tokio::sync::Mutex::new(IssuedCredential::new(&status)?);
        Ok(Self { exec, clock: Clock::system(), identity, issued })
    }

    async fn header(&self) -> anyhow::Result<Option<HeaderValue>> {
        let mut issued = self.issued.lock().await;
        let now = self.clock.now();
        if issued.expires.is_some_and(|until| until.duration_since(now) <= LEEWAY) {
            *issued = IssuedCredential::new(&run(&self.exec).await?)?;
        }
        Ok(issued.header.clone())
    }
}

impl IssuedCredential {
    fn new(status: &ExecStatus) -> anyhow::Result<Self> {
        let token = status.token.as_deref().filter(|token| !token.is_empty());
        let header = token.map(|token| header("Bearer", token)).transpose().context("the program's token")?;
        Ok(Self { header, expires: status.expiration_timestamp })
    }
}

/// Runs the program without blocking this thread.
async fn run(exec: &ExecConfig) -> anyhow::Result<ExecStatus> {
    let (command, shown) = command(exec)?;
    let running = tokio::task::spawn_blocking(move || {
        let mut command = command;
        command.output()
    });
    let output = running.await?.with_context(|| format!("exec: cannot run {shown}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("exec: {shown} failed ({}) {}", output.status, message.trim());
    }
    // Some programs print YAML.
    let text = String::from_utf8(output.stdout).with_context(|| format!("exec: {shown} printed no text"))?;
    let printed: Vec<Value> =
        serde_saphyr::from_multiple(&text).map_err(|_| anyhow!("exec: {shown} printed no ExecCredential"))?;
    let credential = printed.into_iter().find(|one| !one.is_null()).map(ExecCredential::deserialize);
    match credential {
        Some(Ok(ExecCredential { status: Some(status) })) => Ok(status),
        _ => bail!("exec: {shown} printed no ExecCredential with a status"),
    }
}

/// The command that the kubeconfig configures, and its name.
fn command(exec: &ExecConfig) -> anyhow::Result<(Command, String)> {
    let name = exec.command.clone().filter(|name| !name.is_empty()).context("exec: there is no command")?;
    let mut command = Command::new(&name);
    command.args(exec.args.iter().flatten());
    for variable in exec.env.iter().flatten() {
        if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
            command.env(name, value);
        }
    }
    let interactive = exec.interactive_mode != Some(ExecInteractiveMode::Never);
    if interactive {
        command.stdin(Stdio::inherit()).stderr(Stdio::inherit());
    } else {
        command.stdin(Stdio::null());
    }
    let mut spec = json!({"interactive": interactive});
    if exec.provide_cluster_info {
        let cluster = exec.cluster.as_ref().context("exec: the cluster is unknown")?;
        spec["cluster"] = serde_json::to_value(cluster)?;
    }
    let request = json!({"apiVersion": exec.api_version, "kind": "ExecCredential", "spec": spec});
    command.env("KUBERNETES_EXEC_INFO", request.to_string());
    for name in exec.drop_env.iter().flatten() {
        command.env_remove(name);
    }
    Ok((command, name))
}

#[cfg(test)]
mod tests {
    use super::super::renewed_file::MAX_AGE;
    use super::*;

    /// A pod's token changes while the pod runs; a missing file changes nothing.
    #[tokio::test(start_paused = true)]
    async fn node_284_a_token_file_is_read_again_once_a_minute() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        std::fs::write(&path, "one\n").unwrap();
        let file = token_file(path.clone()).unwrap();
        std::fs::write(&path, "two").unwrap();
        assert_eq!(file.current(), "Bearer one");
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(file.current(), "Bearer two");
        assert!(!format!("{:?}", file.current()).contains("two"), "it is never shown");
        std::fs::remove_file(&path).unwrap();
        tokio::time::advance(MAX_AGE).await;
        assert_eq!(file.current(), "Bearer two");
    }
}
