//! PostgreSQL's regular expressions. All that they can do is here, with its
//! rules for which match is found and how parts share it; others' engines
//! know neither.

mod dfa;
mod lex;
mod nfa;
mod parse;
mod set;

use self::dfa::{Machine, Subject};
pub(super) use self::lex::Flags;
use self::lex::TOO_BIG;
use self::nfa::Colors;
use self::parse::{Node, Parsed, REFERS, SHORTER, Shape, UNBOUNDED};
use crate::call::Call;
use crate::error::{QueryError, Result};

/// So deep may a match be taken apart.
const DEPTH_MAX: usize = 1500;

/// The places of a match's beginning and end, in characters.
pub(super) type Span = (usize, usize);

/// A pattern, ready to be looked for.
#[derive(Debug)]
pub(super) struct Regex {
    parsed: Parsed,
    flags: Flags,
    colors: Colors,
    machine: Machine,
    /// Finds where a match may be.
    search: usize,
    /// The whole pattern.
    whole: usize,
    /// The automata of the tree's parts, as far as they are made.
    parts: Vec<Option<usize>>,
}

/// A text with the colours of a pattern.
#[derive(Debug)]
pub(super) struct Text<'a> {
    text: &'a str,
    subject: Subject,
    /// Where each character begins, unless all are a byte.
    offsets: Option<Vec<usize>>,
}

impl<'a> Text<'a> {
    /// How many characters it has.
    pub(super) fn length(&self) -> usize {
        self.subject.colors.len()
    }

    /// The part from a character to another.
    pub(super) fn part(&self, from: usize, until: usize) -> &'a str {
        let place = |at: usize| match &self.offsets {
            Some(offsets) => offsets.get(at).copied().unwrap_or(self.text.len()),
            None => at.min(self.text.len()),
        };
        self.text.get(place(from)..place(until)).unwrap_or_default()
    }
}

#[cold]
fn invalid(fault: &str) -> QueryError {
    QueryError::new("2201B", format!("invalid regular expression: {fault}"))
}

#[cold]
fn failed(fault: &str) -> QueryError {
    QueryError::new("2201B", format!("regular expression failed: {fault}"))
}

/// A match that is taken apart.
struct Dissection<'a, 'b> {
    regex: &'a mut Regex,
    call: &'a Call<'b>,
    subject: &'a Subject,
    spans: Vec<Option<Span>>,
    depth: usize,
}

impl Regex {
    /// Reads a pattern.
    ///
    /// # Errors
    /// 2201B for what is none.
    pub(super) fn new(pattern: &str, flags: Flags) -> Result<Self> {
        let (parsed, flags) = parse::parse(pattern, flags).map_err(invalid)?;
        let colors = Colors::new(&parsed.sets).map_err(invalid)?;
        let mut machine = Machine::default();
        let mut add = |piece, search| -> Result<usize, lex::Fault> {
            Ok(machine.add(nfa::build(&parsed, piece, search)?, colors.count))
        };
        let root = parsed.nodes[parsed.root].piece;
        let search = add(root, true).map_err(invalid)?;
        let whole = add(root, false).map_err(invalid)?;
        let mut looks = Vec::new();
        for look in &parsed.looks {
            let dfa = add(look.piece, !look.kind.ahead).map_err(invalid)?;
            looks.push((dfa, look.kind.ahead, look.kind.negative));
        }
        machine.looks = looks;
        let parts = vec![None; parsed.nodes.len()];
        Ok(Self {
            parsed,
            flags,
            colors,
            machine,
            search,
            whole,
            parts,
        })
    }

    /// How many groups capture.
    pub(super) fn groups(&self) -> usize {
        self.parsed.groups.len() - 1
    }

