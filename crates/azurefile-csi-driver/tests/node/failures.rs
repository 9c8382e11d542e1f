//! Mounts that fail: the message names the check that found the cause.

use azurefile_csi_driver::node::NodeOptions;
use tonic::Code;
use volumes_node::simulated::FileService;

use crate::world::{HOST, KEY, SECOND_KEY, STAGING, World, fails, stage};

/// FILE-101, FILE-134, FILE-129. Section 4.10.
#[tokio::test]
async fn the_cause_is_found_by_checks() {
    type Change = fn(&World);
    type Row = (Change, &'static [(&'static str, &'static str)], Code, &'static str);
    let rows: [Row; 13] = [
        (
            |world| world.machine.remove_program("mount.cifs"),
            &[],
            Code::FailedPrecondition,
            "mount.cifs is not installed",
        ),
        (|world| world.machine.remove_protocol("cifs"), &[], Code::FailedPrecondition, "modprobe cifs"),
        (
            |world| world.machine.remove_protocol("nfs4"),
            &[("protocol", "nfs")],
            Code::FailedPrecondition,
            "modprobe nfsv4",
        ),
        (|_| {}, &[("server", "nowhere")], Code::Unavailable, "the host has no address"),
        (
            |world| world.machine.change_service(HOST, |own| own.ports = [2049].into()),
            &[],
            Code::Unavailable,
            "port 445 cannot be reached",
        ),
        (
            |world| world.machine.change_service(HOST, |own| own.ports = [445].into()),
            &[("protocol", "nfs")],
            Code::Unavailable,
            "port 2049 cannot be reached",
        ),
        (
            |world| world.machine.change_service(HOST, |own| own.is_silent = true),
            &[],
            Code::Unavailable,
            "did not end within 90 s",
        ),
        (|_| {}, &[("shareName", "absent")], Code::NotFound, "the share or the folder does not exist"),
        (|_| {}, &[("shareName", "absent"), ("protocol", "nfs")], Code::NotFound, "is no share for NFS"),
        (
            |world| world.machine.change_service(HOST, |own| own.keys.clear()),
            &[],
            Code::PermissionDenied,
            "compare account and key",
        ),
        (
            |world| {
                world.machine.change_service(HOST, |own| own.keys.clear());
                world.played.0.lock().keys = vec![(SECOND_KEY.to_owned(), String::new())];
            },
            &[],
            Code::PermissionDenied,
            "the account's key was changed",
        ),
        (
            |world| {
                world.machine.change_service(HOST, |own| own.keys.clear());
                world.played.0.lock().keys = vec![(KEY.to_owned(), String::new())];
            },
            &[],
            Code::PermissionDenied,
            "allowSharedKeyAccess",
        ),
        (
            |world| {
                let mut service = FileService::new("acc", KEY, &[]);
                service.addresses = vec![[20, 0, 0, 1].into()];
                world.machine.serve("acc.privatelink.file.core.windows.net", service);
            },
            &[("server", "acc.privatelink.file.core.windows.net")],
            Code::Unavailable,
            "a private endpoint is expected",
        ),
    ];
    for (change, context, code, words) in rows {
        let world = World::new();
        change(&world);
        fails(world.stage(stage(context)).await, code, words);
        assert!(!world.machine.exists(STAGING), "{words}");
    }
}

/// Section 4.9: `--append-mount-error-help-link`. No key is in the message.
#[tokio::test]
async fn the_help_link_is_added_unless_it_is_switched_off() {
    for (has_help_link, count) in [(true, 1), (false, 0)] {
        let world = World::with(NodeOptions { has_help_link, ..NodeOptions::default() });
        let status = world.stage(stage(&[("shareName", "absent")])).await.unwrap_err();
        assert_eq!(status.message().matches("http://aka.ms/filemounterror").count(), count);
        assert!(!status.message().contains(KEY) && status.message().contains("mount error(2)"));
    }
}
