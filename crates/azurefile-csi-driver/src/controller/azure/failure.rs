//! Errors of Azure as statuses.

use arm::Error;
use tonic::{Code, Status};
use volume_planner::azure_error::{AzureRequest, classify};

/// Azure's codes for an account that takes no further share of the size.
const FULL: [&str; 2] =
    ["TotalSharesProvisionedCapacityExceedsAccountLimit", "TotalSharesCountExceedsAccountLimit"];

/// The status for a failed call. A throttled call is Aborted at once, with the time after which Azure takes requests again.
pub(crate) fn status_of(error: &Error) -> Status {
    let after = error.retry_after().filter(|_| error.is_throttled());
    let message = match after {
        Some(after) => format!("{error}; client throttled for {} s more; retry then", after.as_secs()),
        None => error.to_string(),
    };
    Status::new(code_of(error), message)
}

fn code_of(error: &Error) -> Code {
    if let Some(answer) = error.service() {
        let text = error.full_text();
        let codes = answer.codes().map(|code| classify(AzureRequest::Storage, answer.status, code, &text));
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

/// Whether an account takes no further share of the size.
pub(crate) fn is_full(error: &Error) -> bool {
    FULL.iter().any(|code| error.has_code(code))
}

/// Whether a share is already on its way out.
pub(crate) fn is_being_deleted(error: &Error) -> bool {
    error.has_code("ShareBeingDeleted")
}
