//! Checks that the files of a crate have no dependency cycle.
//!
//! A file depends on the files that define the items it names. A name is followed through `pub use` to its definition,
//! so that a folder's `mod.rs` may re-export its files' items; but it may not both use its files and be used by them.
//! Tests are excluded, because they depend on the tested items.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Path of an item: the names from the crate root.
type Place = Vec<String>;

/// References of a file.
#[derive(Default)]
struct File {
    /// Imported paths by local name.
    imports: BTreeMap<String, Place>,
    /// All referenced paths except re-exports.
    named: Vec<Place>,
}

/// The files of a crate by module.
struct Crate(BTreeMap<Place, File>);

impl Crate {
    /// Parses a crate from its files by path below `src`.
    fn read(sources: &BTreeMap<String, String>) -> Self {
        let module = |path: &str| -> Place {
            let mut names: Place = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if names.last().is_some_and(|name| ["lib", "main", "mod"].contains(&name.as_str())) {
                names.pop();
            }
            names
        };
        let modules: BTreeSet<Place> = sources.keys().map(|path| module(path)).collect();
        Self(sources.iter().map(|(path, text)| (module(path), file(&module(path), &modules, text))).collect())
    }

    /// Returns the module whose file defines the item at `place`.
    fn home(&self, place: &[String]) -> Place {
        let mut at = Place::new();
        for (i, name) in place.iter().enumerate() {
            let below = [&at[..], &place[i..=i]].concat();
            if self.0.contains_key(&below) {
                at = below;
            } else if let Some(from) = self.0[&at].imports.get(name).filter(|from| **from != place[..=i]) {
                return self.home(&[&from[..], &place[i + 1..]].concat());
            } else {
                break;
            }
        }
        at
    }

    /// Returns each file's dependencies on other files.
    fn needs(&self) -> BTreeMap<Place, BTreeSet<Place>> {
        let of = |(module, file): (&Place, &File)| {
            // A bare module name is a prefix of paths, and only those count.
            let named = file.named.iter().filter(|place| !self.0.contains_key(*place));
            let homes = named.map(|place| self.home(place)).filter(|home| home != module);
            (module.clone(), homes.collect())
        };
        self.0.iter().map(of).collect()
    }

    /// Returns a dependency cycle, if any.
    fn cycle(&self) -> Option<String> {
        let mut left = self.needs();
        while let Some(end) = left.iter().find(|(_, needs)| !needs.iter().any(|need| left.contains_key(need))) {
            let end = end.0.clone();
            left.remove(&end);
        }
        let mut way = vec![left.keys().next()?];
        loop {
            let next = left[way[way.len() - 1]].iter().find(|need| left.contains_key(*need))?;
            let seen = way.iter().position(|module| *module == next);
            way.push(next);
            if let Some(start) = seen {
                let name = |module: &&Place| if module.is_empty() { "crate".to_owned() } else { module.join("::") };
                return Some(way[start..].iter().map(name).collect::<Vec<_>>().join(" -> "));
            }
        }
    }
}

fn file(module: &Place, modules: &BTreeSet<Place>, text: &str) -> File {
    let words = words(text);
    let mut file = File::default();
    let mut paths = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let is_name = |word: &str| word.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if words[at] == "use" {
            let end = at + words[at..].iter().position(|word| word == ";").unwrap_or(words.len() - at);
            let is_public = at > 0 && ["pub", ")"].contains(&words[at - 1].as_str());
            for (path, name) in imports(&words[at + 1..end]) {
                let Some(place) = absolute(module, modules, &path) else { continue };
                if !is_public {
                    file.named.push(place.clone());
                }
                file.imports.insert(name, place);
            }
            at = end;
        } else if is_name(&words[at]) && (at == 0 || ![".", "::"].contains(&words[at - 1].as_str())) {
            let mut path = vec![words[at].clone()];
            while words.get(at + 1).is_some_and(|word| word == "::") && words.get(at + 2).is_some_and(|w| is_name(w)) {
                path.push(words[at + 2].clone());
                at += 2;
            }
            paths.extend((path.len() > 1).then_some(path));
        }
        at += 1;
    }
    for path in paths {
        let imported = file.imports.get(&path[0]).map(|place| [&place[..], &path[1..]].concat());
        file.named.extend(imported.or_else(|| absolute(module, modules, &path)));
    }
    file
}

