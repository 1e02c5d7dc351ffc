//! Tables as Arrow IPC files, which polars and pandas read without copying.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array,
    types::UInt32Type,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Field, Schema};

use crate::{Column, Dictionary, Strings, Table, Validity};

/// `table` as the bytes of an Arrow IPC file; strings are dictionary-encoded.
pub fn encode<T: Table>(table: &T, dictionary: &Dictionary) -> Result<Vec<u8>, ArrowError> {
    let batch = record_batch(table, dictionary)?;
    let mut bytes = Vec::new();
    let mut writer = FileWriter::try_new(&mut bytes, &batch.schema())?;
    writer.write(&batch)?;
    writer.finish()?;
    drop(writer);
    Ok(bytes)
}

/// `table` as one record batch, for those who append batches to a stream.
pub fn record_batch<T: Table>(table: &T, dictionary: &Dictionary) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, column) in table.columns() {
        let array = array(column, dictionary)?;
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn array(column: Column<'_>, dictionary: &Dictionary) -> Result<ArrayRef, ArrowError> {
    Ok(match column {
        Column::Ints(ints) => {
            let values = ScalarBuffer::from(ints.values().to_vec());
            Arc::new(Int64Array::try_new(values, nulls(ints.validity()))?)
        }
        Column::Floats(floats) => {
            let values = ScalarBuffer::from(floats.values().to_vec());
            Arc::new(Float64Array::try_new(values, nulls(floats.validity()))?)
        }
        Column::Bools(bools) => {
            Arc::new(BooleanArray::new(bools.values().to_vec().into(), nulls(bools.validity())))
        }
        Column::Strings(strings) => strings_array(strings, dictionary)?,
    })
}

fn nulls(validity: &Validity) -> Option<NullBuffer> {
    validity.bits().map(|bits| NullBuffer::from(bits.to_vec()))
}

/// A column's own dictionary holds only the strings it uses, in the order of their first use.
fn strings_array(strings: &Strings, dictionary: &Dictionary) -> Result<ArrayRef, ArrowError> {
    let mut own_codes = vec![u32::MAX; dictionary.len()];
    let mut own_strings = Vec::new();
    let mut keys = Vec::with_capacity(strings.len());
    for symbol in strings.symbols() {
        keys.push(symbol.map(|symbol| {
            let code = &mut own_codes[symbol.code() as usize];
            if *code == u32::MAX {
                *code = own_strings.len() as u32;
                own_strings.push(dictionary.string(symbol));
            }
            *code
        }));
    }
    let values = Arc::new(StringArray::from(own_strings));
    Ok(Arc::new(DictionaryArray::<UInt32Type>::try_new(UInt32Array::from(keys), values)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventRow, Events};
    use arrow_array::{Array, cast::AsArray, types::Int64Type};
    use arrow_ipc::reader::FileReader;

    #[test]
    fn a_table_reads_back_as_it_was_filled() {
        let mut dictionary = Dictionary::default();
        let mut events = Events::default();
        let (unused, up) = (dictionary.symbol("unused"), dictionary.symbol("link_change"));
        let _ = unused;
        for time in [5, 9] {
            events.push(EventRow {
                time,
                flow: None,
                stream: (time > 5).then_some(3),
                link: None,
                event: up,
                detail: None,
            });
        }
        let bytes = encode(&events, &dictionary).expect("a well-formed table");
        let mut reader = FileReader::try_new(std::io::Cursor::new(bytes), None).expect("an IPC file");
        let batch = reader.next().expect("one batch").expect("readable");
        assert_eq!(batch.num_rows(), 2);
        let column = |name| batch.column_by_name(name).expect("a column of the schema");
        assert_eq!(column("time").as_primitive::<Int64Type>().values(), &[5, 9]);
        assert!(column("stream").is_null(0) && column("stream").is_valid(1));
        let event = column("event").as_dictionary::<UInt32Type>();
        assert_eq!(event.values().as_string::<i32>().value(0), "link_change");
        assert_eq!(event.values().len(), 1, "only the strings in use are written");
        assert_eq!(column("flow").null_count(), 2);
    }

    #[test]
    fn an_empty_table_still_has_its_columns() {
        let bytes = encode(&Events::default(), &Dictionary::default()).expect("a well-formed table");
        let reader = FileReader::try_new(std::io::Cursor::new(bytes), None).expect("an IPC file");
        assert_eq!(reader.schema().fields().len(), 6);
    }
}
