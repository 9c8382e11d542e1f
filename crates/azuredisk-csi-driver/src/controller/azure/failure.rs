//! Errors of Azure as statuses.

use arm::Error;
use tonic::{Code, Status};
use volume_planner::azure_error::{AzureRequest, classify};
use writer::{Failure, Kind};

/// The status for a failed call.
pub(crate) fn status_of(request: AzureRequest, error: &Error) -> Status {
    let code = code_of(request, error);
    let after = error.retry_after().filter(|_| error.is_throttled());
    let message = match after {
        Some(after) => format!("{error}; Azure takes requests again in {} s", after.as_secs()),
        None => error.to_string(),
    };
    Status::new(code, message)
}

fn code_of(request: AzureRequest, error: &Error) -> Code {
    if let Some(answer) = error.service() {
        let codes = answer.codes().map(|code| classify(request, answer.status, code, &error.full_text()));
        let known = codes.map(|code| code.number()).find(|code| *code != i32::from(Code::Internal));
        return known.map_or(Code::Internal, Code::from_i32);
    }
    match error {
        Error::BudgetClosed { .. } => Code::Aborted,
        Error::Authentication { transient: false, .. } | Error::Configuration { .. } => {
            Code::PermissionDenied
        }
        // Whether Azure has carried out the request is not known: a side-car keeps it as one in progress.
        _ => Code::Unavailable,
    }
}

/// The status for a failure of a machine's writer.
pub(crate) fn status_of_failure(failure: &Failure) -> Status {
    if let Some(cause) = &failure.cause {
        return status_of(AzureRequest::Machine, cause);
    }
    let code = match failure.kind {
        Kind::NotFound => Code::NotFound,
        Kind::Aborted => Code::Aborted,
        Kind::Unavailable | Kind::Overdue | Kind::Unknown => Code::Unavailable,
        Kind::InvalidArgument => Code::InvalidArgument,
        Kind::FailedPrecondition => Code::FailedPrecondition,
        Kind::PermissionDenied => Code::PermissionDenied,
        Kind::ResourceExhausted => Code::ResourceExhausted,
    };
    Status::new(code, failure.message.clone())
}

/// Azure's words about an instance of a scale set that does not exist, which it answers with 400.
const NO_INSTANCE: &str = "is not an active virtual machine scale set vm instanceid";

/// Whether Azure says that a machine does not exist.
pub(crate) fn is_gone(error: &Error) -> bool {
    let is_instance =
        || error.has_code("InvalidParameter") && error.full_text().to_ascii_lowercase().contains(NO_INSTANCE);
    error.is_not_found() || is_instance()
}

/// Whether an operation was canceled: by Azure, or by a later one.
pub(crate) fn was_canceled(error: &Error) -> bool {
    let is_canceled =
        |code: &str| ["Canceled", "OperationCanceled"].iter().any(|own| own.eq_ignore_ascii_case(code));
    error.service().is_some_and(|answer| answer.codes().any(is_canceled))
}

/// Whether a machine takes no further disk. Azure's code for it also stands for a machine that is busy.
pub(crate) fn says_full(error: &Error) -> bool {
    code_of(AzureRequest::Machine, error) == Code::ResourceExhausted
}
