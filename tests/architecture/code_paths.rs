//! The modules that a file declares, and the paths that its code names.
//!
//! proc-macro2 divides the text into tokens. Comments and strings are therefore no code, and brackets in them
//! do not count. Tokens of macros are read like any other code.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use proc_macro2::TokenTree::{Group, Ident, Punct};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The names from the crate's root to a module: `["elf", "notes"]`.
pub(crate) type Module = Vec<String>;

/// A path that code names, such as `super::notes::Note`. A tree of `use` gives one path for each of its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodePath {
    /// The module that the code belongs to, which may be inline.
    pub(crate) module: Module,
    /// The names, without a star or `self` at the end.
    pub(crate) names: Vec<String>,
}

/// The declaration of a module that has a file of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    /// The declared module.
    pub(crate) module: Module,
    /// The files that the declaration can mean. One of them exists.
    pub(crate) files: Vec<PathBuf>,
}

/// The declarations and paths in a file, without those of test code.
#[derive(Debug, Default)]
pub(crate) struct FileCode {
    /// Modules whose code is inline.
    pub(crate) inline_modules: Vec<Module>,
    /// Modules that have a file of their own.
    pub(crate) children: Vec<Child>,
    /// All paths of more than one name.
    pub(crate) paths: Vec<CodePath>,
}

/// A module of the file that is being read.
struct Scope {
    module: Module,
    /// The folder that `#[path = "…"]` is relative to.
    folder: PathBuf,
    /// The folder with the files of child modules.
    child_folder: PathBuf,
}

impl FileCode {
    /// Reads the text of a file, which holds this module. Paths of files are relative to `src`.
    pub(crate) fn read(file: &Path, module: Module, text: &str) -> Self {
        let tokens =
            TokenStream::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let folder = file.parent().expect("a file has a folder").to_owned();
        let is_head_of_folder = ["mod.rs", "lib.rs"].iter().any(|name| file.ends_with(name));
        let child_folder = if is_head_of_folder { folder.clone() } else { file.with_extension("") };
        let mut code = Self::default();
        code.add(tokens, &Scope { module, folder, child_folder });
        code
    }

    fn add(&mut self, tokens: TokenStream, scope: &Scope) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut path_attribute = None;
        let mut rest = &tokens[..];
        while !rest.is_empty() {
            let length = match rest {
                [Punct(hash), Group(attribute), item @ ..] if hash.as_char() == '#' => {
                    let attribute = attribute.stream();
                    let text = attribute.to_string().replace(' ', "");
                    if let Some(path) = text.strip_prefix("path=") {
                        path_attribute = Some(path.trim_matches('"').to_owned());
                    }
                    if text == "cfg(test)" {
                        2 + item_length(item)
                    } else {
                        self.add(attribute, scope);
                        2
                    }
                }
                [Ident(word), Ident(name), Punct(end), ..] if word == "mod" && end.as_char() == ';' => {
                    self.children.push(scope.child(&name.to_string(), path_attribute.take()));
                    3
                }
                [Ident(word), Ident(name), Group(body), ..] if word == "mod" => {
                    self.add_inline(&name.to_string(), path_attribute.take(), body.stream(), scope);
                    3
                }
                // A macro gives the module its name.
                [Ident(word), Punct(_), Ident(name), Group(body), ..] if word == "mod" => {
                    self.add_inline(&name.to_string(), None, body.stream(), scope);
                    4
                }
                // `pub(in crate::elf)` imports nothing.
                [Ident(word), Group(visibility), ..] if word == "pub" && is_restriction(visibility) => 2,
                [Ident(_), ..] => {
                    let mut paths = Vec::new();
                    let length = read_path(rest, &[], &mut paths);
                    let module = || scope.module.clone();
                    self.paths.extend(paths.into_iter().map(|names| CodePath { module: module(), names }));
                    length
                }
                [Group(group), ..] => {
                    self.add(group.stream(), scope);
                    1
                }
                // A name of another crate (`::libc`), or of a type (`<T as Trait>::name`).
                [_, _, Ident(_), ..] if is_separator(rest) => 3,
                _ => 1,
            };
            rest = &rest[length..];
        }
    }

    fn add_inline(&mut self, name: &str, path: Option<String>, body: TokenStream, scope: &Scope) {
        let folder = match path {
            Some(path) => scope.folder.join(path),
            None => scope.child_folder.join(name),
        };
        let module = scope.name_of(name);
        self.inline_modules.push(module.clone());
        self.add(body, &Scope { module, folder: folder.clone(), child_folder: folder });
    }
}

impl Scope {
    fn name_of(&self, child: &str) -> Module {
        [&self.module[..], &[child.to_owned()]].concat()
    }

    fn child(&self, name: &str, path: Option<String>) -> Child {
        let files = match path {
            Some(path) => vec![self.folder.join(path)],
            None => vec![
                self.child_folder.join(name).with_extension("rs"),
                self.child_folder.join(name).join("mod.rs"),
            ],
        };
        Child { module: self.name_of(name), files }
    }
}

/// Reads the path at the start of `tokens`, or all paths of the tree there, each behind the names in
/// `before`. Returns the number of tokens. A single name is no path.
fn read_path(tokens: &[TokenTree], before: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut names = before.to_vec();
    let mut length = 0;
    while let Some(Ident(name)) = tokens.get(length) {
        names.push(name.to_string());
        length += 1;
        if !is_separator(&tokens[length..]) {
            names.pop_if(|last| last == "self");
            if names.len() > 1 {
                paths.push(names);
            }
            return length;
        }
        length += 2;
    }
    match tokens.get(length) {
        Some(Group(tree)) if tree.delimiter() == Delimiter::Brace => {
            let branches: Vec<_> = tree.stream().into_iter().collect();
            // Nothing follows the last comma.
            let branches = branches.split(|token| is_punct(token, ','));
            for branch in branches.filter(|branch| !branch.is_empty()) {
                read_path(branch, &names, paths);
            }
            length + 1
        }
        // A star, or arguments of a generic type.
        _ => {
            paths.push(names);
            length
        }
    }
}

/// The number of tokens of the item at the start of `tokens`.
fn item_length(tokens: &[TokenTree]) -> usize {
    let is_end = |token: &TokenTree| match token {
        Group(body) => body.delimiter() == Delimiter::Brace,
        token => is_punct(token, ';'),
    };
    tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1)
}

fn is_restriction(visibility: &proc_macro2::Group) -> bool {
    matches!(visibility.stream().into_iter().next(), Some(Ident(word)) if word == "in")
}

fn is_separator(tokens: &[TokenTree]) -> bool {
    let [Punct(first), second, ..] = tokens else { return false };
    first.as_char() == ':' && first.spacing() == Spacing::Joint && is_punct(second, ':')
}

fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, Punct(punct) if punct.as_char() == character)
}
