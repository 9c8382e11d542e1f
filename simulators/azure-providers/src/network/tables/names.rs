//! Network's name rules, as published ("Naming rules and restrictions for Azure resources").

use crate::network::shared::codes::INVALID_RESOURCE_NAME;
use azure_engine::refusal::Refusal;
use azure_engine::types::names::{NameRule, ordinary};

pub(crate) static NAMES: &[NameRule] = &[
    NameRule {
        of: "Microsoft.Network/virtualNetworks",
        fits: |name| name.len() > 1 && ordinary(name, 64),
        refusal: bad_64,
    },
    NameRule { of: "*", fits: |name| ordinary(name, 80), refusal: bad_80 },
];

fn bad_64(_: &str, name: &str) -> Refusal {
    bad(name, 64)
}

fn bad_80(_: &str, name: &str) -> Refusal {
    bad(name, 80)
}

fn bad(name: &str, longest: usize) -> Refusal {
    INVALID_RESOURCE_NAME.details(format_args!(
            "Resource name {name} is invalid. The name can be up to {longest} characters long. It must begin with a word \
             character, and it must end with a word character or with '_'. The name may contain word characters or '.', \
             '-', '_'."
        ))
}
