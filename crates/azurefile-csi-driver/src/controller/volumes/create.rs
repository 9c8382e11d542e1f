//! A volume is created.

use arm::Class;
use azure_types::ResourceId;
use csi::call::Call;
use csi::messages::{capability, entries, map, range, required};
use csi::status::refused;
use csi::v1::{CreateVolumeRequest, CreateVolumeResponse, Volume};
use serde_json::Value;
use tokio::time::Instant;
use tonic::Status;
use volume_planner::parameters::share::{Protocol, ShareParameters};
use volume_planner::share_id::ShareId;
use volume_planner::share_names::{ShareUse, share_name};
use volume_planner::shares::account::AccountRequest;
use volume_planner::shares::{capability as uses, context, share};
use volume_planner::size::{CapacityRange, to_bytes};
use volume_planner::{AccountSku, ClusterPlace};

use super::volume_calls::Volumes;
use super::{place, unsupported};
use crate::controller::accounts::Search;
use crate::controller::azure::{account_id, file_service, is_full, status_of};

/// How many accounts are tried for one share: Azure says of each but the last one that it is full.
const MAX_ACCOUNTS: u32 = 16;

/// A share that is wanted.
struct Wanted<'a> {
    name: &'a str,
    range: CapacityRange,
    parameters: &'a ShareParameters,
    group: ResourceId,
}

/// A share that is there: the name of its account, and its size.
struct Made {
    account: String,
    gib: u64,
}

impl Volumes {
    /// Creates a share, or finds the one that an earlier call has created.
    pub(crate) async fn create(&self, request: CreateVolumeRequest) -> Result<CreateVolumeResponse, Status> {
        required(&request.name, "volume name")?;
        let place = self.azure.place()?;
        let (class, mutable) =
            (entries(request.parameters.clone()), entries(request.mutable_parameters.clone()));
        let parameters = ShareParameters::parse(&class, &mutable, &place).map_err(|it| refused(&it))?;
        label(&parameters);
        let capabilities: Vec<_> = request.volume_capabilities.iter().map(capability).collect();
        uses::check(&capabilities).map_err(|it| refused(&it))?;
        unsupported::check(&request, &parameters)?;
        let range = range(request.capacity_range);
        share::new_size(range, None).map_err(|it| refused(&it))?;
        let _held = self.locks.hold(&request.name)?;

        let share_use = match parameters.protocol {
            Protocol::Smb => ShareUse::Smb,
            Protocol::Nfs => ShareUse::Nfs,
        };
        let derived = || share_name(&request.name, parameters.prefix.as_deref(), share_use);
        let name = parameters.share_name.clone().unwrap_or_else(derived);
        let group = place::group(&parameters);
        let wanted = Wanted { name: &name, range, parameters: &parameters, group };
        let made = match parameters.account.name.clone() {
            Some(account) => self.in_named(&wanted, &account, &place).await?,
            None => self.in_any(&wanted, &place).await?,
        };
        if parameters.stores_key {
            self.store_key(&wanted, &made.account).await?;
        }
        let is_foreign = !parameters.account.subscription.eq_ignore_ascii_case(&place.subscription);
        let id = ShareId {
            group: parameters.account.group.clone(),
            account: made.account,
            share: name,
            disk: String::new(),
            uuid: if parameters.share_name.is_some() { request.name } else { String::new() },
            secret_namespace: parameters.secret_namespace.clone(),
            subscription: if is_foreign { parameters.account.subscription.clone() } else { String::new() },
        };
        let volume = Volume {
            capacity_bytes: i64::try_from(to_bytes(made.gib)).unwrap_or(i64::MAX),
            volume_id: id.to_string(),
            volume_context: map(context::of_new_volume(&class, &mutable, &parameters)),
            ..Volume::default()
        };
        Ok(CreateVolumeResponse { volume: Some(volume) })
    }

    /// The share in the account that the class names.
    async fn in_named(&self, wanted: &Wanted<'_>, name: &str, place: &ClusterPlace) -> Result<Made, Status> {
        let id = account_id(&wanted.group, name);
        let account = match self.azure.get(&id, Class::Create).await? {
            Some(account) => account,
            None if wanted.parameters.account.is_created => {
                let request = place::request(wanted.parameters, Vec::new(), place);
                self.accounts.make_named(&wanted.group, &request, name).await?
            }
            None => {
                return Err(Status::invalid_argument(format!(
                    "account {id} is not found: make it, or set createAccount to true"
                )));
            }
        };
        if let Some(gib) = self.existing(wanted, &account).await? {
            return Ok(Made { account: name.to_owned(), gib });
        }
        match self.put(wanted, &account).await? {
            Ok(gib) => Ok(Made { account: name.to_owned(), gib }),
            Err(error) => Err(status_of(&error)),
        }
    }

