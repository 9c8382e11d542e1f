//! The controller's part of the program until it has one: every call is answered with Unimplemented.

use csi::v1::controller_server::Controller;

/// A controller without calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoController;

#[tonic::async_trait]
impl Controller for NoController {}
