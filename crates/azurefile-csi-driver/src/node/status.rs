//! Errors as statuses (section 4.10 of the specification of the drivers).

use tonic::{Code, Status};
use volumes_node::filesystems::FileSystemError;
use volumes_node::mounts::{MountError, PublishError};

use super::plan::Invalid;
use super::plan::failure::Answer;

pub(super) fn invalid(error: Invalid) -> Status {
    Status::invalid_argument(error.0)
}

pub(super) fn of_mount(error: MountError) -> Status {
    let text = error.to_string();
    match error {
        MountError::NotFound(_) => Status::not_found(text),
        MountError::Step { .. } | MountError::Mount { .. } => Status::internal(text),
    }
}

pub(super) fn of_file_system(error: FileSystemError) -> Status {
    Status::internal(error.to_string())
}

pub(super) fn of_publish(error: PublishError) -> Status {
    let text = error.to_string();
    match error {
        PublishError::NotStaged(_) | PublishError::Taken(_) => Status::failed_precondition(text),
        PublishError::Stale { .. } => Status::internal(text),
        PublishError::Mount(error) => of_mount(error),
    }
}

pub(super) fn code(answer: Answer) -> Code {
    match answer {
        Answer::InvalidArgument => Code::InvalidArgument,
        Answer::NotFound => Code::NotFound,
        Answer::PermissionDenied => Code::PermissionDenied,
        Answer::FailedPrecondition => Code::FailedPrecondition,
        Answer::Unavailable => Code::Unavailable,
        Answer::Internal => Code::Internal,
    }
}
