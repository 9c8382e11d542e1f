//! The ports of a simulation: the given ones, or the previous ones of its folder.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;

use anyhow::Context as _;

use super::folder::Folder;

/// The file with the ports, in the folder.
const FILE: &str = "ports.json";

/// The ports that a folder remembers, by the options that choose them, without leading dashes. After a restart,
/// existing clients find the servers at the same ports.
#[derive(Debug)]
pub struct Ports {
    file: PathBuf,
    before: BTreeMap<String, u16>,
}

impl Ports {
    /// Reads the ports that the folder remembers.
    ///
    /// # Errors
    /// The file cannot be read or parsed.
    pub fn of(folder: &Folder) -> anyhow::Result<Self> {
        let file = folder.path().join(FILE);
        let before = match std::fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text)
                .with_context(|| format!("{} holds no ports; remove it", file.display()))?,
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error).with_context(|| file.display().to_string()),
        };
        Ok(Self { file, before })
    }

    /// The port for an option: the given one, else the previous one if it is free, else 0, which means any.
    pub fn choose(&self, option: &str, given: Option<u16>) -> u16 {
        let is_free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
        given.unwrap_or_else(|| self.before.get(option).copied().filter(is_free).unwrap_or_default())
    }

    /// Saves the ports of these URLs for the next start.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, urls: &[(&str, &str)]) -> anyhow::Result<()> {
        let port = |url: &str| url.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        let ports: BTreeMap<&str, u16> =
            urls.iter().filter_map(|(option, url)| Some((*option, port(url)?))).collect();
        let text = format!("{}\n", serde_json::to_string_pretty(&ports)?);
        std::fs::write(&self.file, text).with_context(|| self.file.display().to_string())
    }
}

/// Adds the option for the port that is already in use to the error. The options have no leading dashes.
pub fn explain(error: anyhow::Error, ports: &[(&str, Option<u16>)]) -> anyhow::Error {
    let text = format!("{error:#}");
    let is_named = |port: u16| port != 0 && text.contains(&format!("cannot listen on 127.0.0.1:{port}"));
    let given = ports.iter().filter_map(|(option, port)| Some((option, (*port)?)));
    match given.into_iter().find(|(_, port)| is_named(*port)) {
        Some((option, port)) => error.context(format!("--{option} {port}: choose another port")),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_before_are_taken_again_where_none_is_given_and_they_are_free() {
        let directory = tempfile::tempdir().unwrap();
        let folder = Folder::take(directory.path()).unwrap();
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("https://{}", taken.local_addr().unwrap());
        let port = taken.local_addr().unwrap().port();
        let first = Ports::of(&folder).unwrap();
        assert_eq!((first.choose("https-port", None), first.choose("https-port", Some(7))), (0, 7));
        first.keep(&[("https-port", &url)]).unwrap();
        let second = Ports::of(&folder).unwrap();
        assert_eq!(second.choose("https-port", None), 0, "another program has it");
        drop(taken);
        assert_eq!(second.choose("https-port", None), port);
        assert_eq!(second.choose("https-port", Some(0)), 0, "any was asked for");
        assert_eq!(second.choose("proxy-port", None), 0);
        std::fs::write(directory.path().join(FILE), "?").unwrap();
        assert!(Ports::of(&folder).unwrap_err().to_string().ends_with("holds no ports; remove it"));
    }

    #[test]
    fn a_taken_port_names_its_option() {
        let taken = || anyhow::anyhow!("cannot listen on 127.0.0.1:8443: in use");
        let ports = [("port", None), ("https-port", Some(8443))];
        assert_eq!(format!("{}", explain(taken(), &ports)), "--https-port 8443: choose another port");
        assert!(explain(taken(), &[("port", Some(0))]).to_string().starts_with("cannot listen"));
    }
}
