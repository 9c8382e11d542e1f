//! What serves calls about volumes.

use arm::Class;
use azure_types::ResourceId;
use csi::locks::Locks;
use serde_json::Value;
use tonic::Status;
use volume_planner::Code;
use volume_planner::share_id::ShareId;

use crate::controller::accounts::Accounts;
use crate::controller::azure::{Azure, share_id};
use crate::controller::options::ControllerOptions;
use crate::controller::secrets::Secrets;
use csi::status::refused;

/// Serves calls about volumes.
pub(crate) struct Volumes {
    pub azure: Azure,
    pub accounts: Accounts,
    pub secrets: Secrets,
    pub options: ControllerOptions,
    /// Held by name while a volume is created, by ID while it is changed.
    pub locks: Locks,
}

impl Volumes {
    /// The share of an ID, with its document. An ID that cannot be read has this code.
    pub(super) async fn share(
        &self,
        volume: &str,
        code: Code,
        class: Class,
    ) -> Result<(ShareId, ResourceId, Value), Status> {
        let id = ShareId::parse(volume, code).map_err(|it| refused(&it))?;
        let (_, share) = share_id(&id, &self.azure.place()?);
        let document = self.azure.get(&share, class).await?;
        let document = document.ok_or_else(|| Status::not_found(format!("share {share} is not found")))?;
        Ok((id, share, document))
    }
}