    /// A text to look through.
    pub(super) fn text<'a>(&mut self, call: &Call<'_>, text: &'a str) -> Result<Text<'a>> {
        call.room(text.len().saturating_mul(2))?;
        self.machine.next_text();
        let mut subject = Subject::default();
        subject.colors.reserve(text.len());
        subject
            .colors
            .extend(text.chars().map(|c| self.colors.of(c)));
        if self.parsed.refers {
            call.room(text.len().saturating_mul(4))?;
            subject.characters.extend(text.chars());
        }
        let offsets = if subject.colors.len() == text.len() {
            None
        } else {
            call.room(text.len().saturating_mul(8))?;
            Some(text.char_indices().map(|(at, _)| at).collect())
        };
        Ok(Text {
            text,
            subject,
            offsets,
        })
    }

    /// Whether the pattern is anywhere in a text.
    pub(super) fn is_match(&mut self, call: &Call<'_>, text: &str) -> Result<bool> {
        if self.parsed.refers || !self.parsed.looks.is_empty() {
            let text = self.text(call, text)?;
            return Ok(self.find(call, &text, 0, 0)?.is_some());
        }
        let search = self.search;
        self.machine.finds(call, &self.colors, search, text)
    }

    /// Finds the first match from a character on: its place and those of
    /// so many groups. Nothing is said of places if none is asked for.
    pub(super) fn find(
        &mut self,
        call: &Call<'_>,
        text: &Text<'_>,
        start: usize,
        spans: usize,
    ) -> Result<Option<Vec<Option<Span>>>> {
        let subject = &text.subject;
        let end = subject.colors.len();
        if start > end {
            return Ok(None);
        }
        let root = self.parsed.root;
        let shorter = self.parsed.nodes[root].flags & SHORTER != 0;
        if self.parsed.refers {
            let mut dissection = Dissection {
                spans: vec![None; self.parsed.groups.len()],
                regex: self,
                call,
                subject,
                depth: 0,
            };
            let found = dissection.find(start, shorter)?;
            return Ok(found.then(|| {
                let mut found = dissection.spans;
                found.truncate(spans.max(1));
                found
            }));
        }
        let (search, whole) = (self.search, self.whole);
        let found = self
            .machine
            .search(call, &self.colors, subject, search, start)?;
        let Some((open, close)) = found else {
            return Ok(None);
        };
        if spans == 0 {
            return Ok(Some(Vec::new()));
        }
        for begin in open..=close {
            call.environment.check_interrupted()?;
            let (machine, colors) = (&mut self.machine, &self.colors);
            let found = if shorter {
                machine.shortest(call, colors, subject, whole, begin, begin, end)?
            } else {
                machine.longest(call, colors, subject, whole, begin, end)?
            };
            let Some(found) = found else {
                continue;
            };
            let mut all = vec![None; spans.min(self.parsed.groups.len())];
            if spans > 1 {
                let mut dissection = Dissection {
                    regex: self,
                    call,
                    subject,
                    spans: all,
                    depth: 0,
                };
                dissection.dissect(root, begin, found)?;
                all = dissection.spans;
            }
            all[0] = Some((begin, found));
            return Ok(Some(all));
        }
        Ok(None)
    }
}

impl Dissection<'_, '_> {
    /// Finds a match of a pattern that refers back, from a place on.
    fn find(&mut self, start: usize, shorter: bool) -> Result<bool> {
        let end = self.subject.colors.len();
        let (search, whole, root) = (self.regex.search, self.regex.whole, self.regex.parsed.root);
        let mut from = start;
        loop {
            let regex = &mut *self.regex;
            let found =
                regex
                    .machine
                    .search(self.call, &regex.colors, self.subject, search, from)?;
            let Some((open, close)) = found else {
                return Ok(false);
            };
            for begin in open..=close {
                let (mut least, mut most) = (begin, end);
                loop {
                    let regex = &mut *self.regex;
                    let (machine, colors) = (&mut regex.machine, &regex.colors);
                    let found = if shorter {
                        machine.shortest(
                            self.call,
                            colors,
                            self.subject,
                            whole,
                            begin,
                            least,
                            most,
                        )?
                    } else {
                        machine.longest(self.call, colors, self.subject, whole, begin, most)?
                    };
                    let Some(found) = found else {
                        break;
                    };
                    if self.dissect(root, begin, found)? {
                        self.spans[0] = Some((begin, found));
                        return Ok(true);
                    }
                    if shorter {
                        if found == most {
                            break;
                        }
                        least = found + 1;
                    } else {
                        if found == begin {
                            break;
                        }
                        most = found - 1;
                    }
                }
            }
            from = close + 1;
            if from >= end {
                return Ok(false);
            }
        }
    }

