//! What a figure is: panels of series of points, each of which is the value of a run, the
//! paper's finding, and claims that can be checked.

use super::data::Data;
use super::scale::Scale;
use super::setting::What;

/// A figure of a paper.
pub(super) struct Figure {
    /// Paper and number, such as `000.2`.
    pub name: &'static str,
    pub title: &'static str,
    /// What the paper found.
    pub finding: &'static str,
    /// How the paper measured.
    pub theirs: &'static str,
    /// How we do.
    pub ours: fn(&Scale) -> String,
    pub panels: fn(&Scale) -> Vec<Panel>,
    pub claims: &'static [Claim],
    /// What is to be known of it beside.
    pub remarks: &'static [&'static str],
}

/// How the series of a panel are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines over categories.
    Lines,
    /// Groups of bars.
    Bars,
    /// Operations of each second of a run, and when blocks were evicted.
    Seconds,
}

/// A chart of a figure.
#[derive(Debug, Clone)]
pub(super) struct Panel {
    pub title: String,
    pub x: &'static str,
    pub y: &'static str,
    pub form: Form,
    /// The upright axis has equal steps for equal ratios.
    pub log: bool,
    pub series: Vec<Series>,
}

/// What belongs together in a panel, in one colour and mark.
#[derive(Debug, Clone)]
pub(super) struct Series {
    pub name: String,
    pub points: Vec<Point>,
}

/// One point: a value of a run, or the best of some.
#[derive(Debug, Clone)]
pub(super) struct Point {
    pub x: String,
    pub of: Vec<What>,
    pub value: &'static str,
}

impl Point {
    pub fn new(x: impl Into<String>, what: What, value: &'static str) -> Self {
        Point {
            x: x.into(),
            of: vec![what],
            value,
        }
    }
}

impl Series {
    pub fn new(name: impl Into<String>, points: Vec<Point>) -> Self {
        Series {
            name: name.into(),
            points,
        }
    }
}

/// What the paper says of a figure, as code.
pub(super) struct Claim {
    pub says: &'static str,
    /// None: something that it needs was not measured.
    pub check: fn(&Data) -> Option<Verdict>,
}

/// Whether a claim holds of our data.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub holds: bool,
    /// Our figures.
    pub ours: String,
}

impl Verdict {
    pub fn new(holds: bool, ours: impl Into<String>) -> Option<Self> {
        Some(Verdict {
            holds,
            ours: ours.into(),
        })
    }
}

/// What all claims of a figure come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agreement {
    Agrees,
    InPart,
    Not,
    NotMeasured,
}

impl Agreement {
    pub fn of(verdicts: &[Option<Verdict>]) -> Self {
        let known: Vec<bool> = verdicts.iter().flatten().map(|one| one.holds).collect();
        let holding = known.iter().filter(|holds| **holds).count();
        match (known.len(), holding) {
            (0, _) => Agreement::NotMeasured,
            (_, 0) => Agreement::Not,
            (_, some) if some == verdicts.len() => Agreement::Agrees,
            _ => Agreement::InPart,
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Agreement::Agrees => "agrees",
            Agreement::InPart => "agrees in part",
            Agreement::Not => "does not agree",
            Agreement::NotMeasured => "not measured",
        }
    }
}

impl Figure {
    /// All that has to be measured for it.
    pub fn whats(&self, scale: &Scale) -> Vec<What> {
        let panels = (self.panels)(scale).into_iter();
        let points = panels.flat_map(|panel| panel.series.into_iter().flat_map(|one| one.points));
        points.flat_map(|point| point.of).collect()
    }

    pub fn verdicts(&self, data: &Data) -> Vec<Option<Verdict>> {
        let claims = self.claims.iter();
        claims.map(|claim| (claim.check)(data)).collect()
    }
}
