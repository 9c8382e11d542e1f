//! A small universe of resources of every type that refer to each other by chance, rightly or wrongly: the types' examples, with
//! other names, references and values.

use azure_simulator::{ExampleRequest, ExampleScope, Options, examples};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::common::SUBSCRIPTION;

/// The groups that resources lie in; the second is often absent.
pub const GROUPS: [&str; 2] = ["rg", "other"];

/// How many names each resource has in each group.
const NAMES: u64 = 3;

/// A source of choices: SplitMix64, so that an act's salt decides everything about it.
pub struct Choices(pub u64);

impl Choices {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// The examples: PUTs of resources and of documents within them, and actions.
pub fn subjects() -> Vec<ExampleRequest> {
    let scope = ExampleScope {
        group: ResourceId::group(SUBSCRIPTION, GROUPS[0]),
        tenant: Options::default().tenant,
        principal: "10000000-0000-4000-8000-000000000001".into(),
    };
    examples(&scope).unwrap()
}

/// One of the few resources that an example's id stands for.
pub fn variant(choices: &mut Choices, path: &str) -> String {
    // The first name comes up most often, so that what refers to others finds them.
    let number = if choices.once_in(4) { choices.below(NAMES) } else { 0 };
    let group = if choices.once_in(25) { GROUPS[1] } else { GROUPS[0] };
    let mut segments: Vec<String> = path.split('/').map(str::to_owned).collect();
    if let Some(segment) = segments.get_mut(4).filter(|segment| *segment == GROUPS[0]) {
        *segment = group.into();
    }
    // The name behind `providers`, the namespace and the type.
    if let Some(name) = segments.get_mut(8).filter(|_| number > 0) {
        *name = match name.contains('.') {
            true => format!("v{number}{name}"),
            false if name.len() == 36 => format!("{}{number}", &name[..35]),
            false => format!("{name}{number}"),
        };
    }
    segments.join("/")
}

/// A body of an example, with some references and values changed.
pub fn body(choices: &mut Choices, example: &ExampleRequest, path: &str) -> Value {
    let mut body = example.body.clone();
    // Parts of the resource itself stay so.
    vary(choices, &mut body, &example.path, path);
    if choices.once_in(40) && body.get("location").is_some() {
        body["location"] = json!("westus");
    }
    body
}

fn vary(choices: &mut Choices, value: &mut Value, own: &str, path: &str) {
    match value {
        Value::String(text) if text.starts_with("/subscriptions/") => {
            *text = match text.strip_prefix(own).filter(|rest| rest.starts_with('/')) {
                Some(rest) => format!("{path}{rest}"),
                None => variant(choices, text),
            };
        }
        Value::String(text) if choices.once_in(6) => {
            if let Some((network, host)) =
                text.rsplit_once('.').filter(|_| text.parse::<std::net::Ipv4Addr>().is_ok())
            {
                let host = choices.below(12).min(host.len() as u64 + 10);
                *text = format!("{network}.{host}");
            }
        }
        Value::Number(number) if choices.once_in(6) => {
            let number = number.as_i64().unwrap_or_default();
            *value = choices.pick(&[number + 1, number - 1, number * 2]).into();
        }
        Value::Bool(flag) if choices.once_in(6) => *flag = !*flag,
        Value::Array(items) => {
            if choices.once_in(12) {
                items.pop();
            }
            items.iter_mut().for_each(|item| vary(choices, item, own, path));
        }
        Value::Object(members) => {
            if choices.once_in(25)
                && let Some(name) = members.keys().nth(choices.below(members.len() as u64) as usize).cloned()
            {
                members.remove(&name);
            }
            members.values_mut().for_each(|member| vary(choices, member, own, path));
        }
        _ => {}
    }
}
