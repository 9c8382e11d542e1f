//! The resource provider `Microsoft.Storage`: accounts, their services, containers and file shares, and their contents.

mod account;
mod calls;
mod container;
mod contents;
mod data;
mod folders;
mod listing;
mod modified;
mod protocol;
mod service;
mod share;
mod sparse;
mod tables;
mod words;

use azure_engine::provider::Provider;

pub use folders::{FileAccount, ShareFolders, file_accounts};

pub(crate) fn provider() -> Provider {
    Provider {
        calls: vec![calls::answer],
        policies: &tables::POLICIES,
        limits: tables::LIMITS,
        names: tables::NAMES,
        joins: &tables::JOINS,
        latencies: tables::LATENCIES,
        data_planes: &data::PLANES,
        timetable: Some(|| Box::new(contents::Contents::default())),
        ..Provider::new(
            "Microsoft.Storage",
            vec![
                &account::Accounts,
                &service::SERVICES[0],
                &service::SERVICES[1],
                &service::SERVICES[2],
                &service::SERVICES[3],
                &container::Containers,
                &share::Shares,
            ],
        )
    }
}
