//! The batches of a statement, made by the threads for analytical statements and taken by the
//! session. One is made ahead, no more; dropping the feed ends the statement.

use std::sync::Arc;
use std::vec::IntoIter;

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
    /// Those that are there already.
    made: IntoIter<RecordBatch>,
    running: Option<Running>,
    _end: End,
    /// The threads that are the statement's own.
    _own: Option<Threads>,
}

/// A statement that makes batches.
struct Running {
    batches: mpsc::Receiver<Result<RecordBatch>>,
    task: Task<()>,
    has_ended: bool,
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
    /// Has a statement run; `end` ends it with the feed.
    ///
    /// # Errors
    /// As [`Threads::spawn`].
    pub(super) fn begin(
        threads: &Threads,
        plan: Arc<dyn ExecutionPlan>,
        context: Arc<TaskContext>,
        end: End,
    ) -> SqlResult<Self> {
        let (sender, batches) = mpsc::channel(1);
        let task = threads.spawn(run(plan, context, sender))?;
        Ok(Self {
            made: Vec::new().into_iter(),
            running: Some(Running {
                batches,
                task,
                has_ended: false,
            }),
            _end: end,
            _own: None,
        })
    }

    /// The same, whose statement has threads of its own.
    pub(super) fn with_own(self, threads: Option<Threads>) -> Self {
        Self {
            _own: threads,
            ..self
        }
    }

    /// Of a statement that has ended; values are still made of its batches until `end`.
    pub(super) fn made(batches: Vec<RecordBatch>, end: End) -> Self {
        Self {
            made: batches.into_iter(),
            running: None,
            _end: end,
            _own: None,
        }
    }

    /// The next batch; none when there are no more.
    pub(super) async fn next(&mut self) -> SqlResult<Option<Result<RecordBatch>>> {
        if let Some(batch) = self.made.next() {
            return Ok(Some(Ok(batch)));
        }
        let Some(running) = &mut self.running else {
            return Ok(None);
        };
        if let Some(batch) = running.batches.recv().await {
            return Ok(Some(batch));
        }
        if !running.has_ended {
            // Or it panicked, and so does this.
            running.task.outcome().await?;
            running.has_ended = true;
        }
        Ok(None)
    }
}
