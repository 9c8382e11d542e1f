//! Defaults and validation of whole objects, in the form that a webhook receives.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod applied_again;
mod azure_aso_managed;
mod azure_cluster_defaults;
mod azure_cluster_validation;
mod azure_machine;
mod azure_machine_pool;
mod azure_managed_control_plane;
mod azure_managed_machine_pool;
mod corpus;
mod definitions;
mod edges;
mod webhooks;

use capz_api::admission::{Denied, set_defaults, validate};
use capz_api::crd::fill_defaults;
use capz_api::{Context, Lookup, Random};
use serde_json::{Value, json};

/// A line of `authorized_keys` in base64: an algorithm, and a key that begins with its name.
const SSH_KEY: &str = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEgbWU=";
const GUID: &str = "6d4f2b8a-0c1e-4f5a-9b3c-7d8e9f0a1b2c";

struct Fixed;

impl Random for Fixed {
    fn guid(&mut self) -> String {
        GUID.to_owned()
    }
    fn ssh_public_key(&mut self) -> String {
        SSH_KEY.to_owned()
    }
}

fn context() -> Context {
    Context { subscription: Lookup::Found("123".to_owned()), ..Context::default() }
}

/// In the form that the API server sends to the validating webhook: schema defaults, then the mutating webhook.
fn admitted(kind: &str, object: Value, context: &Context) -> Value {
    let mut object = object;
    fill_defaults(kind, &mut object);
    set_defaults(kind, object, context, &mut Fixed).unwrap()
}

/// The refusal of a new object, after its defaults.
fn refused(kind: &str, object: Value, context: &Context) -> Vec<String> {
    let object = admitted(kind, object, context);
    said(validate(kind, &object, None, context))
}

/// The refusal of a change, after the defaults of both.
fn change_refused(kind: &str, old: Value, new: Value, context: &Context) -> Vec<String> {
    let (old, new) = (admitted(kind, old, context), admitted(kind, new, context));
    said(validate(kind, &new, Some(&old), context))
}

fn said(verdict: Result<(), Denied>) -> Vec<String> {
    match verdict {
        Ok(()) => Vec::new(),
        Err(denied) => denied.errors().iter().map(ToString::to_string).collect(),
    }
}

/// `base` with changes; `null` removes a member. Names are paths with dots, numbers are indexes of lists.
fn with(base: &Value, changes: &[(&str, Value)]) -> Value {
    let mut object = base.clone();
    for (path, value) in changes {
        let (parent, last) = path.rsplit_once('.').unwrap();
        let mut at = &mut object;
        for step in parent.split('.') {
            at = match step.parse::<usize>() {
                Ok(index) => &mut at[index],
                Err(_) => {
                    if at[step].is_null() {
                        at[step] = json!({});
                    }
                    &mut at[step]
                }
            };
        }
        if value.is_null() {
            at.as_object_mut().unwrap().remove(last);
        } else {
            at[last] = value.clone();
        }
    }
    object
}

/// Each case: changes to `base`, and the refusal (empty if it is admitted).
fn judge(kind: &str, base: &Value, cases: &[(&[(&str, Value)], &str)], context: &Context) {
    for (changes, expected) in cases {
        let errors = refused(kind, with(base, changes), context);
        if expected.is_empty() {
            assert!(errors.is_empty(), "{changes:?} is taken: {errors:#?}");
        } else {
            assert!(
                errors.iter().any(|error| error.contains(expected)),
                "{changes:?} is refused with {expected:?}: {errors:#?}"
            );
        }
    }
}
