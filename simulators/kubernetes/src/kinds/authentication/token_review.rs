//! TokenReviews, which are answered in [`crate::identity`].

use k8s_openapi::api::authentication::v1::TokenReview;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind =
    BuiltinKind { is_review: true, ..BuiltinKind::cluster::<TokenReview>() };
