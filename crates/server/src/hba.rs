//! Who may come from where: a list like PostgreSQL's `pg_hba.conf`, whose first line that fits
//! decides. `local`, `host`, `hostssl` or `hostnossl`; databases; users; for all but `local` an
//! address; methods. Several methods with commas are tried in order: `peer,scram-sha-256` lets
//! in who the kernel says is that user, and asks others for the password.

use std::net::IpAddr;

/// The list that holds when none is given. The user that runs the server comes in by the
/// kernel's word, over the Unix socket and over loopback. Anybody else needs a password, and
/// from other machines TLS as well.
pub const DEFAULT_RULES: &str = "\
local   all all               peer
host    all all 127.0.0.0/8   peer,scram-sha-256
host    all all ::1/128       peer,scram-sha-256
hostssl all all all           scram-sha-256
";
/// Lines of a list.
const RULES_MAX: usize = 1000;

/// How a client shows who it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Method {
    Trust,
    Reject,
    Peer,
    Scram,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Local,
    Host,
    HostSsl,
    HostNoSsl,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Name {
    All,
    /// The database that has the user's name.
    SameUser,
    One(String),
    /// Members of a role.
    Group(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Rule {
    kind: Kind,
    databases: Vec<Name>,
    users: Vec<Name>,
    /// None: any.
    address: Option<(IpAddr, u8)>,
    methods: Vec<Method>,
}

/// Where a connection comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// None: over a Unix socket.
    pub(crate) address: Option<IpAddr>,
    pub(crate) encrypted: bool,
}

/// The list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules(Vec<Rule>);

impl Default for Rules {
    fn default() -> Self {
        // The text is a constant, and a test reads it.
        Self::parse(DEFAULT_RULES).unwrap_or_else(|_| Self(Vec::new()))
    }
}

impl Rules {
    /// Reads a list: lines, or entries with semicolons between them; `#` begins a comment.
    ///
    /// # Errors
    /// What is wrong, and in which entry.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rules = Vec::new();
        let lines = text
            .lines()
            .map(|line| line.split('#').next().unwrap_or(""));
        let entries = lines.flat_map(|line| line.split(';'));
        for entry in entries.map(str::trim).filter(|entry| !entry.is_empty()) {
            let rule = rule(entry).map_err(|why| format!("\"{entry}\": {why}"))?;
            rules.push(rule);
            if rules.len() > RULES_MAX {
                return Err(format!("more than {RULES_MAX} entries"));
            }
        }
        match rules.is_empty() {
            true => Err("no entry: nobody could come in".to_owned()),
            false => Ok(Self(rules)),
        }
    }

    /// The methods of the first entry that fits.
    pub(crate) fn find(
        &self,
        origin: Origin,
        database: &str,
        user: &str,
        is_member: impl Fn(&str) -> bool,
    ) -> Option<&[Method]> {
        let rule = self.0.iter().find(|rule| {
            rule.fits(origin)
                && rule.databases.iter().any(|name| match name {
                    Name::All => true,
                    Name::SameUser => database == user,
                    Name::One(name) => name == database,
                    Name::Group(group) => database == user && is_member(group),
                })
                && rule.users.iter().any(|name| match name {
                    Name::All => true,
                    Name::One(name) => name == user,
                    Name::Group(group) => is_member(group),
                    Name::SameUser => false,
                })
        });
        rule.map(|rule| rule.methods.as_slice())
    }
}

impl Rule {
    fn fits(&self, origin: Origin) -> bool {
        let Some(address) = origin.address else {
            return self.kind == Kind::Local;
        };
        let kind = match self.kind {
            Kind::Local => false,
            Kind::Host => true,
            Kind::HostSsl => origin.encrypted,
            Kind::HostNoSsl => !origin.encrypted,
        };
        kind && self
            .address
            .is_none_or(|(network, bits)| lies_in(address.to_canonical(), network, bits))
    }
}

fn lies_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let (address, network, width) = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => (
            u128::from(u32::from(address)),
            u128::from(u32::from(network)),
            32,
        ),
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            (u128::from(address), u128::from(network), 128)
        }
        _ => return false,
    };
    let shift = width - u32::from(bits);
    let cut = |value: u128| value.checked_shr(shift).unwrap_or(0);
    cut(address) == cut(network)
}

