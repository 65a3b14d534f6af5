//! The encodings of texts by name, and conversions between them.

use super::tables::{self, Upper};
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::text::{invalid_encoding, utf8};

/// An encoding.
struct Encoding {
    /// Its name.
    name: &'static str,
    /// Its names in small letters and digits alone.
    aliases: &'static [&'static str],
    /// The bytes of its longest characters.
    widest: i32,
    form: Form,
}

/// How an encoding's characters are found.
#[derive(Clone, Copy)]
enum Form {
    /// Any bytes.
    Ascii,
    /// UTF-8.
    Utf8,
    /// A character's number is its byte.
    Latin1,
    /// By a table.
    Upper(&'static Upper),
    /// Not converted here.
    Other,
}

/// The encodings by number.
#[rustfmt::skip]
const ENCODINGS: &[Encoding] = &[
    Encoding { name: "SQL_ASCII", aliases: &["sqlascii"], widest: 1, form: Form::Ascii },
    Encoding { name: "EUC_JP", aliases: &["eucjp"], widest: 3, form: Form::Other },
    Encoding { name: "EUC_CN", aliases: &["euccn"], widest: 3, form: Form::Other },
    Encoding { name: "EUC_KR", aliases: &["euckr"], widest: 3, form: Form::Other },
    Encoding { name: "EUC_TW", aliases: &["euctw"], widest: 4, form: Form::Other },
    Encoding { name: "EUC_JIS_2004", aliases: &["eucjis2004"], widest: 3, form: Form::Other },
    Encoding { name: "UTF8", aliases: &["unicode", "utf8"], widest: 4, form: Form::Utf8 },
    Encoding { name: "MULE_INTERNAL", aliases: &["muleinternal"], widest: 4, form: Form::Other },
    Encoding { name: "LATIN1", aliases: &["iso88591", "latin1"], widest: 1, form: Form::Latin1 },
    Encoding { name: "LATIN2", aliases: &["iso88592", "latin2"], widest: 1, form: Form::Upper(&tables::LATIN2) },
    Encoding { name: "LATIN3", aliases: &["iso88593", "latin3"], widest: 1, form: Form::Upper(&tables::LATIN3) },
    Encoding { name: "LATIN4", aliases: &["iso88594", "latin4"], widest: 1, form: Form::Upper(&tables::LATIN4) },
    Encoding { name: "LATIN5", aliases: &["iso88599", "latin5"], widest: 1, form: Form::Upper(&tables::LATIN5) },
    Encoding { name: "LATIN6", aliases: &["iso885910", "latin6"], widest: 1, form: Form::Upper(&tables::LATIN6) },
    Encoding { name: "LATIN7", aliases: &["iso885913", "latin7"], widest: 1, form: Form::Upper(&tables::LATIN7) },
    Encoding { name: "LATIN8", aliases: &["iso885914", "latin8"], widest: 1, form: Form::Upper(&tables::LATIN8) },
    Encoding { name: "LATIN9", aliases: &["iso885915", "latin9"], widest: 1, form: Form::Upper(&tables::LATIN9) },
    Encoding { name: "LATIN10", aliases: &["iso885916", "latin10"], widest: 1, form: Form::Upper(&tables::LATIN10) },
    Encoding { name: "WIN1256", aliases: &["win1256", "windows1256"], widest: 1, form: Form::Upper(&tables::WIN1256) },
    Encoding { name: "WIN1258", aliases: &["abc", "tcvn", "tcvn5712", "vscii", "win1258", "windows1258"], widest: 1, form: Form::Upper(&tables::WIN1258) },
    Encoding { name: "WIN866", aliases: &["alt", "win866", "windows866"], widest: 1, form: Form::Upper(&tables::WIN866) },
    Encoding { name: "WIN874", aliases: &["win874", "windows874"], widest: 1, form: Form::Upper(&tables::WIN874) },
    Encoding { name: "KOI8R", aliases: &["koi8", "koi8r"], widest: 1, form: Form::Upper(&tables::KOI8R) },
    Encoding { name: "WIN1251", aliases: &["win", "win1251", "windows1251"], widest: 1, form: Form::Upper(&tables::WIN1251) },
    Encoding { name: "WIN1252", aliases: &["win1252", "windows1252"], widest: 1, form: Form::Upper(&tables::WIN1252) },
    Encoding { name: "ISO_8859_5", aliases: &["iso88595"], widest: 1, form: Form::Upper(&tables::ISO_8859_5) },
    Encoding { name: "ISO_8859_6", aliases: &["iso88596"], widest: 1, form: Form::Upper(&tables::ISO_8859_6) },
    Encoding { name: "ISO_8859_7", aliases: &["iso88597"], widest: 1, form: Form::Upper(&tables::ISO_8859_7) },
    Encoding { name: "ISO_8859_8", aliases: &["iso88598"], widest: 1, form: Form::Upper(&tables::ISO_8859_8) },
    Encoding { name: "WIN1250", aliases: &["win1250", "windows1250"], widest: 1, form: Form::Upper(&tables::WIN1250) },
    Encoding { name: "WIN1253", aliases: &["win1253", "windows1253"], widest: 1, form: Form::Upper(&tables::WIN1253) },
    Encoding { name: "WIN1254", aliases: &["win1254", "windows1254"], widest: 1, form: Form::Upper(&tables::WIN1254) },
    Encoding { name: "WIN1255", aliases: &["win1255", "windows1255"], widest: 1, form: Form::Upper(&tables::WIN1255) },
    Encoding { name: "WIN1257", aliases: &["win1257", "windows1257"], widest: 1, form: Form::Upper(&tables::WIN1257) },
    Encoding { name: "KOI8U", aliases: &["koi8u"], widest: 1, form: Form::Upper(&tables::KOI8U) },
    Encoding { name: "SJIS", aliases: &["mskanji", "shiftjis", "sjis", "win932", "windows932"], widest: 2, form: Form::Other },
    Encoding { name: "BIG5", aliases: &["big5", "win950", "windows950"], widest: 2, form: Form::Other },
    Encoding { name: "GBK", aliases: &["gbk", "win936", "windows936"], widest: 2, form: Form::Other },
    Encoding { name: "UHC", aliases: &["uhc", "win949", "windows949"], widest: 2, form: Form::Other },
    Encoding { name: "GB18030", aliases: &["gb18030"], widest: 4, form: Form::Other },
    Encoding { name: "JOHAB", aliases: &["johab"], widest: 3, form: Form::Other },
    Encoding { name: "SHIFT_JIS_2004", aliases: &["shiftjis2004"], widest: 2, form: Form::Other },
];

/// These are converted among each other.
const CYRILLIC: [&str; 4] = ["KOI8R", "WIN1251", "WIN866", "ISO_8859_5"];
const LATIN2: [&str; 2] = ["LATIN2", "WIN1250"];

fn find(name: &str) -> Option<(usize, &'static Encoding)> {
    let letters = name.bytes().filter(u8::is_ascii_alphanumeric);
    let clean: Vec<u8> = letters.map(|byte| byte.to_ascii_lowercase()).collect();
    ENCODINGS.iter().enumerate().find(|(_, encoding)| {
        let mut aliases = encoding.aliases.iter();
        aliases.any(|alias| alias.as_bytes() == clean)
    })
}

fn named(name: &str, what: &str) -> Result<&'static Encoding> {
    match find(name) {
        Some((_, encoding)) => Ok(encoding),
        None => Err(QueryError::invalid_parameter(format!(
            "invalid {what}encoding name \"{name}\""
        ))),
    }
}

