//! Guests: programs that simulate what runs on machines. They are informed when a machine starts or gets an extension,
//! and answer after a while; until then the machine is being created.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::azure::{Azure, Inner};
use azure_engine::document::{at, items, text};
use azure_engine::operation::outside::OutsideTask;
use azure_engine::provider::AzureState;
use azure_providers::compute::machine::guest::TIMEOUT;
use azure_providers::identity::{self, ManagedIdentity};

/// How long Azure waits until a system, or an extension, reports that it is ready.
const PROVISIONING_TIMEOUT: Duration = Duration::from_secs(40 * 60);

/// A machine that starts, or gets an extension.
#[derive(Debug, Clone)]
pub struct GuestStart {
    /// The virtual machine or scale set instance.
    pub machine: ResourceId,
    /// Its host name.
    pub computer_name: String,
    /// Whether the system is new, as after a creation or a new image.
    pub first: bool,
    /// Whether the machine starts; otherwise it runs and gets an extension.
    pub boots: bool,
    /// `osProfile.customData`, decoded; only a new system gets it.
    pub custom_data: Option<Vec<u8>>,
    /// `userData`, decoded.
    pub user_data: Option<Vec<u8>>,
    /// The extensions to run.
    pub extensions: Vec<GuestExtension>,
    /// The identities that programs on it may sign in as.
    pub identities: Vec<ManagedIdentity>,
    /// The private addresses of its interfaces.
    pub addresses: Vec<IpAddr>,
}

/// An extension as its machine sees it: with its protected settings.
#[derive(Debug, Clone)]
pub struct GuestExtension {
    /// Its name.
    pub name: String,
    /// Its publisher.
    pub publisher: String,
    /// Its type.
    pub kind: String,
    /// The version of its handler.
    pub version: String,
    /// Its settings.
    pub settings: Value,
    /// Its protected settings.
    pub protected_settings: Value,
}

/// The result of a start. The default is success.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestReport {
    /// Why the system did not come up.
    pub failure: Option<String>,
    /// Results of extensions, by name: a message, or why they failed. One that is not named succeeds.
    pub extensions: BTreeMap<String, Result<String, String>>,
}

impl GuestReport {
    /// The system does not come up.
    pub fn failed(why: &str) -> Self {
        Self { failure: Some(why.to_owned()), ..Self::default() }
    }

    /// Adds the result of an extension.
    #[must_use]
    pub fn extension(mut self, name: &str, result: Result<&str, &str>) -> Self {
        self.extensions.insert(name.to_owned(), result.map(str::to_owned).map_err(str::to_owned));
        self
    }

    fn into_answer(self) -> Value {
        let extensions = self.extensions.into_iter().map(|(name, result)| {
            let (failed, message) = match result {
                Ok(message) => (false, message),
                Err(message) => (true, message),
            };
            (name, json!({ "failed": failed, "message": message }))
        });
        json!({ "failure": self.failure, "extensions": Value::Object(extensions.collect()) })
    }
}

/// The guest of all machines. It may call the same Azure, and other services; a machine that it never answers for runs
/// into Azure's timeout.
pub trait Guest: Send + Sync + 'static {
    /// Simulates a start.
    fn start(&self, start: GuestStart) -> BoxFuture<'static, GuestReport>;
}

impl Azure {
    /// Sets the guest of machines that start from now on; operations that create a machine continue until it has
    /// answered for the machine. Must be called within a tokio runtime, once.
    pub fn set_guest(&self, guest: Arc<dyn Guest>) {
        self.inner.state.lock().outside.listens = true;
        let mut changed = self.subscribe();
        let inner: Weak<Inner> = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            loop {
                changed.mark_unchanged();
                let Some(azure) = inner.upgrade().map(|inner| Azure { inner }) else { return };
                for (task, start) in azure.requested_starts() {
                    let answer = tokio::time::timeout(PROVISIONING_TIMEOUT, guest.start(start));
                    let inner = inner.clone();
                    tokio::spawn(async move {
                        let answer = match answer.await {
                            Ok(report) => report.into_answer(),
                            Err(_elapsed) => json!({ "failure": TIMEOUT }),
                        };
                        if let Some(azure) = inner.upgrade().map(|inner| Azure { inner }) {
                            azure.change(|state| state.finish_outside_task(&task.id, task.number, &answer));
                        }
                    });
                }
                drop(azure);
                if changed.changed().await.is_err() {
                    return;
                }
            }
        });
    }

    fn requested_starts(&self) -> Vec<(OutsideTask, GuestStart)> {
        let mut state = self.inner.state.lock();
        let tasks = state.take_outside_tasks();
        tasks
            .into_iter()
            .map(|task| (start_of(&state, &task), task))
            .map(|(start, task)| (task, start))
            .collect()
    }
}

fn start_of(azure: &AzureState, task: &OutsideTask) -> GuestStart {
    let what = &task.what;
    let boots = !task.id.resource_type().ends_with("/extensions");
    let machine = if boots { None } else { task.id.parent() }.unwrap_or_else(|| task.id.clone());
    let decoded = |member: &str| {
        let bare: String = text(what, member)?.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        STANDARD.decode(bare).ok()
    };
    let words = |value: &Value, path: &str| text(value, path).unwrap_or_default().to_owned();
    let extensions = items(what, "extensions").iter().map(|extension| GuestExtension {
        name: words(extension, "name"),
        publisher: words(extension, "properties/publisher"),
        kind: words(extension, "properties/type"),
        version: words(extension, "properties/typeHandlerVersion"),
        settings: at(extension, "properties/settings").cloned().unwrap_or_default(),
        protected_settings: at(extension, "properties/protectedSettings").cloned().unwrap_or_default(),
    });
    GuestStart {
        computer_name: words(what, "computerName"),
        first: what.get("first") == Some(&Value::Bool(true)),
        boots,
        custom_data: decoded("customData"),
        user_data: decoded("userData"),
        extensions: extensions.collect(),
        identities: identity::assigned(azure, &machine),
        addresses: addresses(azure, &machine),
        machine,
    }
}

/// The private addresses of a machine's interfaces, in their order.
fn addresses(azure: &AzureState, machine: &ResourceId) -> Vec<IpAddr> {
    let shown = azure.document(machine).unwrap_or_default();
    let interfaces = items(&shown, "properties/networkProfile/networkInterfaces").iter();
    interfaces
        .filter_map(|interface| azure.document(&ResourceId::parse(text(interface, "id")?).ok()?))
        .flat_map(|interface| {
            let configurations = items(&interface, "properties/ipConfigurations").iter();
            let addresses =
                configurations.filter_map(|one| text(one, "properties/privateIPAddress")?.parse().ok());
            addresses.collect::<Vec<IpAddr>>()
        })
        .collect()
}
