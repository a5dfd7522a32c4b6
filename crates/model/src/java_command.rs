//! The program that a JVM runs, by the command that the JVM knows.

/// Returns the main class, or the file name of the jar, in the value of HotSpot's property
/// `sun.java.command`. That value is the main class, `MODULE/CLASS` or the jar's path, as it was given, and
/// the program's arguments, separated by spaces (java.c in the JDK's launcher, `SetJavaCommandLineProp`). The
/// arguments may hold secrets, and are left out.
///
/// `class_path` is the property `java.class.path`. With `-jar` it is only the jar's path, and so tells where
/// a path that contains spaces ends.
pub fn program_of<'c>(java_command: &'c str, class_path: Option<&'c str>) -> Option<&'c str> {
    let is_begin = |path: &&str| {
        let rest = java_command.strip_prefix(*path);
        !path.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let first_word = || java_command.split(' ').next().unwrap_or_default();
    let program = class_path.filter(is_begin).unwrap_or_else(first_word);
    program.rsplit(['/', '\\']).next().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_its_main_class_or_jar_without_arguments() {
        for (command, class_path, program) in [
            ("com.example.Main", None, "com.example.Main"),
            ("com.example.Main --password=x y", Some("/lib/a.jar:/lib/b.jar"), "com.example.Main"),
            ("com.example/com.example.Main secret", None, "com.example.Main"),
            ("/opt/shop/shop.jar --token t", Some("/opt/shop/shop.jar"), "shop.jar"),
            ("/opt/my shop/the shop.jar a/b", Some("/opt/my shop/the shop.jar"), "the shop.jar"),
            ("shop.jar", Some("shop.jar"), "shop.jar"),
            ("C:\\shop\\shop.jar x", Some("C:\\shop\\shop.jar"), "shop.jar"),
            ("Main args", Some(""), "Main"),
            ("Main2 args", Some("Main"), "Main2"),
        ] {
            assert_eq!(program_of(command, class_path), Some(program), "{command}");
        }
        for none in ["", " x", "folder/ x"] {
            assert_eq!(program_of(none, None), None, "{none:?}");
        }
    }
}
