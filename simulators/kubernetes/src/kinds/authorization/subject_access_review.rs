//! SubjectAccessReviews, which are answered in [`crate::identity`].

use k8s_openapi::api::authorization::v1::SubjectAccessReview;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind =
    BuiltinKind { is_review: true, ..BuiltinKind::cluster::<SubjectAccessReview>() };
