//! The account of a new share.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use arm::Class;
use azure_types::ResourceId;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;
use tonic::Status;
use volume_planner::shares::account::AccountRequest;
use volume_planner::shares::choice::Choice;
use volume_planner::shares::own;

use super::listing::Listings;
use super::making;
use crate::controller::azure::{Azure, account_id, file_service};

/// How old a list of accounts may be, unless what it says turns out to be wrong.
const AGE: Duration = Duration::from_secs(60);

/// The accounts of all groups. Clones share what they know.
#[derive(Clone)]
pub(crate) struct Accounts {
    azure: Azure,
    listings: Listings,
    /// For each wish, who makes an account for it; for each account, who marks it.
    makers: Arc<Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>>,
    /// When the mark of each account was looked at.
    looked_at: Arc<Mutex<HashMap<ResourceId, Instant>>>,
}

/// What a request has learnt of accounts.
#[derive(Debug)]
pub(crate) struct Search {
    /// The share that an account is searched for.
    pub share: String,
    /// Accounts that did not take it.
    pub refused: BTreeSet<String>,
    /// No list from before this will do.
    pub earliest: Instant,
}

impl Search {
    pub(crate) fn of(share: &str) -> Self {
        let now = Instant::now();
        let earliest = now.checked_sub(AGE).unwrap_or(now);
        Self { share: share.to_owned(), refused: BTreeSet::new(), earliest }
    }
}

impl Accounts {
    pub(crate) fn new(azure: Azure) -> Self {
        let listings = Listings::new(azure.clone());
        Self { azure, listings, makers: Arc::default(), looked_at: Arc::default() }
    }

    /// The accounts that may have the share of an earlier call: full ones, too.
    pub(crate) async fn candidates(
        &self,
        group: &ResourceId,
        request: &AccountRequest,
        search: &Search,
    ) -> Result<Vec<String>, Status> {
        let accounts = self.listings.since(group, search.earliest).await?;
        let may = accounts.iter().filter(|account| request.may_have(account));
        Ok(may.filter_map(|account| Some(account.get("name")?.as_str()?.to_owned())).collect())
    }

    /// An account for a share: one that suits, else one that is made.
    pub(crate) async fn choose(
        &self,
        group: &ResourceId,
        request: &AccountRequest,
        search: &mut Search,
    ) -> Result<Value, Status> {
        loop {
            let accounts = self.listings.since(group, search.earliest).await?;
            match request.choose(&accounts, &search.refused, None, &search.share) {
                Choice::Make(_) => return self.make(group, request, search).await,
                Choice::Use(name) => {
                    if self.has_service(group, request, &name).await? {
                        return named(&accounts, &name);
                    }
                    search.refused.insert(name);
                }
            }
        }
    }

    /// Makes an account, or waits for the one that another request makes. It is made to the end even if the caller goes.
    async fn make(
        &self,
        group: &ResourceId,
        request: &AccountRequest,
        search: &Search,
    ) -> Result<Value, Status> {
        let maker = Arc::clone(self.makers.lock().entry(request.wishes()).or_default());
        let held = maker.lock_owned().await;
        let (this, group, request) = (self.clone(), group.clone(), request.clone());
        let (refused, share, earliest) = (search.refused.clone(), search.share.clone(), search.earliest);
        to_the_end(async move {
            let _held = held;
            // Another request may have made it while this one waited; a list from before is not enough to make one.
            for earliest in [earliest, Instant::now()] {
                let accounts = this.listings.since(&group, earliest).await?;
                if let Choice::Use(name) = request.choose(&accounts, &refused, None, &share) {
                    return named(&accounts, &name);
                }
            }
            let accounts = this.listings.since(&group, earliest).await?;
            let Choice::Make(name) = request.choose(&accounts, &refused, None, &share) else {
                return Err(Status::aborted("accounts are changing; retry"));
            };
            let account = making::make(&this.azure, &group, &name, &request).await?;
            this.listings.note(&group, account.clone()).await;
            Ok(account)
        })
        .await
    }

