//! The server's file that a COPY FROM reads, and what it says when it cannot.

use std::io::{self, ErrorKind};
use std::path::Path;

use bytes::Bytes;
use thermocline_engine::OutsideFile;

use crate::error::{Result, SqlError};

/// A file that a COPY FROM reads.
pub struct CopyFile {
    path: String,
    file: OutsideFile,
}

impl CopyFile {
    /// Opens a file by its whole path.
    ///
    /// # Errors
    /// 42602 for a path that is not whole, 58P01 where nothing is. 42809 for what is no file, 42501
    /// where the server may not read, 58030 for the rest.
    pub fn at(path: &str) -> Result<Self> {
        if !Path::new(path).is_absolute() {
            let message = "relative path not allowed for COPY from a file";
            return Err(SqlError::new("42602", message).with_hint("Write the whole path."));
        }
        let file = OutsideFile::at(Path::new(path)).map_err(|error| not_opened(path, &error))?;
        Ok(Self {
            path: path.to_owned(),
            file,
        })
    }

    /// The next bytes; none at the end.
    ///
    /// # Errors
    /// 58030.
    pub fn next(&mut self) -> Result<Option<Bytes>> {
        let chunk = self.file.next_chunk();
        let chunk = chunk.map_err(|error| {
            let message = format!("could not read from COPY file \"{}\": {error}", self.path);
            SqlError::new("58030", message)
        })?;
        Ok(chunk.map(Bytes::from))
    }
}

#[cold]
fn not_opened(path: &str, error: &io::Error) -> SqlError {
    let sqlstate = match error.kind() {
        ErrorKind::IsADirectory => {
            return SqlError::new("42809", format!("\"{path}\" is a directory"));
        }
        ErrorKind::InvalidInput => {
            return SqlError::new("42809", format!("\"{path}\" is not a regular file"));
        }
        ErrorKind::NotFound => "58P01",
        ErrorKind::PermissionDenied => "42501",
        _ => "58030",
    };
    let message = format!("could not open file \"{path}\" for reading: {error}");
    SqlError::new(sqlstate, message).with_hint(
        "COPY FROM reads a file of the server. psql's \\copy reads a file of the client.",
    )
}
