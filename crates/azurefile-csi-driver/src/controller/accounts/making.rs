//! An account is made.

use arm::Class;
use azure_types::ResourceId;
use serde_json::Value;
use tonic::Status;
use volume_planner::shares::account::AccountRequest;

use crate::controller::azure::{Azure, account_id, file_service, status_of};

/// Makes an account with the settings of its file service, and reads it. One that another replica has made meanwhile is the same.
pub(super) async fn make(
    azure: &Azure,
    group: &ResourceId,
    name: &str,
    request: &AccountRequest,
) -> Result<Value, Status> {
    let id = account_id(group, name);
    azure.put(&id, &request.document()).await?.map_err(|error| status_of(&error))?;
    set_service(azure, &id, request).await?;
    let made = azure.get(&id, Class::Create).await?;
    made.ok_or_else(|| Status::aborted(format!("account {name} was deleted while it was made; retry")))
}

/// Brings the file service of an account into the state that the class asks for.
pub(super) async fn set_service(
    azure: &Azure,
    account: &ResourceId,
    request: &AccountRequest,
) -> Result<(), Status> {
    let Some(document) = request.service_document() else { return Ok(()) };
    azure.put(&file_service(account), &document).await?.map_err(|error| status_of(&error))
}
