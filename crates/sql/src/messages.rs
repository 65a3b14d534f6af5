//! The messages a PostgreSQL server sends, written into a buffer: a tag, the
//! length, the body. The session writes answers with them, the server what
//! belongs to the connection. Nothing here reads or waits; a message is whole
//! in the buffer when its function returns.

use bytes::{BufMut, BytesMut};

use crate::error::SqlError;
use crate::output::{Formats, OutputColumn};

/// Writes one message: `tag`, the length, then what `body` writes.
pub fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(tag);
    let start = out.len();
    out.put_u32(0);
    body(out);
    let length = u32::try_from(out.len() - start).expect("a message fits 4 GiB");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Writes a string and its terminating zero; a zero inside would end the
/// string early, so what follows it is left out.
pub fn put_cstring(out: &mut BytesMut, text: &str) {
    let end = text.find('\0').unwrap_or(text.len());
    out.put_slice(&text.as_bytes()[..end]);
    out.put_u8(0);
}

/// AuthenticationOk.
pub fn authentication_ok(out: &mut BytesMut) {
    message(out, b'R', |out| out.put_u32(0));
}

/// AuthenticationSASL: the mechanisms to choose from.
pub fn authentication_sasl(out: &mut BytesMut, mechanisms: &[&str]) {
    message(out, b'R', |out| {
        out.put_u32(10);
        for mechanism in mechanisms {
            put_cstring(out, mechanism);
        }
        out.put_u8(0);
    });
}

/// AuthenticationSASLContinue, or with `last` AuthenticationSASLFinal.
pub fn authentication_sasl_data(out: &mut BytesMut, last: bool, data: &str) {
    message(out, b'R', |out| {
        out.put_u32(if last { 12 } else { 11 });
        out.put_slice(data.as_bytes());
    });
}

/// ParameterStatus: the value of a reported setting.
pub fn parameter_status(out: &mut BytesMut, name: &str, value: &str) {
    message(out, b'S', |out| {
        put_cstring(out, name);
        put_cstring(out, value);
    });
}

/// BackendKeyData: what a CancelRequest must show.
pub fn backend_key_data(out: &mut BytesMut, process_id: i32, secret: i32) {
    message(out, b'K', |out| {
        out.put_i32(process_id);
        out.put_i32(secret);
    });
}

/// NegotiateProtocolVersion: we speak 3.0 and do not know these options.
pub fn negotiate_protocol_version(out: &mut BytesMut, minor: u32, unknown: &[&str]) {
    message(out, b'v', |out| {
        out.put_u32(minor);
        out.put_u32(unknown.len() as u32);
        for name in unknown {
            put_cstring(out, name);
        }
    });
}

/// ReadyForQuery with the transaction status `I`, `T` or `E`.
pub fn ready_for_query(out: &mut BytesMut, status: u8) {
    message(out, b'Z', |out| out.put_u8(status));
}

/// RowDescription.
pub fn row_description(out: &mut BytesMut, columns: &[OutputColumn], formats: &Formats) {
    message(out, b'T', |out| {
        out.put_u16(columns.len() as u16);
        for (index, column) in columns.iter().enumerate() {
            put_cstring(out, &column.name);
            out.put_u32(column.table_oid);
            out.put_i16(column.column_number);
            out.put_u32(column.type_oid);
            out.put_i16(column.type_size);
            out.put_i32(column.type_modifier);
            out.put_i16(i16::from(formats.is_binary(index)));
        }
    });
}

/// NoData: the statement returns no rows.
pub fn no_data(out: &mut BytesMut) {
    message(out, b'n', |_| {});
}

/// ParameterDescription: the types of the parameters.
pub fn parameter_description(out: &mut BytesMut, oids: impl ExactSizeIterator<Item = u32>) {
    message(out, b't', |out| {
        out.put_u16(oids.len() as u16);
        for oid in oids {
            out.put_u32(oid);
        }
    });
}

/// CommandComplete.
pub fn command_complete(out: &mut BytesMut, tag: &str) {
    message(out, b'C', |out| put_cstring(out, tag));
}

/// EmptyQueryResponse.
pub fn empty_query_response(out: &mut BytesMut) {
    message(out, b'I', |_| {});
}