/// 22021 where the bytes are no text of the encoding.
fn verify(encoding: &Encoding, bytes: &[u8]) -> Result<()> {
    if let Form::Utf8 = encoding.form {
        return utf8(bytes).map(drop);
    }
    match bytes.iter().position(|byte| *byte == 0) {
        None => Ok(()),
        Some(zero) => Err(invalid_encoding(
            encoding.name,
            bytes.get(zero..).unwrap_or_default(),
        )),
    }
}

#[cold]
fn untranslatable(bytes: &[u8], from: &Encoding, to: &Encoding) -> QueryError {
    let shown: Vec<String> = bytes.iter().map(|byte| format!("0x{byte:02x}")).collect();
    QueryError::new(
        "22P05",
        format!(
            "character with byte sequence {} in encoding \"{}\" has no equivalent in encoding \"{}\"",
            shown.join(" "),
            from.name,
            to.name
        ),
    )
}

/// The character of a byte.
fn decoded(form: Form, byte: u8) -> Option<char> {
    match form {
        Form::Upper(upper) if byte >= 0x80 => {
            let number = upper[usize::from(byte - 0x80)];
            if number == 0 {
                return None;
            }
            char::from_u32(u32::from(number))
        }
        _ => Some(char::from(byte)),
    }
}

/// The byte of a character.
fn encoded(form: Form, c: char) -> Option<u8> {
    if c.is_ascii() {
        return u8::try_from(c).ok();
    }
    match form {
        Form::Latin1 => u8::try_from(c).ok(),
        Form::Upper(upper) => {
            let number = u16::try_from(u32::from(c)).ok()?;
            let at = upper.iter().position(|entry| *entry == number)?;
            u8::try_from(at + 0x80).ok()
        }
        _ => None,
    }
}

