// autograd.cpp: a small handwritten autograd, forward on two threads and backward on a third: every backward
// range is linked to its forward range, in the trace and as an arrow in Chrome's JSON.
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <latch>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <marey/all.h>

namespace {

using marey::Row;
using marey::Scope;

// ---- the autograd ----

using Array = std::vector<double>;

marey::ArrayView view_of(const Array& array, const std::int64_t& size) {
    return {.dtype = marey::DType::Float64, .sizes = {&size, 1}, .storage = array.data()};
}

/// Forward operations in the order in which one thread ran them. Values are identified by their index.
class Tape {
  public:
    using Index = std::size_t;

    Index leaf(Array value) {
        nodes_.push_back({"", {}, std::move(value), {}, nullptr, -1, 0});
        return nodes_.size() - 1;
    }
    Index mul(Index a, Index b) {
        return apply(
            "mul", {a, b}, [&](std::size_t i) { return at(a, i) * at(b, i); },
            [a, b](Tape& tape, const Array& gradient) {
                for (std::size_t i = 0; i < gradient.size(); ++i) {
                    tape.nodes_[a].gradient[i] += gradient[i] * tape.at(b, i);
                    tape.nodes_[b].gradient[i] += gradient[i] * tape.at(a, i);
                }
            });
    }
    Index add(Index a, Index b) {
        return apply(
            "add", {a, b}, [&](std::size_t i) { return at(a, i) + at(b, i); },
            [a, b](Tape& tape, const Array& gradient) {
                for (std::size_t i = 0; i < gradient.size(); ++i) {
                    tape.nodes_[a].gradient[i] += gradient[i];
                    tape.nodes_[b].gradient[i] += gradient[i];
                }
            });
    }
    Index sin(Index a) {
        return apply(
            "sin", {a}, [&](std::size_t i) { return std::sin(at(a, i)); },
            [a](Tape& tape, const Array& gradient) {
                for (std::size_t i = 0; i < gradient.size(); ++i)
                    tape.nodes_[a].gradient[i] += gradient[i] * std::cos(tape.at(a, i));
            });
    }
    /// Composed of other operations: it has no backward half.
    Index square(Index a) {
        marey::Operation operation(Scope::Function);
        operation.begin("square", {.sequence = marey::peek_sequence()});
        return mul(a, a);
    }

    /// Gradients of the sum of the last value with respect to every leaf. One backward range for each
    /// operation, newest first.
    void backward() {
        for (Node& node : nodes_) node.gradient.assign(node.value.size(), 0);
        nodes_.back().gradient.assign(nodes_.back().value.size(), 1);
        for (std::size_t i = nodes_.size(); i-- != 0;) {
            const Node& node = nodes_[i];
            if (node.backward == nullptr) continue;
            const auto size = static_cast<std::int64_t>(node.gradient.size());
            const marey::ArrayView gradient = view_of(node.gradient, size);
            marey::Operation operation(Scope::BackwardFunction);
            operation.begin(node.name + "_backward",
                            {.sequence = node.sequence, .forward_thread = node.thread}, {gradient});
            node.backward(*this, node.gradient);
        }
    }

    double sum() const {
        double sum = 0;
        for (const double each : nodes_.back().value) sum += each;
        return sum;
    }
    const Array& gradient(Index index) const { return nodes_[index].gradient; }
    /// Of the operations, oldest first.
    std::vector<std::string> names() const {
        std::vector<std::string> names;
        for (const Node& node : nodes_) {
            if (node.backward != nullptr) names.push_back(node.name);
        }
        return names;
    }

  private:
    struct Node {
        std::string name;
        std::vector<Index> inputs;
        Array value;
        Array gradient;
        std::function<void(Tape& tape, const Array& gradient)> backward;
        std::int64_t sequence;
        std::uint32_t thread;
    };

    double at(Index index, std::size_t i) const { return nodes_[index].value[i]; }

