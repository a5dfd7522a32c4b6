// Maven: org.python:jython-standalone:2.7.4

import org.python.core.PyCode;
import org.python.util.PythonInterpreter;

/** Runs Python by Jython, which compiles it to classes. */
final class JythonScript {
    private static final String SCRIPT = String.join("\n",
            "def primes(most):",
            "    found = []",
            "    for number in range(2, most):",
            "        if all(number % prime for prime in found if prime * prime <= number):",
            "            found.append(number)",
            "    return found",
            "words = {}",
            "for prime in primes(3000):",
            "    for letter in '%x' % prime:",
            "        words[letter] = words.get(letter, 0) + 1",
            "text = ', '.join(sorted('%s: %d' % pair for pair in words.items()))");

    private JythonScript() {}

    public static void main(String[] arguments) {
        long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;
        try (PythonInterpreter interpreter = new PythonInterpreter()) {
            PyCode code = interpreter.compile(SCRIPT);
            while (System.nanoTime() < end) {
                interpreter.exec(code);
                // Compiled again, so that classes are loaded and unloaded.
                interpreter.exec(SCRIPT);
            }
            System.out.println(interpreter.get("text"));
        }
    }
}
