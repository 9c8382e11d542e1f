//! Why a node's pods get no route.

use ipnet::IpNet;

use crate::model::names::MAX_LENGTH;

/// Why a node's pods get no route. The routes of other nodes are written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RouteRefusal {
    /// A table can contain one route to a range. A foreign route stays, and so does the route of another node, unless
    /// the node is known to be deleted.
    #[error(
        "route table {table}: route {by} leads to {range} already, and it is not this node's; remove that route, or \
         delete the Node and let it register again"
    )]
    PrefixTaken {
        /// The table.
        table: String,
        /// The route that is there.
        by: String,
        /// The range that both are for.
        range: IpNet,
    },
    /// A table can contain one route of a name.
    #[error(
        "route table {table}: route {name} leads to another range of this node, and a route to {range} has the same \
         name; delete the Node and let it register again"
    )]
    NameTaken {
        /// The table.
        table: String,
        /// The name.
        name: String,
        /// The range that gets no route.
        range: IpNet,
    },
    /// Azure limits names to 80 characters.
    #[error(
        "route {name} has a name of {} characters, and Azure takes {MAX_LENGTH}; register the node under a shorter name",
        .name.len()
    )]
    NameTooLong {
        /// The name.
        name: String,
    },
    /// Without the list of routes a write would remove them, because the whole table is written.
    #[error(
        "route table {table}: Azure does not say which routes it holds, and a write would remove them; look at it again"
    )]
    TableWithoutRoutes {
        /// The table.
        table: String,
    },
}
