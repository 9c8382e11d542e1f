//! The checks after a failed mount.

use std::net::SocketAddr;
use std::path::Path;

use tonic::Status;
use volumes_node::system::{Output, RunError};

use super::access::Access;
use super::plan::attributes::{Attributes, Protocol};
use super::plan::failure::{Checks, Ending, diagnose};
use super::service::NodeService;
use super::status::code;

/// The page that the established driver names.
const HELP: &str =
    "Please refer to http://aka.ms/filemounterror for possible causes and solutions for mount errors.";

/// How a helper ended; `None` if it succeeded.
pub(super) fn ending(ended: Result<Output, RunError>) -> Option<Ending> {
    Some(match ended {
        Ok(output) if output.has_code(0) => return None,
        Ok(output) => Ending::Failed(output.summary()),
        Err(RunError::Missing(_)) => Ending::Missing,
        Err(RunError::Timeout(command)) => Ending::Killed(command.limit),
        Err(RunError::Start { source, .. }) => Ending::Unstarted(source.to_string()),
    })
}

impl NodeService {
    /// Finds out why a share cannot be mounted, and says it.
    pub(super) async fn failed(
        &self,
        attributes: &Attributes,
        access: &Access,
        (host, source, target): (&str, &str, &Path),
        ending: Ending,
    ) -> Status {
        let checks = match ending {
            Ending::Missing | Ending::Unstarted(_) => Checks::default(),
            Ending::Killed(_) | Ending::Failed(_) => self.checks(attributes, access, host).await,
        };
        let found = diagnose(attributes.protocol, &ending, &checks);
        let words = match &ending {
            Ending::Failed(words) => format!(" ({words})"),
            _ => String::new(),
        };
        let help = if self.options.has_help_link { format!("\n{HELP}") } else { String::new() };
        let target = target.display();
        let text = format!("cannot mount {source} at {target}: {}{words}{help}", found.cause);
        Status::new(code(found.answer), text)
    }

    async fn checks(&self, attributes: &Attributes, access: &Access, host: &str) -> Checks {
        let protocol = attributes.protocol;
        let addresses = self.system.resolve(host).await.map_err(|error| error.to_string());
        let port = match addresses.as_ref().ok().and_then(|addresses| addresses.first()) {
            None => None,
            Some(address) => {
                let reached = self.system.reach(SocketAddr::new(*address, protocol.port())).await;
                Some(reached.map_err(|error| error.to_string()))
            }
        };
        let key_is_current = match &access.key {
            Some(key) if protocol == Protocol::Smb => self.is_current(attributes, &access.account, key).await,
            _ => None,
        };
        Checks {
            addresses: Some(addresses),
            expects_private: host.contains(".privatelink."),
            port,
            kernel_has_protocol: self.kernel_has(protocol).await,
            key_is_current,
            is_by_key: access.key.is_some(),
        }
    }

    /// Whether the kernel has a protocol. A module that is not loaded yet is not in the list; the helper has tried to load it.
    async fn kernel_has(&self, protocol: Protocol) -> Option<bool> {
        let text = self.system.read(Path::new("/proc/filesystems")).await.ok()?;
        let name = protocol.kernel_name();
        Some(text.lines().any(|line| line.split_whitespace().next_back() == Some(name)))
    }
}
