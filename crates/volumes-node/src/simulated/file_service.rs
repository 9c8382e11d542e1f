//! Services of files that a simulated machine can reach, and the helpers that mount their shares: `mount.cifs` and `mount.nfs` with the
//! words and codes of the real ones (cifs-utils, nfs-utils).

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::mounted::{Mount, Mounted};
use super::served::{FileService, Session};
use super::state::State;
use crate::system::{Command, MountFlags, Output, RunError};

const MANUAL: &str =
    "Refer to the mount.cifs(8) manual page (e.g. man mount.cifs) and kernel log messages (dmesg)";

fn ended(code: i32, stderr: impl Into<String>) -> Output {
    Output { code: Some(code), stdout: String::new(), stderr: stderr.into() }
}

fn cifs_error(number: i32, words: &str) -> Output {
    ended(32, format!("mount error({number}): {words}\n{MANUAL}"))
}

fn options(arguments: &[String]) -> Vec<String> {
    let at = arguments.iter().position(|argument| argument == "-o");
    let text = at.and_then(|at| arguments.get(at + 1)).cloned().unwrap_or_default();
    text.split(',').map(str::to_owned).collect()
}

fn value<'a>(options: &'a [String], key: &str) -> Option<&'a str> {
    options.iter().find_map(|option| option.strip_prefix(key)?.strip_prefix('='))
}

pub(super) fn mount_cifs(
    state: &mut State,
    command: &Command,
    arguments: &[String],
) -> Result<Output, RunError> {
    let [source, target, ..] = arguments else {
        return Ok(ended(1, "Usage: mount.cifs <remotetarget> <dir>"));
    };
    let options = options(arguments);
    let mut parts = source.trim_start_matches('/').split('/');
    let (host, share) = (parts.next().unwrap_or_default().to_owned(), parts.next().unwrap_or_default());
    if !state.protocols.contains("cifs") {
        return Ok(ended(
            32,
            "mount error: cifs filesystem not supported by the system\nmount error(19): No such device",
        ));
    }
    let Some(service) = state.services.get(&host) else {
        return Ok(ended(1, format!("mount error: could not resolve address for {host}: Unknown error")));
    };
    if service.is_silent {
        return Err(RunError::Timeout(command.clone()));
    }
    if !service.ports.contains(&445) {
        return Ok(cifs_error(115, "Operation now in progress"));
    }
    if options.iter().any(|option| option == "nonsense") {
        return Ok(cifs_error(22, "Invalid argument"));
    }
    let by_ticket = value(&options, "sec") == Some("krb5");
    let key = command.environment.iter().find(|(name, _)| name == "PASSWD").map(|(_, key)| key.clone());
    let is_known = match by_ticket {
        true => state.tickets.contains(&host.replace(".privatelink.", ".")),
        false => {
            value(&options, "username") == Some(&service.account)
                && key.as_ref().is_some_and(|key| service.keys.contains(key))
        }
    };
    if !is_known && by_ticket {
        return Ok(cifs_error(126, "Required key not available"));
    }
    if !is_known {
        return Ok(cifs_error(13, "Permission denied"));
    }
    if !service.shares.contains(share) {
        return Ok(cifs_error(2, "No such file or directory"));
    }
    let session = Session { host, key: key.filter(|_| !by_ticket) };
    if options.iter().any(|option| option == "remount") {
        let number = state.topmost(target.as_ref()).and_then(|mount| match mount.what {
            Mounted::Share { number, .. } => Some(number),
            _ => None,
        });
        let Some(number) = number else { return Ok(cifs_error(22, "Invalid argument")) };
        if !state.can_change_passwords {
            return Ok(cifs_error(22, "Invalid argument"));
        }
        state.sessions.insert(number, session);
        state.check_sessions();
        return Ok(ended(0, ""));
    }
    add(state, "cifs", source, target, &options, session);
    Ok(ended(0, ""))
}

pub(super) fn mount_nfs(
    state: &mut State,
    command: &Command,
    arguments: &[String],
) -> Result<Output, RunError> {
    let [source, target, ..] = arguments else { return Ok(ended(1, "usage: mount.nfs remotetarget dir")) };
    let options = options(arguments);
    let (host, path) = source.split_once(':').unwrap_or_default();
    if !state.protocols.contains("nfs4") {
        return Ok(ended(32, "mount.nfs: No such device"));
    }
    let Some(service) = state.services.get(host) else {
        return Ok(ended(
            32,
            format!("mount.nfs: Failed to resolve server {host}: Name or service not known"),
        ));
    };
    if service.is_silent || !service.ports.contains(&2049) {
        return Err(RunError::Timeout(command.clone()));
    }
    let mut parts = path.trim_start_matches('/').split('/');
    let (account, share) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if account != service.account || !service.shares.contains(share) {
        let words = "mounting failed, reason given by server: No such file or directory";
        return Ok(ended(32, format!("mount.nfs: {words}")));
    }
    let session = Session { host: host.to_owned(), key: None };
    add(state, "nfs4", source, target, &options, session);
    Ok(ended(0, ""))
}

/// `mount -t TYPE -o OPTIONS,loop IMAGE TARGET`
pub(super) fn mount_image(state: &mut State, arguments: &[String]) -> Output {
    let [.., image, target] = arguments else { return ended(1, "mount: bad usage") };
    let number = state.next_device;
    state.next_device += 1;
    let options = options(arguments);
    let kind = arguments.get(1).cloned().unwrap_or_default();
    state.mounts.push(Mount {
        what: Mounted::Share { number, kind },
        point: PathBuf::from(target),
        source: PathBuf::from(image),
        flags: flags(&options),
        data: options.join(","),
        is_dead: false,
    });
    ended(0, "")
}

fn flags(options: &[String]) -> MountFlags {
    if options.iter().any(|option| option == "ro") { MountFlags::RDONLY } else { MountFlags::empty() }
}

fn add(state: &mut State, kind: &str, source: &str, target: &str, options: &[String], session: Session) {
    let number = state.next_device;
    state.next_device += 1;
    state.sessions.insert(number, session);
    state.mounts.push(Mount {
        what: Mounted::Share { number, kind: kind.to_owned() },
        point: PathBuf::from(target),
        source: PathBuf::from(source),
        flags: flags(options),
        data: options.join(","),
        is_dead: false,
    });
}

impl State {
    /// Mounts whose key is not an account's any more do not answer; others do.
    pub fn check_sessions(&mut self) {
        let services: &BTreeMap<String, FileService> = &self.services;
        for mount in &mut self.mounts {
            let Mounted::Share { number, .. } = mount.what else { continue };
            let Some(session) = self.sessions.get(&number) else { continue };
            let Some(service) = services.get(&session.host) else { continue };
            mount.is_dead = session.key.as_ref().is_some_and(|key| !service.keys.contains(key));
        }
    }
}
