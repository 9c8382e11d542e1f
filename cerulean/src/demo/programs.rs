//! Our programs, which run as in production.

use std::time::Duration;

use anyhow::bail;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time limit for programs to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// Programs that start and stop together.
#[derive(Debug, Default)]
pub struct Programs {
    running: Vec<Program>,
    stop: CancellationToken,
}

#[derive(Debug)]
struct Program {
    name: &'static str,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Programs {
    /// The token that stops them.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Starts a program.
    pub fn start(
        &mut self,
        name: &'static str,
        program: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        self.running.push(Program { name, task: tokio::spawn(program) });
    }

    /// Checks that all of them still run.
    ///
    /// # Errors
    /// Why one has ended.
    pub async fn check(&mut self) -> anyhow::Result<()> {
        let Some(program) = self.running.iter_mut().find(|program| program.task.is_finished()) else {
            return Ok(());
        };
        let ended = (&mut program.task).await?;
        let problem = ended.err().unwrap_or_else(|| anyhow::anyhow!("it was asked to stop"));
        Err(problem.context(format!("the {} ended", program.name)))
    }

    /// Stops all of them.
    ///
    /// # Errors
    /// The error that one ended with, or that it did not end.
    pub async fn end(self) -> anyhow::Result<()> {
        self.stop.cancel();
        let deadline = Instant::now() + STOP_TIMEOUT;
        let mut problem = None;
        for Program { name, task } in self.running {
            let ended = match tokio::time::timeout_at(deadline, task).await {
                Ok(ended) => ended?,
                Err(_) => bail!("the {name} did not stop within {} s", STOP_TIMEOUT.as_secs()),
            };
            problem = problem.or(ended.err());
        }
        problem.map_or(Ok(()), Err)
    }
}
