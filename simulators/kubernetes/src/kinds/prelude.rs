//! What the files of kinds are written with.

pub(crate) use crate::kinds::builtin::{BuiltinKind, Generation, StatusRule, StoredForm, Subresource};
pub(crate) use crate::kinds::shared::cells::{
    NONE, UNKNOWN, UNSET, access_modes_cell, age, condition, container_cell, count_members, duration, joined,
    labels_cell, load_balancer_addresses, or, phase, selector_cell, some_of,
};
pub(crate) use crate::kinds::shared::columns::{
    AGE, CONTAINERS, CURRENT, Column, DESIRED, IMAGES, LABELS_SELECTED, NAME, READY, READY_OF_DESIRED,
    SELECTOR, VOLUME_ATTRIBUTES_CLASS, VOLUME_MODE,
};
pub(crate) use crate::kinds::shared::defaults::Row;
pub(crate) use crate::kinds::shared::immutable::{Immutable, check_immutable, spec_without};
pub(crate) use crate::kinds::shared::label_selector::{selector_is_sound, selects};
pub(crate) use crate::kinds::shared::names::{
    dns_1035_label, dns_label, dns_subdomain, is_cidr, label_value, path_segment, port_name, qualified_name,
};
pub(crate) use crate::kinds::shared::pod_spec::Restarts;
pub(crate) use crate::kinds::shared::pod_template::template;
pub(crate) use crate::kinds::shared::rules::{amounts, not_negative, one_of, required};
pub(crate) use crate::object::invalid::{Causes, Invalid};
pub(crate) use crate::object::pointer::{list_at, member, members, number_at, text_at};
pub(crate) use serde_json::{Map, Value, json};
