//! Errors as gRPC statuses.

use tonic::{Code, Status};
use volume_planner::Refusal;

/// The longest message of a status, in bytes. It ends in an event, whose text may have 1,024 bytes, after the words of the
/// side-car that writes it.
const MESSAGE_LIMIT: usize = 900;

/// Of a longer message the beginning is kept up to here; the rest of the limit is for its end, which has the cause.
const HEAD: usize = 600;

/// The status that stands for a refusal.
pub fn refused(refusal: &Refusal) -> Status {
    Status::new(Code::from_i32(refusal.code().number()), refusal.to_string())
}

/// The same status with a message that is not too long. Its details and metadata stay.
pub(crate) fn limited(status: Status) -> Status {
    if status.message().len() <= MESSAGE_LIMIT {
        return status;
    }
    let details = status.details().to_vec().into();
    let message = shortened(status.message().to_owned());
    Status::with_details_and_metadata(status.code(), message, details, status.metadata().clone())
}

/// Takes the middle out of a text that is too long.
fn shortened(text: String) -> String {
    const GAP: &str = " … ";
    if text.len() <= MESSAGE_LIMIT {
        return text;
    }
    let head = &text[..text.floor_char_boundary(HEAD)];
    let tail = &text[text.ceil_char_boundary(text.len() - (MESSAGE_LIMIT - HEAD - GAP.len()))..];
    format!("{head}{GAP}{tail}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tonic::metadata::{MetadataMap, MetadataValue};
    use volume_planner::ClassKind;

    use super::*;

    /// Section 3.21 of the specification of the drivers, for codes; the text is the refusal's.
    #[test]
    fn a_refusal_keeps_its_code_and_its_words() {
        let refusal = Refusal::UnknownParameter { key: "skuname2".to_owned(), class: ClassKind::Storage };
        let status = refused(&refusal);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.message(), refusal.to_string());
    }

    #[test]
    fn a_shortened_status_keeps_all_but_its_message() {
        let mut metadata = MetadataMap::new();
        metadata.insert("after", MetadataValue::from_static("12"));
        let details = vec![1, 2, 3];
        let status =
            Status::with_details_and_metadata(Code::Aborted, "x".repeat(2_000), details.into(), metadata);
        let short = limited(status);
        assert_eq!(short.code(), Code::Aborted);
        assert!(short.message().len() <= MESSAGE_LIMIT && short.message().contains("xx … xx"));
        assert_eq!(short.details(), [1, 2, 3]);
        assert_eq!(short.metadata().get("after").unwrap(), "12");
    }

    #[test]
    fn the_codes_of_refusals_are_those_of_grpc() {
        use volume_planner::Code as Ours;
        for (ours, grpc) in [
            (Ours::InvalidArgument, Code::InvalidArgument),
            (Ours::NotFound, Code::NotFound),
            (Ours::AlreadyExists, Code::AlreadyExists),
            (Ours::PermissionDenied, Code::PermissionDenied),
            (Ours::ResourceExhausted, Code::ResourceExhausted),
            (Ours::FailedPrecondition, Code::FailedPrecondition),
            (Ours::Aborted, Code::Aborted),
            (Ours::OutOfRange, Code::OutOfRange),
            (Ours::Internal, Code::Internal),
            (Ours::Unavailable, Code::Unavailable),
        ] {
            assert_eq!(Code::from_i32(ours.number()), grpc);
        }
    }

    proptest! {
        #[test]
        fn a_long_message_keeps_its_beginning_and_its_end(text in "(\\PC{0,40}|.{0,2000})") {
            let short = shortened(text.clone());
            prop_assert!(short.len() <= MESSAGE_LIMIT);
            if text.len() <= MESSAGE_LIMIT {
                prop_assert_eq!(short, text);
            } else {
                let (head, tail) = (&short[..text.floor_char_boundary(HEAD)], short.chars().next_back());
                prop_assert!(text.starts_with(head));
                prop_assert_eq!(tail, text.chars().next_back());
            }
        }
    }
}
