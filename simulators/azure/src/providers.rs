//! The resource providers of this simulated Azure. A further one is a module that is named here.

use crate::engine::provider::Provider;
use crate::{compute, identity, network, resources};

pub(crate) fn all() -> Vec<Provider> {
    vec![resources::provider(), network::provider(), compute::provider(), identity::provider()]
}
