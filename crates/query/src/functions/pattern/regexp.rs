//! The functions and operators of regular expressions.

use std::cell::RefCell;

use super::regex::{Flags, Regex, Span, Text};
use super::similar;
use crate::call::Call;
use crate::datum::Datum;
use crate::error::{QueryError, Result};
use crate::types::array::Array;
use crate::types::ids;

/// So many patterns does a thread keep.
const KEPT: usize = 32;

struct Entry {
    pattern: String,
    flags: Flags,
    regex: Box<Regex>,
}

thread_local! {
    /// The patterns that were used last, the latest at the end.
    static PATTERNS: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with a pattern that is ready to be looked for.
pub(super) fn with_regex<T>(
    pattern: &str,
    flags: Flags,
    work: impl FnOnce(&mut Regex) -> Result<T>,
) -> Result<T> {
    let known = PATTERNS.with_borrow_mut(|entries| {
        let same = |entry: &Entry| entry.flags == flags && entry.pattern == pattern;
        entries.iter().rposition(same).map(|at| entries.remove(at))
    });
    let mut entry = match known {
        Some(entry) => entry,
        None => Entry {
            regex: Box::new(Regex::new(pattern, flags)?),
            pattern: pattern.to_owned(),
            flags,
        },
    };
    let result = work(&mut entry.regex);
    PATTERNS.with_borrow_mut(|entries| {
        if entries.len() >= KEPT {
            entries.remove(0);
        }
        entries.push(entry);
    });
    result
}

fn is_match(call: &Call<'_>, a: &[Datum], flags: Flags) -> Result<bool> {
    let text = a[0].as_text();
    with_regex(a[1].as_text(), flags, |regex| regex.is_match(call, text))
}

pub(super) fn matches(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    is_match(call, a, Flags::default()).map(Datum::Bool)
}

pub(super) fn matches_any_case(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let flags = Flags {
        any_case: true,
        ..Flags::default()
    };
    is_match(call, a, flags).map(Datum::Bool)
}

#[cold]
fn invalid_option(option: char) -> QueryError {
    QueryError::invalid_parameter(format!("invalid regular expression option: \"{option}\""))
}

/// Reads options: how the pattern is meant, and whether all matches are.
fn options(text: Option<&Datum>) -> Result<(Flags, bool)> {
    let (mut flags, mut global) = (Flags::default(), false);
    for option in text.map_or("", Datum::as_text).chars() {
        let mut kind = |quote| {
            flags.extended = false;
            flags.advanced = false;
            flags.quote = quote;
        };
        match option {
            'g' => global = true,
            // PostgreSQL means extended expressions by `e`, and takes basic ones.
            'b' | 'e' => kind(false),
            'q' => kind(true),
            _ => flags.set(option).ok_or_else(|| invalid_option(option))?,
        }
    }
    Ok((flags, global))
}

/// As `options`, for functions that find all matches or one in any case.
fn options_of_one(text: Option<&Datum>, function: &str) -> Result<Flags> {
    let (flags, global) = options(text)?;
    if global {
        let error = QueryError::invalid_parameter(format!(
            "{function}() does not support the \"global\" option"
        ));
        if function == "regexp_match" {
            return Err(error.with_hint("Use the regexp_matches function instead."));
        }
        return Err(error);
    }
    Ok(flags)
}

/// A number among the arguments, which must be as large as this; where it is missing it is 1.
fn number(a: &[Datum], at: usize, name: &str, least: i32, missing: i32) -> Result<usize> {
    let value = a.get(at).map_or(missing, Datum::as_int4);
    if value < least {
        return Err(QueryError::invalid_parameter(format!(
            "invalid value for parameter \"{name}\": {value}"
        )));
    }
    Ok(usize::try_from(value).unwrap_or(0))
}

/// The matches of a pattern in a text.
struct Found<'a> {
    text: Text<'a>,
    /// How many places each match has.
    each: usize,
    /// The groups' places of each match, or the match's own.
    spans: Vec<Option<Span>>,
}

/// How matches are looked for.
#[derive(Clone, Copy, Default)]
struct Search {
    start: usize,
    global: bool,
    /// Groups' places are wanted.
    groups: bool,
    /// Empty matches at the ends, and after another match, do not count.
    no_empty: bool,
}

