//! What is remembered between calls, to save others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use csi::v1::NodeGetVolumeStatsResponse;
use parking_lot::Mutex;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

/// How long a key is taken as it was (section 4.6).
const KEY_AGE: Duration = Duration::from_secs(180);

/// Stands for a key or a token, from which it cannot be had back.
pub(super) type Fingerprint = [u8; 32];

/// The fingerprint of a secret.
pub(super) fn fingerprint(secret: &SecretString) -> Fingerprint {
    Sha256::digest(secret.expose_secret().as_bytes()).into()
}

/// The first sixteen hexadecimal digits that stand for a volume in the names of its files.
pub(super) fn volume_digits(volume: &str) -> String {
    Sha256::digest(volume.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    keys: Mutex<BTreeMap<String, (SecretString, Instant)>>,
    mounts: Mutex<BTreeMap<PathBuf, Fingerprint>>,
    tickets: Mutex<BTreeMap<String, Fingerprint>>,
    statistics: Mutex<BTreeMap<String, (NodeGetVolumeStatsResponse, Instant)>>,
}

impl Remembered {
    /// The key of an account as it was lately.
    pub fn key(&self, account: &str) -> Option<SecretString> {
        let keys = self.keys.lock();
        keys.get(account).filter(|(_, at)| at.elapsed() < KEY_AGE).map(|(key, _)| key.clone())
    }

    pub fn keep_key(&self, account: &str, key: &SecretString) {
        let mut keys = self.keys.lock();
        keys.retain(|_, (_, at)| at.elapsed() < KEY_AGE);
        keys.insert(account.to_owned(), (key.clone(), Instant::now()));
    }

    /// Forgets the key of an account that refuses it.
    pub fn forget_key(&self, account: &str) {
        self.keys.lock().remove(account);
    }

    /// With which key the mount at a path was made, as far as this process made it.
    pub fn used_key(&self, path: &Path) -> Option<Fingerprint> {
        self.mounts.lock().get(path).copied()
    }

    pub fn keep_used_key(&self, path: &Path, key: Option<&SecretString>) {
        let mut mounts = self.mounts.lock();
        match key {
            Some(key) => drop(mounts.insert(path.to_owned(), fingerprint(key))),
            None => drop(mounts.remove(path)),
        }
    }

    /// Whether the ticket of a host was made with this token.
    pub fn has_ticket(&self, host: &str, token: &SecretString) -> bool {
        self.tickets.lock().get(host) == Some(&fingerprint(token))
    }

    pub fn keep_ticket(&self, host: &str, token: &SecretString) {
        self.tickets.lock().insert(host.to_owned(), fingerprint(token));
    }

    /// Statistics that are not older than this.
    pub fn statistics(&self, name: &str, age: Duration) -> Option<NodeGetVolumeStatsResponse> {
        let statistics = self.statistics.lock();
        statistics.get(name).filter(|(_, at)| at.elapsed() < age).map(|(found, _)| found.clone())
    }

    pub fn keep_statistics(&self, name: &str, found: &NodeGetVolumeStatsResponse, age: Duration) {
        let mut statistics = self.statistics.lock();
        statistics.retain(|_, (_, at)| at.elapsed() < age);
        statistics.insert(name.to_owned(), (found.clone(), Instant::now()));
    }
}
