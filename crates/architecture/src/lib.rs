//! Which file of a crate uses which: what its `use` lines and its paths come to, with re-exports followed to the file that
//! they are of. Test modules do not count.

mod functions;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

pub use functions::{functions, Function};

/// Words, `::` and single marks of a Rust text; comments, literals and lifetimes are left out.
pub fn tokens(text: &str) -> Vec<String> {
    tokens_of_lines(text).into_iter().map(|(token, _)| token).collect()
}

/// The same with the line of each, from 1.
pub fn tokens_of_lines(text: &str) -> Vec<(String, usize)> {
    let mut tokens = Vec::new();
    let (mut line, mut counted) = (1, 0);
    let chars: Vec<char> = text.chars().collect();
    each_token(&chars, |token, place| {
        line += chars[counted..place].iter().filter(|mark| **mark == '\n').count();
        counted = place;
        tokens.push((token, line));
    });
    tokens
}

/// Calls `each` with every token and where it begins.
fn each_token(chars: &[char], mut each: impl FnMut(String, usize)) {
    let at = |place: usize| chars.get(place).copied().unwrap_or('\0');
    let is_word = |mark: char| mark.is_alphanumeric() || mark == '_';
    let mut place = 0;
    while place < chars.len() {
        let begin = place;
        match at(place) {
            '/' if at(place + 1) == '/' => {
                while place < chars.len() && at(place) != '\n' {
                    place += 1;
                }
            }
            '/' if at(place + 1) == '*' => {
                let mut depth = 0;
                loop {
                    match (at(place), at(place + 1)) {
                        ('/', '*') => (depth, place) = (depth + 1, place + 2),
                        ('*', '/') => (depth, place) = (depth - 1, place + 2),
                        _ => place += 1,
                    }
                    if depth == 0 || place >= chars.len() {
                        break;
                    }
                }
            }
            '"' => place = after_quoted(chars, place, '"'),
            '\'' if at(place + 1) == '\\' || at(place + 2) == '\'' => place = after_quoted(chars, place, '\''),
            '\'' => place += 1 + chars[place + 1..].iter().take_while(|&&mark| is_word(mark)).count(),
            mark if is_word(mark) => {
                while is_word(at(place)) {
                    place += 1;
                }
                let word: String = chars[begin..place].iter().collect();
                let raw = matches!(word.as_str(), "r" | "br") && matches!(at(place), '"' | '#');
                if raw {
                    place = after_raw(chars, place);
                } else if !mark.is_ascii_digit() {
                    each(word, begin);
                }
            }
            ':' if at(place + 1) == ':' => {
                place += 2;
                each("::".into(), begin);
            }
            mark => {
                place += 1;
                if !mark.is_whitespace() {
                    each(mark.into(), begin);
                }
            }
        }
    }
}

fn after_quoted(chars: &[char], mut place: usize, quote: char) -> usize {
    place += 1;
    while place < chars.len() && chars[place] != quote {
        place += if chars[place] == '\\' { 2 } else { 1 };
    }
    place + 1
}

fn after_raw(chars: &[char], mut place: usize) -> usize {
    let hashes = chars[place..].iter().take_while(|&&mark| mark == '#').count();
    place += hashes + 1;
    while place < chars.len() {
        let ends = chars[place] == '"' && chars[place + 1..].iter().take_while(|&&mark| mark == '#').count() >= hashes;
        place += 1;
        if ends {
            return place + hashes;
        }
    }
    place
}

/// One name that a `use` brings in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    pub path: Vec<String>,
    /// What it is called here; `*` for all that there is, `_` for none.
    pub name: String,
    pub public: bool,
}

/// A module, which has a file of its own or stands in its parent's.
#[derive(Debug, Default)]
pub struct Module {
    pub file: PathBuf,
    parent: usize,
    children: HashMap<String, usize>,
    pub imports: Vec<Import>,
    /// Paths of two words and more, beside those of `use`.
    pub paths: Vec<Vec<String>>,
    /// Words beside those of `use`.
    words: HashSet<String>,
    defined: HashSet<String>,
}

/// The modules of a crate; the first is its root.
pub struct Modules {
    root: PathBuf,
    pub all: Vec<Module>,
}

impl Modules {
    /// The crate whose root is `folder/lib.rs`.
    pub fn of_crate(folder: &Path) -> Modules {
        let mut modules = Modules {
            root: folder.to_path_buf(),
            all: vec![],
        };
        modules.add_file(PathBuf::from("lib.rs"), Path::new(""), 0);
        modules
    }

    /// A text as if it were the root of a crate that has no other file.
    pub fn of_text(text: &str) -> Modules {
        let mut modules = Modules {
            root: PathBuf::new(),
            all: vec![],
        };
        modules.add("lib.rs".into(), 0);
        SourceReader::new(text, &mut modules).module(0, Path::new(""));
        modules
    }

