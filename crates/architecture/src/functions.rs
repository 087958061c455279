//! How long functions are, and how many parameters they have.

use crate::tokens_of_lines;

/// A function of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Beside `self`.
    pub parameters: usize,
    /// From `fn` to the closing brace, or to the end of a signature without a body.
    pub lines: usize,
}

/// The functions of a text, with those within others.
pub fn functions(text: &str) -> Vec<Function> {
    let text = Text(tokens_of_lines(text));
    (0..text.0.len()).filter_map(|begin| text.function(begin)).collect()
}

struct Text(Vec<(String, usize)>);

impl Text {
    fn token(&self, place: usize) -> &str {
        self.0.get(place).map_or("", |(token, _)| token)
    }

    fn line(&self, place: usize) -> usize {
        self.0.get(place).or(self.0.last()).map_or(0, |(_, line)| *line)
    }

    /// The function whose `fn` stands there.
    fn function(&self, begin: usize) -> Option<Function> {
        let name = self.token(begin + 1);
        let is_name = name.starts_with(|mark: char| mark.is_alphabetic() || mark == '_');
        if self.token(begin) != "fn" || !is_name {
            return None;
        }
        let mut place = begin + 2;
        if self.token(place) == "<" {
            place = self.behind(place, &mut |_| {});
        }
        if self.token(place) != "(" {
            return None;
        }
        let mut lists: Vec<Vec<&str>> = vec![vec![]];
        place = self.behind(place, &mut |token| match token {
            "," => lists.push(vec![]),
            token => lists.last_mut().expect("one at least").push(token),
        });
        let is_self = |list: &[&str]| list.iter().find(|token| !matches!(**token, "&" | "mut")) == Some(&"self");
        let parameters = lists.iter().filter(|list| !list.is_empty() && !is_self(list));
        Some(Function {
            name: name.into(),
            parameters: parameters.count(),
            lines: self.line(self.end(place)) + 1 - self.line(begin),
        })
    }

    /// The place behind what is opened at a place; `visit` sees the tokens that stand in it and in nothing else within.
    fn behind<'a>(&'a self, mut place: usize, visit: &mut dyn FnMut(&'a str)) -> usize {
        let mut open: Vec<&str> = vec![];
        while place < self.0.len() {
            let token = self.token(place);
            let is_arrow = token == ">" && matches!(self.token(place - 1), "-" | "=");
            match token {
                "(" | "[" | "{" | "<" => open.push(token),
                // A mark `<` that nothing closes compares.
                ")" | "]" | "}" => while open.pop().is_some_and(|mark| mark == "<") {},
                ">" if !is_arrow && open.last() == Some(&"<") => {
                    open.pop();
                }
                _ if open.len() == 1 => visit(token),
                _ => {}
            }
            place += 1;
            if open.is_empty() {
                break;
            }
        }
        place
    }

    /// Where the body ends that comes next, or the signature without one.
    fn end(&self, mut place: usize) -> usize {
        let (mut within, mut open) = (0, 0);
        while place < self.0.len() {
            match self.token(place) {
                "(" | "[" if open == 0 => within += 1,
                ")" | "]" if open == 0 => within -= 1,
                ";" if within == 0 && open == 0 => break,
                "{" => open += 1,
                "}" => {
                    open -= 1;
                    if open == 0 {
                        break;
                    }
                }
                _ => {}
            }
            place += 1;
        }
        place
    }
}
