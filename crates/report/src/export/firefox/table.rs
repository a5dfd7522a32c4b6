//! A table of the format: an object with the number of rows and a list for each column. Values are written
//! one by one, as a list of JSON values takes a multiple of its text in memory.

use std::io::{self, Write};
use std::iter::repeat_n;

use serde_core::Serialize;

/// A table that is being written.
pub(super) struct Table<'o> {
    rows: usize,
    out: &'o mut dyn Write,
}

impl<'o> Table<'o> {
    /// Writes the begin of a table of so many rows, as the next member of an object.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub(super) fn begin(key: &str, rows: usize, out: &'o mut dyn Write) -> io::Result<Self> {
        write!(out, ",\"{key}\":{{\"length\":{rows}")?;
        Ok(Self { rows, out })
    }

    /// Writes a column.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn column<T: Serialize>(
        &mut self,
        name: &str,
        values: impl ExactSizeIterator<Item = T>,
    ) -> io::Result<()> {
        debug_assert_eq!(values.len(), self.rows, "{name}");
        write!(self.out, ",\"{name}\":[")?;
        for (at, value) in values.enumerate() {
            if at != 0 {
                self.out.write_all(b",")?;
            }
            serde_json::to_writer(&mut *self.out, &value)?;
        }
        self.out.write_all(b"]")
    }

    /// Writes a column with the same value in each row.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn all(&mut self, name: &str, value: impl Serialize + Copy) -> io::Result<()> {
        self.column(name, repeat_n(value, self.rows))
    }

    /// Writes a text beside the columns.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn text(&mut self, name: &str, value: &str) -> io::Result<()> {
        write!(self.out, ",\"{name}\":{}", serde_json::Value::from(value))
    }

    /// Ends the table.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn end(self) -> io::Result<()> {
        self.out.write_all(b"}")
    }
}
