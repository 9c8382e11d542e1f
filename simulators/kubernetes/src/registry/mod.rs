//! The served kinds: the built-in ones, and those that stored CustomResourceDefinitions add at run time.

mod custom;
mod kind;
mod served;
mod version;

pub(crate) use kind::{Kind, PrinterColumn};
pub(crate) use served::Registry;
pub(crate) use version::priority;
