//! Columns of the tables of `kubectl get`, and those that several kinds share.

use jiff::Timestamp;
use serde_json::Value;

use crate::kinds::shared::cells::{UNSET, age, container_cell, labels_cell, or, selector_cell};
use crate::object::pointer::{list_at, number_at, text_at};

/// The value of a column for an object.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell {
    /// The text at a pointer, or another one if it is empty.
    Text(&'static str, &'static str),
    /// The whole number at a pointer; 0 if it is missing.
    Number(&'static str),
    /// Whether a boolean is true.
    Flag(&'static str),
    /// The number of items of a list.
    Length(&'static str),
    /// A text that is computed.
    Derived(fn(&Value) -> String),
    /// A value that is computed, at a time.
    Timed(fn(&Value, Timestamp) -> Value),
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// Its heading.
    pub(crate) name: &'static str,
    /// The OpenAPI type of its cells.
    pub(crate) form: &'static str,
    /// 0: always shown; 1: shown with `-o wide`.
    pub(crate) priority: u8,
    cell: Cell,
}

impl Column {
    const fn new(name: &'static str, form: &'static str, cell: Cell) -> Self {
        Self { name, form, priority: 0, cell }
    }

    /// A column that shows a text.
    pub(crate) const fn text(name: &'static str, pointer: &'static str) -> Self {
        Self::text_or(name, pointer, "")
    }

    /// A column that shows a text, or another one if it is empty.
    pub(crate) const fn text_or(name: &'static str, pointer: &'static str, otherwise: &'static str) -> Self {
        Self::new(name, "string", Cell::Text(pointer, otherwise))
    }

    /// A column that shows a number; 0 if it is missing.
    pub(crate) const fn number(name: &'static str, pointer: &'static str) -> Self {
        Self::new(name, "integer", Cell::Number(pointer))
    }

    /// A column that shows a boolean; false if it is missing.
    pub(crate) const fn flag(name: &'static str, pointer: &'static str) -> Self {
        Self::new(name, "boolean", Cell::Flag(pointer))
    }

    /// A column that counts the items of a list.
    pub(crate) const fn length(name: &'static str, pointer: &'static str) -> Self {
        Self::new(name, "integer", Cell::Length(pointer))
    }

    /// A column that shows a computed text.
    pub(crate) const fn derived(name: &'static str, text: fn(&Value) -> String) -> Self {
        Self::new(name, "string", Cell::Derived(text))
    }

    /// A column that shows a computed value, such as an age.
    pub(crate) const fn timed(
        name: &'static str,
        form: &'static str,
        value: fn(&Value, Timestamp) -> Value,
    ) -> Self {
        Self::new(name, form, Cell::Timed(value))
    }

    /// The column, shown with `-o wide` alone.
    pub(crate) const fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    /// The cell of an object at a time.
    pub(crate) fn of(&self, object: &Value, now: Timestamp) -> Value {
        match self.cell {
            Cell::Text(pointer, otherwise) => or(text_at(object, pointer), otherwise).into(),
            Cell::Number(pointer) => number_at(object, pointer).into(),
            Cell::Flag(pointer) => (object.pointer(pointer) == Some(&Value::Bool(true))).into(),
            Cell::Length(pointer) => list_at(object, pointer).len().into(),
            Cell::Derived(text) => text(object).into(),
            Cell::Timed(value) => value(object, now),
        }
    }
}

pub(crate) const NAME: Column = Column::text("Name", "/metadata/name");
pub(crate) const AGE: Column = Column::timed("Age", "string", |object, now| {
    age(object.pointer("/metadata/creationTimestamp"), now).into()
});
/// Kinds without columns of their own have a name and a time.
pub(crate) const CREATED_AT: Column =
    Column::timed("Created At", "date", |object, _| text_at(object, "/metadata/creationTimestamp").into());
/// The containers of a workload's pods.
pub(crate) const CONTAINERS: Column =
    Column::derived("Containers", |object| container_cell(object, "/spec/template/spec", "/name")).wide();
/// Their images.
pub(crate) const IMAGES: Column =
    Column::derived("Images", |object| container_cell(object, "/spec/template/spec", "/image")).wide();
/// The label selector of a workload.
pub(crate) const SELECTOR: Column =
    Column::derived("Selector", |object| selector_cell(object, "/spec/selector")).wide();
/// A selector that consists of labels alone.
pub(crate) const LABELS_SELECTED: Column =
    Column::derived("Selector", |object| labels_cell(object, "/spec/selector")).wide();
pub(crate) const DESIRED: Column = Column::number("Desired", "/spec/replicas");
pub(crate) const CURRENT: Column = Column::number("Current", "/status/replicas");
pub(crate) const READY: Column = Column::number("Ready", "/status/readyReplicas");
/// Ready and desired replicas: `2/3`.
pub(crate) const READY_OF_DESIRED: Column = Column::derived("Ready", |object| {
    let desired = object.pointer("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    format!("{}/{desired}", number_at(object, "/status/readyReplicas"))
});
/// Of a volume or claim.
pub(crate) const VOLUME_ATTRIBUTES_CLASS: Column =
    Column::text_or("VolumeAttributesClass", "/spec/volumeAttributesClassName", UNSET);
/// Of a volume or claim.
pub(crate) const VOLUME_MODE: Column = Column::text_or("VolumeMode", "/spec/volumeMode", UNSET).wide();
