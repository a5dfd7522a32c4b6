// Inlined functions, templates and constructors, for tests of debug information.
#include <algorithm>
#include <map>
#ifdef LARGE
#include <regex>
#endif
#include <string>
#include <vector>

namespace sums {
template <class T>
struct Kept {
    T value;
    explicit Kept(T value);
    T get() const { return value; }
};
template <class T>
Kept<T>::Kept(T value) : value(value) {}
template struct Kept<int>;
}  // namespace sums

static int halved(int value) { return value > 1 ? value / 2 : value; }

int longest(const std::map<std::string, int> &seen);

int work(std::vector<int> values, std::map<std::string, int> &seen) {
    std::sort(values.begin(), values.end());
    int sum = 0;
    for (int value : values) {
        sum += halved(value);
        seen[std::to_string(value)] = sum;
    }
    struct Local {
        static int doubled(int value) { return 2 * value; }
    };
    return Local::doubled(sum) + sums::Kept<int>(sum).get() + longest(seen);
}

#ifdef LARGE
// Much code, with long chains of inlined functions.
bool matches(const std::string &text) { return std::regex_search(text, std::regex("[a-c]+(d|e)*")); }
#endif

#ifndef LIBRARY
int main(int count, char **) {
    std::map<std::string, int> seen;
    return work(std::vector<int>(count, 3), seen);
}
#endif