    /// The share in an account that suits: where an earlier call has made it, else in the first one that takes it.
    async fn in_any(&self, wanted: &Wanted<'_>, place: &ClusterPlace) -> Result<Made, Status> {
        let request: AccountRequest = place::request(wanted.parameters, Vec::new(), place);
        let mut search = Search::of(wanted.name);
        if let Some(made) = self.of_earlier_call(wanted, &request, &search).await? {
            return Ok(made);
        }
        let mut last = None;
        for _ in 0..MAX_ACCOUNTS {
            let account = self.accounts.choose(&wanted.group, &request, &mut search).await?;
            let name = name_of(&account);
            match self.put(wanted, &account).await? {
                Ok(gib) => return Ok(Made { account: name, gib }),
                Err(error) if is_full(&error) => {
                    self.accounts.mark_full(&wanted.group, &name).await?;
                    search.refused.insert(name);
                    last = Some(error);
                }
                // The account was deleted since it was listed.
                Err(error) if error.is_not_found() => {
                    search.earliest = Instant::now();
                    last = Some(error);
                }
                Err(error) => return Err(status_of(&error)),
            }
        }
        Err(last.map_or_else(|| Status::aborted("no account was tried; retry"), |error| status_of(&error)))
    }

    /// The share if an earlier call has made it, in whichever account.
    async fn of_earlier_call(
        &self,
        wanted: &Wanted<'_>,
        request: &AccountRequest,
        search: &Search,
    ) -> Result<Option<Made>, Status> {
        for name in self.accounts.candidates(&wanted.group, request, search).await? {
            let id = account_id(&wanted.group, &name);
            let share = file_service(&id).child("shares", wanted.name);
            if let Some(found) = self.azure.get(&share, Class::Create).await? {
                return Ok(Some(Made {
                    account: name,
                    gib: checked(wanted, &found, request.parameters.sku)?,
                }));
            }
        }
        Ok(None)
    }

    async fn existing(&self, wanted: &Wanted<'_>, account: &Value) -> Result<Option<u64>, Status> {
        let id = account_id(&wanted.group, &name_of(account));
        let share = file_service(&id).child("shares", wanted.name);
        match self.azure.get(&share, Class::Create).await? {
            Some(found) => checked(wanted, &found, sku_of(account)).map(Some),
            None => Ok(None),
        }
    }

    /// Writes the share; answers its size, or Azure's refusal.
    async fn put(&self, wanted: &Wanted<'_>, account: &Value) -> Result<Result<u64, arm::Error>, Status> {
        let sku = sku_of(account);
        let gib = share::new_size(wanted.range, sku).map_err(|it| refused(&it))?;
        let document = share::document(wanted.parameters, gib, sku, &self.options.driver);
        let id = account_id(&wanted.group, &name_of(account));
        let share = file_service(&id).child("shares", wanted.name);
        Ok(self.azure.put(&share, &document).await?.map(|()| gib))
    }

    /// Puts the account's key into the Secret of the class.
    async fn store_key(&self, wanted: &Wanted<'_>, account: &str) -> Result<(), Status> {
        let keys = self.azure.keys(&account_id(&wanted.group, account)).await?;
        let parameters = wanted.parameters;
        let key = match parameters.takes_latest_key {
            true => keys.into_iter().max_by(|one, other| one.created.cmp(&other.created)),
            false => keys.into_iter().next(),
        };
        let key = key.ok_or_else(|| Status::internal(format!("account {account} has no key")))?;
        let usual = || crate::node::plan::login::usual_secret(account);
        let name = parameters.secret_name.clone().unwrap_or_else(usual);
        self.secrets.store((&parameters.secret_namespace, &name), account, &key.value).await
    }
}

/// The size of a share that is there, if it is what the request asks for.
fn checked(wanted: &Wanted<'_>, found: &Value, sku: Option<AccountSku>) -> Result<u64, Status> {
    let gib = share::new_size(wanted.range, sku).map_err(|it| refused(&it))?;
    let protocol = wanted.parameters.protocol;
    share::check_existing(wanted.name, found, wanted.range, gib, protocol).map_err(|it| refused(&it))?;
    Ok(share::size_of(found).unwrap_or(gib))
}

fn name_of(account: &Value) -> String {
    account.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn sku_of(account: &Value) -> Option<AccountSku> {
    AccountSku::parse(account.pointer("/sku/name")?.as_str()?)
}

fn label(parameters: &ShareParameters) {
    let protocol = match parameters.protocol {
        Protocol::Smb => "smb",
        Protocol::Nfs => "nfs",
    };
    Call::current().label("protocol", protocol);
    if let Some(sku) = parameters.account.sku {
        Call::current().label("storage_account_type", sku.name());
    }
}