fn convert_bytes(call: &Call<'_>, bytes: &[u8], from: &Encoding, to: &Encoding) -> Result<Vec<u8>> {
    verify(from, bytes)?;
    if bytes.is_empty() || from.name == to.name || matches!(to.form, Form::Ascii) {
        return Ok(bytes.to_vec());
    }
    if let Form::Ascii = from.form {
        verify(to, bytes)?;
        return Ok(bytes.to_vec());
    }
    let within = |family: &[&str]| family.contains(&from.name) && family.contains(&to.name);
    let single = |form: Form| matches!(form, Form::Latin1 | Form::Upper(_));
    let mut made = Vec::with_capacity(bytes.len());
    match (from.form, to.form) {
        (Form::Utf8, form) if single(form) => {
            for c in utf8(bytes)?.chars() {
                match encoded(form, c) {
                    Some(byte) => made.push(byte),
                    None => {
                        let c = c.encode_utf8(&mut [0; 4]).as_bytes().to_vec();
                        return Err(untranslatable(&c, from, to));
                    }
                }
            }
        }
        (form, Form::Utf8) if single(form) => {
            call.room(bytes.len().saturating_mul(3))?;
            for byte in bytes {
                let Some(c) = decoded(form, *byte) else {
                    return Err(untranslatable(&[*byte], from, to));
                };
                made.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        (form, other) if within(&CYRILLIC) || within(&LATIN2) => {
            for byte in bytes {
                let Some(byte) = decoded(form, *byte).and_then(|c| encoded(other, c)) else {
                    return Err(untranslatable(&[*byte], from, to));
                };
                made.push(byte);
            }
        }
        _ => {
            return Err(QueryError::new(
                "42883",
                format!(
                    "default conversion function for encoding \"{}\" to \"{}\" does not exist",
                    from.name, to.name
                ),
            ));
        }
    }
    Ok(made)
}

/// The encoding of all texts here.
fn ours() -> Result<&'static Encoding> {
    named("utf8", "")
}

pub(super) fn convert(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let from = named(a[1].as_text(), "source ")?;
    let to = named(a[2].as_text(), "destination ")?;
    convert_bytes(call, a[0].as_bytes(), from, to).map(Datum::bytes)
}

pub(super) fn convert_from(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let from = named(a[1].as_text(), "source ")?;
    let bytes = convert_bytes(call, a[0].as_bytes(), from, ours()?)?;
    Ok(Datum::text(utf8(&bytes)?))
}

pub(super) fn convert_to(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let to = named(a[1].as_text(), "destination ")?;
    convert_bytes(call, a[0].as_text().as_bytes(), ours()?, to).map(Datum::bytes)
}

pub(super) fn length_in(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let encoding = named(a[1].as_text(), "")?;
    let bytes = a[0].as_bytes();
    verify(encoding, bytes)?;
    let length = match encoding.form {
        Form::Utf8 => utf8(bytes)?.chars().count(),
        _ => bytes.len(),
    };
    Ok(Datum::Int4(i32::try_from(length).unwrap_or(i32::MAX)))
}

pub(super) fn database_encoding(_: &Call<'_>, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(ours()?.name))
}

pub(super) fn number_of(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let number = find(a[0].as_text()).and_then(|(number, _)| i32::try_from(number).ok());
    Ok(Datum::Int4(number.unwrap_or(-1)))
}

fn by_number(number: i32) -> Option<&'static Encoding> {
    ENCODINGS.get(usize::try_from(number).ok()?)
}

