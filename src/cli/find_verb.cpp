// find_verb.cpp: marey find: the captures and ranges of a distributed trace.
#include <algorithm>
#include <cctype>

#include <marey/import.h>
#include <marey/results.h>

#include "cli/result_argument.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class FindVerb final : public Verb {
  public:
    const char* help() const override { return "Find the ranges of a distributed trace in captures"; }
    const char* details() const override {
        return "ID is a trace id as Jaeger and Tempo show it, its first 8 or more digits, or a traceparent\n"
               "header. FILE may be a folder, which stands for the captures in it. Ranges have the id of\n"
               "their trace as the value traceparent or trace_id. Files that cannot be read are named and\n"
               "skipped.";
    }
    void declare(Options& options) override {
        options.required(id_, "ID", "Trace id, its first digits, or a traceparent header");
        options.required(files_, "FILE", "Marey captures, or folders of them");
        output_.declare(options);
    }
    int run() override {
        output_.check();
        const std::string start = id_start();
        Result result = make_result({}, "find");
        for (const std::string& path : capture_paths(files_, true)) {
            try {
                result.tables[0].append(found_in(path, start));
            } catch (const Error& error) {
                print_error(fmt::format("marey: skipped: {}\n", printable(error.what())));
            }
        }
        if (result.tables[0].rows == 0) throw Error("no range has the trace id " + start);
        return output_.print(result, [&] { return output_.lines(result.tables[0], standard_output()); });
    }

  private:
    /// The digits that the id has to start with.
    std::string id_start() const {
        constexpr std::size_t kHeaderSize = 55, kIdPlace = 3, kIdSize = 32, kLeast = 8;
        std::string start = id_.size() == kHeaderSize && id_[2] == '-' ? id_.substr(kIdPlace, kIdSize) : id_;
        std::transform(start.begin(), start.end(), start.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        if (start.size() < kLeast || start.size() > kIdSize ||
            start.find_first_not_of("0123456789abcdef") != std::string::npos)
            throw Error("invalid trace id '" + id_ +
                        "': expected 8 to 32 hexadecimal digits, or a traceparent header");
        return start;
    }

    static ResultTable found_in(const std::string& path, const std::string& start) {
        const Progress progress("reading " + path);
        const Trace trace = open_trace(path);
        return found_result(trace, ranges_with_trace_id(trace, start), path).tables[0];
    }

    std::string id_;
    std::vector<std::string> files_;
    ResultArgument output_{.verb = "find", .table = "found_ranges"};
};

}  // namespace

MAREY_VERB(find, FindVerb)

}  // namespace marey::cli
