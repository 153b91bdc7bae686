//! `--parquet`: the rows of `--csv` with their types, in a Parquet file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use super::rows::{Cell, Column, Kind};
/// Rows that are kept in memory until they are written together.
const ROW_GROUP: usize = 10_000;

/// A Parquet file that is being written.
pub(super) struct ParquetFile {
    path: PathBuf,
    columns: &'static [Column],
    writer: SerializedFileWriter<File>,
    rows: Vec<Vec<Cell>>,
}

impl ParquetFile {
    pub(super) fn create(path: &Path, columns: &'static [Column]) -> anyhow::Result<Self> {
        let file = airfiles::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        let writer =
            SerializedFileWriter::new(file, schema(columns)?, Arc::new(WriterProperties::default()))?;
        Ok(Self { path: path.to_owned(), columns, writer, rows: Vec::new() })
    }

    pub(super) fn push(&mut self, row: Vec<Cell>) -> io::Result<()> {
        self.rows.push(row);
        if self.rows.len() == ROW_GROUP { self.write_group() } else { Ok(()) }
    }

    /// Writes the remaining rows, and the footer without which no program can read the file.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if !self.rows.is_empty() {
            self.write_group()?;
        }
        self.writer.finish().map_err(|error| failed(&self.path, &error))?;
        Ok(())
    }

    fn write_group(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        write_group(&mut self.writer, self.columns, &rows).map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &ParquetError) -> io::Error {
    io::Error::other(format!("cannot write {}: {error}", path.display()))
}

fn schema(columns: &[Column]) -> Result<Arc<Type>, ParquetError> {
    let field = |(name, kind): &Column| {
        let (physical, logical) = match kind {
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Integer => (Physical::INT64, None),
            Kind::Number => (Physical::DOUBLE, None),
        };
        let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        builder.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    Ok(Arc::new(Type::group_type_builder("rows").with_fields(fields).build()?))
}

fn write_group(
    writer: &mut SerializedFileWriter<File>,
    columns: &[Column],
    rows: &[Vec<Cell>],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (at, (_, kind)) in columns.iter().enumerate() {
        let cells = rows.iter().map(|row| &row[at]);
        match kind {
            Kind::Text => write_column::<ByteArrayType>(&mut group, cells, |cell| match cell {
                Cell::Text(text) => Some(ByteArray::from(text.as_str())),
                _ => None,
            })?,
            Kind::Integer => write_column::<Int64Type>(&mut group, cells, |cell| match cell {
                Cell::Integer(number) => Some(*number),
                _ => None,
            })?,
            Kind::Number => write_column::<DoubleType>(&mut group, cells, |cell| match cell {
                Cell::Number(number) => Some(*number),
                _ => None,
            })?,
        }
    }
    group.close()?;
    Ok(())
}

/// Writes the next column of a group. A cell without a value becomes null.
fn write_column<'a, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    cells: impl Iterator<Item = &'a Cell>,
    value: impl Fn(&Cell) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<_> = cells.map(value).collect();
    // The definition level of an optional column is 1 if the row has a value.
    let levels: Vec<i16> = values.iter().map(|value| value.is_some().into()).collect();
    let values: Vec<_> = values.into_iter().flatten().collect();
    let missing = || ParquetError::General("the schema has too few columns".to_owned());
    let mut column = group.next_column()?.ok_or_else(missing)?;
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

#[cfg(test)]
mod tests {
    use airtcp_testkit::temporary::TempDir;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    const COLUMNS: [Column; 3] =
        [("cause", Kind::Text), ("connection", Kind::Integer), ("rtt_min_seconds", Kind::Number)];

    #[test]
    fn rows_are_read_back_with_types_and_nulls() {
        let directory = TempDir::new("parquet");
        let path = directory.path("rows.parquet");
        let mut file = ParquetFile::create(Path::new(&path), &COLUMNS).unwrap();
        let count = ROW_GROUP + 1;
        for number in 0..count as i64 {
            let rtt = if number % 2 == 0 { Cell::Number(0.5) } else { Cell::Unknown };
            file.push(vec![Cell::Text("random-loss".to_owned()), Cell::Integer(number), rtt]).unwrap();
        }
        file.finish().unwrap();

        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), count);
        let fields = |row: usize| -> Vec<_> {
            rows[row].get_column_iter().map(|(name, field)| (name.as_str(), field.clone())).collect()
        };
        let cause = ("cause", Field::Str("random-loss".to_owned()));
        assert_eq!(
            fields(ROW_GROUP),
            [cause.clone(), ("connection", Field::Long(10_000)), ("rtt_min_seconds", Field::Double(0.5))]
        );
        assert_eq!(fields(1), [cause, ("connection", Field::Long(1)), ("rtt_min_seconds", Field::Null)]);
    }
}