    /// Makes an account of this name. It is made to the end even if the caller goes.
    pub(crate) async fn make_named(
        &self,
        group: &ResourceId,
        request: &AccountRequest,
        name: &str,
    ) -> Result<Value, Status> {
        let maker = Arc::clone(self.makers.lock().entry(account_id(group, name).to_string()).or_default());
        let held = maker.lock_owned().await;
        let (this, group, request, name) = (self.clone(), group.clone(), request.clone(), name.to_owned());
        to_the_end(async move {
            let _held = held;
            match this.azure.get(&account_id(&group, &name), Class::Create).await? {
                Some(made) => Ok(made),
                None => making::make(&this.azure, &group, &name, &request).await,
            }
        })
        .await
    }

    /// Whether the file service of an account suits. That of an account of the driver's own is completed: its maker may have ended.
    async fn has_service(
        &self,
        group: &ResourceId,
        request: &AccountRequest,
        name: &str,
    ) -> Result<bool, Status> {
        if !request.needs_service() {
            return Ok(true);
        }
        let account = account_id(group, name);
        let service = self.azure.get(&file_service(&account), Class::Create).await?.unwrap_or_default();
        if request.differs_in_service(&service).is_none() {
            return Ok(true);
        }
        if request.makes(name) {
            making::set_service(&self.azure, &account, request).await?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Marks an account as full, so that neither this driver nor the established one puts further shares into it.
    pub(crate) async fn mark_full(&self, group: &ResourceId, name: &str) -> Result<(), Status> {
        let id = account_id(group, name);
        let marker = Arc::clone(self.makers.lock().entry(id.to_string()).or_default());
        let _one_at_a_time = marker.lock().await;
        let known = self.listings.known(group).await;
        if known.is_some_and(|known| named(&known, name).is_ok_and(|it| own::is_marked_full(&it))) {
            return Ok(());
        }
        let Some(account) = self.azure.get(&id, Class::Create).await? else { return Ok(()) };
        if own::is_marked_full(&account) {
            self.listings.note(group, account).await;
            return Ok(());
        }
        let change = own::mark_full(&account);
        self.azure.patch(&id, &change).await?;
        self.looked_at.lock().insert(id, Instant::now());
        self.listings.note(group, Value::Object(merged(account, change))).await;
        Ok(())
    }

    /// Takes the mark from an account in which there is room again, at most once in this time.
    pub(crate) async fn mark_free(&self, account: &ResourceId, once_in: Duration) -> Result<(), Status> {
        let now = Instant::now();
        {
            let mut looked_at = self.looked_at.lock();
            if looked_at.get(account).is_some_and(|last| now.duration_since(*last) < once_in) {
                return Ok(());
            }
            looked_at.insert(account.clone(), now);
        }
        let Some(found) = self.azure.get(account, Class::Delete).await? else { return Ok(()) };
        if own::is_marked_full(&found) {
            self.azure.patch(account, &own::mark_free(&found)).await?;
        }
        Ok(())
    }
}

/// Does work in a task of its own.
async fn to_the_end(
    work: impl Future<Output = Result<Value, Status>> + Send + 'static,
) -> Result<Value, Status> {
    match tokio::spawn(work).await {
        Ok(made) => made,
        Err(_) => Err(Status::internal("the making of an account ended abnormally; retry")),
    }
}

/// The account of this name.
fn named(accounts: &[Value], name: &str) -> Result<Value, Status> {
    let is_it = |account: &&Value| account.get("name").and_then(Value::as_str) == Some(name);
    let found = accounts.iter().find(is_it).cloned();
    found.ok_or_else(|| Status::aborted(format!("account {name} is not in the list any more; retry")))
}

/// A document with changed members.
fn merged(document: Value, change: Value) -> serde_json::Map<String, Value> {
    let object = |value| if let Value::Object(members) = value { members } else { Default::default() };
    let mut members = object(document);
    members.extend(object(change));
    members
}
