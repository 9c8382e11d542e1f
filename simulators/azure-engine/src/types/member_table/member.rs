//! A member of a table, with the methods that build its row.

use crate::refusal::Refusal;
use crate::refusal::words::Wrong;
use crate::store::reference::Role;

/// The type of a member. Resource types are given as `virtualNetworks/subnets` for one of the same namespace, and as
/// `Microsoft.Network/networkInterfaces` for one of another.
#[derive(Debug, Clone, Copy)]
pub enum Holds {
    /// True or false.
    Flag,
    /// A whole number within bounds.
    Number(i64, i64),
    /// An enumeration, in Azure's spelling; with `true` the first value is the default.
    Word(&'static [&'static str], bool),
    /// A text.
    Text,
    /// A list of texts.
    Texts,
    /// Texts by name, such as labels.
    TextMap,
    /// A time in the form of RFC 3339.
    Time,
    /// A duration in the form of ISO 8601, such as `PT5M`.
    Duration,
    /// A reference (`{"id": …}`) to a resource of a type.
    Uses(&'static str),
    /// A list of references.
    UsesAll(&'static str),
    /// A reference that is only the id, as a text.
    UsesId(&'static str),
    /// A reference that does not block the deletion of its target.
    Names(&'static str),
    /// An object with a table of its own.
    Object(&'static [Member]),
    /// A list of objects with a table.
    Objects(&'static [Member]),
    /// A list of child documents: each has a unique name, and `properties` with this table.
    Children(&'static [Member]),
    /// A member that the type itself checks.
    Anything,
    /// A member that the service derives; values of clients are dropped.
    Derived,
    /// The same, with a constant text.
    Constant(&'static str),
    /// The referrers of the resource, by the last segment of their type (an empty one means any). Never stored.
    Users(&'static str),
    /// The one referrer, in the same way; the end of its type's last segment suffices.
    User(&'static str),
    /// A GUID that the service assigns for the life of the resource. Never stored.
    Guid,
    /// The time of the resource's creation. Never stored.
    Created,
    /// A value that the service chose at creation: it stays, whatever clients send.
    Kept,
}

/// The default of a member.
#[derive(Debug, Clone, Copy)]
pub enum Otherwise {
    /// A number.
    Number(i64),
    /// A text.
    Text(&'static str),
    /// True or false.
    Flag(bool),
    /// An empty object or list. The defaults of an empty object's members are filled in.
    Empty,
}

/// When a member is fixed.
#[derive(Debug, Clone, Copy)]
pub struct Fixed {
    /// Only while another resource points at this one.
    pub while_used: bool,
    /// The refusal of a change. By default it has the provider's wording.
    pub refusal: Option<fn(&Wrong<'_>) -> Refusal>,
}

/// Whether a text is valid.
pub type Fits = fn(&str) -> bool;

/// One member.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// Its name, in Azure's spelling.
    pub name: &'static str,
    /// Its type.
    pub holds: Holds,
    /// Its default.
    pub otherwise: Option<Otherwise>,
    /// When it is fixed.
    pub fixed: Option<Fixed>,
    /// Whether it is shown although it is an empty list.
    pub shown_empty: bool,
    /// Whether a document without it is refused.
    pub required: bool,
    /// Whether it is a secret: never shown, and stored only for work outside.
    pub secret: bool,
    /// Its name in refusals, if that is not its path below `properties`.
    pub called: Option<&'static str>,
    /// The check of a text, and its description.
    pub fits: Option<(Fits, &'static str)>,
    /// The role of a reference, if it does not simply use its target.
    pub role: Option<Role>,
    /// Whether the document holds the address beside it (`privateIPAddress`) in the referenced subnet.
    pub addressed: bool,
    /// Whether an empty list is left out.
    pub none_if_empty: bool,
    /// Whether members that its table does not have are dropped.
    pub closed: bool,
}

impl Member {
    /// A member of this type.
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

    /// Sets the default of a number.
    #[must_use]
    pub const fn or(self, otherwise: i64) -> Self {
        self.otherwise(Otherwise::Number(otherwise))
    }

    /// Sets the default of a text or an enumeration.
    #[must_use]
    pub const fn or_text(self, otherwise: &'static str) -> Self {
        self.otherwise(Otherwise::Text(otherwise))
    }

    /// Sets the default of a flag.
    #[must_use]
    pub const fn or_flag(self, otherwise: bool) -> Self {
        self.otherwise(Otherwise::Flag(otherwise))
    }

    /// Makes the empty object or list the default; the defaults of an object's members are filled in.
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

    /// The same, with this refusal.
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

    /// Sets its name in refusals.
    #[must_use]
    pub const fn called(self, called: &'static str) -> Self {
        Self { called: Some(called), ..self }
    }

    /// Sets the role of a reference.
    #[must_use]
    pub const fn role(self, role: Role) -> Self {
        Self { role: Some(role), ..self }
    }

    /// A reference to the subnet in which the document holds the address beside it.
    #[must_use]
    pub const fn addressed(self) -> Self {
        Self { addressed: true, ..self }
    }

    /// An empty list is left out.
    #[must_use]
    pub const fn none_if_empty(self) -> Self {
        Self { none_if_empty: true, ..self }
    }

    /// Drops members of an object, or of the objects in a list, that the table does not have.
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
