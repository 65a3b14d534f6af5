//! Files of statements, as psql reads them.

/// The statements of a text, each with the rows that follow `COPY … FROM STDIN`; what begins with
/// a backslash is psql's.
pub fn split(text: &str) -> Vec<(String, Option<String>)> {
    let mut statements: Vec<(String, Option<String>)> = Vec::new();
    let mut copying = false;
    let mut current = String::new();
    let mut quote: Option<String> = None;
    let mut depth = 0_i32;
    for line in text.lines() {
        if copying {
            let rows = statements.last_mut().and_then(|last| last.1.as_mut());
            match rows {
                Some(rows) if line != "\\." => {
                    rows.push_str(line);
                    rows.push('\n');
                }
                _ => copying = false,
            }
            continue;
        }
        if quote.is_none() && (line.starts_with('\\') || line.contains("\\g")) {
            current.clear();
            continue;
        }
        let mut rest = line;
        while !rest.is_empty() {
            if let Some(mark) = &quote {
                match rest.find(mark.as_str()) {
                    Some(at) => {
                        let end = at + mark.len();
                        current.push_str(&rest[..end]);
                        rest = &rest[end..];
                        quote = None;
                    }
                    None => {
                        current.push_str(rest);
                        rest = "";
                    }
                }
                continue;
            }
            if rest.starts_with("--") {
                break;
            }
            let mark = if rest.starts_with('\'') || rest.starts_with('"') {
                Some(rest[..1].to_owned())
            } else if let Some(after) = rest.strip_prefix('$') {
                after
                    .find('$')
                    .map(|at| &rest[..at + 2])
                    .filter(|mark| mark[1..mark.len() - 1].chars().all(char::is_alphanumeric))
                    .map(str::to_owned)
            } else {
                None
            };
            if let Some(mark) = mark {
                current.push_str(&mark);
                rest = &rest[mark.len()..];
                quote = Some(mark);
                continue;
            }
            let Some(char) = rest.chars().next() else {
                break;
            };
            rest = &rest[char.len_utf8()..];
            match char {
                '(' => depth += 1,
                ')' => depth -= 1,
                ';' if depth == 0 => {
                    let statement = current.trim().to_owned();
                    let lower = statement.to_lowercase();
                    copying = lower.starts_with("copy ") && lower.contains("from stdin");
                    if !statement.is_empty() {
                        statements.push((statement, copying.then(String::new)));
                    }
                    current.clear();
                    continue;
                }
                _ => {}
            }
            current.push(char);
        }
        current.push('\n');
    }
    statements
}
