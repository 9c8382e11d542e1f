//! How old an answer may be, who shares it, and when the next look is due.
//!
//! Reads of a remote API are limited, and many callers ask for the same at the same time. Three questions arise at each
//! of them, and each has one answer here:
//!
//! | question | answer |
//! |---|---|
//! | How old may the answer be? | A reading is as old as its question ([`Moment`]). An event requires data that was requested after it ([`LogicalTime`]); a periodic look accepts data of some age ([`AgeLimits`]). |
//! | Who shares it? | Concurrent callers share one request, its answer and its failure: [`SharedReading`] for one value, [`SharedReadings`] for one value a key, [`SharedList`] for the resources of a list. |
//! | When is the next look due? | [`Schedule`]: after pauses that grow while nothing changes. [`LearnedDurations`]: when earlier operations of the same kind were done. |
//!
//! What is not asked for is forgotten ([`Recent`]).

mod age_limits;
mod flight;
mod moment;
mod pace;
mod recent;
mod schedule;
mod shared_list;
mod shared_reading;

pub use age_limits::AgeLimits;
pub use flight::SharedError;
pub use logical_time::LogicalTime;
pub use moment::Moment;
pub use pace::{LearnedDurations, Polls};
pub use recent::Recent;
pub use schedule::{Due, Pauses, Schedule};
pub use shared_list::{Fetch, SharedList};
pub use shared_reading::{SharedReading, SharedReadings};