    fn add(&mut self, file: PathBuf, parent: usize) -> usize {
        self.all.push(Module {
            file,
            parent,
            ..Module::default()
        });
        self.all.len() - 1
    }

    /// Reads `file`, whose modules lie in `folder`.
    fn add_file(&mut self, file: PathBuf, folder: &Path, parent: usize) -> usize {
        let text = fs::read_to_string(self.root.join(&file)).expect("a module's file");
        let module = self.add(file, parent);
        SourceReader::new(&text, self).module(module, folder);
        module
    }

    /// The files that each file uses.
    pub fn arrows(&self) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
        let mut arrows: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
        for (number, module) in self.all.iter().enumerate() {
            let used = arrows.entry(module.file.clone()).or_default();
            let imported = module.imports.iter().filter(|import| {
                // What is only handed on is used where it arrives.
                !import.public || module.words.contains(&import.name)
            });
            for path in imported.map(|import| &import.path).chain(&module.paths) {
                let files = self.resolve(number, path, 0);
                used.extend(files.into_iter().map(|found| self.all[found].file.clone()));
            }
            used.remove(&module.file);
        }
        arrows
    }

    /// The modules that hold what `path` names, seen from a module; none when that is of another crate or of no module.
    fn resolve(&self, from: usize, path: &[String], depth: usize) -> Vec<usize> {
        let mut module = from;
        for (place, word) in path.iter().enumerate() {
            let last = place + 1 == path.len();
            let here = &self.all[module];
            match word.as_str() {
                "crate" => module = 0,
                "self" => {}
                "super" => module = here.parent,
                "*" => {
                    let handed_on = here.imports.iter().filter(|import| import.public);
                    let mut found: Vec<usize> = handed_on
                        .flat_map(|import| self.resolve(module, &import.path, depth + 1))
                        .collect();
                    found.push(module);
                    return found;
                }
                _ => {
                    // A module and a function may have the same name.
                    let through = self.through_imports(module, &path[place..], depth);
                    match here.children.get(word) {
                        Some(&child) if last => return through.into_iter().chain([child]).collect(),
                        Some(&child) => module = child,
                        None if !through.is_empty() => return through,
                        None if place == 0 => return vec![],
                        None => return vec![module],
                    }
                }
            }
        }
        vec![module]
    }

    fn through_imports(&self, module: usize, path: &[String], depth: usize) -> Vec<usize> {
        const DEPTH_MAX: usize = 16;
        if depth == DEPTH_MAX || self.all[module].defined.contains(&path[0]) {
            return vec![];
        }
        let imports = self.all[module].imports.iter();
        let named = imports.clone().filter(|import| import.name == path[0]);
        let found: Vec<usize> = named
            // `use gemm::gemm` of another crate: the first word is not the name that it brings in.
            .filter(|import| import.path[0] != path[0] || self.all[module].children.contains_key(&path[0]))
            .flat_map(|import| self.resolve(module, &[&import.path, &path[1..]].concat(), depth + 1))
            .collect();
        if !found.is_empty() {
            return found;
        }
        // A star that is not handed on serves the file it stands in alone.
        let globs = imports.filter(|import| import.name == "*" && (import.public || depth == 0));
        globs
            .flat_map(|import| self.resolve(module, &import.path[..import.path.len() - 1], depth + 1))
            .filter(|&other| other != module && self.all[other].defined.contains(&path[0]))
            .collect()
    }
}

/// Reads the tokens of a file into modules.
struct SourceReader<'a> {
    tokens: Vec<String>,
    place: usize,
    modules: &'a mut Modules,
}

