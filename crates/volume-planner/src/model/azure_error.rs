//! What a refusal of Azure means to the caller: one table from Azure's error codes to codes of gRPC.

use super::error::Code;

/// The longest text of an error that fits an object's status, in bytes.
pub const MAX_ERROR_BYTES: usize = 990;
/// What stands for the middle of a text that was too long.
const ELLIPSIS: &str = " ... ";

/// What was asked of Azure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AzureRequest {
    /// A disk.
    Disk,
    /// A snapshot.
    Snapshot,
    /// A machine.
    Machine,
    /// A storage account, or a share of it.
    Storage,
}

/// A row: the first one that fits decides.
struct Row {
    /// The only kind of request that it is about; absent means any.
    request: Option<AzureRequest>,
    /// The status of the answer; absent means any.
    status: Option<u16>,
    /// A part of the error's code or message, in lower case; empty means any.
    text: &'static str,
    code: Code,
}

const fn row(status: Option<u16>, text: &'static str, code: Code) -> Row {
    Row { request: None, status, text, code }
}

const fn row_of(request: AzureRequest, text: &'static str, code: Code) -> Row {
    Row { request: Some(request), status: None, text, code }
}

/// Azure's codes are compared before its texts, because texts quote names of users. Throttling is [`Code::Aborted`], so that a side-car keeps
/// the request as one in progress: a final code would make it forget a disk that may exist.
const BY_CODE: &[Row] = &[
    row(Some(429), "", Code::Aborted),
    row(None, "toomanyrequests", Code::Aborted),
    row(None, "operationpreempted", Code::Aborted),
    row(None, "diskforcedetached", Code::Aborted),
    row(None, "datadisksforcedetached", Code::Aborted),
    row(None, "quotaexceeded", Code::ResourceExhausted),
    row(None, "resourcequotaexceeded", Code::ResourceExhausted),
    row(None, "zonalallocationfailed", Code::ResourceExhausted),
    row(None, "allocationfailed", Code::ResourceExhausted),
    row(None, "skunotavailable", Code::ResourceExhausted),
    row_of(
        AzureRequest::Storage,
        "totalsharesprovisionedcapacityexceedsaccountlimit",
        Code::ResourceExhausted,
    ),
    row_of(AzureRequest::Storage, "totalsharescountexceedsaccountlimit", Code::ResourceExhausted),
    row_of(AzureRequest::Storage, "maxstorageaccountscountpersubscriptionexceeded", Code::ResourceExhausted),
    row_of(AzureRequest::Storage, "storageaccountalreadytaken", Code::AlreadyExists),
    row_of(AzureRequest::Storage, "sharehassnapshots", Code::FailedPrecondition),
    row_of(AzureRequest::Storage, "featurenotsupportedforaccount", Code::InvalidArgument),
    row_of(AzureRequest::Storage, "invalidheadervalue", Code::InvalidArgument),
    row(None, "authorizationfailed", Code::PermissionDenied),
    row(None, "linkedauthorizationfailed", Code::PermissionDenied),
    row(None, "invalidauthenticationtoken", Code::PermissionDenied),
];

const BY_MESSAGE: &[Row] = &[
    row(None, "client throttled", Code::Aborted),
    row(None, "throttled due to too many requests", Code::Aborted),
    row_of(AzureRequest::Machine, "attached to a vm of this size is", Code::ResourceExhausted),
    row_of(AzureRequest::Machine, "maximum number of data disks", Code::ResourceExhausted),
    row_of(AzureRequest::Snapshot, "existing disk", Code::AlreadyExists),
];

const BY_STATUS: &[Row] = &[
    row(Some(401), "", Code::PermissionDenied),
    row(Some(403), "", Code::PermissionDenied),
    row(Some(404), "", Code::NotFound),
    row(Some(409), "", Code::Aborted),
    row(Some(412), "", Code::Aborted),
];

