// sample_report.cpp: adds up samples by function, line, thread, range or step.
#include <algorithm>
#include <map>
#include <unordered_map>

#include <marey/known_waits.h>
#include <marey/samples.h>

#include "analyze/result_keys.h"
#include "analyze/samples/stack_functions.h"
#include "analyze/tree/step_ranges.h"

namespace marey {
namespace {

struct Weight {
    std::int64_t running_ns = 0;
    std::int64_t waiting_ns = 0;
    std::uint64_t samples = 0;

    void add(const Weight& other) {
        running_ns += other.running_ns;
        waiting_ns += other.waiting_ns;
        samples += other.samples;
    }
    bool is_empty() const { return samples == 0; }
};

Weight weight_of(const SampleColumns& samples, std::size_t i) {
    return {samples.cpu_ns[i], samples.duration_ns[i], 1};
}

/// The rows of a report while they grow.
class RowSums {
  public:
    explicit RowSums(std::vector<SampledRow>& rows) : rows_(rows) {}

    SampledRow& row(std::uint64_t key, auto describe) {
        const auto [at, is_new] = index_.try_emplace(key, rows_.size());
        if (is_new) rows_.push_back(describe());
        return rows_[at->second];
    }
    static void add_self(SampledRow& row, const Weight& weight) {
        row.self_ns += weight.running_ns;
        row.self_waiting_ns += weight.waiting_ns;
        row.samples += weight.samples;
    }
    static void add_total(SampledRow& row, const Weight& weight) {
        row.total_ns += weight.running_ns;
        row.waiting_ns += weight.waiting_ns;
    }

