//! Threads for analytical statements. They are planned and run here and nowhere else, so who
//! answers short statements never waits behind an operator that is at work, nor for a plan that
//! takes long. They give way: the scheduler has them run on what others leave.

use std::future::Future;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::{JoinError, JoinSet};

use crate::error::{Result, SqlError};
use crate::stack;

/// Dropping deep plans goes deep as well, wherever it happens.
const STACK_BYTES: usize = 8 << 20;

/// See the head of this file.
pub(crate) struct Threads {
    name: &'static str,
    count: usize,
    gives_way: bool,
    /// From the first statement on.
    runtime: Mutex<Option<Runtime>>,
}

/// Work that ends when this is dropped.
pub(crate) struct Task<T>(JoinSet<T>);

impl Threads {
    /// As many threads as this, when the first is needed. `gives_way`: they run on what others
    /// leave.
    pub(crate) fn new(name: &'static str, count: usize, gives_way: bool) -> Self {
        Self {
            name,
            count,
            gives_way,
            runtime: Mutex::default(),
        }
    }

    /// Has this run, with the stack that the running statement has.
    ///
    /// # Errors
    /// 53000 where the system has no threads left.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<Task<T>> {
        let handle = self.handle()?;
        let depth = stack::depth();
        let mut tasks = JoinSet::new();
        match stack::is_deep(depth) {
            true => tasks.spawn_on(stack::roomy(depth, Box::pin(work)), &handle),
            false => tasks.spawn_on(work, &handle),
        };
        Ok(Task(tasks))
    }

    fn handle(&self) -> Result<Handle> {
        let mut runtime = self.runtime.lock();
        if let Some(runtime) = &*runtime {
            return Ok(runtime.handle().clone());
        }
        let gives_way = self.gives_way;
        let started = Builder::new_multi_thread()
            .worker_threads(self.count)
            .thread_name(self.name)
            .thread_stack_size(STACK_BYTES)
            .enable_time()
            .on_thread_start(move || {
                if gives_way {
                    thermocline_device::give_way_to_other_threads();
                }
            })
            .on_thread_park(thermocline_device::return_memory_if_asked)
            .build()
            .map_err(|error| {
                SqlError::new("53000", format!("could not start a thread: {error}"))
            })?;
        Ok(runtime.insert(started).handle().clone())
    }
}

impl<T: Send + 'static> Task<T> {
    /// Waits for its end. What panicked there panics here.
    pub(crate) async fn outcome(&mut self) -> Result<T> {
        match self.0.join_next().await {
            Some(Ok(done)) => Ok(done),
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => Err(ended(Some(error))),
            },
            None => Err(ended(None)),
        }
    }
}

fn ended(error: Option<JoinError>) -> SqlError {
    tracing::debug!("an analytical task was ended: {error:?}");
    SqlError::new(
        "57P01",
        "terminating connection due to administrator command",
    )
}

impl Drop for Threads {
    fn drop(&mut self) {
        // Dropped as it is, it would wait for its threads, which a thread of another runtime
        // must not do.
        if let Some(runtime) = self.runtime.get_mut().take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thermocline_device::block_on;

    use super::*;

    #[test]
    fn work_has_a_runtime_whatever_waits_for_it_and_the_statements_stack() {
        let threads = Threads::new("analytical", 1, true);
        let work = async { (Handle::try_current().is_ok(), stack::depth()) };
        let mut task = stack::with_room(500, || threads.spawn(work).unwrap());
        assert_eq!(block_on(task.outcome()).unwrap(), (true, 500));
        let mut panics = threads.spawn(async { panic!("in the task") }).unwrap();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            block_on(panics.outcome()).map(|(): ()| ())
        }));
        assert!(caught.is_err());
    }

    #[test]
    fn work_that_nobody_waits_for_ends() {
        let threads = Threads::new("analytical", 1, true);
        let held = Arc::new(());
        let kept = Arc::clone(&held);
        let task = threads.spawn(async move {
            std::future::pending::<()>().await;
            drop(kept);
        });
        drop(task.unwrap());
        let began = std::time::Instant::now();
        while Arc::strong_count(&held) > 1 {
            assert!(began.elapsed().as_secs() < 60, "it goes on");
            std::thread::yield_now();
        }
    }
}