/// PortalSuspended: more rows are there.
pub fn portal_suspended(out: &mut BytesMut) {
    message(out, b's', |_| {});
}

/// ParseComplete.
pub fn parse_complete(out: &mut BytesMut) {
    message(out, b'1', |_| {});
}

/// BindComplete.
pub fn bind_complete(out: &mut BytesMut) {
    message(out, b'2', |_| {});
}

/// CloseComplete.
pub fn close_complete(out: &mut BytesMut) {
    message(out, b'3', |_| {});
}

/// ErrorResponse; `severity` is ERROR, FATAL or PANIC.
pub fn error_response(out: &mut BytesMut, severity: &str, error: &SqlError) {
    message(out, b'E', |out| fields(out, severity, error));
}

/// NoticeResponse; `severity` is WARNING, NOTICE, INFO, LOG or DEBUG.
pub fn notice_response(out: &mut BytesMut, severity: &str, notice: &SqlError) {
    message(out, b'N', |out| fields(out, severity, notice));
}

/// NotificationResponse: what session `process_id` has told the listeners of a channel.
pub fn notification(out: &mut BytesMut, process_id: i32, channel: &str, payload: &str) {
    message(out, b'A', |out| {
        out.put_i32(process_id);
        put_cstring(out, channel);
        put_cstring(out, payload);
    });
}

fn fields(out: &mut BytesMut, severity: &str, error: &SqlError) {
    let mut field = |tag: u8, text: Option<&str>| {
        if let Some(text) = text {
            out.put_u8(tag);
            put_cstring(out, text);
        }
    };
    field(b'S', Some(severity));
    field(b'V', Some(severity));
    field(b'C', Some(error.sqlstate));
    field(b'M', Some(&error.message));
    field(b'D', error.detail.as_deref());
    field(b'H', error.hint.as_deref());
    let position = error.position.map(|position| position.to_string());
    field(b'P', position.as_deref());
    field(b'W', error.context.as_deref());
    field(b's', error.schema.as_deref());
    field(b't', error.table.as_deref());
    field(b'c', error.column.as_deref());
    field(b'n', error.constraint.as_deref());
    out.put_u8(0);
}

/// CopyInResponse: send the rows, all columns in one format.
pub fn copy_in_response(out: &mut BytesMut, binary: bool, columns: usize) {
    copy_response(out, b'G', binary, columns);
}

/// CopyOutResponse: the rows follow, all columns in one format.
pub fn copy_out_response(out: &mut BytesMut, binary: bool, columns: usize) {
    copy_response(out, b'H', binary, columns);
}

fn copy_response(out: &mut BytesMut, tag: u8, binary: bool, columns: usize) {
    message(out, tag, |out| {
        out.put_u8(u8::from(binary));
        out.put_u16(columns as u16);
        for _ in 0..columns {
            out.put_u16(u16::from(binary));
        }
    });
}

/// CopyData: a piece of the copied rows.
pub fn copy_data(out: &mut BytesMut, data: &[u8]) {
    message(out, b'd', |out| out.put_slice(data));
}

/// CopyDone: no more rows.
pub fn copy_done(out: &mut BytesMut) {
    message(out, b'c', |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_carries_its_length_without_the_tag() {
        let mut out = BytesMut::new();
        command_complete(&mut out, "SELECT 1");
        assert_eq!(&out[..], b"C\0\0\0\x0dSELECT 1\0");
    }

    #[test]
    fn an_error_carries_its_fields_in_order() {
        let mut out = BytesMut::new();
        let error = SqlError::undefined_table("x").with_position(Some(15));
        error_response(&mut out, "ERROR", &error);
        let body = String::from_utf8_lossy(&out[5..]).replace('\0', "|");
        assert_eq!(
            body,
            "SERROR|VERROR|C42P01|Mrelation \"x\" does not exist|P15||"
        );
    }

    #[test]
    fn a_zero_byte_in_a_string_cannot_break_the_frame() {
        let mut out = BytesMut::new();
        parameter_status(&mut out, "application_name", "a\0b");
        assert_eq!(&out[5..], b"application_name\0a\0");
    }
}
