// watch.cpp: looks at captures again and again, and writes snapshots.
#include "cli/watch.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include <marey/error.h>
#include <marey/session_options.h>

#include "base/descriptor.h"
#include "cli/capture_argument.h"
#include "cli/capture_files.h"
#include "cli/terminal.h"
#include "cli/text_format.h"

namespace marey::cli {
namespace {

constexpr std::int64_t kLookEveryNs = 200'000'000;
// A range's record may be written a moment after its end, and a look may be late.
constexpr std::int64_t kOverlapNs = 300'000'000;

std::int64_t now_ns() {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// The memory of a process; 0: unknown.
std::uint64_t resident_bytes(std::int64_t pid) {
    std::ifstream file(fmt::format("/proc/{}/statm", pid));
    std::uint64_t size = 0, resident = 0;
    return file >> size >> resident ? resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

std::uint64_t most_bytes(const std::string& disk) {
    try {
        return disk.empty() ? std::numeric_limits<std::uint64_t>::max() : parse_bytes(disk);
    } catch (const Error& error) {
        throw Error(fmt::format("--disk: {}", error.what()));
    }
}

/// Until it is closed, other watchers choose no name in the folder.
Descriptor folder_lock(const std::string& folder) {
    Descriptor lock(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (lock.get() >= 0) ::flock(lock.get(), LOCK_EX);
    return lock;
}

/// "api.20261118T101503.slow-handle.marey" for "folder/api.marey", unused.
std::string snapshot_path(const std::string& folder, const std::string& capture, const std::string& label) {
    const std::string name = without_suffix(std::string(base_name(capture)));
    const std::string file =
        fmt::format("{}.{:%Y%m%dT%H%M%S}.{}", name, fmt::localtime(::time(nullptr)), label);
    const std::string stem = (std::filesystem::path(folder) / file).string();
    std::string path = stem + ".marey";
    for (int i = 2; ::access(path.c_str(), F_OK) == 0; ++i) path = fmt::format("{}-{}.marey", stem, i);
    return path;
}

std::vector<WatchCondition> parse_all(const std::vector<std::string>& texts) {
    std::vector<WatchCondition> conditions(texts.size());
    std::ranges::transform(texts, conditions.begin(), parse_watch_condition);
    return conditions;
}

}  // namespace

void WatchOptions::declare(Options& options) {
    declare_for_run(options);
    options.text(last, "--last", "TIME", "How much a snapshot has (30s)");
    options.flag(once, "--once", "End after the first snapshot");
    options.text(folder, "-o,--output", "FOLDER", "Where to write snapshots (the current folder)");
}

void WatchOptions::declare_for_run(Options& options) {
    options.texts(conditions, "--when", "CONDITION",
                  "Write a snapshot when this happens (see marey watch --help); repeatable");
    options.text(after, "--after", "TIME", "How long to go on before a snapshot is taken (1s)");
    options.text(every, "--every", "TIME", "At most one snapshot of a condition in this time (60s)");
    options.number(keep, "--keep", "Delete the oldest snapshots if there are more than this");
    options.text(disk, "--disk", "SIZE", "Delete the oldest snapshots if they have more bytes, such as 2GB");
    options.text(command, "--exec", "COMMAND",
                 "Run this in a shell, with the file and the reason as arguments");
}

Watch::Watch(const WatchOptions& options, std::function<std::vector<std::string>()> captures)
    : conditions_(parse_all(options.conditions)),
      captures_(std::move(captures)),
      last_ns_(parsed_time("--last", options.last)),
      after_ns_(parsed_time("--after", options.after)),
      every_ns_(parsed_time("--every", options.every)),
      last_text_(options.last),
      folder_(options.folder),
      command_(options.command),
      keep_(options.keep.value_or(std::numeric_limits<std::uint64_t>::max())),
      disk_bytes_(most_bytes(options.disk)),
      once_(options.once),
      missing_(conditions_) {
    if (conditions_.empty()) throw Error("no condition is given with --when");
    if (keep_ == 0) throw Error("--keep 0 keeps nothing");
    if (!folder_.empty() && !is_folder(folder_)) throw Error(folder_ + ": is not a folder");
}

void Watch::run(WatchScope scope) {
    skips_ended_ = scope != WatchScope::Run;
    while (!is_over_) {
        const std::int64_t begin = now_ns();
        const bool is_running = look();
        skips_ended_ = false;
        write_due(is_running ? now_ns() : std::numeric_limits<std::int64_t>::max());
        if (!is_running && scope == WatchScope::Named) break;
        // It may take a fifth of a core, and no more.
        const std::int64_t next = begin + std::max(kLookEveryNs, 5 * (now_ns() - begin));
        constexpr std::chrono::milliseconds kSlice(20);
        while (!is_over_ && now_ns() < next) std::this_thread::sleep_for(kSlice);
    }
    look();  // what was written in the meantime
    write_due(std::numeric_limits<std::int64_t>::max());
    print_rest();
}

bool Watch::look() {
    std::erase_if(commands_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
    std::vector<std::string> paths;
    try {
        paths = captures_();
    } catch (const Error&) {  // none, or no longer
    }
    for (const std::string& path : paths) targets_.try_emplace(path, Target{Watcher(conditions_)});
    std::vector<Trace> job;
    for (auto& [path, target] : targets_) {
        if (!target.has_ended) look_at(path, target, job);
    }
    paths.clear();
    for (const auto& [path, target] : targets_) paths.push_back(path);
    for (const WatchHit& hit : missing_.check(job)) meet(paths, hit);
    return std::ranges::any_of(targets_, [](const auto& each) { return !each.second.has_ended; });
}

void Watch::look_at(const std::string& path, Target& target, std::vector<Trace>& job) {
    const std::int64_t now = now_ns();
    const bool is_first = target.looked_ns == 0;
    const std::int64_t since = is_first ? kLookEveryNs : now - target.looked_ns;
    target.looked_ns = now;
    try {
        const Trace trace = load_newest(path, {.log_bytes = 0, .last_ns = since + kOverlapNs});
        target.has_ended = !trace.has_problem("running");
        if (target.has_ended && (skips_ended_ || snapshot_reason(trace))) return;
        const ProcessInfo* const process = trace.processes().empty() ? nullptr : &trace.processes()[0];
        const std::uint64_t memory = process == nullptr ? 0 : resident_bytes(process->pid);
        for (const WatchHit& hit : target.watcher.check(trace, memory)) meet({path}, hit);
        const bool is_of_job = process != nullptr && process->node >= 0 && missing_.is_wanted();
        // Its last collective may have been long ago.
        if (is_of_job) job.push_back(load_newest(path));
        target.failures = 0;
    } catch (const Error& error) {
        constexpr int kMostFailures = 10;  // its program may be about to write its first bytes
        const bool is_there = ::access(path.c_str(), F_OK) == 0;
        target.has_ended = !is_there || ++target.failures == kMostFailures;
        if (is_there && target.has_ended)
            print_error(fmt::format("marey: watch: {}\n", printable(error.what())));
    }
}

void Watch::meet(const std::vector<std::string>& paths, const WatchHit& hit) {
    const std::int64_t now = now_ns();
    const auto last = met_ns_.find(hit.condition);
    if ((last != met_ns_.end() && now - last->second < every_ns_) || (once_ && !met_ns_.empty())) {
        ++held_back_[hit.condition];
        return;
    }
    met_ns_[hit.condition] = now;
    for (const std::string& path : paths) pending_.push_back({path, hit, now + after_ns_});
}

void Watch::write_due(std::int64_t until_ns) {
    const auto rest =
        std::stable_partition(pending_.begin(), pending_.end(),
                              [until_ns](const Pending& each) { return each.due_ns <= until_ns; });
    const std::vector<Pending> due(pending_.begin(), rest);
    pending_.erase(pending_.begin(), rest);
    for (const Pending& each : due) write(each);
}

void Watch::write(const Pending& pending) {
    const WatchHit& hit = pending.hit;
    std::string out;
    try {
        const Descriptor lock = folder_lock(folder_);
        out = snapshot_path(folder_, pending.path, hit.label);
        write_snapshot(
            pending.path, out, {.log_bytes = 0, .last_ns = last_ns_},
            {.text = hit.reason, .begin_ns = hit.begin_ns, .end_ns = hit.end_ns, .os_tid = hit.os_tid});
    } catch (const Error& error) {
        print_error(fmt::format("marey: watch: no snapshot, although {}: {}\n", printable(hit.reason),
                                printable(error.what())));
        return;
    }
    std::error_code ignored;
    kept_.push_back({out, std::filesystem::file_size(out, ignored)});
    delete_oldest();
    print_error(fmt::format("marey: {}: the last {}, {}, because {}\n", printable(out), last_text_,
                            format_bytes(kept_.back().bytes), printable(hit.reason)));
    if (!command_.empty()) execute(out, hit.reason);
    if (once_) is_over_ = true;
}

void Watch::delete_oldest() {
    const auto bytes = [this] {
        std::uint64_t sum = 0;
        for (const Snapshot& each : kept_) sum += each.bytes;
        return sum;
    };
    while (kept_.size() > 1 && (kept_.size() > keep_ || bytes() > disk_bytes_)) {
        ::unlink(kept_.front().path.c_str());
        kept_.pop_front();
    }
}

void Watch::execute(const std::string& path, const std::string& reason) {
    const std::string script = command_ + " \"$@\"";
    const char* const words[] = {"/bin/sh",    "-c",           script.c_str(), "marey",
                                 path.c_str(), reason.c_str(), nullptr};
    pid_t pid = 0;
    const int error =
        ::posix_spawn(&pid, words[0], nullptr, nullptr, const_cast<char* const*>(words), environ);
    if (error == 0) {
        commands_.push_back(pid);
    } else {
        print_error(fmt::format("marey: watch: --exec: {}\n", std::strerror(error)));
    }
}

void Watch::print_rest() const {
    for (std::size_t i = 0; i < conditions_.size(); ++i) {
        const bool has_ranges =
            conditions_[i].kind == WatchKind::Range || conditions_[i].kind == WatchKind::Step;
        if (has_ranges &&
            std::ranges::none_of(targets_, [i](auto& each) { return each.second.watcher.has_seen(i); }))
            print_error(fmt::format("marey: {}: no such range has ended\n", printable(conditions_[i].text)));
    }
    for (const auto& [condition, count] : held_back_) {
        print_error(fmt::format("marey: {}: {} without a snapshot\n", printable(conditions_[condition].text),
                                count == 1 ? "once more" : format_count(count) + " times more"));
    }
}

}  // namespace marey::cli
