//! Statements that are probably small, such as joins that indexes bound. The threads of large
//! ones give way to all other work of the machine, so a small one might wait there for long. It
//! is planned and run on threads that give way to nobody instead, but for a short time only. Its
//! result is kept until it is whole. If the time is over before, or the result is large,
//! nothing has been seen of it: it begins anew where large statements run.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::StreamExt;
use tokio::time::timeout;

use super::scan::SnapshotScanExec;
use crate::pg_catalog::Ending;
use crate::typed::TypedQuery;

/// A statement over more tables may take long to plan.
const TABLES_MAX: usize = 16;
/// A statement whose scans read more rows than this is large.
const ROWS_MAX: u64 = 10_000;
/// How long a statement may run as a small one.
const RUNS_FOR: Duration = Duration::from_millis(50);

/// What became of statements that were taken for small.
#[derive(Debug, Default)]
pub struct SmallStatements {
    finished: AtomicU64,
    too_large: AtomicU64,
}

impl SmallStatements {
    /// Those that were small, and those that began anew as large ones.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        (self.finished.load(Relaxed), self.too_large.load(Relaxed))
    }
}

/// How a statement has begun.
pub(super) enum Begun {
    /// All its rows are there.
    Whole(Vec<RecordBatch>),
    /// It is large, and planned.
    Planned(Arc<dyn ExecutionPlan>),
    /// It was not as small as it looked, and is to be planned and run anew.
    TooLarge,
}

/// Whether a statement may be small before its plan is known. One that does something, or gives
/// other values when it runs again, runs once.
pub(super) fn may_be(typed: &TypedQuery) -> bool {
    // Those of partitions are few once they are planned.
    let whole = typed
        .tables
        .iter()
        .filter(|table| table.partition_of.is_none());
    !typed.is_volatile && whole.count() <= TABLES_MAX && !crate::stack::is_deep(typed.depth)
}

/// Whether a plan's scans read few rows, as far as that is known before: what a scan learns from
/// a join is as small as the join's other side.
pub(super) fn is_small(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut rows = 0_u64;
    plan.apply(|node| {
        if let Some(scan) = node.downcast_ref::<SnapshotScanExec>() {
            rows = rows.saturating_add(scan.rows_to_read());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(rows <= ROWS_MAX)
}

/// Runs a plan that looks small. An error is the statement's own.
pub(super) async fn run(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    ending: &Ending,
    bytes_max: usize,
    counts: &SmallStatements,
) -> Result<Begun> {
    ending.run_for(Some(RUNS_FOR));
    let held = pin!(held(plan, context, bytes_max));
    // It may wait for something, too.
    let held = timeout(RUNS_FOR, unless_over(held, ending)).await;
    let held = held.unwrap_or(Ok(None));
    let too_large = match &held {
        Ok(batches) => batches.is_none(),
        Err(_) => ending.is_over(),
    };
    ending.run_for(None);
    if too_large {
        counts.too_large.fetch_add(1, Relaxed);
        return Ok(Begun::TooLarge);
    }
    counts.finished.fetch_add(1, Relaxed);
    Ok(Begun::Whole(held?.unwrap_or_default()))
}

/// What comes of `work`; none when its time is over at one of its pauses.
async fn unless_over<T>(
    mut work: Pin<&mut impl Future<Output = Result<Option<T>>>>,
    ending: &Ending,
) -> Result<Option<T>> {
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Pending if ending.is_over() => Poll::Ready(Ok(None)),
        polled => polled,
    })
    .await
}

/// All batches of a plan; none if they take more memory than they may.
async fn held(
    plan: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    bytes_max: usize,
) -> Result<Option<Vec<RecordBatch>>> {
    let mut stream = execute_stream(plan, context)?;
    let (mut batches, mut bytes) = (Vec::new(), 0);
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        bytes += batch.get_array_memory_size();
        if bytes > bytes_max {
            return Ok(None);
        }
        batches.push(batch);
    }
    Ok(Some(batches))
}
