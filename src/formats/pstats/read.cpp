// read.cpp: reads the statistics of Python's cProfile. They hold the callers of each function but no paths,
// so the stacks are estimates: a function's time is divided among its callers as their total times are.
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <marey/error.h>

#include "formats/formats.h"
#include "formats/pstats/marshal.h"
#include "formats/sampled_profile.h"

namespace marey {
namespace {

class PstatsReader {
  public:
    PstatsReader(std::string_view bytes, const std::string& name)
        : profile_(name, bytes.size()), name_(name) {
        MarshalObject root;
        const std::string error = read_marshal(bytes, root);
        if (!error.empty()) throw Error(name + ": not a file of cProfile: " + error);
        if (root.kind != MarshalObject::Kind::Dictionary || root.items.empty())
            throw Error(name + ": not a file of cProfile, or one without functions");
        for (std::size_t i = 0; i + 1 < root.items.size(); i += 2)
            read_function(root.items[i], root.items[i + 1]);
        for (std::size_t i = 0; i + 1 < root.items.size(); i += 2)
            read_callers(root.items[i], root.items[i + 1]);
        if (functions_.empty()) throw Error(name + ": a file of cProfile without functions");
    }

    Trace read() {
        lane_ = profile_.lane(0, "", 0, "cProfile");
        for (std::uint32_t i = 0; i < functions_.size(); ++i) {
            if (const double share = outside_share(functions_[i]); share > 0) walk(i, share);
        }
        for (Function& function : functions_) add_rest(function);
        if (cut_ != 0)
            profile_.assembler().add_problem(
                "cut_paths", "Recursive and very rare paths were cut; their time is outside their callers.",
                cut_);
        profile_.assembler().add_problem("timeless_functions",
                                         "Functions without a measurable time were left out.", timeless_);
        profile_.assembler().add_problem(
            "estimated_paths",
            has_calls_ ? "cProfile records callers, not paths: total times are estimates; "
                         "calls and self times of functions are exact."
                       : "The file has callers, not paths: total times are estimates.",
            1);
        return profile_.finish_merged();
    }

  private:
    using Key = std::tuple<std::string, std::int64_t, std::string>;
    struct Callee {
        std::uint32_t function;
        std::int64_t total_ns;
    };
    struct Function {
        std::uint32_t site = 0;
        std::int64_t self_ns = 0;
        std::int64_t rest_ns = 0;  ///< self time that no path has yet
        std::uint64_t rest_calls = 0;
        std::int64_t total_ns = 0;
        std::int64_t callers_ns = 0;  ///< total time in all callers; 0: it has none
        double calls = 0, outermost_calls = 0, known_calls = 0;  ///< known: with a caller
        std::vector<Callee> callees;
        std::int64_t paths = 0;
        std::uint32_t last_path = kNoRow;
        bool is_open = false;
    };
    static constexpr std::size_t kMaxPaths = 200'000;
    static constexpr double kMaxCalls = 1e15;
    static constexpr double kLeastShare = 1e-6;
    static constexpr double kLeastOutside = 1e-3;  ///< less is from rounding
    static constexpr std::size_t kMaxDepth = 500;

    static bool read_key(const MarshalObject& object, Key& key) {
        using Kind = MarshalObject::Kind;
        if (object.kind != Kind::Tuple || object.items.size() != 3) return false;
        key = {object.items[0].text, object.items[1].integer, object.items[2].text};
        return true;
    }
    static std::int64_t nanoseconds(const MarshalObject& object) {
        const double ns = object.number() * 1e9;
        return ns > 0 && ns < 1e17 ? std::llround(ns) : 0;
    }

    void read_function(const MarshalObject& object, const MarshalObject& values) {
        Key key;
        if (!read_key(object, key) || values.items.size() != 5) {
            ++unread_;
            return;
        }
        const auto [place, is_new] = index_.try_emplace(key, static_cast<std::uint32_t>(functions_.size()));
        if (!is_new) return;
        const auto& [file, line, name] = key;
        Function& function = functions_.emplace_back();
        const bool has_file = file != "~" && !file.empty();
        function.site = profile_.frame(name, has_file ? file : "", line);
        function.outermost_calls = values.items[0].number();
        function.calls = values.items[1].number();
        // Tools that sample write a negative number (pyinstrument).
        has_calls_ = has_calls_ && function.calls >= 0;
        function.rest_calls =
            function.calls < kMaxCalls ? static_cast<std::uint64_t>(std::max(function.calls, 0.0)) : 0;
        function.self_ns = function.rest_ns = nanoseconds(values.items[2]);
        function.total_ns = nanoseconds(values.items[3]);
    }
    void read_callers(const MarshalObject& object, const MarshalObject& values) {
        Key key, caller;
        if (!read_key(object, key) || values.items.size() != 5) return;
        const std::uint32_t callee = index_.at(key);
        const std::vector<MarshalObject>& callers = values.items[4].items;
        for (std::size_t i = 0; i + 1 < callers.size(); i += 2) {
            if (!read_key(callers[i], caller) || callers[i + 1].items.size() != 4) continue;
            const auto place = index_.find(caller);
            functions_[callee].known_calls += callers[i + 1].items[0].number();
            if (place == index_.end() || place->second == callee) continue;
            const std::int64_t total = std::max<std::int64_t>(nanoseconds(callers[i + 1].items[3]), 1);
            functions_[callee].callers_ns += total;
            functions_[place->second].callees.push_back({callee, total});
        }
    }