    fn node(&self, node: usize) -> &Node {
        &self.regex.parsed.nodes[node]
    }

    /// The automaton of a part.
    fn automaton(&mut self, node: usize) -> Result<usize> {
        if let Some(dfa) = self.regex.parts[node] {
            return Ok(dfa);
        }
        let piece = self.node(node).piece;
        let nfa = nfa::build(&self.regex.parsed, piece, false).map_err(failed)?;
        let dfa = self.regex.machine.add(nfa, self.regex.colors.count);
        self.regex.parts[node] = Some(dfa);
        Ok(dfa)
    }

    /// The text that a part refers to, if it does and its group has matched.
    fn referred(&self, node: usize) -> Option<(Span, u32, u32)> {
        let Shape::Reference { group, least, most } = self.node(node).shape else {
            return None;
        };
        let group = usize::try_from(group).ok()?;
        let span = self.spans.get(group).copied().flatten()?;
        Some((span, least, most))
    }

    fn longest(&mut self, node: usize, start: usize, stop: usize) -> Result<Option<usize>> {
        if let Some((span, least, most)) = self.referred(node) {
            return Ok(self.repeats(span, (least, most), start, start, stop, false));
        }
        let dfa = self.automaton(node)?;
        let regex = &mut *self.regex;
        regex
            .machine
            .longest(self.call, &regex.colors, self.subject, dfa, start, stop)
    }

    fn shortest(
        &mut self,
        node: usize,
        start: usize,
        least: usize,
        most: usize,
    ) -> Result<Option<usize>> {
        if let Some((span, fewest, limit)) = self.referred(node) {
            return Ok(self.repeats(span, (fewest, limit), start, least, most, true));
        }
        let dfa = self.automaton(node)?;
        let regex = &mut *self.regex;
        regex.machine.shortest(
            self.call,
            &regex.colors,
            self.subject,
            dfa,
            start,
            least,
            most,
        )
    }

    fn same(&self, (from, until): Span, at: usize) -> bool {
        let characters = &self.subject.characters;
        let one = characters.get(from..until).unwrap_or_default();
        let Some(other) = characters.get(at..at + one.len()) else {
            return false;
        };
        if !self.regex.flags.any_case {
            return one == other;
        }
        let lower = |c: &char| set::lower(u32::from(*c));
        one.iter().map(lower).eq(other.iter().map(lower))
    }

    /// Where repetitions of a text from `start` end, from `min` to `max`.
    fn repeats(
        &self,
        span: Span,
        (least, most): (u32, u32),
        start: usize,
        min: usize,
        max: usize,
        shortest: bool,
    ) -> Option<usize> {
        let length = span.1 - span.0;
        if length == 0 {
            return (min == start && least <= most).then_some(start);
        }
        let number = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let least = number(least).max(min.saturating_sub(start).div_ceil(length));
        let mut most_times = max.saturating_sub(start) / length;
        if most != UNBOUNDED {
            most_times = most_times.min(number(most));
        }
        if most_times < least {
            return None;
        }
        if shortest && least == 0 {
            return Some(start);
        }
        let (mut at, mut times) = (start, 0);
        while times < most_times && self.same(span, at) {
            at += length;
            times += 1;
            if shortest && times >= least {
                break;
            }
        }
        (times >= least).then_some(at)
    }

