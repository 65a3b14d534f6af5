//! Groups and rows that wait on disk, in parts by a hash of their keys: first the groups as they
//! were when memory was short, then the rows that came to them afterwards.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::builder::BinaryViewBuilder;
use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_arrays;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt32Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::SpillManager;
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, SpillMetrics};
use thermocline_query::datum::Datum;

use crate::errors::external;
use crate::evaluate::name_of;
use thermocline_query::serial;

/// How many parts there are.
pub(super) const PARTS: usize = 16;
/// The column that says which set of keys a row waits for.
const SET: &str = "set";
/// Bytes of groups that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// The part that a key belongs to, when it is parted so often already.
pub(super) fn part_of(key: &[u8], level: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    (level, key).hash(&mut hasher);
    (hasher.finish() % PARTS as u64) as usize
}

/// What writes and reads parts.
#[derive(Clone)]
pub(super) struct Files {
    rows: SpillManager,
    groups: SpillManager,
    enabled: bool,
    /// Places of the columns that wait.
    columns: Vec<usize>,
}

/// A part's files, as they are written.
pub(super) struct Writing {
    rows: Writer,
    groups: Writer,
    /// Rows of the batch at hand, and the sets that they wait for.
    waiting: (Vec<u32>, Vec<u32>),
}

/// A part that is written.
pub(super) struct Part {
    rows: Option<SpillFile>,
    groups: Option<SpillFile>,
}

/// Appends a batch to a file; without one it ends the file.
type Writer = Box<dyn FnMut(Option<&RecordBatch>) -> Result<Option<SpillFile>> + Send>;

fn writer(of: &SpillManager, what: &str) -> Result<Writer> {
    let mut file = of.create_in_progress_file(what)?;
    Ok(Box::new(move |batch| match batch {
        Some(batch) => file.append_batch(batch).map(|_| None),
        None => file.finish(),
    }))
}

type SpillFile = Arc<dyn datafusion::execution::spill_file::SpillFile>;

/// A group as it waits: its key, and its values and aggregates.
pub(super) type Record = (Vec<u8>, Vec<Datum>);

impl Files {
    /// For rows of a schema, of which these columns are used.
    pub(super) fn new(task: &TaskContext, schema: &Schema, used: &[(usize, u32)]) -> Result<Self> {
        let mut columns = Vec::with_capacity(used.len());
        for (id, _) in used {
            columns.push(schema.index_of(&name_of(*id))?);
        }
        let mut fields = schema.project(&columns)?.fields().to_vec();
        fields.push(Arc::new(Field::new(SET, DataType::UInt32, false)));
        let rows: SchemaRef = Arc::new(Schema::new(fields));
        let bytes = |name: &str| Field::new(name, DataType::BinaryView, false);
        let groups = Arc::new(Schema::new(vec![bytes("key"), bytes("group")]));
        let metrics = ExecutionPlanMetricsSet::new();
        let manager = |schema: SchemaRef| {
            SpillManager::new(task.runtime_env(), SpillMetrics::new(&metrics, 0), schema)
                .with_compression_type(task.session_config().spill_compression())
        };
        Ok(Self {
            rows: manager(rows),
            groups: manager(groups),
            enabled: task.runtime_env().disk_manager.tmp_files_enabled(),
            columns,
        })
    }

    /// Whether there is a disk to write to.
    pub(super) const fn are_there(&self) -> bool {
        self.enabled
    }

    /// Begins a part.
    pub(super) fn begin(&self) -> Result<Writing> {
        Ok(Writing {
            rows: writer(&self.rows, "rows of groups")?,
            groups: writer(&self.groups, "groups")?,
            waiting: (Vec::new(), Vec::new()),
        })
    }