/// Resolves a path within the crate.
fn absolute(module: &[String], modules: &BTreeSet<Place>, path: &[String]) -> Option<Place> {
    let up = path.iter().take_while(|name| *name == "super").count();
    let from = match path[0].as_str() {
        "crate" => &[],
        "super" => &module[..module.len().checked_sub(up)?],
        "self" => module,
        _ => return modules.contains(&[module, &path[..1]].concat()).then(|| [module, path].concat()),
    };
    Some([from, &path[up.max(1)..]].concat())
}

/// Returns the paths of an import with their local names.
fn imports(words: &[String]) -> Vec<(Place, String)> {
    let Some(open) = words.iter().position(|word| word == "{") else {
        let renamed = words.iter().position(|word| word == "as").unwrap_or(words.len());
        let mut path: Place = words[..renamed].iter().filter(|word| *word != "::").cloned().collect();
        if path.len() > 1 && path.last().is_some_and(|name| name == "self" || name == "*") {
            path.pop();
        }
        let name = words.last().filter(|_| renamed < words.len()).or(path.last()).cloned();
        return name.map(|name| (path, name)).into_iter().collect();
    };
    let mut depth = 0;
    let parts = words[open + 1..words.len() - 1].split(|word| {
        depth += i32::from(word == "{") - i32::from(word == "}");
        depth == 0 && word == ","
    });
    parts.filter(|part| !part.is_empty()).flat_map(|part| imports(&[&words[..open], part].concat())).collect()
}

/// Tokenizes a file without comments, string literals and test-only items.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let quotes = rest.strip_prefix('r').map(|raw| raw.len() - raw.trim_start_matches('#').len());
        let raw = quotes.filter(|hashes| rest[1 + hashes..].starts_with('"'));
        let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if let Some(hashes) = raw {
            let end = format!("\"{}", "#".repeat(hashes));
            let start = 2 + hashes;
            start + rest[start..].find(&end).map_or(0, |at| at + end.len())
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            end.map_or(rest.len(), |end| end + 2)
        } else if first == '\'' && (rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'')) {
            // The quote itself may be escaped.
            let start =
                1 + rest[1..].chars().take(1 + usize::from(rest.starts_with("'\\"))).map(char::len_utf8).sum::<usize>();
            start + rest[start..].find('\'').map_or(0, |at| at + 1)
        } else if name > 0 {
            words.push(rest[..name].to_owned());
            name
        } else {
            let sign = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            if !first.is_whitespace() {
                words.push(rest[..sign].to_owned());
            }
            sign
        };
        rest = &rest[length.max(1)..];
    }
    without_tests(words)
}

/// Removes items with `#[cfg(test)]` or a condition that begins with it.
fn without_tests(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let ahead: String = words[at..].iter().take(8).map(String::as_str).collect();
        if !ahead.starts_with("#[cfg(test)") && !ahead.starts_with("#[cfg(all(test,") {
            kept.push(words[at].clone());
            at += 1;
            continue;
        }
        let mut depth = 0;
        loop {
            let word = words.get(at).map_or(";", String::as_str);
            depth += i32::from(["{", "(", "["].contains(&word)) - i32::from(["}", ")", "]"].contains(&word));
            at += 1;
            if depth == 0 && [";", "}"].contains(&word) {
                break;
            }
        }
    }
    kept
}

fn sources(folder: &Path, below: &str, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let (path, name) = (entry.path(), format!("{below}{}", entry.file_name().to_string_lossy()));
        if path.is_dir() {
            // Every file in bin is the root of a separate crate.
            if name != "bin" {
                sources(&path, &format!("{name}/"), all);
            }
        } else if name.ends_with(".rs") {
            all.insert(name, fs::read_to_string(&path).expect("a source file"));
        }
    }
    if all.contains_key("lib.rs") {
        all.remove("main.rs");
    }
}

