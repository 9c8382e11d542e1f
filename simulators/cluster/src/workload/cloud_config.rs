//! A machine's data for its first boot, as far as it is simulated: files, commands, and kubeadm's configuration.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::Value;

/// The content of cloud-init's data.
#[derive(Debug, Default)]
pub(super) struct CloudConfig {
    files: BTreeMap<String, String>,
    commands: Vec<String>,
}

/// The kubeadm command in the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    Init,
    Join,
}

impl CloudConfig {
    /// Reads the data of the machine with this host name.
    ///
    /// # Errors
    /// It is not a cloud-config.
    pub(super) fn read(data: &[u8], host_name: &str) -> Result<Self, String> {
        let text = std::str::from_utf8(data).map_err(|_| "the data is no text".to_owned())?;
        if !text.lines().any(|line| line.trim_end() == "#cloud-config") {
            return Err("the data is no cloud-config".to_owned());
        }
        let document: Value =
            serde_saphyr::from_str(&with_host_name(text, host_name)).map_err(|error| error.to_string())?;
        let list = |name: &str| document[name].as_array().cloned().unwrap_or_default();
        let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let files =
            list("write_files").iter().map(|file| (words(&file["path"]), words(&file["content"]))).collect();
        let line = |command: &Value| match command {
            Value::Array(parts) => parts.iter().map(words).collect::<Vec<_>>().join(" "),
            command => words(command),
        };
        let commands = list("runcmd").iter().map(line).collect();
        Ok(Self { files, commands })
    }

    /// The kubeadm command, and the documents of its configuration.
    pub(super) fn kubeadm(&self) -> Option<(Command, Vec<Value>)> {
        let (command, line) = self.commands.iter().find_map(|line| {
            let has = |word: &str| line.contains(word);
            match () {
                () if has("kubeadm init") => Some((Command::Init, line)),
                () if has("kubeadm join") => Some((Command::Join, line)),
                () => None,
            }
        })?;
        let path = line.split_whitespace().skip_while(|word| *word != "--config").nth(1)?;
        // Documents are separated by lines of three dashes.
        let documents = self.files.get(path)?.split("---\n").filter(|text| !text.trim().is_empty());
        Some((command, documents.filter_map(|text| serde_saphyr::from_str(text).ok()).collect()))
    }

    pub(super) fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// The hosts that commands before kubeadm (`up_to_kubeadm`), or all commands, add to `/etc/hosts`.
    pub(super) fn hosts(&self, up_to_kubeadm: bool) -> BTreeMap<String, IpAddr> {
        let mut hosts = BTreeMap::new();
        for line in &self.commands {
            if up_to_kubeadm && line.contains("kubeadm ") {
                break;
            }
            if !line.contains("/etc/hosts") {
                continue;
            }
            let words = line.split(|c: char| c.is_whitespace() || c == '"' || c == '\'');
            let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
            for pair in words.windows(2) {
                if let ([address, host], true) = (pair, pair[1].contains('.'))
                    && let Ok(address) = address.parse()
                {
                    hosts.insert((*host).to_owned(), address);
                }
            }
        }
        hosts
    }
}

/// The data with the placeholders of Cluster API's templates replaced by the host name.
fn with_host_name(text: &str, host_name: &str) -> String {
    const NAMES: [&str; 6] = [
        "ds.meta_data[\"local_hostname\"]",
        "ds.meta_data['local_hostname']",
        "ds.meta_data.local_hostname",
        "ds.meta_data.hostname",
        "local_hostname",
        "v1.local_hostname",
    ];
    let mut rest = text;
    let mut all = String::with_capacity(text.len());
    while let Some((before, after)) = rest.split_once("{{") {
        all.push_str(before);
        match after.split_once("}}") {
            // In strings of YAML quotes are escaped.
            Some((inner, after)) if NAMES.contains(&inner.trim().replace("\\\"", "\"").as_str()) => {
                all.push_str(host_name);
                rest = after;
            }
            _ => {
                all.push_str("{{");
                rest = after;
            }
        }
    }
    all.push_str(rest);
    all.replace("@@HOSTNAME@@", host_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_of_the_kubeadm_provider_is_read() {
        let data = "## template: jinja\n#cloud-config\n\nwrite_files:\n-   path: /run/kubeadm/kubeadm-join-config.yaml\n    \
            permissions: '0640'\n    content: |\n      ---\n      kind: JoinConfiguration\n      nodeRegistration:\n        \
            name: '{{ ds.meta_data[\"local_hostname\"] }}'\nruncmd:\n  - \"echo '10.0.0.100   api.example' >> /etc/hosts\"\n  \
            - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml --v 10 && echo success > /run/x\n  \
            - \"echo 127.0.0.1 late.example >> /etc/hosts\"\n";
        let config = CloudConfig::read(data.as_bytes(), "machine-1").unwrap();
        let (command, documents) = config.kubeadm().unwrap();
        assert_eq!((command, documents.len()), (Command::Join, 1));
        assert_eq!(documents[0]["nodeRegistration"]["name"], "machine-1");
        assert_eq!(config.hosts(false).len(), 2);
        assert_eq!(config.hosts(true)["api.example"].to_string(), "10.0.0.100");
        assert!(!config.hosts(true).contains_key("late.example"));
        assert!(CloudConfig::read(b"#!/bin/sh", "x").is_err());
    }
}