    Index apply(const char* name, std::vector<Index> inputs,
                const std::function<double(std::size_t)>& element,
                std::function<void(Tape&, const Array&)> backward) {
        const auto size = static_cast<std::int64_t>(nodes_[inputs.front()].value.size());
        std::vector<marey::ArrayView> views;
        for (const Index input : inputs) views.push_back(view_of(nodes_[input].value, size));
        const std::vector<marey::Value> values(views.begin(), views.end());
        marey::Operation operation(Scope::Function);
        operation.begin(name, {.sequence = marey::peek_sequence()}, values);
        Node node{name,
                  std::move(inputs),
                  {},
                  {},
                  std::move(backward),
                  marey::take_sequence(),
                  marey::current_thread_id()};
        for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) node.value.push_back(element(i));
        nodes_.push_back(std::move(node));
        return nodes_.size() - 1;
    }

    std::vector<Node> nodes_;
};

constexpr std::size_t kElements = 3;

void first_graph(Tape& tape, const Array& x, const Array& y) {  // sin(xy) + x^2
    const Tape::Index a = tape.leaf(x), b = tape.leaf(y);
    const Tape::Index wave = tape.sin(tape.mul(a, b));
    tape.add(wave, tape.square(a));
}

void second_graph(Tape& tape, const Array& x, const Array& y) {  // sin(x + y) x y + y
    const Tape::Index a = tape.leaf(x), b = tape.leaf(y);
    const Tape::Index wave = tape.sin(tape.add(a, b));
    tape.add(tape.mul(tape.mul(wave, a), b), b);
}

using Graph = void (*)(Tape& tape, const Array& x, const Array& y);

/// The leaves of both graphs are values 0 and 1 of their tapes.
void check_gradient(Graph graph, const Tape& tape, const Array& x, const Array& y) {
    constexpr double kStep = 1e-5;
    const auto sum_at = [&](std::size_t leaf, std::size_t i, double step) {
        Array moved[2] = {x, y};
        moved[leaf][i] += step;
        Tape other;
        graph(other, moved[0], moved[1]);
        return other.sum();
    };
    for (std::size_t leaf = 0; leaf < 2; ++leaf) {
        for (std::size_t i = 0; i < kElements; ++i) {
            const double slope = (sum_at(leaf, i, kStep) - sum_at(leaf, i, -kStep)) / (2 * kStep);
            EXPECT_NEAR(tape.gradient(leaf)[i], slope, 1e-7) << "leaf " << leaf << ", element " << i;
        }
    }
}

// ---- the expected trace ----

struct Training {
    marey::Trace trace;
    Tape tapes[2];
    std::uint32_t threads[2] = {};
    std::uint32_t engine = 0;
    std::string output_path;
};

Training run_under(const marey::SessionOptions& options) {
    const Array x{0.3, -1.2, 2.5}, y{1.7, 0.4, -0.6};
    static constexpr Graph kGraphs[] = {first_graph, second_graph};
    Training training;
    marey::Session session(options);
    std::latch forwards(2), all(3);  // all live to the end, so that no system thread id occurs twice
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&, i] {
            training.threads[i] = marey::current_thread_id();
            kGraphs[i](training.tapes[i], x, y);
            forwards.count_down();
            all.arrive_and_wait();
        });
    }
    threads.emplace_back([&] {
        training.engine = marey::current_thread_id();
        forwards.wait();
        for (Tape& tape : training.tapes) tape.backward();
        all.arrive_and_wait();
    });
    for (std::thread& thread : threads) thread.join();
    training.trace = session.stop();
    training.output_path = session.output_path();
    for (int i = 0; i < 2; ++i) check_gradient(kGraphs[i], training.tapes[i], x, y);
    return training;
}

/// Ranges of a thread, in order, except the composite one.
std::vector<Row> rows_of(const marey::Trace& trace, std::uint32_t thread) {
    std::vector<Row> rows;
    for (Row row = 0; row < trace.ranges().size(); ++row) {
        if (trace.threads()[trace.tracks()[trace.track_of(row)].thread].id == thread &&
            trace.range_name(row) != "square")
            rows.push_back(row);
    }
    return rows;
}