    /// The share of a function's time in calls without a caller: those that were running when cProfile
    /// started, or that the profiled code begins with. exec() is one: it runs the program, which calls it
    /// again for each import.
    static double outside_share(const Function& function) {
        if (function.callers_ns == 0) return 1;
        const double total = static_cast<double>(function.total_ns);
        const double share = 1 - static_cast<double>(function.callers_ns) / std::max(total, 1.0);
        if (!(function.calls > function.known_calls) || share < kLeastOutside) return 0;
        return function.outermost_calls < function.calls ? 1 : share;  // the recursive calls are inside
    }

    /// Adds calls to the last path of a function.
    void add_calls(Function& function, std::uint64_t calls) {
        if (has_calls_) profile_.add_calls(lane_, function.last_path, calls);
        function.rest_calls -= calls;
    }

    /// Adds what no path has: from rounding, from paths that were cut off, and of functions that only call
    /// each other.
    void add_rest(Function& function) {
        const bool is_rounding = function.last_path != kNoRow && function.rest_ns <= function.paths;
        if (is_rounding) {
            profile_.add_more(lane_, function.last_path, function.rest_ns);
        } else if (function.rest_ns > 0) {
            function.last_path = profile_.add(lane_, std::span(&function.site, 1), function.rest_ns);
        } else {
            ++timeless_;
            return;
        }
        add_calls(function, function.rest_calls);
    }

    /// Adds the paths from a function on; `share` of its time belongs to the current path. Returns whether
    /// they have any time.
    bool walk(std::uint32_t index, double share) {
        Function& function = functions_[index];
        if (function.is_open || share < kLeastShare || paths_ >= kMaxPaths || stack_.size() >= kMaxDepth) {
            ++cut_;
            return false;
        }
        ++paths_;
        ++function.paths;
        stack_.push_back(function.site);
        const auto part = std::min(static_cast<std::int64_t>(static_cast<double>(function.self_ns) * share),
                                   function.rest_ns);
        if (part > 0) {
            function.last_path = profile_.add(lane_, stack_, part);
            function.rest_ns -= part;
            const auto calls =
                static_cast<std::uint64_t>(std::llround(std::max(function.calls, 0.0) * share));
            add_calls(function, std::min(calls, function.rest_calls));
        }
        bool has_time = part > 0;
        function.is_open = true;
        for (const Callee& callee : function.callees) {
            const Function& called = functions_[callee.function];
            const double its = static_cast<double>(callee.total_ns) / static_cast<double>(called.callers_ns);
            has_time = walk(callee.function, share * its * (1 - outside_share(called))) || has_time;
        }
        function.is_open = false;
        // A function without a self time is a range around those that it calls.
        if (has_time && function.last_path == kNoRow) function.last_path = profile_.path(lane_, stack_);
        stack_.pop_back();
        return has_time;
    }

    SampledProfile profile_;
    std::string name_;
    std::vector<Function> functions_;
    std::map<Key, std::uint32_t> index_;
    std::uint32_t lane_ = 0;
    bool has_calls_ = true;
    std::vector<std::uint32_t> stack_;
    std::size_t paths_ = 0;
    std::uint64_t cut_ = 0, unread_ = 0, timeless_ = 0;
};

Trace read_pstats_bytes(std::string_view bytes, const std::string& name) {
    return PstatsReader(bytes, name).read();
}

/// A dictionary whose first key is a tuple.
bool is_pstats(std::span<const std::byte> head) noexcept {
    const auto kind = [&](std::size_t i) {
        return static_cast<char>(static_cast<std::uint8_t>(head[i]) & 0x7f);
    };
    return head.size() > 2 && kind(0) == '{' && (kind(1) == '(' || kind(1) == ')');
}

}  // namespace

void write_pstats(const Trace& trace, const std::string& path);  // write.cpp

FileFormat pstats_format() {
    static constexpr std::string_view kSuffixes[] = {".prof", ".pstats"};
    return {"pstats",
            "cProfile statistics, for pstats, SnakeViz and gprof2dot",
            "threads, GPU work, async ranges",
            kSuffixes,
            write_pstats,
            is_pstats,
            read_pstats_bytes};
}

}  // namespace marey