    /// Forgets what a part's groups matched.
    fn clear(&mut self, node: usize) {
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            let found = &self.regex.parsed.nodes[node];
            nodes.extend(&found.children);
            let group = usize::try_from(found.group).unwrap_or(0);
            if group > 0
                && let Some(span) = self.spans.get_mut(group)
            {
                *span = None;
            }
        }
    }

    /// Takes the match of a part apart, which its automaton is known to match.
    fn dissect(&mut self, node: usize, begin: usize, end: usize) -> Result<bool> {
        self.call.environment.check_interrupted()?;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(failed(TOO_BIG));
        }
        let found = self.node(node);
        let (shape, group) = (found.shape, found.group);
        let children: [usize; 2] = match *found.children {
            [only] => [only, only],
            [first, second, ..] => [first, second],
            [] => [node, node],
        };
        let [first, second] = children;
        let shorter = self.node(first).flags & SHORTER != 0;
        let matched = match shape {
            Shape::Leaf => true,
            Shape::Reference { .. } => self.is_repeated(node, begin, end),
            Shape::Pair if shorter => self.pair_shortest(first, second, begin, end)?,
            Shape::Pair => self.pair_longest(first, second, begin, end)?,
            Shape::Choice => self.choice(node, begin, end)?,
            Shape::Repeat { least, most } if shorter => {
                self.repeat_shortest(first, (least, most), begin, end)?
            }
            Shape::Repeat { least, most } => {
                self.repeat_longest(first, (least, most), begin, end)?
            }
            Shape::Wrapper => self.dissect(first, begin, end)?,
        };
        self.depth -= 1;
        if matched
            && group > 0
            && let Some(span) = usize::try_from(group)
                .ok()
                .and_then(|group| self.spans.get_mut(group))
        {
            *span = Some((begin, end));
        }
        debug_assert!(
            matched || self.node(node).flags & REFERS != 0,
            "only what refers back fails after its automaton matched"
        );
        Ok(matched)
    }

    fn is_repeated(&self, node: usize, begin: usize, end: usize) -> bool {
        let Some((span, least, most)) = self.referred(node) else {
            return false;
        };
        let (length, wanted) = (span.1 - span.0, end - begin);
        if length == 0 {
            return wanted == 0 && least <= most;
        }
        if wanted == 0 {
            return least == 0;
        }
        if wanted % length != 0 {
            return false;
        }
        let times = u32::try_from(wanted / length).unwrap_or(u32::MAX);
        if times < least || times > most && most != UNBOUNDED {
            return false;
        }
        (begin..end).step_by(length).all(|at| self.same(span, at))
    }

    /// Whether both parts of a pair match with this place between them.
    fn pair(
        &mut self,
        first: usize,
        second: usize,
        begin: usize,
        middle: usize,
        end: usize,
    ) -> Result<bool> {
        if self.longest(second, middle, end)? != Some(end) {
            return Ok(false);
        }
        if !self.dissect(first, begin, middle)? {
            return Ok(false);
        }
        if self.dissect(second, middle, end)? {
            return Ok(true);
        }
        self.clear(first);
        Ok(false)
    }

    fn pair_longest(
        &mut self,
        first: usize,
        second: usize,
        begin: usize,
        end: usize,
    ) -> Result<bool> {
        let mut middle = self.longest(first, begin, end)?;
        while let Some(at) = middle {
            if self.pair(first, second, begin, at, end)? {
                return Ok(true);
            }
            if at == begin {
                break;
            }
            middle = self.longest(first, begin, at - 1)?;
        }
        Ok(false)
    }

    fn pair_shortest(
        &mut self,
        first: usize,
        second: usize,
        begin: usize,
        end: usize,
    ) -> Result<bool> {
        let mut middle = self.shortest(first, begin, begin, end)?;
        while let Some(at) = middle {
            if self.pair(first, second, begin, at, end)? {
                return Ok(true);
            }
            if at == end {
                break;
            }
            middle = self.shortest(first, begin, at + 1, end)?;
        }
        Ok(false)
    }

    fn choice(&mut self, node: usize, begin: usize, end: usize) -> Result<bool> {
        for at in 0..self.node(node).children.len() {
            let branch = self.node(node).children[at];
            if self.longest(branch, begin, end)? == Some(end) && self.dissect(branch, begin, end)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes apart the repetitions between these ends, of which some are known to be good.
    /// The first that is not.
    fn verify(&mut self, child: usize, ends: &[usize], good: &mut usize) -> Result<Option<usize>> {
        while *good + 1 < ends.len() {
            self.clear(child);
            if !self.dissect(child, ends[*good], ends[*good + 1])? {
                return Ok(Some(*good + 1));
            }
            *good += 1;
        }
        Ok(None)
    }

    fn limits((least, most): (u32, u32), length: usize) -> (usize, usize) {
        let number = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        let least_times = number(least).max(1);
        let mut most_times = length;
        if most != UNBOUNDED {
            most_times = most_times.min(number(most));
        }
        (least_times, most_times.max(least_times))
    }

    fn repeat_longest(
        &mut self,
        child: usize,
        bounds: (u32, u32),
        begin: usize,
        end: usize,
    ) -> Result<bool> {
        let (least, most) = Self::limits(bounds, end - begin);
        // The end of each repetition; the first entry is where they begin.
        let mut ends = vec![begin];
        let (mut good, mut limit) = (0, end);
        loop {
            let k = ends.len();
            let last = ends[k - 1];
            let mut shorten = true;
            if let Some(at) = self.longest(child, last, limit)? {
                good = good.min(k - 1);
                ends.push(at);
                if at != end {
                    let empty = at == last && (k >= least || least - k < end - at);
                    if k >= most {
                        ends.pop();
                    } else if !empty {
                        limit = end;
                        shorten = false;
                    }
                } else if k >= least {
                    match self.verify(child, &ends, &mut good)? {
                        None => return Ok(true),
                        Some(bad) => ends.truncate(bad + 1),
                    }
                }
            }
            // Shorter versions of the last repetition, or of one before.
            while shorten {
                let Some(at) = ends.pop() else {
                    break;
                };
                let Some(previous) = ends.last().copied() else {
                    // All possibilities have been tried.
                    return Ok(bounds.0 == 0 && begin == end);
                };
                let k = ends.len();
                if at > previous {
                    limit = at - 1;
                    if limit > previous || k < least && least - k >= end - previous {
                        shorten = false;
                    }
                }
            }
        }
    }

    fn repeat_shortest(
        &mut self,
        child: usize,
        bounds: (u32, u32),
        begin: usize,
        end: usize,
    ) -> Result<bool> {
        if bounds.0 == 0 && begin == end {
            return Ok(true);
        }
        let (least, most) = Self::limits(bounds, end - begin);
        let mut ends = vec![begin];
        let (mut good, mut limit) = (0, begin);
        loop {
            let k = ends.len();
            let last = ends[k - 1];
            if limit == last && limit != end && (k >= least || least - k < end - limit) {
                limit += 1;
            }
            if k >= most {
                limit = end;
            }
            let mut lengthen = true;
            if let Some(at) = self.shortest(child, last, limit, end)? {
                good = good.min(k - 1);
                ends.push(at);
                if at != end {
                    if k >= most {
                        ends.pop();
                    } else {
                        limit = at;
                        lengthen = false;
                    }
                } else if k >= least {
                    match self.verify(child, &ends, &mut good)? {
                        None => return Ok(true),
                        Some(bad) => ends.truncate(bad + 1),
                    }
                }
            }
            while lengthen {
                let Some(at) = ends.pop() else {
                    break;
                };
                if ends.is_empty() {
                    return Ok(false);
                }
                if at < end {
                    limit = at + 1;
                    lengthen = false;
                }
            }
        }
    }
}