fn rule(entry: &str) -> Result<Rule, String> {
    let mut words = entry.split_whitespace();
    let mut next = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
    let kind = match next("the type")? {
        "local" => Kind::Local,
        "host" => Kind::Host,
        "hostssl" => Kind::HostSsl,
        "hostnossl" => Kind::HostNoSsl,
        other => {
            return Err(format!(
                "\"{other}\" is no type; write local, host, hostssl or hostnossl"
            ));
        }
    };
    let databases = names(next("the database")?, "sameuser");
    let users = names(next("the user")?, "");
    let address = match kind {
        Kind::Local => None,
        _ => address(next("the address")?)?,
    };
    let methods = next("the method")?
        .split(',')
        .map(|method| match method {
            "trust" => Ok(Method::Trust),
            "reject" => Ok(Method::Reject),
            "peer" => Ok(Method::Peer),
            "scram-sha-256" => Ok(Method::Scram),
            other => Err(format!(
                "\"{other}\" is no method; write trust, reject, peer or scram-sha-256"
            )),
        })
        .collect::<Result<Vec<_>, _>>()?;
    match words.next() {
        None => Ok(Rule {
            kind,
            databases,
            users,
            address,
            methods,
        }),
        Some(word) => Err(format!("nothing may follow the method, not \"{word}\"")),
    }
}

fn names(text: &str, same_user: &str) -> Vec<Name> {
    text.split(',')
        .map(|name| match name {
            "all" => Name::All,
            name if name == same_user => Name::SameUser,
            name => match name.strip_prefix('+') {
                Some(group) => Name::Group(group.to_owned()),
                None => Name::One(name.trim_matches('"').to_owned()),
            },
        })
        .collect()
}

fn address(text: &str) -> Result<Option<(IpAddr, u8)>, String> {
    if text == "all" {
        return Ok(None);
    }
    let wrong = || format!("\"{text}\" is no address; write all, 10.0.0.0/8 or ::1/128");
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(bits) => bits.parse().ok().filter(|bits| *bits <= width),
        None => Some(width),
    };
    Ok(Some((address, bits.ok_or_else(wrong)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn methods(rules: &str, address: Option<&str>, encrypted: bool, user: &str) -> Vec<Method> {
        let rules = Rules::parse(rules).unwrap();
        let origin = Origin {
            address: address.map(|address| address.parse().unwrap()),
            encrypted,
        };
        let found = rules.find(origin, "postgres", user, |group| group == "staff");
        found.map(<[Method]>::to_vec).unwrap_or_default()
    }

    #[test]
    fn by_default_other_machines_need_encryption_and_a_password() {
        use Method::{Peer, Scram};
        let default = DEFAULT_RULES;
        assert_eq!(methods(default, None, false, "a"), [Peer]);
        assert_eq!(
            methods(default, Some("127.0.0.1"), false, "a"),
            [Peer, Scram]
        );
        assert_eq!(
            methods(default, Some("::ffff:127.0.0.1"), false, "a"),
            [Peer, Scram]
        );
        assert_eq!(methods(default, Some("::1"), false, "a"), [Peer, Scram]);
        assert_eq!(methods(default, Some("10.0.0.1"), false, "a"), []);
        assert_eq!(methods(default, Some("10.0.0.1"), true, "a"), [Scram]);
        assert_ne!(Rules::default(), Rules(Vec::new()));
    }

    #[test]
    fn the_first_entry_that_fits_decides() {
        let rules = "host all eve 0.0.0.0/0 reject; host all +staff 10.1.0.0/16 trust";
        assert_eq!(
            methods(rules, Some("10.1.2.3"), false, "eve"),
            [Method::Reject]
        );
        assert_eq!(
            methods(rules, Some("10.1.2.3"), false, "bob"),
            [Method::Trust]
        );
        assert_eq!(methods(rules, Some("10.2.2.3"), false, "bob"), []);
        assert_eq!(methods(rules, Some("::1"), false, "eve"), []);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_entry() {
        for wrong in [
            "",
            "# only a comment",
            "hosts all all all trust",
            "host all all trust",
            "host all all 10.0.0.0/33 trust",
            "local all all md5",
            "local all all trust x",
        ] {
            assert!(Rules::parse(wrong).is_err(), "{wrong}");
        }
    }
}
