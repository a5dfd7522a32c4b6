//! Names of Java methods and classes.
//!
//! Names have the form of Java's stack traces: `com.example.Outer$Inner.method`. Classes that the JDK
//! generates at run time have a number or an address in their names, so that each run, or each call site,
//! gives new names; [`normalise_class_name`] removes that part.
//!
//! The forms, as seen on these JDKs (`Class.getName()`; `…` is an address of 8 to 16 digits):
//!
//! | Class | JDK 11 | 17 | 21, 25 | Normalised |
//! |---|---|---|---|---|
//! | lambda | `N$$Lambda$1/0x…` | `N$$Lambda$1/0x…` | `N$$Lambda/0x…` | `N$$Lambda` |
//! | hidden class | `N$T/0x…` | `N$T/0x…` | `N$T/0x…` | `N$T` |
//! | method handle | `java.lang.invoke.LambdaForm$MH/0x…` | same | same | `….LambdaForm$MH` |
//! | accessor | `jdk.internal.reflect.GeneratedMethodAccessor1` | same | none | `….GeneratedMethodAccessor` |
//! | proxy | `com.sun.proxy.$Proxy0` | `jdk.proxy1.$Proxy0` | `jdk.proxy1.$Proxy0` | `jdk.proxy.$Proxy` |
//! | proxy of a non-public interface | `$Proxy1` | `$Proxy1` | `$Proxy1` | `$Proxy` |
//!
//! Inside the JVM a hidden class's name has `+` before the address (`InstanceKlass::name`, JDK 15 on), and in
//! JVMTI's signatures `.`. JDK 8's anonymous classes have a decimal hash (`N$$Lambda$1/1234567`); in
//! recordings hidden classes have that hash after the address (`N$T+0x…/1234567`, JDK 17). All these forms
//! are recognised. Classes that libraries generate with deterministic names (`$$SpringCGLIB$$0`,
//! `BoundMethodHandle$Species_LL`) are bounded in number, and their names are kept.

use std::borrow::Cow;

/// A Java method, by its names in the class file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct JavaMethod<'a> {
    /// The class in internal form, `com/example/Outer$Inner`. Dots are accepted as well.
    pub class: &'a str,
    /// The method's name. `<init>` and `<clinit>` stay as they are.
    pub method: &'a str,
    /// The descriptor, `(ILjava/lang/String;)V`; empty if unknown.
    pub descriptor: &'a str,
    /// Whether the class name is normalised by [`normalise_class_name`].
    pub normalise: bool,
}

impl JavaMethod<'_> {
    /// Returns `com.example.Outer$Inner.method`; the method's name only if the class is unknown.
    pub fn name(&self) -> String {
        let mut name = java_class_name(&self.class_name());
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(self.method);
        name
    }

    /// Returns `com/example/Outer$Inner.method(ILjava/lang/String;)V`.
    pub fn system_name(&self) -> String {
        let class = self.class_name();
        let separator = if class.is_empty() { "" } else { "." };
        format!("{class}{separator}{}{}", self.method, self.descriptor)
    }

    /// Whether the class is named by Java's conventions: its simple name begins with an upper-case letter.
    pub fn has_conventional_class(&self) -> bool {
        let class = self.class_name();
        class.rsplit(['/', '.']).next().is_some_and(|simple| simple.starts_with(char::is_uppercase))
    }

    fn class_name(&self) -> Cow<'_, str> {
        if self.normalise { normalise_class_name(self.class) } else { Cow::Borrowed(self.class) }
    }
}

impl<'a> JavaMethod<'a> {
    /// Parses a method's name as profilers of the JVM write it: `java/lang/Thread.run` or
    /// `java.lang.Thread.run`, with or without a descriptor. `None` for names of another form, which native
    /// functions have. A dotted class must begin with an upper-case letter, since names of other languages
    /// have dots too.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (name, descriptor) = text.find('(').map_or((text, ""), |at| text.split_at(at));
        let (class, method) = name.rsplit_once('.')?;
        let kept = normalise_class_name(class);
        let simple = kept.rsplit(['/', '.']).next().unwrap_or_default();
        let is_class = match kept.contains('/') {
            true => !kept.contains('.') && !kept.starts_with('/'),
            false => simple.starts_with(char::is_uppercase),
        };
        let is_name = |text: &str, more: &[char]| {
            !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || more.contains(&c))
        };
        let is_method = is_name(method, &['$', '<', '>', '-']) && is_name(&kept, &['$', '/', '.', '-']);
        (is_class && is_method).then_some(Self { class, method, descriptor, normalise: true })
    }
}

