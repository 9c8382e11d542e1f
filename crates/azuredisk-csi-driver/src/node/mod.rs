//! The service Node.

use csi::v1::node_server::Node;
use kube::Client;
use program::environment::ProcessEnvironment;
use tokio_util::sync::CancellationToken;

use crate::flags::CommandLine;

struct Nothing;
impl Node for Nothing {}

pub(crate) fn service(
    _line: &CommandLine,
    _client: Option<&Client>,
    _environment: &ProcessEnvironment,
    _stop: &CancellationToken,
) -> anyhow::Result<impl Node> {
    Ok(Nothing)
}