impl<'a> SourceReader<'a> {
    fn new(text: &str, modules: &'a mut Modules) -> SourceReader<'a> {
        let tokens = tokens(text);
        SourceReader {
            tokens,
            place: 0,
            modules,
        }
    }

    fn peek(&self, ahead: usize) -> &str {
        self.tokens.get(self.place + ahead).map_or("", String::as_str)
    }

    fn take(&mut self) -> String {
        self.place += 1;
        self.tokens.get(self.place - 1).cloned().unwrap_or_default()
    }

    /// Reads to the brace that ends the module, or to the end of the file. Modules with files lie in `folder`.
    fn module(&mut self, module: usize, folder: &Path) {
        let mut depth = 0;
        let mut public = false;
        while self.place < self.tokens.len() {
            let word = self.take();
            match word.as_str() {
                "#" if matches!(self.peek(0), "[" | "!") && self.is_for_tests() => self.skip_item(),
                "pub" => {
                    public = true;
                    if self.peek(0) == "(" {
                        self.skip_group();
                    }
                    continue;
                }
                "use" => self.imports(module, &[], public),
                "mod" if matches!(self.peek(1), ";" | "{") => self.child(module, folder),
                "{" => depth += 1,
                "}" if depth == 0 => return,
                "}" => depth -= 1,
                _ if is_name(&word) => self.path(module, word),
                _ => {}
            }
            public = false;
        }
    }

    /// Passes an attribute; whether what it stands on is there in tests only.
    fn is_for_tests(&mut self) -> bool {
        let begin = self.place;
        if self.peek(0) == "!" {
            self.place += 1;
        }
        self.skip_group();
        let words = &self.tokens[begin..self.place];
        let cfg = words.get(1).is_some_and(|word| word == "cfg");
        cfg && words.iter().any(|word| word == "test") && !words.iter().any(|word| word == "not")
    }

    /// Passes what stands in brackets of any kind.
    fn skip_group(&mut self) {
        let mut depth = 0;
        loop {
            match self.take().as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 || self.place >= self.tokens.len() {
                return;
            }
        }
    }

    /// Passes an item: to its semicolon or the end of its body.
    fn skip_item(&mut self) {
        while self.place < self.tokens.len() {
            match self.peek(0) {
                ";" => return self.place += 1,
                "{" => return self.skip_group(),
                "(" | "[" => self.skip_group(),
                _ => self.place += 1,
            }
        }
    }

    fn child(&mut self, module: usize, folder: &Path) {
        let name = self.take();
        let folder = folder.join(&name);
        let child = if self.take() == ";" {
            let alone = folder.with_extension("rs");
            let file = if self.modules.root.join(&alone).exists() {
                alone
            } else {
                folder.join("mod.rs")
            };
            self.modules.add_file(file, &folder, module)
        } else {
            let child = self.modules.add(self.modules.all[module].file.clone(), module);
            self.module(child, &folder);
            child
        };
        self.modules.all[module].children.insert(name, child);
    }

    /// One branch of the tree that stands after `use`, to its comma, brace or semicolon.
    fn imports(&mut self, module: usize, before: &[String], public: bool) {
        let mut path = before.to_vec();
        let mut name = None;
        loop {
            match self.take().as_str() {
                "::" => {}
                "{" => {
                    while self.peek(0) != "}" {
                        self.imports(module, &path, public);
                        if self.peek(0) == "," {
                            self.place += 1;
                        }
                    }
                    self.place += 1;
                    return;
                }
                "as" => name = Some(self.take()),
                word => path.push(word.into()),
            }
            if matches!(self.peek(0), "," | "}" | ";" | "") {
                break;
            }
        }
        if path.len() > 1 && path.last().is_some_and(|word| word == "self") {
            path.pop();
        }
        let name = name.unwrap_or_else(|| path[path.len() - 1].clone());
        let import = Import { path, name, public };
        self.modules.all[module].imports.push(import);
    }

    /// A word, and the path that begins with it.
    fn path(&mut self, module: usize, word: String) {
        const DEFINING: [&str; 9] = [
            "fn",
            "struct",
            "enum",
            "trait",
            "type",
            "const",
            "static",
            "union",
            "macro_rules",
        ];
        let here = &mut self.modules.all[module];
        if DEFINING.contains(&word.as_str()) {
            let ahead = usize::from(word == "macro_rules");
            let name = self.tokens.get(self.place + ahead).filter(|name| is_name(name));
            here.defined.extend(name.cloned());
        }
        let mut path = vec![word];
        let tokens = &self.tokens;
        let at = |place: usize| tokens.get(place).map_or("", String::as_str);
        while at(self.place) == "::" && is_name(at(self.place + 1)) {
            path.push(at(self.place + 1).into());
            self.place += 2;
        }
        here.words.insert(path[0].clone());
        if path.len() > 1 {
            here.paths.push(path);
        }
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|mark: char| mark.is_alphabetic() || mark == '_')
}

/// Groups of files that use each other, each with the arrows inside it.
pub fn circles(arrows: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> Vec<Vec<(PathBuf, PathBuf)>> {
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = arrows
        .keys()
        .map(|file| {
            let mut found = BTreeSet::new();
            let mut ahead = vec![file];
            while let Some(next) = ahead.pop() {
                ahead.extend(arrows[next].iter().filter(|&used| found.insert(used)));
            }
            (file, found)
        })
        .collect();
    let mut seen = BTreeSet::new();
    let mut groups = Vec::new();
    for file in arrows.keys() {
        let group: BTreeSet<&PathBuf> = reached[file]
            .iter()
            .filter(|&&other| reached[other].contains(file))
            .copied()
            .collect();
        if group.is_empty() || !seen.insert(file) {
            continue;
        }
        seen.extend(group.iter());
        let inside = group.iter().flat_map(|&from| {
            let used = arrows[from].iter().filter(|used| group.contains(used));
            used.map(|used| (from.clone(), used.clone()))
        });
        groups.push(inside.collect());
    }
    groups
}
