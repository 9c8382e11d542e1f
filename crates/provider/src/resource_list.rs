//! The resources of one list of Azure, read once for all concurrent readers.

use freshness::SharedList;

use crate::failure::Failure;

/// The resources of one list of Azure.
pub(crate) type ResourceList<T> = SharedList<T, Failure>;
