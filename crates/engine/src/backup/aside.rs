//! A backup for a client: on a thread of its own, since it takes minutes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{BackupOptions, BackupReport};
use crate::database::Database;
use crate::ground::aside::aside;
use crate::ground::error::Result;

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
        let (db, path, options) = (self.clone(), PathBuf::from(path), *options);
        let work = move || {
            let place = db.backup_place(&path, true)?;
            db.backup(&place.device, &options, &mut |_, _| {})
        };
        aside("backup", work).await?
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
