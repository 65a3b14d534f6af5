//! What COPY TO writes, COPY FROM reads back, in whatever pieces it comes.

use proptest::prelude::*;
use thermocline_values::types::DataType;
use thermocline_values::value::ValueRef;

use super::*;
use crate::output::RowWriter;

type Rows = Vec<Vec<Option<String>>>;

fn names(columns: usize) -> Vec<String> {
    (0..columns).map(|column| format!("c{column}")).collect()
}

/// The payload of the CopyData messages.
fn payload(mut messages: &[u8]) -> Vec<u8> {
    let mut payload = Vec::new();
    while let Some((head, rest)) = messages.split_first_chunk::<5>() {
        assert_eq!(head[0], b'd');
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize - 4;
        payload.extend_from_slice(&rest[..length]);
        messages = &rest[length..];
    }
    payload
}

fn encode(options: &CopyOptions, rows: &Rows) -> Vec<u8> {
    let mut encoder = CopyEncoder::new(options.clone());
    let mut bytes = encoder
        .header(&names(rows.first().map_or(0, Vec::len)))
        .unwrap_or_default();
    let mut writer = RowWriter::copy(Vec::new(), encoder);
    for row in rows {
        writer.begin_row(row.len());
        for value in row {
            match value {
                Some(text) => writer.value(ValueRef::Text(text), &DataType::Text),
                None => writer.null(),
            }
        }
        writer.end_row();
    }
    bytes.extend(payload(writer.bytes()));
    bytes.extend(CopyEncoder::trailer(options, writer.rows()).unwrap_or_default());
    bytes
}

fn decode(
    options: &CopyOptions,
    columns: usize,
    bytes: &[u8],
    piece: usize,
) -> crate::Result<Rows> {
    let mut decoder = CopyDecoder::new(options.clone(), names(columns));
    let mut record = Record::default();
    let mut rows = Vec::new();
    let mut pieces: Vec<&[u8]> = bytes.chunks(piece.max(1)).collect();
    pieces.push(&[]);
    let last = pieces.len() - 1;
    for (number, piece) in pieces.into_iter().enumerate() {
        decoder.push(piece)?;
        if number == last {
            decoder.finish();
        }
        while decoder.next(&mut record)? {
            let field = |index: usize| {
                record
                    .field(index)
                    .map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
            };
            rows.push((0..columns).map(field).collect());
        }
    }
    Ok(rows)
}

fn text(options: &CopyOptions, columns: usize, input: &str) -> crate::Result<Rows> {
    decode(options, columns, input.as_bytes(), usize::MAX)
}

fn row(values: &[Option<&str>]) -> Vec<Option<String>> {
    values
        .iter()
        .map(|value| value.map(str::to_owned))
        .collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(
        columns in 1usize..4,
        format in prop_oneof![
            Just(CopyFormat::Text), Just(CopyFormat::Csv), Just(CopyFormat::Binary)
        ],
        piece in 1usize..40,
        delimiter in prop_oneof![Just(b','), Just(b'|'), Just(b'\t'), Just(b';')],
        escape in prop_oneof![Just(b'"'), Just(b'\\')],
        header in any::<bool>(),
        seed in prop::collection::vec(
            prop::option::of("[a-c ,;|\t\n\r\"'\\\\\\.Né]{0,6}"), 0..24
        ),
    ) {
        let mut options = CopyOptions::of_format(format);
        if format != CopyFormat::Binary {
            options.delimiter = delimiter;
            options.header = header;
        }
        options.escape = escape;
        let rows: Rows = seed.chunks_exact(columns).map(<[_]>::to_vec).collect();
        let bytes = encode(&options, &rows);
        // Without rows there is no header that could be told from one.
        prop_assume!(!rows.is_empty());
        // A csv of one column cannot tell a lone CR at its end from CR LF.
        prop_assume!(format != CopyFormat::Csv || !seed.iter().flatten().any(|text| text.contains('\r')));
        prop_assert_eq!(decode(&options, columns, &bytes, piece).unwrap(), rows);
    }

    #[test]
    fn no_input_makes_it_panic(
        format in prop_oneof![
            Just(CopyFormat::Text), Just(CopyFormat::Csv), Just(CopyFormat::Binary)
        ],
        mut bytes in prop::collection::vec(any::<u8>(), 0..80),
        signature in any::<bool>(),
    ) {
        if signature {
            bytes.splice(0..0, super::encode::BINARY_HEADER.iter().copied());
        }
        let options = CopyOptions::of_format(format);
        let mut decoder = CopyDecoder::new(options, names(2));
        let mut record = Record::default();
        decoder.push(&bytes).unwrap();
        decoder.finish();
        while let Ok(true) = decoder.next(&mut record) {}
    }
}