fn find<'a>(
    call: &Call<'_>,
    text: &'a str,
    pattern: &str,
    flags: Flags,
    search: Search,
) -> Result<Found<'a>> {
    with_regex(pattern, flags, |regex| {
        let text = regex.text(call, text)?;
        let groups = search.groups && regex.groups() > 0;
        let each = if groups { regex.groups() } else { 1 };
        let wanted = if groups { each + 1 } else { 1 };
        let (mut start, mut before) = (search.start, 0);
        let mut spans = Vec::new();
        while let Some(mut found) = regex.find(call, &text, start, wanted)? {
            let (from, until) = found.first().copied().flatten().unwrap_or((start, start));
            if !search.no_empty || from < text.length() && until > before {
                found.resize(wanted, None);
                spans.extend(found.drain(usize::from(groups)..));
                call.room(spans.len().saturating_mul(size_of::<Option<Span>>()))?;
            }
            before = until;
            if !search.global {
                break;
            }
            start = until + usize::from(from == until);
            if start > text.length() {
                break;
            }
        }
        Ok(Found { text, each, spans })
    })
}

impl Found<'_> {
    fn count(&self) -> usize {
        self.spans.len() / self.each
    }

    fn part(&self, span: Option<Span>) -> Datum {
        span.map_or(Datum::Null, |(from, until)| {
            Datum::text(self.text.part(from, until))
        })
    }

    /// The texts of a match.
    fn texts(&self, number: usize) -> Datum {
        let first = number * self.each;
        let spans = self.spans.iter().skip(first).take(self.each);
        let texts = spans.map(|span| self.part(*span)).collect();
        Datum::Array(Array::of(ids::TEXT, texts).into())
    }

    /// The texts between the matches.
    fn between(&self) -> Vec<Datum> {
        let mut start = 0;
        let mut parts = Vec::with_capacity(self.spans.len() + 1);
        for (from, until) in self.spans.iter().flatten() {
            parts.push(Datum::text(self.text.part(start, *from)));
            start = *until;
        }
        parts.push(Datum::text(self.text.part(start, self.text.length())));
        parts
    }

    /// The place of a match or, from 1 on, of one of its groups; `None` where there are not so many.
    fn place(&self, number: usize, group: usize) -> Option<Span> {
        if number > self.count() || group > self.each {
            return None;
        }
        let at = (number - 1) * self.each + group.saturating_sub(1);
        self.spans.get(at).copied().flatten()
    }
}

pub(super) fn substring(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    first_part(call, a[0].as_text(), a[1].as_text())
}

/// The first group of the first match, or all of that where there are no groups.
fn first_part(call: &Call<'_>, text: &str, pattern: &str) -> Result<Datum> {
    with_regex(pattern, Flags::default(), |regex| {
        let text = regex.text(call, text)?;
        let wanted = if regex.groups() > 0 { 2 } else { 1 };
        let found = regex.find(call, &text, 0, wanted)?;
        let span = found.and_then(|found| found.get(wanted - 1).copied().flatten());
        Ok(span.map_or(Datum::Null, |(from, until)| {
            Datum::text(text.part(from, until))
        }))
    })
}

pub(super) fn substring_similar(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let pattern = similar::with_escape(call, a[1].as_text(), a[2].as_text())?;
    first_part(call, a[0].as_text(), &pattern)
}

pub(super) fn regexp_like(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let flags = options_of_one(a.get(2), "regexp_like")?;
    is_match(call, a, flags).map(Datum::Bool)
}

pub(super) fn regexp_match(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let flags = options_of_one(a.get(2), "regexp_match")?;
    let search = Search {
        groups: true,
        ..Search::default()
    };
    let found = find(call, a[0].as_text(), a[1].as_text(), flags, search)?;
    if found.count() == 0 {
        return Ok(Datum::Null);
    }
    Ok(found.texts(0))
}

pub(super) fn regexp_matches(call: &Call<'_>, a: &[Datum]) -> Result<Vec<Datum>> {
    let (flags, global) = options(a.get(2))?;
    let search = Search {
        groups: true,
        global,
        ..Search::default()
    };
    let found = find(call, a[0].as_text(), a[1].as_text(), flags, search)?;
    Ok((0..found.count())
        .map(|number| found.texts(number))
        .collect())
}

