//! Which machines have a disk: attach and detach, through one writer for each machine's list.

mod attachments;
mod disk_list;
mod intent;
mod lookup;
mod observed;
mod on_the_way;
mod publish;
mod unpublish;
mod waiting;

pub(crate) use attachments::Attachments;
pub(crate) use lookup::node_name_of;