fn crates(folder: &Path, all: &mut Vec<String>) {
    let below = fs::read_dir(folder).expect("a folder of the workspace").flatten().map(|entry| entry.path());
    for path in below.filter(|path| path.is_dir() && !path.ends_with("target")) {
        if path.join("Cargo.toml").is_file() && path.join("src").is_dir() {
            all.push(path.display().to_string());
        }
        crates(&path, all);
    }
}

#[test]
fn workspace_crates_have_no_dependency_cycle() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the workspace");
    let mut all = Vec::new();
    for folder in ["runner", "workloads"] {
        crates(&workspace.join(folder), &mut all);
    }
    assert!(all.len() > 10, "{all:?}");
    let mut cycles = Vec::new();
    for path in all {
        let mut files = BTreeMap::new();
        sources(&Path::new(&path).join("src"), "", &mut files);
        cycles.extend(Crate::read(&files).cycle().map(|circle| format!("{path}: {circle}")));
    }
    assert!(cycles.is_empty(), "move the items that both files need into a lower file:\n{}", cycles.join("\n"));
}

#[test]
fn dependency_cycles_are_detected() {
    for (why, files, circle) in [
        ("a line", &[("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::B;"), ("b.rs", "")][..], None),
        (
            "imports",
            &[("lib.rs", ""), ("a.rs", "use crate::b::B;"), ("b.rs", "use super::a::{self, A};")],
            Some("a -> b -> a"),
        ),
        (
            "a path without an import",
            &[("lib.rs", ""), ("a.rs", "fn f() { crate::b::f() }"), ("b.rs", "use crate::a::A;")],
            Some("a -> b -> a"),
        ),
        (
            "a module's name",
            &[("lib.rs", ""), ("a.rs", "use crate::b; fn f() { b::f() }"), ("b.rs", "use crate::a::A;")],
            Some("a -> b -> a"),
        ),
        (
            "three files",
            &[
                ("lib.rs", ""),
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "use crate::c::C;"),
                ("c.rs", "use crate::a::A as B;"),
            ],
            Some("a -> b -> c -> a"),
        ),
        (
            "through a re-export",
            &[
                ("lib.rs", ""),
                ("a/mod.rs", "mod x; pub use x::X;"),
                ("a/x.rs", "use crate::b::B;"),
                ("b.rs", "use crate::a::X;"),
            ],
            Some("a::x -> b -> a::x"),
        ),
        (
            "a re-export",
            &[("lib.rs", ""), ("a/mod.rs", "mod x; pub(crate) use x::X; pub struct A;"), ("a/x.rs", "use super::A;")],
            None,
        ),
        (
            "a folder that uses its file, and is used by it",
            &[("lib.rs", ""), ("a/mod.rs", "mod x; pub struct A; fn f() { x::f() }"), ("a/x.rs", "use super::A;")],
            Some("a -> a::x -> a"),
        ),
        (
            "the root",
            &[("lib.rs", "mod a; pub struct S; fn f() { a::f() }"), ("a.rs", "use crate::S;")],
            Some("crate -> a -> crate"),
        ),
        (
            "a test",
            &[
                ("lib.rs", ""),
                ("a.rs", "use crate::b::B; #[cfg(test)] mod tests { use super::*; }"),
                ("b.rs", "#[cfg(test)] mod tests { use crate::a::A; }"),
            ],
            None,
        ),
        (
            "a text and a comment",
            &[
                ("lib.rs", ""),
                ("a.rs", "use crate::b::B;"),
                ("b.rs", "// crate::a::A\nconst C: &str = r#\"crate::a::A\"#; const Q: char = '\"'; // crate::a::A"),
            ],
            None,
        ),
    ] {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        assert_eq!(Crate::read(&files).cycle().as_deref(), circle, "{why}");
    }
}