fn split(call: &Call<'_>, a: &[Datum], function: &str) -> Result<Vec<Datum>> {
    let flags = options_of_one(a.get(2), function)?;
    let search = Search {
        global: true,
        no_empty: true,
        ..Search::default()
    };
    Ok(find(call, a[0].as_text(), a[1].as_text(), flags, search)?.between())
}

pub(super) fn split_to_table(call: &Call<'_>, a: &[Datum]) -> Result<Vec<Datum>> {
    split(call, a, "regexp_split_to_table")
}

pub(super) fn split_to_array(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let parts = split(call, a, "regexp_split_to_array")?;
    Ok(Datum::Array(Array::of(ids::TEXT, parts).into()))
}

pub(super) fn regexp_count(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let start = number(a, 2, "start", 1, 1)? - 1;
    let flags = options_of_one(a.get(3), "regexp_count")?;
    let search = Search {
        start,
        global: true,
        ..Search::default()
    };
    let count = find(call, a[0].as_text(), a[1].as_text(), flags, search)?.count();
    Ok(Datum::Int4(i32::try_from(count).unwrap_or(i32::MAX)))
}

pub(super) fn regexp_instr(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let start = number(a, 2, "start", 1, 1)? - 1;
    let times = number(a, 3, "n", 1, 1)?;
    let end = number(a, 4, "endoption", 0, 0)?;
    if end > 1 {
        return Err(QueryError::invalid_parameter(format!(
            "invalid value for parameter \"endoption\": {end}"
        )));
    }
    let group = number(a, 6, "subexpr", 0, 0)?;
    let flags = options_of_one(a.get(5), "regexp_instr")?;
    let search = Search {
        start,
        global: true,
        groups: group > 0,
        ..Search::default()
    };
    let found = find(call, a[0].as_text(), a[1].as_text(), flags, search)?;
    let place = found.place(times, group).map_or(
        0,
        |(from, until)| {
            if end == 1 { until + 1 } else { from + 1 }
        },
    );
    Ok(Datum::Int4(i32::try_from(place).unwrap_or(i32::MAX)))
}

pub(super) fn regexp_substr(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let start = number(a, 2, "start", 1, 1)? - 1;
    let times = number(a, 3, "n", 1, 1)?;
    let group = number(a, 5, "subexpr", 0, 0)?;
    let flags = options_of_one(a.get(4), "regexp_substr")?;
    let search = Search {
        start,
        global: true,
        groups: group > 0,
        ..Search::default()
    };
    let found = find(call, a[0].as_text(), a[1].as_text(), flags, search)?;
    Ok(found.part(found.place(times, group)))
}

/// How much of a match a replacement names: nothing, all, or groups.
fn spans_wanted(replacement: &str) -> usize {
    let mut characters = replacement.chars();
    let mut wanted = 1;
    while let Some(c) = characters.next() {
        if c == '\\' && characters.next().is_some_and(|c| ('1'..='9').contains(&c)) {
            wanted = 10;
        }
    }
    wanted
}

/// Appends a replacement with the parts of a match that it names.
fn append(out: &mut String, replacement: &str, text: &Text<'_>, spans: &[Option<Span>]) {
    let mut rest = replacement;
    while let Some(at) = rest.find('\\') {
        out.push_str(rest.get(..at).unwrap_or_default());
        let after = rest.get(at + 1..).unwrap_or_default();
        let named = match after.chars().next() {
            Some('&') => 0,
            Some(c @ '1'..='9') => usize::try_from(c.to_digit(10).unwrap_or(0)).unwrap_or(0),
            Some('\\') => {
                out.push('\\');
                rest = after.get(1..).unwrap_or_default();
                continue;
            }
            _ => {
                out.push('\\');
                rest = after;
                continue;
            }
        };
        if let Some((from, until)) = spans.get(named).copied().flatten() {
            out.push_str(text.part(from, until));
        }
        rest = after.get(1..).unwrap_or_default();
    }
    out.push_str(rest);
}