  private:
    std::vector<SampledRow>& rows_;
    std::unordered_map<std::uint64_t, std::size_t> index_;
};

/// `first` and the elements around it, as next(element) tells: adds `weight` to each row once.
void add_path(RowSums& sums, const Weight& self, const Weight& total, auto first, auto next, auto key_of,
              auto describe) {
    const auto key = key_of(first);
    SampledRow& row = sums.row(key, [&] { return describe(first); });
    RowSums::add_self(row, self);
    for (auto at = next(first); at != kNoRow; at = next(at)) {
        if (key_of(at) == key) return;  // recursion: the outer one has the total
    }
    RowSums::add_total(row, total);
}

constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

void add_by_place(const Trace& trace, bool by_line, std::vector<SampledRow>& rows) {
    const SampleColumns samples = trace.samples();
    const StackFunctions functions(trace);
    RowSums sums(rows);
    std::vector<Weight> own(functions.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const Row stack = samples.stack[i] == kNoRow ? kNoRow : functions.shown(samples.stack[i]);
        if (stack != kNoRow) {
            own[stack].add(weight_of(samples, i));
            continue;
        }
        SampledRow& unknown = sums.row(kUnknown, [] { return SampledRow{.name = "(unknown)"}; });
        RowSums::add_self(unknown, weight_of(samples, i));
        RowSums::add_total(unknown, weight_of(samples, i));
    }
    std::vector<Weight> total = own;
    for (Row i = static_cast<Row>(functions.size()); i-- > 0;) {
        if (functions.is_shown(i) && functions.outer(i) != kNoRow) total[functions.outer(i)].add(total[i]);
    }
    // The place of a frame without a line is its function.
    const auto key_of = [&](Row stack) -> std::uint64_t {
        const FrameInfo& frame = functions.frame(stack);
        const bool has_line = by_line && frame.file != 0 && frame.line != 0;
        return has_line ? std::uint64_t{frame.file} << 32 | frame.line : std::uint64_t{frame.name};
    };
    const auto describe = [&](Row stack) {
        const FrameInfo& frame = functions.frame(stack);
        SampledRow row{.name = std::string(trace.string(frame.name)),
                       .file = std::string(trace.string(frame.file))};
        if (by_line) row.line = frame.line;
        return row;
    };
    for (Row i = 0; i < functions.size(); ++i) {
        if (!total[i].is_empty())
            add_path(
                sums, own[i], total[i], i, [&](Row at) { return functions.outer(at); }, key_of, describe);
    }
}

void add_by_thread(const Trace& trace, std::vector<SampledRow>& rows) {
    const SampleColumns samples = trace.samples();
    RowSums sums(rows);
    for (std::size_t i = 0; i < samples.size(); ++i) {
        SampledRow& row = sums.row(samples.thread[i], [&] {
            return SampledRow{.name = thread_name(trace, samples.thread[i]).value_or("")};
        });
        RowSums::add_self(row, weight_of(samples, i));
        RowSums::add_total(row, weight_of(samples, i));
    }
}

void add_by_range(const Trace& trace, std::vector<SampledRow>& rows) {
    const SampleColumns samples = trace.samples();
    const RangeColumns ranges = trace.ranges();
    RowSums sums(rows);
    std::map<Row, Weight> own;
    for (std::size_t i = 0; i < samples.size(); ++i) own[samples.range[i]].add(weight_of(samples, i));
    const auto next = [&](Row range) { return range == kNoRow ? kNoRow : ranges.parent[range]; };
    const auto key_of = [&](Row range) -> std::uint64_t {
        return range == kNoRow ? kUnknown : trace.sites()[ranges.site[range]].name;
    };
    const auto describe = [&](Row range) {
        if (range == kNoRow) return SampledRow{.name = "(no range)"};
        return SampledRow{.name = std::string(trace.range_name(range))};
    };
    for (const auto& [innermost, weight] : own) {
        Row at = innermost;
        do {
            add_path(sums, at == innermost ? weight : Weight{}, weight, at, next, key_of, describe);
            at = next(at);
        } while (at != kNoRow);
    }
}

void add_by_step(const Trace& trace, const std::string& step_name, std::vector<SampledRow>& rows) {
    const SampleColumns samples = trace.samples();
    const RangeColumns ranges = trace.ranges();
    std::map<Row, SampledRow> by_step;
    for (const StepRange& step : find_steps(trace, step_name))
        by_step.emplace(step.row, SampledRow{.name = std::string(trace.range_name(step.row))});
    for (std::size_t i = 0; i < samples.size(); ++i) {
        for (Row at = samples.range[i]; at != kNoRow; at = ranges.parent[at]) {
            const auto step = by_step.find(at);
            if (step == by_step.end()) continue;
            RowSums::add_self(step->second, weight_of(samples, i));
            RowSums::add_total(step->second, weight_of(samples, i));
            break;
        }
    }
    for (auto& [range, row] : by_step) rows.push_back(std::move(row));
}

void add_states(const Trace& trace, SampleReport& report) {
    const SampleColumns samples = trace.samples();
    std::unordered_map<Row, const char*> kinds;  // by stack
    std::map<std::string_view, SampledWait> waits;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (samples.state[i] == SampleState::Waiting) {
            const auto [kind, is_new] = kinds.try_emplace(samples.stack[i], nullptr);
            if (is_new) kind->second = sampled_wait_kind(trace, samples.stack[i]);
            SampledWait& wait = waits[kind->second];
            wait.time_ns += samples.duration_ns[i];
            ++wait.waits;
            report.waiting_ns += samples.duration_ns[i];
            continue;
        }
        ++report.samples;
        report.running_ns += samples.cpu_ns[i];
        const bool has_before = i > 0 && samples.thread[i - 1] == samples.thread[i];
        if (samples.state[i] != SampleState::Preempted || !has_before) continue;
        const std::int64_t free_ns = samples.time_ns[i - 1] + samples.duration_ns[i - 1];
        report.preempted_ns += std::max<std::int64_t>(samples.time_ns[i] - free_ns - samples.cpu_ns[i], 0);
    }
    for (auto& [kind, wait] : waits) {
        wait.kind = kind;
        report.waits.push_back(std::move(wait));
    }
    std::ranges::stable_sort(report.waits, std::greater(), &SampledWait::time_ns);
}

// ---- waits ----

struct NativeWait {
    const char* kind;
    std::string_view functions;
};
/// Functions of libraries that wait, without the underscores and prefixes of glibc. Those that others are
/// made of come last.
constexpr NativeWait kNativeWaits[] = {
    {"gil", "take_gil PyMutex_LockTimed"},
    {"device",
     "cuStreamSynchronize cuCtxSynchronize cuEventSynchronize cudaDeviceSynchronize "
     "cudaStreamSynchronize cudaEventSynchronize"},
    {"sleep", "nanosleep clock_nanosleep usleep sleep"},
    {"process", "waitpid wait3 wait4 waitid"},
    {"events",
     "poll ppoll select pselect epoll_wait epoll_pwait accept accept4 sigwait sigwaitinfo "
     "sigtimedwait pause"},
    {"network", "recv recvfrom recvmsg send sendto sendmsg connect"},
    {"I/O", "read write pread64 pwrite64 readv writev fsync fdatasync splice sendfile64 open64 openat64"},
    {"work", "pthread_join pthread_clockjoin_ex pthread_timedjoin_ex"},
    {"lock",
     "lll_lock_wait lll_lock_wait_private pthread_mutex_lock pthread_cond_wait pthread_cond_timedwait "
     "pthread_cond_clockwait sem_wait sem_timedwait sem_clockwait sem_wait_slow64 do_futex_wait "
     "futex_abstimed_wait_common futex_abstimed_wait_cancelable64 futex_wait"},
};

/// "clock_nanosleep" of "__GI___clock_nanosleep@@GLIBC_2.17" and such.
std::string_view plain_name(std::string_view name) {
    name = name.substr(0, name.find_first_of("@(."));
    for (const std::string_view prefix : {"_", "GI_", "_", "libc_", "new_"}) {
        while (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    }
    return name;
}

/// The place in kNativeWaits of a function, or the number of places.
std::size_t native_wait(std::string_view name) {
    name = plain_name(name);
    const auto has_name = [&](const NativeWait& wait) {
        for (std::size_t at = wait.functions.find(name); at != std::string_view::npos;
             at = wait.functions.find(name, at + 1)) {
            const std::size_t end = at + name.size();
            if ((at == 0 || wait.functions[at - 1] == ' ') &&
                (end == wait.functions.size() || wait.functions[end] == ' '))
                return true;
        }
        return false;
    };
    if (name.empty()) return std::size(kNativeWaits);
    return static_cast<std::size_t>(std::ranges::find_if(kNativeWaits, has_name) - std::begin(kNativeWaits));
}

constexpr const char* kWaitKinds[] = {"other",   "lock",    "queue", "work",
                                      "network", "process", "sleep", "events"};

}  // namespace

const char* sampled_wait_kind(const Trace& trace, Row stack) {
    // Of the native functions inside the innermost Python function, the one that says most.
    std::size_t best = std::size(kNativeWaits);
    for (Row at = stack; at != kNoRow; at = trace.stacks()[at].outer) {
        const FrameInfo& frame = trace.frames()[trace.stacks()[at].frame];
        if (!StackFunctions::is_python(frame)) {
            best = std::min(best, native_wait(trace.string(frame.name)));
            continue;
        }
        if (best == 0) break;
        const SiteInfo site{frame.name, frame.file, frame.line, Scope::PythonFunction};
        const WaitKind kind = wait_kind(trace, site);
        if (kind != WaitKind::None) return kWaitKinds[static_cast<std::size_t>(kind)];
        break;
    }
    return best < std::size(kNativeWaits) ? kNativeWaits[best].kind : kWaitKinds[0];
}

SampleReport sample_report(const Trace& trace, const SampleOptions& options) {
    SampleReport report;
    if (trace.samples().size() == 0) return report;
    add_states(trace, report);
    switch (options.by) {
        case SampleGroup::Function:
        case SampleGroup::Line:
            add_by_place(trace, options.by == SampleGroup::Line, report.rows);
            break;
        case SampleGroup::Thread:
            add_by_thread(trace, report.rows);
            break;
        case SampleGroup::Range:
            add_by_range(trace, report.rows);
            break;
        case SampleGroup::Step:
            add_by_step(trace, options.step_name, report.rows);
            return report;
    }
    std::ranges::stable_sort(report.rows, [](const SampledRow& a, const SampledRow& b) {
        return a.self_ns != b.self_ns ? a.self_ns > b.self_ns : a.self_waiting_ns > b.self_waiting_ns;
    });
    return report;
}

}  // namespace marey
