//! OpenAPI documents: the kinds, the meaning of their members, and the parameters of their requests. kubectl reads them
//! before it applies, explains and, in older releases, validates.

mod document;
mod names;
mod protobuf;
mod schemas;

pub(crate) use document::{v2, v3, v3_index};
pub(crate) use protobuf::{MEDIA_TYPE as PROTOBUF, v2_protobuf};