    fn written(&self, batch: &RecordBatch, writing: &mut Writing) -> Result<()> {
        let (rows, sets) = std::mem::take(&mut writing.waiting);
        let arrays: Vec<ArrayRef> = match batch.schema_ref() == self.rows.schema() {
            // It waited before.
            true => batch.columns()[..self.columns.len()].to_vec(),
            false => self
                .columns
                .iter()
                .map(|place| Arc::clone(batch.column(*place)))
                .collect(),
        };
        let mut arrays = take_arrays(&arrays, &UInt32Array::from(rows), None)?;
        arrays.push(Arc::new(UInt32Array::from(sets)));
        let batch = RecordBatch::try_new(Arc::clone(self.rows.schema()), arrays)?;
        (writing.rows)(Some(&batch))?;
        Ok(())
    }
}

impl Writing {
    /// A row of the batch at hand waits for one of its sets.
    pub(super) fn wait(&mut self, row: usize, set: usize) {
        self.waiting.0.push(row as u32);
        self.waiting.1.push(set as u32);
    }

    /// Writes the rows of the batch at hand that wait.
    pub(super) fn flush(&mut self, files: &Files, batch: &RecordBatch) -> Result<()> {
        if self.waiting.0.is_empty() {
            return Ok(());
        }
        files.written(batch, self)
    }

    /// Writes groups.
    pub(super) fn groups(
        &mut self,
        files: &Files,
        groups: impl Iterator<Item = Result<Record>>,
    ) -> Result<()> {
        let (mut keys, mut values) = (BinaryViewBuilder::new(), BinaryViewBuilder::new());
        let (mut bytes, mut out) = (0, Vec::new());
        let mut write = |keys: &mut BinaryViewBuilder, values: &mut BinaryViewBuilder| {
            let arrays: Vec<ArrayRef> = vec![Arc::new(keys.finish()), Arc::new(values.finish())];
            let batch = RecordBatch::try_new(Arc::clone(files.groups.schema()), arrays)?;
            if batch.num_rows() > 0 {
                (self.groups)(Some(&batch))?;
            }
            Ok::<_, DataFusionError>(())
        };
        for group in groups {
            let (key, group) = group?;
            out.clear();
            serial::write_all(&group, &mut out).map_err(external)?;
            keys.append_value(&key);
            values.append_value(&out);
            bytes += key.len() + out.len();
            if bytes >= WRITE_BYTES {
                write(&mut keys, &mut values)?;
                bytes = 0;
            }
        }
        write(&mut keys, &mut values)
    }

    /// The part, which nothing more comes to.
    pub(super) fn finish(mut self) -> Result<Part> {
        Ok(Part {
            rows: (self.rows)(None)?,
            groups: (self.groups)(None)?,
        })
    }
}

impl Part {
    /// Its groups.
    pub(super) fn groups(&self, files: &Files) -> Result<Option<SendableRecordBatchStream>> {
        let file = self.groups.clone();
        file.map(|file| files.groups.read_spill_as_stream_unbuffered(file, None))
            .transpose()
    }

    /// Its rows.
    pub(super) fn rows(&self, files: &Files) -> Result<Option<SendableRecordBatchStream>> {
        let file = self.rows.clone();
        file.map(|file| files.rows.read_spill_as_stream_unbuffered(file, None))
            .transpose()
    }
}

/// The groups of a batch.
pub(super) fn records(batch: &RecordBatch) -> impl Iterator<Item = Result<Record>> {
    let (keys, groups) = (batch.column(0), batch.column(1));
    let (keys, groups) = (keys.as_binary_view(), groups.as_binary_view());
    (0..batch.num_rows()).map(|row| {
        let group = serial::read_all(groups.value(row)).map_err(external)?;
        Ok((keys.value(row).to_vec(), group))
    })
}

/// The sets that the rows of a batch waited for.
pub(super) fn sets_of(batch: &RecordBatch) -> Result<Vec<usize>> {
    let sets = batch.column_by_name(SET);
    let sets = sets.and_then(|sets| sets.as_primitive_opt::<UInt32Type>());
    let sets = sets.ok_or_else(|| DataFusionError::Internal("rows without sets".to_owned()))?;
    Ok(sets.values().iter().map(|set| *set as usize).collect())
}
