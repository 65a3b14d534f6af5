//! A backup on a thread of its own: it takes minutes, and whoever asked for it
//! may be on an executor that has other things to do.

use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::thread;

use parking_lot::Mutex;

use super::{BackupOptions, BackupReport};
use crate::database::Database;
use crate::ground::error::{Error, Result};

/// Where the thread leaves what came of it.
#[derive(Default)]
struct Outcome {
    result: Option<Result<BackupReport>>,
    waiting: Option<Waker>,
}

impl Database {
    /// As [`Database::backup_into`], for a client: below `backup_directory` only. A
    /// caller who stops waiting does not end it.
    ///
    /// # Errors
    /// Those of [`Database::backup_into`]; 42501 for any other directory.
    pub async fn backup_to(
        self: &Arc<Self>,
        path: &str,
        options: &BackupOptions,
    ) -> Result<BackupReport> {
        let outcome: Arc<Mutex<Outcome>> = Arc::default();
        let (db, path, options) = (self.clone(), PathBuf::from(path), *options);
        let left = outcome.clone();
        thread::Builder::new()
            .name("backup".into())
            .spawn(move || {
                let result = db
                    .backup_place(&path, true)
                    .and_then(|place| db.backup(&place.device, &options, &mut |_, _| {}));
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

    /// As [`Parts::backup`](crate::Parts::backup), into a directory of this machine's file system, made if it is
    /// absent, wherever whoever runs this process may write.
    ///
    /// # Errors
    /// 55000 and 55006 for a directory that it may not go into, nothing in which is changed;
    /// those of [`Parts::backup`](crate::Parts::backup); the file system's.
    pub fn backup_into(
        &self,
        path: &Path,
        options: &BackupOptions,
        observe: &mut dyn FnMut(u64, u64),
    ) -> Result<BackupReport> {
        let place = self.backup_place(path, false)?;
        self.backup(&place.device, options, observe)
    }
}
