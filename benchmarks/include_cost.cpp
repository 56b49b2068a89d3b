// include_cost.cpp: compiler time that including marey/marey.h adds to a file, compared with <string>.
#include <sys/resource.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "figure.h"

namespace {

constexpr int kRounds = 9;

double child_ms() {
    rusage use{};
    getrusage(RUSAGE_CHILDREN, &use);
    const auto ms = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
    };
    return ms(use.ru_utime) + ms(use.ru_stime);
}

/// CPU time to compile a file that only includes `header`; negative if it does not compile.
double compile_ms(const std::string& header, const std::string& standard) {
    const char* const compiler = std::getenv("CXX");
    const std::string command = "echo '#include <" + header + ">' | " +
                                (compiler != nullptr ? compiler : "c++") + " -std=" + standard +
                                " -O2 -I" MAREY_SOURCE_DIR "/include -c -o /dev/null -x c++ -";
    const double before = child_ms();
    return std::system(command.c_str()) == 0 ? child_ms() - before : -1;
}

bool measure(const std::string& name, const std::string& standard) {
    std::vector<double> added;
    for (int round = 0; round < kRounds; ++round) {
        const double string = compile_ms("string", standard);
        const double marey = compile_ms("marey/marey.h", standard);
        if (string < 0 || marey < 0) return false;
        added.push_back(marey - string);
    }
    bench::print(name, "ms", bench::median(added), "<= 150 ms");
    return true;
}

}  // namespace

int main() {
    return measure("include_cost_cpp17", "c++17") && measure("include_cost_cpp20", "c++20") ? 0 : 1;
}
