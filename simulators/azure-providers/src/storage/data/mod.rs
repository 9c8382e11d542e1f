//! The storage services themselves: `{account}.file.core.windows.net` and `{account}.blob.core.windows.net`.
//!
//! `access` decides on access, `answers` adds the common part of all answers, and each operation is in the file of its
//! subject: shares and files, containers and blobs.

mod access;
mod answers;
mod blobs;
mod containers;
mod files;
mod list;
mod range;
mod service_request;
mod shared_key;
mod shares;
mod source;
mod xml;

use azure_engine::answer::data_plane::{DataAnswer, DataRequest, DataSubject};
use azure_engine::provider::{AzureState, DataPlane};
use azure_engine::refusal::{Code, Result};

use self::service_request::{BLOB, DataService, FILE, ServiceRequest, account_name, challenge, split};
use super::account;
use super::protocol::dated;

/// The audiences of tokens for both services.
const AUDIENCES: &[&str] = &["https://storage.azure.com"];
/// The largest body that one request may have: a block of a blob, a range of a file is smaller.
const MAX_BODY_BYTES: u64 = 256 * 1024 * 1024;

pub(super) static PLANES: [DataPlane; 2] = [
    DataPlane {
        suffix: "file.core.windows.net",
        audiences: AUDIENCES,
        challenge,
        own_authentication: true,
        max_body_bytes: MAX_BODY_BYTES,
        locate: |azure, request| locate(azure, request, &FILE),
        perform: |azure, request| perform(azure, request, &FILE, shares::operate),
        refuse: answers::refused,
    },
    DataPlane {
        suffix: "blob.core.windows.net",
        audiences: AUDIENCES,
        challenge,
        own_authentication: true,
        max_body_bytes: MAX_BODY_BYTES,
        locate: |azure, request| locate(azure, request, &BLOB),
        perform: |azure, request| perform(azure, request, &BLOB, containers::operate),
        refuse: answers::refused,
    },
];

fn locate(azure: &AzureState, request: &DataRequest<'_>, data_service: &'static DataService) -> DataSubject {
    let (part, path) = split(request.path).unwrap_or_default();
    let comp = request.query.get("comp").map(String::as_str).unwrap_or_default();
    let account = account::find(azure, account_name(request.account)).map(|record| record.id.clone());
    let service = account.map(|account| account.child(data_service.segment, "default"));
    let kind = match (part.is_empty(), path.is_empty()) {
        (true, _) => String::new(),
        (_, true) => format!("/{}", data_service.parts),
        _ => format!("/{}/{}s", data_service.parts, data_service.word),
    };
    let list = comp.eq_ignore_ascii_case("list");
    let resource = service.filter(|_| !part.is_empty()).map(|service| {
        let part = service.child(data_service.parts, &part);
        if path.is_empty() {
            part
        } else {
            part.child(&format!("{}s", data_service.word), &path.replace('/', "|"))
        }
    });
    DataSubject {
        resource_type: format!("{}/{}{kind}", super::tables::ACCOUNTS, data_service.segment),
        resource,
        list,
    }
}

/// Performs a request to one of the services.
type Operate = fn(&mut AzureState, &ServiceRequest<'_>) -> Result<DataAnswer>;

fn perform(
    azure: &mut AzureState,
    request: &DataRequest<'_>,
    data_service: &'static DataService,
    operate: Operate,
) -> Result<DataAnswer> {
    answer(azure, request, data_service, operate).map_err(|refusal| dated(azure, refusal))
}

fn answer(
    azure: &mut AzureState,
    request: &DataRequest<'_>,
    data_service: &'static DataService,
    operate: Operate,
) -> Result<DataAnswer> {
    let record = account::find(azure, account_name(request.account))
        .ok_or_else(|| Code::ours(404, "ResourceNotFound").says("The specified resource does not exist."))?;
    let service = record.id.child(data_service.segment, "default");
    let Some((part, path)) = split(request.path) else {
        return Err(Code::azures(400, "InvalidUri")
            .says("The requested URI does not represent any resource on the server."));
    };
    let request = ServiceRequest { http: request, data_service, service, part, path };
    access::check(azure, record, &request)?;
    if azure.store.get(&request.service).is_none() {
        let absent = azure.resource_type(&request.service.resource_type());
        let refusal = absent.and_then(|kind| kind.absence_refusal(azure, &request.service));
        return Err(refusal.unwrap_or_else(|| azure.not_found(&request.service)));
    }
    let answer = operate(azure, &request)?;
    Ok(answers::complete(&request, answer))
}
