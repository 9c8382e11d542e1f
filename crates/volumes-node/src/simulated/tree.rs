//! Folders, files and links.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    Folder,
    File(String),
    Link(PathBuf),
    /// A node of the device of this number.
    Device(u32),
}

/// A tree of files.
#[derive(Debug, Clone)]
pub(super) struct FileTree(BTreeMap<PathBuf, Entry>);

impl Default for FileTree {
    fn default() -> Self {
        Self(BTreeMap::from([(PathBuf::from("/"), Entry::Folder)]))
    }
}

impl FileTree {
    /// Puts an entry, with the folders above it.
    pub fn put(&mut self, path: impl AsRef<Path>, entry: Entry) {
        let path = path.as_ref();
        for folder in path.ancestors().skip(1) {
            self.0.entry(folder.to_owned()).or_insert(Entry::Folder);
        }
        self.0.insert(path.to_owned(), entry);
    }

    /// Removes an entry and all below it.
    pub fn cut(&mut self, path: impl AsRef<Path>) {
        self.0.retain(|own, _| !own.starts_with(path.as_ref()));
    }

    /// The path with all links followed.
    pub fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.follow(path, 0)
    }

    fn follow(&self, path: &Path, depth: u8) -> io::Result<PathBuf> {
        if depth > 8 {
            return Err(Errno::LOOP.into());
        }
        let mut place = PathBuf::from("/");
        for part in path.components() {
            match part {
                Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
                Component::ParentDir => {
                    place.pop();
                    continue;
                }
                Component::Normal(name) => place.push(name),
            }
            match self.0.get(&place) {
                None => return Err(Errno::NOENT.into()),
                Some(Entry::Link(target)) => {
                    let target = place.parent().unwrap_or(Path::new("/")).join(target);
                    place = self.follow(&target, depth + 1)?;
                }
                Some(_) => {}
            }
        }
        Ok(place)
    }

    /// What is at a path itself, of which no link is followed.
    pub fn entry(&self, path: &Path) -> Option<&Entry> {
        self.0.get(path)
    }

    pub fn at(&self, path: &Path) -> io::Result<&Entry> {
        let place = self.canonical(path)?;
        self.0.get(&place).ok_or_else(|| Errno::NOENT.into())
    }

    /// The text of a file.
    pub fn text(&mut self, path: &Path) -> io::Result<&mut String> {
        let place = self.canonical(path)?;
        match self.0.get_mut(&place) {
            Some(Entry::File(text)) => Ok(text),
            _ => Err(Errno::ISDIR.into()),
        }
    }

    /// The names in a folder.
    pub fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let place = self.canonical(folder)?;
        if self.0.get(&place) != Some(&Entry::Folder) {
            return Err(Errno::NOTDIR.into());
        }
        let inside = self.0.keys().filter(|path| path.parent() == Some(&place));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    pub fn remove(&mut self, path: &Path) -> io::Result<()> {
        if self.0.get(path) == Some(&Entry::Folder) && !self.names(path)?.is_empty() {
            return Err(Errno::NOTEMPTY.into());
        }
        self.0.remove(path);
        Ok(())
    }
}
