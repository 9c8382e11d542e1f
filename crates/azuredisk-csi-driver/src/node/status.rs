//! Errors of the machine as statuses (section 3.21 of the specification of the drivers).

use tonic::Status;
use volumes_node::devices::DeviceError;
use volumes_node::filesystems::FileSystemError;
use volumes_node::mounts::{MountError, PublishError};

pub(super) fn of_device(error: DeviceError) -> Status {
    let text = error.to_string();
    match error {
        DeviceError::TooSmall { .. } => Status::unavailable(text),
        DeviceError::InvalidSetting(_) => Status::invalid_argument(text),
        DeviceError::NotFound { .. }
        | DeviceError::NoDevice(_)
        | DeviceError::Rescan { .. }
        | DeviceError::Size { .. }
        | DeviceError::Setting { .. } => Status::internal(text),
    }
}

pub(super) fn of_file_system(error: FileSystemError) -> Status {
    Status::internal(error.to_string())
}

pub(super) fn of_mount(error: MountError) -> Status {
    let text = error.to_string();
    match error {
        MountError::NotFound(_) => Status::not_found(text),
        MountError::Step { .. } | MountError::Mount { .. } => Status::internal(text),
    }
}

pub(super) fn of_publish(error: PublishError) -> Status {
    let text = error.to_string();
    match error {
        PublishError::NotStaged(_) | PublishError::Taken(_) => Status::failed_precondition(text),
        PublishError::Stale { .. } => Status::internal(text),
        PublishError::Mount(error) => of_mount(error),
    }
}