/// From forward rows to backward rows, according to the tapes.
std::map<Row, Row> expected_links(const Training& training, const marey::Trace& trace) {
    std::map<Row, Row> links;
    const std::vector<Row> backward = rows_of(trace, training.engine);
    auto next = backward.begin();
    for (int i = 0; i < 2; ++i) {
        const std::vector<std::string> names = training.tapes[i].names();
        const std::vector<Row> forward = rows_of(trace, training.threads[i]);
        EXPECT_EQ(forward.size(), names.size());
        if (forward.size() != names.size()) return links;
        for (std::size_t k = names.size(); k-- != 0;) {
            EXPECT_EQ(trace.range_name(forward[k]), names[k]);
            if (next == backward.end()) return links;
            EXPECT_EQ(trace.range_name(*next), names[k] + "_backward");
            links[forward[k]] = *next++;
        }
    }
    EXPECT_EQ(next, backward.end());
    return links;
}

void check_links(const Training& training, const marey::Trace& trace) {
    const std::map<Row, Row> expected = expected_links(training, trace);
    EXPECT_EQ(expected.size(), 9u);
    std::map<Row, Row> found;
    for (const marey::LinkInfo& link : trace.links()) {
        EXPECT_EQ(link.kind, marey::LinkKind::ForwardBackward);
        EXPECT_TRUE(found.emplace(link.from, link.to).second);
        const marey::RangeDetail* const from = trace.range_detail(link.from);
        const marey::RangeDetail* const to = trace.range_detail(link.to);
        ASSERT_TRUE(from != nullptr && to != nullptr);
        EXPECT_EQ(from->sequence, to->sequence);
        EXPECT_EQ(from->forward_thread, 0u);
        EXPECT_EQ(to->forward_thread, trace.threads()[trace.tracks()[trace.track_of(link.from)].thread].id);
    }
    EXPECT_EQ(found, expected);
}

/// The text of a field of an event on a separate line.
std::string field(const std::string& event, const std::string& name) {
    const std::size_t at = event.find("\"" + name + "\":");
    if (at == std::string::npos) return "";
    const std::size_t start = at + name.size() + 3;
    const std::size_t end =
        event[start] == '"' ? event.find('"', start + 1) + 1 : event.find_first_of(",}", start);
    return event.substr(start, end - start);
}

struct FlowEnd {
    std::string tid, ts;
    friend bool operator==(const FlowEnd&, const FlowEnd&) = default;
    friend auto operator<=>(const FlowEnd&, const FlowEnd&) = default;
};

std::vector<std::string> chrome_lines(const marey::Trace& trace) {
    std::stringstream json;
    marey::write_chrome_json(trace, json);
    std::vector<std::string> lines;
    for (std::string line; std::getline(json, line);) lines.push_back(line);
    return lines;
}

FlowEnd place_of(const marey::Trace& trace, Row row) {
    const std::int64_t ns = trace.ranges().start_ns[row] - trace.window().start_ns;
    const std::string rest = std::to_string(1000 + ns % 1000).substr(1);
    return {std::to_string(trace.threads()[trace.tracks()[trace.track_of(row)].thread].os_tid),
            std::to_string(ns / 1000) + "." + rest};
}

void check_arrows(const Training& training, const marey::Trace& trace) {
    std::map<std::string, FlowEnd> starts, finishes;    // by id
    std::map<FlowEnd, std::vector<std::string>> names;  // of ranges that begin there
    for (const std::string& line : chrome_lines(trace)) {
        const std::string kind = field(line, "ph");
        const FlowEnd place{field(line, "tid"), field(line, "ts")};
        if (kind == "\"X\"") names[place].push_back(field(line, "name"));
        if (kind != "\"s\"" && kind != "\"f\"") continue;
        EXPECT_EQ(field(line, "cat"), "\"fwdbwd\"");
        EXPECT_EQ(field(line, "name"), "\"fwdbwd\"");
        if (kind == "\"f\"") {
            EXPECT_EQ(field(line, "bp"), "\"e\"");
        }
        EXPECT_TRUE((kind == "\"s\"" ? starts : finishes).emplace(field(line, "id"), place).second) << line;
    }
    std::multimap<FlowEnd, FlowEnd> arrows, expected;
    EXPECT_EQ(starts.size(), finishes.size());
    for (const auto& [id, start] : starts) {
        ASSERT_TRUE(finishes.contains(id)) << id;
        arrows.emplace(start, finishes[id]);
    }
    for (const auto& [from, to] : expected_links(training, trace)) {
        expected.emplace(place_of(trace, from), place_of(trace, to));
        for (const Row row : {from, to}) {
            const std::vector<std::string>& there = names[place_of(trace, row)];
            EXPECT_TRUE(
                std::count(there.begin(), there.end(), "\"" + std::string(trace.range_name(row)) + "\""))
                << trace.range_name(row);
        }
    }
    EXPECT_EQ(arrows, expected);
}