pub(super) fn name_of(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(
        by_number(a[0].as_int4()).map_or("", |encoding| encoding.name),
    ))
}

pub(super) fn widest(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    Ok(by_number(a[0].as_int4()).map_or(Datum::Null, |encoding| Datum::Int4(encoding.widest)))
}

/// The letters that characters are without their marks, from byte 160 or 128 on.
const PLAIN: [(&str, u8, &[u8]); 4] = [
    (
        "LATIN1",
        160,
        b"  cL Y  \"Ca  -R     'u .,      ?AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty",
    ),
    (
        "LATIN2",
        160,
        b" A L LS \"SSTZ-ZZ a,l'ls ,sstz\"zzRAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt.",
    ),
    (
        "LATIN9",
        160,
        b"  cL YS sCa  -R     Zu .z   EeY?AAAAAAACEEEEIIII NOOOOOxOUUUUYTBaaaaaaaceeeeiiii nooooo/ouuuuyty",
    ),
    (
        "WIN1250",
        128,
        b"  ' \"    %S<STZZ `'\"\".--  s>stzz   L A  \"CS  -RZ  ,l'u .,as L\"lzRAAAALCCCEEEEIIDDNNOOOOxRUUUUYTBraaaalccceeeeiiddnnoooo/ruuuuyt ",
    ),
];

/// The text's bytes, taken for those of another encoding, without their marks.
fn plain(text: &str, encoding: &Encoding) -> Result<Datum> {
    let Some((_, first, letters)) = PLAIN.iter().find(|(name, ..)| *name == encoding.name) else {
        return Err(QueryError::unsupported(
            format!(
                "encoding conversion from {} to ASCII not supported",
                encoding.name
            ),
            "Convert it to UTF8.",
        ));
    };
    let plain = text.bytes().map(|byte| match byte {
        0..0x80 => char::from(byte),
        _ => byte
            .checked_sub(*first)
            .and_then(|at| letters.get(usize::from(at)))
            .map_or(' ', |letter| char::from(*letter)),
    });
    Ok(Datum::text(plain.collect::<String>()))
}

pub(super) fn to_ascii(_: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let unknown = |message: String| QueryError::new("42704", message);
    let encoding = match a.get(1) {
        None => ours()?,
        Some(Datum::Int4(number)) => by_number(*number)
            .ok_or_else(|| unknown(format!("{number} is not a valid encoding code")))?,
        Some(name) => {
            let name = name.as_text();
            let found = find(name).map(|(_, encoding)| encoding);
            found.ok_or_else(|| unknown(format!("{name} is not a valid encoding name")))?
        }
    };
    plain(a[0].as_text(), encoding)
}
