//! A member, and how its row of a table is written.

use crate::error::Refusal;
use crate::reference::Role;
use crate::words::Wrong;

/// What a member holds. Where a resource type is asked for it is `virtualNetworks/subnets` for one of the same
/// namespace, and `Microsoft.Network/networkInterfaces` for one of another.
#[derive(Debug, Clone, Copy)]
pub enum Holds {
    /// True or false.
    Flag,
    /// A whole number between two.
    Number(i64, i64),
    /// One of some words, in Azure's spelling; with `true` the first where it is missing.
    Word(&'static [&'static str], bool),
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// Texts by name, such as labels.
    TextMap,
    /// A moment as RFC 3339 writes it.
    Time,
    /// A time span as ISO 8601 writes it, such as `PT5M`.
    Duration,
    /// A pointer (`{"id": …}`) to a resource of a type.
    Uses(&'static str),
    /// A list of them.
    UsesAll(&'static str),
    /// A pointer that is the id alone, as a text.
    UsesId(&'static str),
    /// A pointer that keeps nothing from being deleted.
    Names(&'static str),
    /// An object with a table of its own.
    Object(&'static [Member]),
    /// A list of objects with a table.
    Objects(&'static [Member]),
    /// A list of child documents: each has a name, which no other has, and `properties`, of which this is the table.
    Children(&'static [Member]),
    /// What the type looks at by itself.
    Anything,
    /// What the service says of the resource; what clients send is dropped.
    Derived,
    /// The same, with a text that is always there.
    Constant(&'static str),
    /// The resources that point here, by the last segment of their type (an empty one means any). Never stored.
    Users(&'static str),
    /// The one resource that points here, in the same way; the end of its type's last segment will do.
    User(&'static str),
    /// A GUID that the service gives the resource for life. Never stored.
    Guid,
    /// When the resource was made. Never stored.
    Created,
    /// What the service chose when the resource was made: it stays, whatever clients send.
    Kept,
}

/// What a missing member stands for.
#[derive(Debug, Clone, Copy)]
pub enum Otherwise {
    /// A number.
    Number(i64),
    /// A text.
    Text(&'static str),
    /// True or false.
    Flag(bool),
    /// An object or a list without anything in it. What is in an empty object is filled in.
    Empty,
}

/// Until when a member can be changed.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    /// Only while another resource points at this one.
    pub while_used: bool,
    /// How a change is refused. Without it, it is said in the provider's words.
    pub refusal: Option<fn(&Wrong<'_>) -> Refusal>,
}

/// Whether a text is as it must be.
pub type Fits = fn(&str) -> bool;

/// One member.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its name, in Azure's spelling.
    pub name: &'static str,
    /// What it holds.
    pub holds: Holds,
    /// What a missing one stands for.
    pub otherwise: Option<Otherwise>,
    /// Until when it can be changed.
    pub fixed: Option<Fixed>,
    /// Whether it is shown although it is an empty list.
    pub shown_empty: bool,
    /// Whether a document without it is refused.
    pub required: bool,
    /// Whether it is never shown, and kept only for what runs outside.
    pub secret: bool,
    /// What refusals call it, where that is not its path below `properties`.
    pub called: Option<&'static str>,
    /// What a text must be, and how it is said.
    pub fits: Option<(Fits, &'static str)>,
    /// Why it points, where a pointer does not simply use what it leads to.
    pub role: Option<Role>,
    /// Whether the document holds the address beside it (`privateIPAddress`) in the subnet that it points at.
    pub addressed: bool,
    /// Whether an empty list is left out.
    pub none_if_empty: bool,
    /// Whether what its table does not have is left out.
    pub closed: bool,
}

impl Member {
    /// A member that holds this.
    pub const fn new(name: &'static str, holds: Holds) -> Self {
        Self {
            name,
            holds,
            otherwise: None,
            fixed: None,
            shown_empty: false,
            required: false,
            secret: false,
            called: None,
            fits: None,
            role: None,
            addressed: false,
            none_if_empty: false,
            closed: false,
        }
    }

    const fn otherwise(self, otherwise: Otherwise) -> Self {
        Self { otherwise: Some(otherwise), ..self }
    }

    /// What a missing number stands for.
    #[must_use]
    pub const fn or(self, otherwise: i64) -> Self {
        self.otherwise(Otherwise::Number(otherwise))
    }

    /// What a missing text or word stands for.
    #[must_use]
    pub const fn or_text(self, otherwise: &'static str) -> Self {
        self.otherwise(Otherwise::Text(otherwise))
    }

    /// What a missing flag stands for.
    #[must_use]
    pub const fn or_flag(self, otherwise: bool) -> Self {
        self.otherwise(Otherwise::Flag(otherwise))
    }

    /// A missing object or list is an empty one; what is in an object is filled in.
    #[must_use]
    pub const fn or_empty(self) -> Self {
        self.otherwise(Otherwise::Empty)
    }

    /// A document without it is refused.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { required: true, ..self }
    }

    /// Cannot be changed after creation: a change is refused in the provider's words, and a write that omits it keeps
    /// the old value.
    #[must_use]
    pub const fn fixed(self) -> Self {
        Self { fixed: Some(Fixed { while_used: false, refusal: None }), ..self }
    }

    /// The same, refused so.
    #[must_use]
    pub const fn fixed_as(self, refusal: fn(&Wrong<'_>) -> Refusal) -> Self {
        Self { fixed: Some(Fixed { while_used: false, refusal: Some(refusal) }), ..self }
    }

    /// Cannot be changed while another resource points at this one.
    #[must_use]
    pub const fn fixed_while_used(self, refusal: fn(&Wrong<'_>) -> Refusal) -> Self {
        Self { fixed: Some(Fixed { while_used: true, refusal: Some(refusal) }), ..self }
    }

    /// Shown although the list is empty.
    #[must_use]
    pub const fn shown_empty(self) -> Self {
        Self { shown_empty: true, ..self }
    }

    /// A secret: the type reads it when it is written; no answer and no refusal shows its value. It is stored only
    /// where something outside, such as what runs on a machine, needs it.
    #[must_use]
    pub const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    /// What refusals call it.
    #[must_use]
    pub const fn called(self, called: &'static str) -> Self {
        Self { called: Some(called), ..self }
    }

    /// Why a pointer points.
    #[must_use]
    pub const fn role(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }

    /// A pointer to the subnet in which the document holds the address beside it.
    #[must_use]
    pub const fn addressed(self) -> Self {
        Self { addressed: true, ..self }
    }

    /// An empty list is left out.
    #[must_use]
    pub const fn none_if_empty(self) -> Self {
        Self { none_if_empty: true, ..self }
    }

    /// Of an object, or of the objects in a list, only what the table has is kept.
    #[must_use]
    pub const fn closed(self) -> Self {
        Self { closed: true, ..self }
    }

    /// A text for which `fits` is false is refused; `what` completes "it must be".
    #[must_use]
    pub const fn fits(self, fits: Fits, what: &'static str) -> Self {
        Self { fits: Some((fits, what)), ..self }
    }
}
