//! Tickets in place of a key: `azfilesauthmanager` gets them, and the kernel's helper finds them when it mounts.

use std::time::Duration;

use csi::secrets::Secrets;
use secrecy::{ExposeSecret as _, SecretString};
use tonic::Status;
use volumes_node::system::Command;

use super::access::{Access, token, tokens};
use super::plan::attributes::{Attributes, ticket_host};
use super::plan::login::Login;
use super::remembered::volume_digits;
use super::service::NodeService;

/// The program, found in the path.
const PROGRAM: &str = "azfilesauthmanager";
/// How long it may take: it asks Entra or instance metadata, and the service.
const LIMIT: Duration = Duration::from_secs(60);

impl NodeService {
    /// Gets the ticket of a mount, where it needs one. A token that made the ticket of this host before makes no new one.
    pub(super) async fn ticket(
        &self,
        volume: &str,
        attributes: &Attributes,
        access: &Access,
        host: &str,
        secrets: &Secrets,
    ) -> Result<(), Status> {
        let host = ticket_host(host);
        let command = Command::new(PROGRAM, LIMIT).argument("set").argument(format!("https://{host}"));
        match &access.login {
            Login::Managed { client } => {
                self.authenticate(&host, command.arguments(["--imds-client-id", client])).await
            }
            Login::Token { secret } => {
                let stored = self.stored(secret).await.map_err(Status::internal)?;
                let Some(token) = stored.token else {
                    let (namespace, name) = (&secret.namespace, &secret.name);
                    let text = format!("Secret {namespace}/{name} has no oauthtoken; write the token there");
                    return Err(Status::invalid_argument(text));
                };
                if self.remembered.has_ticket(&host, &token) {
                    return Ok(());
                }
                // The program takes such a token in no other way.
                self.authenticate(&host, command.secret_argument(token.expose_secret())).await?;
                self.remembered.keep_ticket(&host, &token);
                Ok(())
            }
            Login::Workload { client, tenant } => {
                if tenant.is_empty() {
                    let text = "mountWithWorkloadIdentityToken needs tenantID, because the cloud configuration has no tenantId";
                    return Err(Status::invalid_argument(text));
                }
                let token = token(tokens(secrets, attributes).as_ref())?;
                let name = format!("{client}-{}-{}", access.account, volume_digits(volume));
                let is_plain = |letter: char| letter.is_ascii_alphanumeric() || ['-', '_'].contains(&letter);
                if !name.chars().all(is_plain) {
                    let text = format!(
                        "clientID {client:?} or account {:?} has letters that no file name may have",
                        access.account
                    );
                    return Err(Status::invalid_argument(text));
                }
                let file = self.options.token_folder.join(name);
                self.write_token(&file, &token).await?;
                if !attributes.is_inline && self.remembered.has_ticket(&host, &token) {
                    return Ok(());
                }
                let command = command
                    .arguments([
                        "--workload-identity",
                        "--tenant-id",
                        tenant,
                        "--client-id",
                        client,
                        "--token-file",
                    ])
                    .argument(&file)
                    .arguments([
                        "--authority-host",
                        &access.place.authority,
                        "--resource",
                        &access.place.resource,
                    ]);
                self.authenticate(&host, command).await?;
                self.remembered.keep_ticket(&host, &token);
                Ok(())
            }
            Login::None | Login::KeyByToken { .. } | Login::Request | Login::Key { .. } => Ok(()),
        }
    }

    async fn write_token(&self, file: &std::path::Path, token: &SecretString) -> Result<(), Status> {
        if self.system.read(file).await.is_ok_and(|old| old == token.expose_secret()) {
            return Ok(());
        }
        self.system.write_private(file, token.expose_secret()).await.map_err(|error| {
            Status::internal(format!(
                "cannot write the service account's token to {}: {error}",
                file.display()
            ))
        })
    }

    async fn authenticate(&self, host: &str, command: Command) -> Result<(), Status> {
        let failed = |text: String| Status::internal(format!("cannot get a ticket for {host}: {text}"));
        let output = self.system.run(&command).await.map_err(|error| failed(error.to_string()))?;
        match output.has_code(0) {
            true => Ok(()),
            // It may repeat its arguments, of which one may be a token.
            false => Err(failed(format!("{PROGRAM} ended with {}", command.withheld(&output.summary())))),
        }
    }

    /// Removes the tokens of a volume.
    pub(super) async fn remove_tokens(&self, volume: &str) {
        let folder = &self.options.token_folder;
        let suffix = format!("-{}", volume_digits(volume));
        let Ok(names) = self.system.entries(folder, usize::MAX).await else { return };
        for name in names.iter().filter(|name| name.ends_with(&suffix)) {
            if let Err(error) = self.system.remove(&folder.join(name)).await {
                tracing::warn!(%error, "a service account's token stays");
            }
        }
    }
}