/// The code for an answer of Azure with this status, error code and message.
///
/// Status decides about absence, not a text: "not found" in a message may be about another resource.
pub fn classify(request: AzureRequest, status: u16, error_code: &str, message: &str) -> Code {
    let (error_code, message) = (error_code.to_ascii_lowercase(), message.to_ascii_lowercase());
    let fits = |row: &&Row, exact: bool, text: &str| {
        let has_text = row.text.is_empty() || if exact { text == row.text } else { text.contains(row.text) };
        let is_about = row.request.is_none_or(|own| own == request);
        is_about && row.status.is_none_or(|wanted| wanted == status) && has_text
    };
    let by_code = BY_CODE.iter().find(|row| fits(row, true, &error_code));
    let by_message = || BY_MESSAGE.iter().find(|row| fits(row, false, &message));
    let by_status = || BY_STATUS.iter().find(|row| fits(row, false, ""));
    by_code.or_else(by_message).or_else(by_status).map_or(Code::Internal, |row| row.code)
}

/// A text of at most [`MAX_ERROR_BYTES`]: of a longer one, two fifths from its beginning and the rest from its end,
/// where Azure gives the reason.
pub fn shorten(text: &str) -> String {
    if text.len() <= MAX_ERROR_BYTES {
        return text.to_owned();
    }
    let room = MAX_ERROR_BYTES - ELLIPSIS.len();
    let head = text.floor_char_boundary(room * 2 / 5);
    let tail = text.ceil_char_boundary(text.len() - (room - room * 2 / 5));
    [&text[..head], ELLIPSIS, &text[tail..]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CSI-064. Section 3.21 of the disk driver's facts: quota, denied and unavailable have codes of their own.
    #[test]
    fn azures_refusals_have_the_codes_of_the_interface() {
        use AzureRequest::{Disk, Machine, Snapshot, Storage};
        let full = "The maximum number of data disks allowed to be attached to a VM of this size is 4.";
        let taken = "Changing property 'creationData' of existing disk is not allowed.";
        for (request, status, code, message, expected) in [
            (Disk, 429, "TooManyRequests", "", Code::Aborted),
            (Disk, 200, "", "throttled due to too many requests", Code::Aborted),
            (Disk, 409, "QuotaExceeded", "", Code::ResourceExhausted),
            (Disk, 409, "ZonalAllocationFailed", "", Code::ResourceExhausted),
            (Disk, 400, "SkuNotAvailable", "", Code::ResourceExhausted),
            (Disk, 403, "AuthorizationFailed", "", Code::PermissionDenied),
            (Disk, 403, "LinkedAuthorizationFailed", "", Code::PermissionDenied),
            (Storage, 409, "TotalSharesCountExceedsAccountLimit", "", Code::ResourceExhausted),
            (Storage, 409, "ShareHasSnapshots", "", Code::FailedPrecondition),
            (Storage, 409, "ShareBeingDeleted", "", Code::Aborted),
            (Storage, 409, "StorageAccountIsNotProvisioned", "", Code::Aborted),
            (Machine, 409, "OperationNotAllowed", full, Code::ResourceExhausted),
            (Disk, 409, "OperationNotAllowed", full, Code::Aborted),
            (Machine, 409, "OperationPreempted", "", Code::Aborted),
            (Snapshot, 409, "Conflict", taken, Code::AlreadyExists),
            (Machine, 409, "Conflict", taken, Code::Aborted),
            (Disk, 412, "PreconditionFailed", "", Code::Aborted),
            (Disk, 404, "ResourceNotFound", "", Code::NotFound),
            (Disk, 400, "NotQuotaExceededAtAll", "", Code::Internal),
            // The name of a user's resource decides nothing.
            (Disk, 400, "InvalidParameter", "disk 'quotaexceeded-not-found' is wrong", Code::Internal),
            (Disk, 500, "InternalServerError", "the subnet was not found", Code::Internal),
        ] {
            let found = classify(request, status, code, message);
            assert_eq!(found, expected, "{request:?} {status} {code} {message}");
        }
    }

    /// Section 3.9, step 7: beginning and end stay.
    #[test]
    fn long_texts_keep_their_beginning_and_more_of_their_end() {
        let longest = "x".repeat(MAX_ERROR_BYTES);
        assert_eq!((shorten("short"), shorten(&longest)), ("short".to_owned(), longest));
        let long = format!("begin{}end", "ä".repeat(2_000));
        let short = shorten(&long);
        assert!(short.len() <= MAX_ERROR_BYTES && short.starts_with("begin") && short.ends_with("end"));
        let (head, tail) = short.split_once(ELLIPSIS).unwrap();
        assert!(head.len() < tail.len());
    }
}
