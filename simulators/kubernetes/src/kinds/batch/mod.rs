pub(crate) mod cron_job;
pub(crate) mod job;
mod job_spec;
mod job_status;
