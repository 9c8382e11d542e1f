//! Shares over SMB.

use csi::v1::volume_capability::access_mode::Mode;
use tonic::Code;
use volumes_node::simulated::FileService;

use crate::world::{HOST, KEY, STAGING, World, capability, fails, map, stage};

/// FILE-100, FILE-120. Section 4.7: the source, the options, and a key that is in no command line.
#[tokio::test]
async fn a_share_is_mounted_with_the_key_of_its_secret() {
    let world = World::new();
    world.stage(stage(&[])).await.unwrap();
    let options = "file_mode=0777,dir_mode=0777,actimeo=30,mfsymlinks,nosharesock,username=acc";
    assert_eq!(world.mounted(STAGING).unwrap(), format!("//{HOST}/share rw,{options}"));
    let journal = world.machine.take_journal();
    assert_eq!(journal, [format!("mount.cifs //{HOST}/share {STAGING} -o {options}")]);
    assert!(!format!("{journal:?}").contains(KEY));

    // Staged again, nothing is mounted a second time.
    world.stage(stage(&[])).await.unwrap();
    assert!(world.machine.take_journal().is_empty());
    world.unstage().await.unwrap();
    assert!(world.mounted(STAGING).is_none() && !world.machine.exists(STAGING));
    world.unstage().await.unwrap();
}

/// Section 4.7: user's options, the pod's group, and modes that only read.
#[tokio::test]
async fn options_of_the_volume_go_before_defaults() {
    for (mode, flags, group, options) in [
        (Mode::MultiNodeReaderOnly, &["uid=7"][..], "1000", "ro,uid=7,ro,gid=1000,file_mode=0777"),
        (
            Mode::SingleNodeWriter,
            &["gid=5", "dir_mode=0700"],
            "1000",
            "rw,gid=5,dir_mode=0700,file_mode=0777",
        ),
    ] {
        let world = World::new();
        let mut request = stage(&[]);
        request.volume_capability = Some(capability(mode, flags, group));
        world.stage(request).await.unwrap();
        let mounted = world.mounted(STAGING).unwrap();
        assert!(mounted.contains(&format!(" {options}")), "{mounted}");
    }
}

/// Section 4.4: attributes of a static volume, and credentials of `nodeStageSecretRef`.
#[tokio::test]
async fn a_static_volume_names_its_server_share_and_folder() {
    let world = World::new();
    world.machine.serve("files.example", FileService::new("own", "b3du", &["photos"]));
    let mut request = stage(&[
        ("Server", "files.example"),
        ("shareName", "photos"),
        ("folderName", "2026/spring/"),
        ("createFolderIfNotExist", "true"),
    ]);
    request.volume_id = "any-name".to_owned();
    request.secrets = map(&[("azurestorageaccountname", "own"), ("azurestorageaccountkey", "b3du")]);
    world.stage(request).await.unwrap();
    assert!(world.mounted(STAGING).unwrap().starts_with("//files.example/photos/2026/spring rw,"));
    assert_eq!(world.played.take_calls(), ["folder own/photos/2026/spring"]);
}

/// Section 4.7: a stale mount is unmounted and made again when the volume is staged.
#[tokio::test]
async fn a_mount_that_does_not_answer_is_made_again() {
    let world = World::new();
    world.stage(stage(&[])).await.unwrap();
    world.machine.set_dead(STAGING);
    world.machine.take_journal();
    world.stage(stage(&[])).await.unwrap();
    assert_eq!(world.machine.mounts().len(), 1);
    assert_eq!(world.machine.take_journal().len(), 1);
}

/// Section 4.10: what is missing is an invalid argument.
#[tokio::test]
async fn a_volume_without_share_or_account_is_refused() {
    let world = World::new();
    for (id, context, words) in [
        ("any", &[("storageAccount", "acc")][..], "names no share"),
        ("any", &[("shareName", "share"), ("secretName", "s")], "Secret default/s does not exist"),
        ("g#acc#share###", &[("encryptInTransit", "maybe")], "encryptInTransit"),
    ] {
        let mut request = stage(context);
        request.volume_id = id.to_owned();
        fails(world.stage(request).await, Code::InvalidArgument, words);
    }
}
