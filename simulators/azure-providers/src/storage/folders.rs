//! The files of shares as folders, so that machines can mount them: the embedding program attaches the root of the folders.
//!
//! The folder of a share and its contents here are one: before a request about files what machines wrote is taken in, and after it what
//! the request wrote is put out. Bytes are compared by the time and length of a file, and by the tags of entries.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use azure_engine::document::{at, text};
use azure_engine::provider::AzureState;
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use parking_lot::Mutex;
use serde_json::Value;

use super::account::{is_reachable, keys, takes_keys};
use super::contents::{self, Entry};
use super::sparse::Bytes;
use super::tables::ACCOUNTS;

/// How much of a file is read at a time. Parts with zeros alone are not stored.
const PART: usize = 64 * 1024;

/// A file as it was when both sides were the same: its stamp, and its tag.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Same {
    stamp: (i64, i64, u64),
    tag: String,
}

/// Folders of shares: `ROOT/ACCOUNT/SHARE`. Clones are the same folders.
#[derive(Debug, Clone)]
pub struct ShareFolders {
    root: PathBuf,
    same: Arc<Mutex<BTreeMap<PathBuf, Same>>>,
}

/// A storage account, as a machine that mounts its shares needs it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileAccount {
    /// Its name.
    pub name: String,
    /// Its keys in Base64.
    pub keys: Vec<String>,
    /// Whether logins by keys are allowed (`allowSharedKeyAccess`).
    pub takes_keys: bool,
    /// Whether its network rules let a machine in.
    pub is_reachable: bool,
    /// Whether it requires encryption (`supportsHttpsTrafficOnly`), which plain NFS lacks.
    pub requires_encryption: bool,
    /// Its shares, each with its protocol: `SMB` or `NFS`.
    pub shares: BTreeMap<String, String>,
}

/// All accounts with their shares.
pub fn file_accounts(azure: &AzureState) -> Vec<FileAccount> {
    let of = |record: &azure_engine::provider::Record| {
        let shares =
            azure.store.below(&record.id).filter(|below| below.id.resource_type().ends_with("/shares"));
        let protocol = |body: &Value| text(body, "properties/enabledProtocols").unwrap_or("SMB").to_owned();
        FileAccount {
            name: record.id.name().to_owned(),
            keys: keys::secrets(azure, record).map(|secret| STANDARD.encode(secret)).into(),
            takes_keys: takes_keys(&record.body),
            is_reachable: is_reachable(azure, record),
            requires_encryption: at(&record.body, "properties/supportsHttpsTrafficOnly")
                .and_then(Value::as_bool)
                != Some(false),
            shares: shares.map(|share| (share.id.name().to_owned(), protocol(&share.body))).collect(),
        }
    };
    azure.store.of_type(ACCOUNTS).map(of).collect()
}

impl ShareFolders {
    /// Keeps the files of shares below this folder.
    pub fn new(root: PathBuf) -> Self {
        Self { root, same: Arc::default() }
    }

    /// The folder of a share.
    pub fn share(&self, account: &str, share: &str) -> PathBuf {
        self.root.join(account.to_ascii_lowercase()).join(share)
    }

    fn of(&self, id: &ResourceId) -> Option<PathBuf> {
        let names = id.type_and_name_pairs();
        let (account, share) = (names.first()?.1, names.last()?.1);
        id.resource_type().ends_with("fileServices/shares").then(|| self.share(account, share))
    }
}

fn stamp(metadata: &fs::Metadata) -> (i64, i64, u64) {
    (metadata.mtime(), metadata.mtime_nsec(), metadata.len())
}

fn paths(folder: &Path, below: &str, found: &mut BTreeMap<String, fs::Metadata>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.path().symlink_metadata()?;
        let path = format!("{below}{}", entry.file_name().to_string_lossy());
        if metadata.is_dir() {
            paths(&entry.path(), &format!("{path}/"), found)?;
        }
        if metadata.is_dir() || metadata.is_file() {
            found.insert(path, metadata);
        }
    }
    Ok(())
}

