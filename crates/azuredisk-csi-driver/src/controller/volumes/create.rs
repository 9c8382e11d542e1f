//! A volume is created.

use arm::Class;
use csi::call::Call;
use csi::operation::Operation;
use csi::v1::{CreateVolumeRequest, CreateVolumeResponse, Volume};
use serde_json::Value;
use tonic::Status;
use volume_planner::Refusal;
use volume_planner::access;
use volume_planner::azure_error::AzureRequest;
use volume_planner::disk::context;
use volume_planner::disk::create::{CreateRequest, CreateStep, CreatedDisk, NewDisk};
use volume_planner::disk::observed::ObservedDisk;
use volume_planner::disk::source::Source;
use volume_planner::parameters::disk::DiskParameters;

use super::source::source;
use super::volume_calls::Volumes;
use crate::controller::azure::Azure;
use crate::controller::messages::{
    capability, entries, map, range, refused, required, requirement, topologies,
};
use crate::pace::Pace;

/// Azure does what it is asked after the first write, or after one more if it failed. More would hide a disagreement.
const MAX_WRITES: u32 = 3;

impl Volumes {
    /// Creates a disk, or finds the one that an earlier call has created.
    pub(crate) async fn create(&self, request: CreateVolumeRequest) -> Result<CreateVolumeResponse, Status> {
        required(&request.name, "volume name")?;
        let place = self.azure.place().await?;
        let (class, mutable) = (entries(request.parameters), entries(request.mutable_parameters));
        let parameters = DiskParameters::parse(&class, &mutable, &place).map_err(|it| refused(&it))?;
        Call::current().label("storage_account_type", parameters.sku.name());
        let azure = self.azure.as_agent(parameters.user_agent.as_deref());
        let capabilities: Vec<_> = request.volume_capabilities.iter().map(capability).collect();
        access::check(&capabilities, parameters.max_shares).map_err(|it| refused(&it))?;
        let _held = self.locks.hold(&request.name)?;

        let content = request.volume_content_source;
        let source = match &content {
            Some(content) => Some(source(&azure, content, &place).await?),
            None => None,
        };
        match source {
            Some(Source::Snapshot { .. }) => Call::current().is(Operation::CreateVolumeFromSnapshot),
            Some(Source::Disk { .. }) => Call::current().is(Operation::CreateVolumeFromVolume),
            None => {}
        }
        let requirement = requirement(request.accessibility_requirements);
        let create = CreateRequest {
            name: &request.name,
            range: range(request.capacity_range),
            parameters: &parameters,
            requirement: &requirement,
            source,
        };
        let disk = NewDisk::plan(create, &place, &self.options.driver).map_err(|it| refused(&it))?;
        let created = until_created(&azure, &disk).await?;
        let context = context::of_new_volume(
            &class,
            &mutable,
            parameters.sku,
            created.capacity_bytes.div_ceil(volume_planner::size::GIB),
            disk.is_resize_required,
        );
        let volume = Volume {
            capacity_bytes: i64::try_from(created.capacity_bytes).unwrap_or(i64::MAX),
            volume_id: created.id.to_string(),
            volume_context: map(context),
            content_source: content,
            accessible_topology: topologies(created.topologies),
        };
        Ok(CreateVolumeResponse { volume: Some(volume) })
    }
}

/// Takes one step after the other until the disk is there. Each is decided by what Azure has, so that another call goes on
/// where this one is interrupted.
async fn until_created(azure: &Azure, disk: &NewDisk) -> Result<CreatedDisk, Status> {
    let id = disk.id.resource();
    let (mut pace, mut writes) = (Pace::default(), 0);
    let mut known: Option<Value> = None;
    loop {
        let document = match known.take() {
            Some(document) => Some(document),
            None => azure.get(AzureRequest::Disk, id, Class::Create).await?,
        };
        match disk.next(document.as_ref().map(ObservedDisk)).map_err(|it| refused(&it))? {
            CreateStep::Done(created) => return Ok(created),
            CreateStep::Wait => pace.pause().await,
            CreateStep::Put if writes == MAX_WRITES => {
                return Err(Status::internal(format!("Azure has failed to create disk {id} {writes} times")));
            }
            CreateStep::Put => {
                writes += 1;
                let written = match document {
                    None => azure.create(AzureRequest::Disk, id, &disk.document).await,
                    Some(_) => azure.replace_failed(AzureRequest::Disk, id, &disk.document).await,
                };
                known = written.map_err(|status| without_source(disk, status))?;
            }
        }
    }
}

/// If Azure does not find something while a copy is made, the source is missing.
fn without_source(disk: &NewDisk, status: Status) -> Status {
    match &disk.source {
        Some(source) if status.code() == tonic::Code::NotFound => {
            let refusal = Refusal::SourceNotFound(source.resource().to_owned());
            Status::not_found(format!("{refusal}: {}", status.message()))
        }
        _ => status,
    }
}
