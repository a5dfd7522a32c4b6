// The second source of `program.cpp`: a unit that shares types and inlined functions of the library with it.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace {
struct Longest {
    std::size_t length = 0;
    void add(const std::string &text) { length = std::max(length, text.size()); }
};
}  // namespace

int longest(const std::map<std::string, int> &seen) {
    Longest longest;
    std::vector<int> values;
    for (const auto &entry : seen) {
        longest.add(entry.first);
        values.push_back(entry.second);
    }
    std::sort(values.begin(), values.end());
    return static_cast<int>(longest.length) + (values.empty() ? 0 : values.back());
}