#[test]
fn the_text_format_by_example() {
    let options = CopyOptions::of_format(CopyFormat::Text);
    assert_eq!(
        text(
            &options,
            3,
            "1\t\\N\ta\\tb\\\\c\n2\t\t\\x41\\101\\z\n\\.\nignored"
        )
        .unwrap(),
        [
            row(&[Some("1"), None, Some("a\tb\\c")]),
            row(&[Some("2"), Some(""), Some("AAz")])
        ]
    );
    assert_eq!(
        text(&options, 1, "a\\\nb\r\n").unwrap(),
        [row(&[Some("a\nb")])]
    );
    assert_eq!(
        text(&options, 2, "1\n").unwrap_err().message,
        "missing data for column \"c1\""
    );
    assert_eq!(
        text(&options, 1, "1\t2\n").unwrap_err().message,
        "extra data after last expected column"
    );
}

#[test]
fn the_csv_format_by_example() {
    let mut options = CopyOptions::of_format(CopyFormat::Csv);
    options.header = true;
    assert_eq!(
        text(
            &options,
            2,
            "c0,c1\r\n1,\"a \"\"b\"\", c\r\nd\"\r\n,\"\"\r\n"
        )
        .unwrap(),
        [
            row(&[Some("1"), Some("a \"b\", c\r\nd")]),
            row(&[None, Some("")])
        ]
    );
    assert_eq!(
        text(&options, 1, "h\n\"a").unwrap_err().message,
        "unterminated CSV quoted field"
    );
    options.header_match = true;
    assert_eq!(
        text(&options, 1, "x\n1\n").unwrap_err().message,
        "column name mismatch in header line field 1: got \"x\", expected \"c0\""
    );
    options.header = false;
    options.force_not_null = ColumnChoice::Some(vec![0]);
    options.force_null = ColumnChoice::Some(vec![1]);
    assert_eq!(
        text(&options, 2, ",\"\"\n").unwrap(),
        [row(&[Some(""), None])]
    );
}

#[test]
fn the_line_of_a_record_counts_newlines_in_quotes() {
    let options = CopyOptions::of_format(CopyFormat::Csv);
    let mut decoder = CopyDecoder::new(options, names(1));
    decoder.push(b"\"a\nb\"\nc\n").unwrap();
    let mut record = Record::default();
    assert!(decoder.next(&mut record).unwrap());
    assert_eq!(record.line, 1);
    assert!(decoder.next(&mut record).unwrap());
    assert_eq!((record.line, decoder.line()), (3, 3));
}

#[test]
fn binary_input_is_checked() {
    let options = CopyOptions::of_format(CopyFormat::Binary);
    let wrong = |bytes: &[u8]| decode(&options, 1, bytes, 7).unwrap_err().message.clone();
    assert_eq!(wrong(&[0; 30]), "COPY file signature not recognized");
    let mut bytes = super::encode::BINARY_HEADER.to_vec();
    bytes.extend_from_slice(&[0, 2]);
    assert_eq!(wrong(&bytes), "row field count is 2, expected 1");
    bytes.truncate(bytes.len() - 2);
    bytes.extend_from_slice(&[0, 1, 0, 0, 0, 9, 1]);
    assert_eq!(wrong(&bytes), "unexpected EOF in COPY data");
}

#[test]
fn values_are_quoted_only_where_needed() {
    let mut options = CopyOptions::of_format(CopyFormat::Csv);
    let rows = vec![row(&[Some("a"), Some(""), None, Some("x,y"), Some("q\"")])];
    assert_eq!(encode(&options, &rows), b"a,\"\",,\"x,y\",\"q\"\"\"\n");
    options.force_quote = ColumnChoice::All;
    assert_eq!(encode(&options, &[row(&[Some("a")])].to_vec()), b"\"a\"\n");
    let options = CopyOptions::of_format(CopyFormat::Text);
    let rows = vec![row(&[Some("a\tb\n\\"), None])];
    assert_eq!(encode(&options, &rows), b"a\\tb\\n\\\\\t\\N\n");
}

#[test]
fn force_quote_leaves_the_header_alone() {
    let mut options = CopyOptions::of_format(CopyFormat::Csv);
    options.header = true;
    options.force_quote = ColumnChoice::All;
    let bytes = encode(&options, &vec![row(&[Some("1"), None])]);
    assert_eq!(String::from_utf8(bytes).unwrap(), "c0,c1\n\"1\",\n");
}