fn read(path: &Path, length: u64) -> io::Result<Bytes> {
    let (mut bytes, mut file) = (Bytes::zeros(length), fs::File::open(path)?);
    let (mut part, mut first) = (vec![0; PART], 0);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(bytes),
            count => {
                let read = part.get(..count).unwrap_or_default();
                if read.iter().any(|byte| *byte != 0) {
                    bytes.write(first, read);
                }
                first += count as u64;
            }
        }
    }
}

fn write(path: &Path, bytes: &Bytes) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().create(true).write(true).truncate(true).open(path)?;
    file.set_len(bytes.len())?;
    for (first, last) in bytes.ranges() {
        file.seek(SeekFrom::Start(first))?;
        file.write_all(&bytes.read(first, last + 1).unwrap_or_default())?;
    }
    Ok(())
}

/// Takes in what machines wrote to a share.
pub(super) fn take_in(azure: &mut AzureState, id: &ResourceId) {
    let Some(folders) = azure.attachments.get::<ShareFolders>().cloned() else { return };
    let Some(folder) = folders.of(id).filter(|folder| folder.is_dir()) else { return };
    let mut found = BTreeMap::new();
    if paths(&folder, "", &mut found).is_err() {
        return;
    }
    let mut same = folders.same.lock();
    for (path, metadata) in &found {
        let place = folder.join(path);
        let (stamp, known) = (stamp(metadata), same.get(&place).map(|same| same.stamp));
        if known == Some(stamp) || (metadata.is_dir() && known.is_some()) {
            continue;
        }
        let bytes = match metadata.is_dir() {
            true => None,
            false => match read(&place, metadata.len()) {
                Ok(bytes) => Some(bytes),
                Err(_) => continue,
            },
        };
        let (tag, modified) = (contents::next_etag(azure), azure.now());
        same.insert(place, Same { stamp, tag: tag.clone() });
        if let Some(entries) = contents::entries_mut(azure, id) {
            let old = entries.remove(path);
            let (headers, metadata) = old.map(|old| (old.headers, old.metadata)).unwrap_or_default();
            entries.insert(path.clone(), Entry { bytes, headers, metadata, etag: tag, modified });
        }
    }
    let gone: Vec<String> = contents::entries(azure, id, None)
        .into_iter()
        .flat_map(BTreeMap::keys)
        .filter(|path| !found.contains_key(*path) && same.contains_key(&folder.join(path)))
        .cloned()
        .collect();
    if let Some(entries) = contents::entries_mut(azure, id).filter(|_| !gone.is_empty()) {
        for path in gone {
            same.remove(&folder.join(&path));
            entries.remove(&path);
        }
    }
}

/// Puts out what a request wrote to a share.
pub(super) fn put_out(azure: &AzureState, id: &ResourceId) -> io::Result<()> {
    let Some(folders) = azure.attachments.get::<ShareFolders>() else { return Ok(()) };
    let Some(folder) = folders.of(id) else { return Ok(()) };
    fs::create_dir_all(&folder)?;
    let mut same = folders.same.lock();
    let mut kept = BTreeSet::new();
    for (path, entry) in contents::entries(azure, id, None).into_iter().flatten() {
        let place = folder.join(path);
        kept.insert(place.clone());
        if same.get(&place).is_some_and(|same| same.tag == entry.etag) {
            continue;
        }
        match &entry.bytes {
            None => fs::create_dir_all(&place)?,
            Some(bytes) => write(&place, bytes)?,
        }
        let stamp = stamp(&fs::symlink_metadata(&place)?);
        same.insert(place, Same { stamp, tag: entry.etag.clone() });
    }
    let gone: Vec<PathBuf> =
        same.keys().filter(|place| place.starts_with(&folder) && !kept.contains(*place)).cloned().collect();
    // What is below a folder goes before it.
    for place in gone.iter().rev() {
        let removed = if place.is_dir() { fs::remove_dir(place) } else { fs::remove_file(place) };
        if removed.is_ok() || !place.exists() {
            same.remove(place);
        }
    }
    Ok(())
}
