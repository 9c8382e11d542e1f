//! Files, folders and statistics.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;

use volumes_node::system::{FileKind, Kernel, MOUNT_TABLE, System as _};

#[tokio::test]
async fn folders_and_files_come_and_go_however_often() {
    let folder = tempfile::tempdir().unwrap();
    let (deep, file) = (folder.path().join("a/b"), folder.path().join("a/file"));
    for _ in 0..3 {
        Kernel.create_folder(&deep).await.unwrap();
        Kernel.create_file(&file).await.unwrap();
    }
    Kernel.write(&file, "kept").await.unwrap();
    Kernel.create_file(&file).await.unwrap();
    assert_eq!(Kernel.read(&file).await.unwrap(), "kept");
    assert_eq!(Kernel.entries(&folder.path().join("a"), 9).await.unwrap(), ["b", "file"]);
    assert_eq!(Kernel.entries(&folder.path().join("a"), 1).await.unwrap().len(), 1);
    assert_eq!(Kernel.kind(&deep).await.unwrap(), FileKind::Folder);
    assert_eq!(Kernel.kind(&file).await.unwrap(), FileKind::File);
    // A folder with contents is never removed.
    assert!(Kernel.remove(&folder.path().join("a")).await.is_err());
    for _ in 0..3 {
        Kernel.remove(&deep).await.unwrap();
        Kernel.remove(&file).await.unwrap();
    }
    assert_eq!(Kernel.entries(&folder.path().join("a"), 9).await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn links_are_followed_and_what_is_missing_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("target");
    fs::write(&target, vec![0; 4_096]).unwrap();
    symlink("target", folder.path().join("link")).unwrap();
    let link = folder.path().join("link");
    assert_eq!(Kernel.canonical(&link).await.unwrap(), fs::canonicalize(&target).unwrap());
    assert_eq!(Kernel.size(&link).await.unwrap(), 4_096);
    assert!(Kernel.starts_with_zeros(&link).await.unwrap());
    fs::write(&target, "data").unwrap();
    assert!(!Kernel.starts_with_zeros(&link).await.unwrap());
    let error = Kernel.kind(&folder.path().join("none")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    // Only a file that exists is written: in sysfs each is a setting.
    let error = Kernel.write(&folder.path().join("none"), "1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_file_system_has_statistics_and_the_table_of_mounts_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let statistics = Kernel.statistics(folder.path()).await.unwrap();
    assert!(statistics.space.total >= statistics.space.available && statistics.space.total > 0);
    let text = Kernel.read(MOUNT_TABLE.as_ref()).await.unwrap();
    let table = volumes_node::mounts::MountTable::parse(&text);
    assert_eq!(table.entries().len(), text.lines().count());
    assert!(table.of(folder.path()).is_some());
}

#[tokio::test]
async fn a_private_file_has_its_mode_whatever_was_there() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "old").unwrap();
    Kernel.write_private(&file, "new").await.unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
    assert!(Kernel.is_plain_file(&file).await.unwrap());
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert!(!Kernel.is_plain_file(&link).await.unwrap());
}
