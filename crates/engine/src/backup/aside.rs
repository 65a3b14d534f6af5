//! A backup on a thread of its own: it takes minutes, and whoever asked for it
//! may be on an executor that has other things to do.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread;

use parking_lot::Mutex;
use thermocline_device::{Device, FileDevice, IoEngine};

use super::{BackupOptions, BackupReport};
use crate::database::Database;
use crate::error::{Error, Result};

/// Where the thread leaves what came of it.
#[derive(Default)]
struct Outcome {
    result: Option<Result<BackupReport>>,
    waiting: Option<Waker>,
}

impl Database {
    /// As [`Database::backup`], into a directory of this machine's file system,
    /// made if it is absent. A caller who stops waiting does not end it.
    ///
    /// # Errors
    /// Those of [`Database::backup`]; the directory can't be made or written.
    pub async fn backup_to(
        self: &Arc<Self>,
        path: &str,
        options: &BackupOptions,
    ) -> Result<BackupReport> {
        let outcome: Arc<Mutex<Outcome>> = Arc::default();
        let (db, path, options) = (self.clone(), path.to_owned(), *options);
        let left = outcome.clone();
        thread::Builder::new()
            .name("backup".into())
            .spawn(move || {
                let result = db.backup_into_directory(&path, &options);
                let waiting = {
                    let mut outcome = left.lock();
                    outcome.result = Some(result);
                    outcome.waiting.take()
                };
                if let Some(waker) = waiting {
                    waker.wake();
                }
            })
            .map_err(|e| Error::io(e, "starting a thread"))?;
        poll_fn(|context| {
            let mut outcome = outcome.lock();
            match outcome.result.take() {
                Some(result) => Poll::Ready(result),
                None => {
                    outcome.waiting = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    fn backup_into_directory(&self, path: &str, options: &BackupOptions) -> Result<BackupReport> {
        let target = FileDevice::open(path, IoEngine::Threads)
            .map_err(|e| Error::io(e, format!("opening {path}")))?;
        let target: Arc<dyn Device> = Arc::new(target);
        self.backup(&target, options, &mut |_, _| {})
    }
}
