//! The main class of a JVM, by the arguments of its launcher.

use std::path::Path;

/// Options of the launcher that take a separate value.
const WITH_VALUE: [&str; 14] = [
    "-cp",
    "-classpath",
    "--class-path",
    "-p",
    "--module-path",
    "--upgrade-module-path",
    "--add-modules",
    "--add-reads",
    "--add-exports",
    "--add-opens",
    "--enable-native-access",
    "--limit-modules",
    "--patch-module",
    "--source",
];

/// The main class, module or jar in the arguments of a Java launcher; another program's name.
pub(super) fn of<'a>(arguments: &[&'a str]) -> &'a str {
    let program = arguments.first().copied().unwrap_or_default();
    let name = file_name(program);
    if name != "java" {
        return name;
    }
    let mut rest = arguments[1..].iter().copied();
    while let Some(argument) = rest.next() {
        match argument {
            "-jar" | "-m" | "--module" => return rest.next().unwrap_or(name),
            _ if WITH_VALUE.contains(&argument) => drop(rest.next()),
            _ if argument.starts_with("--module=") => return &argument["--module=".len()..],
            _ if argument.starts_with('-') || argument.starts_with('@') => {}
            main => return main,
        }
    }
    name
}

/// The name of a program's file.
pub(super) fn file_name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_main_class_or_jar_is_found_among_options() {
        let main = |line: &'static str| super::of(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(main("/jdk/bin/java -Xmx1g -cp a:b --add-opens x/y=z app.Main -jar"), "app.Main");
        assert_eq!(main("java -jar /opt/app.jar --port 1"), "/opt/app.jar");
        assert_eq!(main("java @args -m mod/app.Main"), "mod/app.Main");
        assert_eq!(main("java --module=mod x"), "mod");
        // Regression: the values of these options were taken for the main class.
        for option in
            ["--enable-native-access ALL-UNNAMED", "--limit-modules java.base", "--patch-module a=b"]
        {
            assert_eq!(
                super::of(&[&["java"], &*option.split(' ').collect::<Vec<_>>(), &["app.Main"]].concat()),
                "app.Main"
            );
        }
        assert_eq!(main("java"), "java");
        assert_eq!(main("/opt/jsvc -cp x"), "jsvc");
    }
}