/// Converts a class name from internal form to the form of `Class.getName()`: dots between packages, and a
/// slash before a hidden class's address.
pub fn java_class_name(internal: &str) -> String {
    match hidden_suffix(internal) {
        Some(at) => {
            let mut name = internal[..at].replace('/', ".");
            name.push('/');
            name.push_str(&internal[at + 1..]);
            name
        }
        None => internal.replace('/', "."),
    }
}

/// Returns the type's name in the form of Java source, `java.lang.Object` or `int[]`. `type_of` is a
/// descriptor (`Ljava/lang/Object;`, `[I`) or an internal name (`java/lang/Object`). With `normalise` the
/// name is normalised by [`normalise_class_name`].
pub fn java_type_name(type_of: &str, normalise: bool) -> String {
    let element = type_of.trim_start_matches('[');
    let dimensions = type_of.len() - element.len();
    let name = match element {
        // Without dimensions, this is the name of a class.
        "Z" if dimensions > 0 => "boolean".to_owned(),
        "B" if dimensions > 0 => "byte".to_owned(),
        "C" if dimensions > 0 => "char".to_owned(),
        "S" if dimensions > 0 => "short".to_owned(),
        "I" if dimensions > 0 => "int".to_owned(),
        "J" if dimensions > 0 => "long".to_owned(),
        "F" if dimensions > 0 => "float".to_owned(),
        "D" if dimensions > 0 => "double".to_owned(),
        object => {
            let internal = object.strip_prefix('L').and_then(|name| name.strip_suffix(';')).unwrap_or(object);
            match normalise {
                true => java_class_name(&normalise_class_name(internal)),
                false => java_class_name(internal),
            }
        }
    };
    name + &"[]".repeat(dimensions)
}

/// Returns the class name without the parts that differ between runs or between call sites, in internal or
/// dotted form as given. The module's documentation lists the forms.
pub fn normalise_class_name(class: &str) -> Cow<'_, str> {
    let mut kept = class;
    while let Some(at) = hidden_suffix(kept) {
        kept = &kept[..at];
    }
    if let Some(at) = kept.rfind("$$Lambda") {
        let end = at + "$$Lambda".len();
        // `$$Lambda` may also begin a name that a program chose. Then something other than a number follows.
        let number = &kept[end..];
        if number.strip_prefix('$').is_some_and(is_decimal) {
            kept = &kept[..end];
        }
    }
    let simple = kept.rfind(['/', '.']).map_or(0, |at| at + 1);
    for stem in [
        "$Proxy",
        "GeneratedMethodAccessor",
        "GeneratedConstructorAccessor",
        "GeneratedSerializationConstructorAccessor",
    ] {
        if kept[simple..].strip_prefix(stem).is_some_and(is_decimal) {
            kept = &kept[..simple + stem.len()];
            break;
        }
    }
    match dynamic_proxy_package(kept) {
        Some((number, rest)) => Cow::Owned(format!("{}{}", &kept[..number], &kept[rest..])),
        None => Cow::Borrowed(kept),
    }
}

/// Returns the index of the separator before a hidden or anonymous class's address or hash.
fn hidden_suffix(class: &str) -> Option<usize> {
    let (at, stem, suffix) = split_suffix(class)?;
    // A bare number is a hash only in names to which the JDK is known to append one.
    let may_have_hash = || {
        let has_address = split_suffix(stem).is_some_and(|(_, _, before)| is_address(before));
        stem.contains("$$Lambda$") || stem.contains("LambdaForm$") || has_address
    };
    (is_address(suffix) || is_decimal(suffix) && may_have_hash()).then_some(at)
}

/// Returns the index of the last separator that does not come first, and the parts on both sides.
fn split_suffix(class: &str) -> Option<(usize, &str, &str)> {
    let at = class.rfind(['/', '+', '.']).filter(|at| *at > 0)?;
    Some((at, &class[..at], &class[at + 1..]))
}

