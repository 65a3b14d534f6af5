//! The batches of a statement, made by the threads for analytical statements and taken by the
//! session. One is made ahead, no more; dropping the feed ends the statement.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use tokio::sync::mpsc;

use super::run::End;
use super::threads::{Task, Threads};
use crate::error::Result as SqlResult;

/// See the head of this file.
pub(super) struct Feed {
    batches: mpsc::Receiver<Result<RecordBatch>>,
    task: Task<()>,
    has_ended: bool,
    _end: End,
}

/// Has a statement run; `end` ends it with the feed.
///
/// # Errors
/// As [`Threads::spawn`].
pub(super) fn begin(
    threads: &Threads,
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    end: End,
) -> SqlResult<Feed> {
    let (sender, batches) = mpsc::channel(1);
    let task = threads.spawn(run(plan, context, sender))?;
    Ok(Feed {
        batches,
        task,
        _end: end,
        has_ended: false,
    })
}

async fn run(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    sender: mpsc::Sender<Result<RecordBatch>>,
) {
    let mut stream = match execute_stream(plan, context) {
        Ok(stream) => stream,
        Err(error) => {
            // Whoever is gone does not want to know.
            let _ = sender.send(Err(error)).await;
            return;
        }
    };
    while let Ok(place) = sender.reserve().await {
        match stream.next().await {
            Some(batch) => place.send(batch),
            None => return,
        }
    }
}

impl Feed {
    /// The next batch; none when there are no more.
    pub(super) async fn next(&mut self) -> SqlResult<Option<Result<RecordBatch>>> {
        if let Some(batch) = self.batches.recv().await {
            return Ok(Some(batch));
        }
        if !self.has_ended {
            // Or it panicked, and so does this.
            self.task.outcome().await?;
            self.has_ended = true;
        }
        Ok(None)
    }
}