void check_shapes(const Training& training, const marey::Trace& trace, bool are_there) {
    for (const auto& [from, to] : expected_links(training, trace)) {
        const bool is_unary = trace.range_name(from) == "sin";
        for (const Row row : {from, to}) {
            const std::span<const marey::Argument> arguments = trace.range_arguments(row);
            const std::size_t count = row == from && !is_unary ? 2 : 1;
            ASSERT_EQ(arguments.size(), are_there ? count : 0u) << trace.range_name(row);
            for (const marey::Argument& argument : arguments) {
                EXPECT_EQ(argument.role, marey::ArgumentRole::Input);
                ASSERT_EQ(argument.kind, marey::ValueKind::Array);
                const marey::ArrayInfo& array = trace.arrays()[argument.array];
                EXPECT_EQ(array.dtype, marey::DType::Float64);
                ASSERT_EQ(array.dimensions, 1u);
                EXPECT_EQ(trace.array_extents()[array.first_extent], static_cast<std::int64_t>(kElements));
            }
        }
    }
    int binary = 0, unary = 0, all = 0;
    for (const std::string& line : chrome_lines(trace)) {
        all += line.find("\"Input Dims\":") != std::string::npos;
        binary += line.find("\"Input Dims\":[[3],[3]]") != std::string::npos;
        unary += line.find("\"Input Dims\":[[3]]") != std::string::npos;
    }
    EXPECT_EQ(binary, are_there ? 7 : 0);
    EXPECT_EQ(unary, are_there ? 2 + 9 : 0);
    EXPECT_EQ(all, binary + unary);
}

class Autograd : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = (std::filesystem::temp_directory_path() / "marey_autograd_XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string path(const char* name) const { return folder_ / name; }

  private:
    std::filesystem::path folder_;
};

}  // namespace

TEST_F(Autograd, EveryBackwardRangeIsLinkedToItsForwardRangeAndAnArrowShowsIt) {
    const Training training = run_under({});
    EXPECT_TRUE(training.trace.problems().empty());
    check_links(training, training.trace);
    check_arrows(training, training.trace);
    check_shapes(training, training.trace, false);
}

TEST_F(Autograd, ShowsTheShapesOfItsInputsWhenRequested) {
    const Training training = run_under({.record_shapes = true});
    check_links(training, training.trace);
    check_arrows(training, training.trace);
    check_shapes(training, training.trace, true);
}

TEST_F(Autograd, IsTheSameInATraceThatWasLoadedOrSaved) {
    const Training training = run_under({.output = path("autograd.marey"), .record_shapes = true});
    training.trace.save(path("saved.marey"));
    for (const std::string& each : {training.output_path, path("saved.marey")}) {
        SCOPED_TRACE(each);
        const marey::Trace loaded = marey::Trace::load(each);
        check_links(training, loaded);
        check_arrows(training, loaded);
        check_shapes(training, loaded, true);
    }
}

TEST_F(Autograd, IsCorrectWhenNothingRecords) {
    Tape tape;
    const Array x{1, 2, 3}, y{4, 5, 6};
    first_graph(tape, x, y);
    tape.backward();
    check_gradient(first_graph, tape, x, y);
}