fn is_address(text: &str) -> bool {
    text.strip_prefix("0x")
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Finds N in a package `jdk.proxyN`, which JDK 16 and later make for each class loader that defines proxies.
/// Returns the start and the end of N.
fn dynamic_proxy_package(class: &str) -> Option<(usize, usize)> {
    let prefix = ["jdk/proxy", "jdk.proxy", "com/sun/proxy/jdk/proxy", "com.sun.proxy.jdk.proxy"]
        .into_iter()
        .find(|prefix| class.starts_with(prefix))?;
    let length = class[prefix.len()..].find(['/', '.'])?;
    let end = prefix.len() + length;
    is_decimal(&class[prefix.len()..end]).then_some((prefix.len(), end))
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_recognised_by_their_names() {
        for (text, name) in [
            ("java/lang/Thread.run", "java.lang.Thread.run"),
            ("java.lang.Thread.run", "java.lang.Thread.run"),
            ("Main.main([Ljava/lang/String;)V", "Main.main"),
            ("a/b.<init>", "a.b.<init>"),
            ("a/N$$Lambda.0x00007f7bd8000a08.run", "a.N$$Lambda.run"),
            ("a/N$$Lambda$1+0x00007f7bd8000a08.lambda$main$0", "a.N$$Lambda.lambda$main$0"),
            ("MainKt.sum-impl", "MainKt.sum-impl"),
        ] {
            assert_eq!(JavaMethod::parse(text).map(|method| method.name()).as_deref(), Some(name), "{text}");
        }
        for text in [
            "",
            "start_thread",
            "JavaThread::run()",
            "foo.isra.0",
            "runtime.mallocgc",
            "net/http.(*conn).serve",
            "net/http.HandlerFunc.ServeHTTP",
            "[libc.so.6+0x1234]",
            "/usr/lib/libc.so",
            "std::vector<a.B>::push_back",
            ".Thread",
            "Thread.",
        ] {
            assert_eq!(JavaMethod::parse(text), None, "{text}");
        }
    }

    #[test]
    fn types_are_named_as_in_java() {
        for (of, name) in [
            ("Ljava/lang/Object;", "java.lang.Object"),
            ("java/lang/Object", "java.lang.Object"),
            ("[I", "int[]"),
            ("I", "I"),
            ("Lambda", "Lambda"),
            ("[[Ljava/util/Map$Entry;", "java.util.Map$Entry[][]"),
            ("[LN$$Lambda+0x00007f0000c01000;", "N$$Lambda[]"),
            ("int[]", "int[]"),
        ] {
            assert_eq!(java_type_name(of, true), name, "{of}");
        }
        assert_eq!(java_type_name("N$T+0x00007f0000c01000", false), "N$T/0x00007f0000c01000");
    }
    use proptest::prelude::*;

    #[test]
    fn shapes_of_real_jdks_are_normalised() {
        for (class, normal) in [
            // JDK 8
            ("N$$Lambda$1/1324119927", "N$$Lambda"),
            ("java.lang.invoke.LambdaForm$MH/764977973", "java.lang.invoke.LambdaForm$MH"),
            ("sun/reflect/GeneratedMethodAccessor12", "sun/reflect/GeneratedMethodAccessor"),
            // JDK 11
            ("N$$Lambda$1/0x0000000800060840", "N$$Lambda"),
            ("com.sun.proxy.$Proxy0", "com.sun.proxy.$Proxy"),
            ("jdk.internal.reflect.GeneratedMethodAccessor1", "jdk.internal.reflect.GeneratedMethodAccessor"),
            ("java/lang/invoke/LambdaForm$DMH/0x0000000800066840", "java/lang/invoke/LambdaForm$DMH"),
            // JDK 17: Class.getName, the JVM's own name, JVMTI's signature without L and ;
            ("N$$Lambda$1/0x00007f7bd8000a08", "N$$Lambda"),
            ("a/b/N$$Lambda$1+0x00007f7bd8000a08", "a/b/N$$Lambda"),
            ("a/b/N$$Lambda$1.0x00007f7bd8000a08", "a/b/N$$Lambda"),
            // JDK 17 in recordings
            (
                "java/util/stream/Collectors$$Lambda$93+0x00000001000cf3e8/1074389766",
                "java/util/stream/Collectors$$Lambda",
            ),
            ("a/b/N$T+0x00000001000cf3e8/1074389766", "a/b/N$T"),
            ("jdk.proxy1.$Proxy0", "jdk.proxy.$Proxy"),
            ("jdk/proxy12/$Proxy345", "jdk/proxy/$Proxy"),
            // JDK 16 only
            ("com.sun.proxy.jdk.proxy2.$Proxy3", "com.sun.proxy.jdk.proxy.$Proxy"),
            (
                "jdk/internal/reflect/GeneratedSerializationConstructorAccessor7",
                "jdk/internal/reflect/GeneratedSerializationConstructorAccessor",
            ),
            (
                "jdk/internal/reflect/GeneratedConstructorAccessor7",
                "jdk/internal/reflect/GeneratedConstructorAccessor",
            ),
            // JDK 21 and 25
            ("N$$Lambda/0x0000000800000a08", "N$$Lambda"),
            ("N$$Lambda+0x0000000059040210", "N$$Lambda"),
            ("java.util.stream.Collectors$$Lambda/0x80000000c", "java.util.stream.Collectors$$Lambda"),
            ("java.lang.invoke.LambdaForm$MH/0x0000000059042800", "java.lang.invoke.LambdaForm$MH"),
            ("java.lang.String$$StringConcat/0x0000000059044c00", "java.lang.String$$StringConcat"),
            ("N$T/0x0000000059044c00", "N$T"),
            ("a/b/N$T+0x0000000059044c00", "a/b/N$T"),
            ("a.b.N$T.0x0000000059044c00", "a.b.N$T"),
            // any: a proxy of a non-public interface lives in the interface's package
            ("$Proxy1", "$Proxy"),
            ("com.example.$Proxy17", "com.example.$Proxy"),
        ] {
            assert_eq!(normalise_class_name(class), normal, "{class}");
            assert_eq!(normalise_class_name(normal), normal, "normalising is idempotent");
        }
    }

    #[test]
    fn names_of_programs_stay() {
        for class in [
            "",
            "N",
            "com/example/Outer$Inner",
            "com.example.Outer$1",
            "com/example/Main$$LambdaLike",
            "com/example/Main$$Lambda$name",
            "com/example/Service$$SpringCGLIB$$0",
            "com/example/Service$$EnhancerBySpringCGLIB$$1a2b3c4d",
            "java/lang/invoke/BoundMethodHandle$Species_LL",
            "java/lang/invoke/DirectMethodHandle$Holder",
            "com/example/GeneratedMethodAccessorFactory1",
            "com/example/MyGeneratedMethodAccessor1",
            "com/example/$ProxyFactory2",
            "com/example/123",
            "com/example/0xyz",
            "com/example/0x",
            "/0x1234",
            "jdk/proxyish/Foo",
            "jdk/proxy/Foo",
        ] {
            assert_eq!(normalise_class_name(class), class);
        }
    }

    #[test]
    fn methods_are_named_as_stack_traces_name_them() {
        let method = JavaMethod {
            class: "com/example/Outer$Inner",
            method: "method",
            descriptor: "(ILjava/lang/String;)V",
            normalise: true,
        };
        assert_eq!(method.name(), "com.example.Outer$Inner.method");
        assert_eq!(method.system_name(), "com/example/Outer$Inner.method(ILjava/lang/String;)V");
        let constructor = JavaMethod { class: "N", method: "<init>", descriptor: "()V", normalise: true };
        assert_eq!(
            (constructor.name(), constructor.system_name()),
            ("N.<init>".into(), "N.<init>()V".into())
        );
        let unknown = JavaMethod { class: "", method: "run", descriptor: "", normalise: true };
        assert_eq!((unknown.name(), unknown.system_name()), ("run".into(), "run".into()));
    }

    #[test]
    fn hidden_classes_keep_their_address_where_it_is_wanted() {
        let mut method =
            JavaMethod { class: "a/N$$Lambda$1+0x00ab", method: "run", descriptor: "()V", normalise: false };
        assert_eq!(method.name(), "a.N$$Lambda$1/0x00ab.run");
        method.normalise = true;
        assert_eq!(method.name(), "a.N$$Lambda.run");
        assert_eq!(method.system_name(), "a/N$$Lambda.run()V");
    }

    proptest! {
        #[test]
        fn never_panics_and_only_shortens(
            class in "(\\PC|[/.+$0-9x]|\\$\\$Lambda|jdk/proxy|LambdaForm\\$){0,20}",
        ) {
            prop_assert!(normalise_class_name(&class).len() <= class.len());
            prop_assert_eq!(java_class_name(&class).len(), class.len());
        }
    }
}
