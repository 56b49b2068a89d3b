// environment.cpp: what environment variables request. docs/reference/environment.md lists them.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <string_view>

#include <marey/control.h>
#include <marey/error.h>
#include <marey/execution_trace.h>
#include <marey/observe.h>

#include "base/environment.h"
#include "base/process_text.h"
#include "record/process_identity.h"
#include "record/process_report.h"
#include "record/recorder.h"
#include "record/recorder_parts.h"
#include "record/source_writer.h"

/// Defined only by the command `marey`, which uses this library and must not record itself.
extern "C" __attribute__((weak, visibility("default"))) const char marey_is_the_command;

namespace marey {
namespace {

// The meaning of "c_calls=auto", which depends on the program's Python.
std::atomic<bool> auto_c_calls{true};

// A program with a small RLIMIT_AS must not end because it is recorded. With less than this a capture could
// not be mapped. Not malloc() and free(): gcc 16 takes such a pair out and answers that there is memory.
void check_memory() {
    constexpr std::size_t kBytes = std::size_t{2} << 20;
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    munmap(memory, kBytes);
}

// So that `marey run` names this process among those that were not recorded.
void report_failure(const std::string& text, std::string_view reason) noexcept {
    RequestedTree tree;
    if (!parse_tree(text, tree)) return;
    try {
        const ScopedLock lock(recorder_mutex);
        report_unrecorded(tree_text(tree.id), reason);
    } catch (const std::bad_alloc&) {
        return;
    }
}

}  // namespace

void warn(std::string_view text) noexcept {
    const std::string line = "marey: " + std::string(text) + "\n";
    if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;  // there is nothing else to do
}

ExecutionTraceRequest execution_trace_request() {
    ExecutionTraceRequest request;
    const std::string ours = environment_text("MAREY_EXECUTION_TRACE");
    request.is_wanted = !ours.empty() && ours != "0";
    if (ours != "0" && ours != "1") request.path = ours;
    request.with_resources = environment_text("MAREY_EXECUTION_TRACE_EXTRAS") == "1";
    return request;
}

bool environment_requests_calls() noexcept {
    try {
        return parse_options(environment_text("MAREY")).with_stack;
    } catch (const std::exception&) {
        return false;  // start_environment_session() reports it
    }
}

void begin_environment_session(bool records_c_calls) noexcept {
    auto_c_calls = records_c_calls;
    start_environment_session();
}

void start_environment_session() noexcept {
    std::string text;
    try {
        text = environment_text("MAREY");
        if (text.empty() || &marey_is_the_command != nullptr) return;
        check_memory();
        SessionOptions options = parse_options(text, auto_c_calls);
        if (options.control) allow_control();
        if (options.output.empty() && options.control) return;
        if (options.output.empty())
            throw Error("out= is missing: set it to the path of the capture, as in MAREY=out=app.marey");
        const int rank = environment_rank();
        if (rank >= 0) set_node_id(rank);
        // Each process of a distributed program started by `marey run --torch` has a rank.
        if (environment_text("MAREY_TORCH") == "1") options.output = path_of_rank(options.output, rank);
        pass_tree_on(text);
        Recorder::get().start_for_environment(options);
    } catch (const std::bad_alloc&) {
        constexpr std::string_view kText =
            "marey: not recording: less than 2 MiB of memory left (see ulimit -v)\n";
        if (write(STDERR_FILENO, kText.data(), kText.size()) < 0) return;  // warn() needs memory
        report_failure(text, "less than 2 MiB of memory left");
    } catch (const std::exception& error) {
        warn("not recording: MAREY=" + text + ": " + error.what());
        report_failure(text, error.what());
    }
}

}  // namespace marey