/// Replaces the match of this number, or all for 0.
fn replace(
    call: &Call<'_>,
    a: &[Datum],
    flags: Flags,
    mut start: usize,
    times: usize,
) -> Result<Datum> {
    let replacement = a[2].as_text();
    let wanted = spans_wanted(replacement);
    with_regex(a[1].as_text(), flags, |regex| {
        let text = regex.text(call, a[0].as_text())?;
        let mut out = String::new();
        let (mut done, mut count, mut any) = (0, 0, false);
        while let Some(spans) = regex.find(call, &text, start, wanted)? {
            let (from, until) = spans.first().copied().flatten().unwrap_or((start, start));
            count += 1;
            start = until + usize::from(from == until);
            if times == 0 || count == times {
                any = true;
                out.push_str(text.part(done, from));
                append(&mut out, replacement, &text, &spans);
                call.room(out.len())?;
                done = until;
                if times > 0 {
                    break;
                }
            }
            if start > text.length() {
                break;
            }
        }
        if !any {
            return Ok(a[0].clone());
        }
        out.push_str(text.part(done, text.length()));
        call.room(out.len())?;
        Ok(Datum::text(out))
    })
}

pub(super) fn regexp_replace(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    if let Some(first) = a
        .get(3)
        .and_then(|options| options.as_text().chars().next())
        && first.is_ascii_digit()
    {
        return Err(invalid_option(first).with_hint(
            "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer explicitly.",
        ));
    }
    let (flags, global) = options(a.get(3))?;
    replace(call, a, flags, 0, usize::from(!global))
}

pub(super) fn regexp_replace_from(call: &Call<'_>, a: &[Datum]) -> Result<Datum> {
    let start = number(a, 3, "start", 1, 1)? - 1;
    let times = number(a, 4, "n", 0, 1)?;
    let (flags, _) = options(a.get(5))?;
    replace(call, a, flags, start, times)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Plain;
    use crate::types::ids;

    fn first(text: &str, pattern: &str) -> Option<Vec<Option<String>>> {
        let environment = Plain::default();
        let call = Call::new(&environment, &[], ids::TEXT);
        let a = [Datum::text(text), Datum::text(pattern)];
        match regexp_match(&call, &a).expect("a pattern") {
            Datum::Array(array) => {
                let texts = array.elements.iter().map(|element| match element {
                    Datum::Text(text) => Some(text.to_string()),
                    _ => None,
                });
                Some(texts.collect())
            }
            _ => None,
        }
    }

    fn some(texts: &[&str]) -> Option<Vec<Option<String>>> {
        let texts = texts.iter().map(|text| Some((*text).to_owned()));
        Some(texts.collect())
    }

    #[test]
    fn matches_are_the_longest_and_shared_out_from_the_left() {
        assert_eq!(first("foobar", "foo|foobar"), some(&["foobar"]));
        assert_eq!(first("abcd", "(a|ab)(c|bcd)(d*)"), some(&["ab", "c", "d"]));
        // The first quantifier decides for the whole expression.
        assert_eq!(first("XY1234Z", "Y*?[0-9]{1,3}"), some(&["Y1"]));
        assert_eq!(first("XY1234Z", "Y*([0-9]{1,3}?)"), some(&["123"]));
    }

    #[test]
    fn what_others_have_not_is_found() {
        assert_eq!(first("abcabc", "(\\w+)\\1"), some(&["abc"]));
        assert_eq!(first("foobar", "(?<=foo)b.*"), some(&["bar"]));
        assert_eq!(first("a cat", "\\mcat\\M"), some(&["cat"]));
        assert_eq!(first("b", "(a)|b"), Some(vec![None]));
    }

    #[test]
    fn deep_patterns_are_refused_and_long_ones_are_not() {
        let deep = "(".repeat(100_000);
        let environment = Plain::default();
        let call = Call::new(&environment, &[], ids::TEXT);
        let error = regexp_match(&call, &[Datum::text("a"), Datum::text(deep)]);
        assert_eq!(error.expect_err("too deep").sqlstate, "2201B");
        let groups = "(a)".repeat(300);
        let text = "a".repeat(300);
        assert_eq!(first(&text, &groups).map(|found| found.len()), Some(300));
    }
}
