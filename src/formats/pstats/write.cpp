// write.cpp: writes the statistics of Python's cProfile and pstats: a marshalled dictionary from each
// function to its calls, times and callers.
#include <algorithm>
#include <bit>
#include <unordered_map>

#include <marey/export.h>
#include <marey/samples.h>

#include "analyze/tree/child_index.h"
#include "base/output_file.h"
#include "formats/merged_functions.h"

namespace marey {
namespace {

/// Writes Python objects as the module marshal does (version 2, without references).
class MarshalWriter {
  public:
    explicit MarshalWriter(OutputFile& file) : file_(file) {}

    void begin_dictionary() { file_.write("{"); }
    void end_dictionary() { file_.write("0"); }
    void begin_tuple(std::uint32_t size) { tagged('(', size, 4); }
    /// `text` is UTF-8.
    void text(std::string_view text) {
        tagged('u', text.size(), 4);
        file_.write(text);
    }
    void seconds(std::int64_t ns) {
        tagged('g', std::bit_cast<std::uint64_t>(static_cast<double>(ns) / 1e9), 8);
    }
    void integer(std::uint64_t value) {
        if (value <= 0x7fffffff) return tagged('i', value, 4);
        // Digits of 15 bits, lowest first.
        std::uint32_t count = 0;
        for (std::uint64_t rest = value; rest != 0; rest >>= 15) ++count;
        tagged('l', count, 4);
        for (; value != 0; value >>= 15) little_endian(value & 0x7fff, 2);
    }

  private:
    void tagged(char tag, std::uint64_t value, int bytes) {
        char* const out = file_.reserve(1);
        *out = tag;
        file_.advance(out + 1);
        little_endian(value, bytes);
    }
    void little_endian(std::uint64_t value, int bytes) {
        char* out = file_.reserve(8);
        for (int i = 0; i < bytes; ++i) *out++ = static_cast<char>(value >> (8 * i));
        file_.advance(out);
    }

    OutputFile& file_;
};

class PstatsProfile {
  public:
    PstatsProfile(const Trace& trace, const std::string& path)
        : merged_(merge_functions(trace)), file_(path), marshal_(file_) {}

    void write() {
        add_up();
        std::vector<std::pair<std::uint64_t, Times>> edges(edges_.begin(), edges_.end());
        std::ranges::sort(edges, {}, &std::pair<std::uint64_t, Times>::first);
        marshal_.begin_dictionary();
        auto edge = edges.begin();
        for (std::uint32_t function = 0; function < times_.size(); ++function) {
            if (!is_called_[function]) continue;
            write_key(function);
            marshal_.begin_tuple(5);
            write_times(times_[function]);
            marshal_.begin_dictionary();
            for (; edge != edges.end() && edge->first >> 32 == function; ++edge) {
                write_key(static_cast<std::uint32_t>(edge->first));
                marshal_.begin_tuple(4);
                write_times(edge->second);
            }
            marshal_.end_dictionary();
        }
        marshal_.end_dictionary();
        file_.commit();
    }

  private:
    /// Recursive calls are not primitive, and their total is part of the outermost call's.
    struct Times {
        std::uint64_t primitive_calls = 0;
        std::uint64_t calls = 0;
        std::int64_t self_ns = 0;
        std::int64_t total_ns = 0;
        std::uint32_t open = 0;  ///< on the current path

        void enter(const PathTree::Node& node) {
            calls += node.count;
            self_ns += node.self_ns;
            if (open++ != 0) return;
            primitive_calls += node.count;
            total_ns += node.total_ns;
        }
    };

    void add_up() {
        const std::vector<PathTree::Node>& nodes = merged_.ranges.tree.nodes;
        times_.resize(merged_.functions.size());
        is_called_.resize(merged_.functions.size());
        std::vector<std::uint32_t> parents, order;
        for (std::uint32_t i = 0; i < nodes.size(); ++i) {
            parents.push_back(nodes[i].parent);
            order.push_back(i);
        }
        const ChildIndex children(parents, order);
        struct Step {
            std::uint32_t node;
            bool is_end;
        };
        std::vector<Step> steps;
        for (const std::uint32_t root : children.roots()) {
            if (is_host_call(nodes[root])) steps.push_back({root, false});
        }
        while (!steps.empty()) {
            const auto [index, is_end] = steps.back();
            steps.pop_back();
            const PathTree::Node& node = nodes[index];
            Times* const edge = node.parent == kNoRow ? nullptr : &edge_to(node);
            if (is_end) {
                --times_[node.slot].open;
                if (edge != nullptr) --edge->open;
                continue;
            }
            is_called_[node.slot] = true;
            times_[node.slot].enter(node);
            if (edge != nullptr) edge->enter(node);
            steps.push_back({index, true});
            for (const std::uint32_t child : children.of(index)) steps.push_back({child, false});
        }
    }
    Times& edge_to(const PathTree::Node& node) {
        const std::uint32_t caller = merged_.ranges.tree.nodes[node.parent].slot;
        return edges_[std::uint64_t{node.slot} << 32 | caller];
    }

    /// As cProfile does, "~" is the file of a function without one.
    void write_key(std::uint32_t index) {
        const ProfileFunction& function = merged_.functions[index];
        marshal_.begin_tuple(3);
        marshal_.text(function.file.empty() ? "~" : function.file);
        marshal_.integer(function.line);
        marshal_.text(function.name);
    }
    void write_times(const Times& times) {
        marshal_.integer(times.primitive_calls);
        marshal_.integer(times.calls);
        marshal_.seconds(times.self_ns);
        marshal_.seconds(times.total_ns);
    }

    MergedFunctions merged_;
    OutputFile file_;
    MarshalWriter marshal_;
    std::vector<Times> times_;                        ///< per function
    std::vector<bool> is_called_;                     ///< per function: on a thread
    std::unordered_map<std::uint64_t, Times> edges_;  ///< by callee and caller
};

}  // namespace

void write_pstats(const Trace& trace, const std::string& path) {
    PstatsProfile(with_sampled_functions(trace), path).write();
}

}  // namespace marey
