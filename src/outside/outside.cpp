// outside.cpp: what all threads of a process are doing, put together from what can be read of it.
#include <marey/outside.h>

#include <time.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <unordered_map>

#include <marey/error.h>

#include "base/hexadecimal.h"
#include "base/process_stat.h"
#include "outside/lock_owners.h"
#include "outside/python_stacks.h"
#include "outside/waiting_thread.h"

namespace marey {
namespace {

namespace fs = std::filesystem;

std::string link_text(const ProcessFiles& process, const char* name) {
    std::error_code error;
    return fs::read_symlink(process.path(name), error).string();
}

std::vector<std::int64_t> task_ids(const ProcessFiles& process) {
    std::vector<std::int64_t> tids;
    std::error_code error;
    for (fs::directory_iterator entry(process.path("task"), error), end; !error && entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename().string();
        std::int64_t tid = 0;
        std::from_chars(name.data(), name.data() + name.size(), tid);
        if (tid != 0) tids.push_back(tid);
    }
    // The main thread has the number of the process.
    std::ranges::sort(tids, {}, [&](std::int64_t tid) { return std::pair(tid != process.pid(), tid); });
    return tids;
}

/// The part of a source file's path that people know it by.
std::string short_path(const std::string& path, const std::string& folder) {
    for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
        if (const std::size_t at = path.rfind(packages); at != path.npos)
            return path.substr(at + packages.size());
    }
    constexpr std::string_view kLibrary = "/lib/python3.";
    if (const std::size_t at = path.find(kLibrary); at != path.npos) {
        const std::size_t end = path.find('/', at + kLibrary.size());
        if (end != path.npos) return path.substr(end + 1);
    }
    return folder.size() > 1 && path.starts_with(folder + "/") ? path.substr(folder.size() + 1) : path;
}

/// Looks at one process.
class Look {
  public:
    explicit Look(std::int64_t pid)
        : process_(pid),
          modules_(process_),
          python_(find_python(process_, modules_)),
          folder_(link_text(process_, "cwd")),
          has_own_ids_(own_pid(pid) != pid) {
        if (!python_) return;
        reader_ = std::make_unique<PythonReader>(process_, *python_);
        owners_ = std::make_unique<LockOwners>(*reader_, process_);
        for (const PythonThread& thread : reader_->threads())
            python_threads_.try_emplace(thread.native_id, thread);
    }

    OutsideProcess all() {
        OutsideProcess found{.pid = process_.pid(), .program = link_text(process_, "exe")};
        std::istringstream arguments(process_.text("cmdline"));
        for (std::string each; std::getline(arguments, each, '\0');) found.arguments.push_back(each);
        if (python_) found.python = python_->version;
        timespec time{};
        clock_gettime(CLOCK_REALTIME, &time);
        found.realtime_ns = std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
        for (const std::int64_t tid : task_ids(process_)) add_thread(found, tid);
        if (found.threads.empty() || modules_.all().empty() ||
            !process_.read<char>(modules_.all().front().begin))
            throw Error("process " + std::to_string(process_.pid()) +
                        ": has ended, or executed another program, while it was read");
        add_owners(found);
        return found;
    }

  private:
    /// As the process itself numbers its threads.
    std::uint64_t native_id(std::int64_t tid) const {
        if (!has_own_ids_) return static_cast<std::uint64_t>(tid);
        const std::string status = process_.text("task/" + std::to_string(tid) + "/status");
        const std::string_view ids = status_value(status, "NSpid");
        const std::string_view last = ids.substr(ids.find_last_of(" \t") + 1);
        std::uint64_t id = 0;
        std::from_chars(last.data(), last.data() + last.size(), id);
        return id;
    }

    void add_thread(OutsideProcess& found, std::int64_t tid) {
        OutsideThread thread{.os_tid = tid};
        thread.name = process_.text("task/" + std::to_string(tid) + "/comm");
        if (thread.name.empty()) return;  // it has ended
        thread.name.pop_back();
        CopiedMemory memory(process_);
        std::vector<NativeCall> native;
        const auto waiting = waiting_thread(process_, tid);
        if (waiting) native = native_calls(*waiting, modules_, memory);
        const std::uint64_t id = native_id(tid);
        const auto python = python_threads_.find(id);
        PythonStack stack;
        if (python != python_threads_.end()) {
            stack = reader_->stack(python->second, memory);
            thread.is_python = true;
            thread.holds_gil = python->second.holds_gil;
            tids_[id] = tid;
        }
        const bool is_still = waiting && waiting_thread(process_, tid) == waiting;
        if (!is_still) native.clear();
        if (is_still) thread.wait = waiting->wait();
        if (is_still && python != python_threads_.end()) {
            const std::uintptr_t word = waiting->lock_word();
            const std::uintptr_t gil = python->second.gil;
            if (word >= gil && word - gil < python_->layout.gil_bytes) thread.wait = OutsideWait::Gil;
            owners_->add(python->second, stack, thread.wait == OutsideWait::Lock ? word : 0, memory);
        }
        thread.is_torn = stack.is_torn;
        thread.is_cut = stack.is_cut;
        add_frames(thread, native, stack);
        found.threads.push_back(std::move(thread));
    }

    /// Puts Python frames before the native frame of the interpreter that runs them: in whose part of the C
    /// stack their anchor lies.
    void add_frames(OutsideThread& thread, const std::vector<NativeCall>& native, const PythonStack& stack) {
        std::size_t next = 0;
        for (std::size_t i = 0; i < native.size(); ++i) {
            while (next < stack.calls.size() && i + 1 < native.size() && stack.calls[next].anchor != 0 &&
                   stack.calls[next].anchor < native[i + 1].sp)
                thread.frames.push_back(python_frame(stack.calls[next++]));
            thread.frames.push_back(native_frame(native[i].pc));
        }
        while (next < stack.calls.size()) thread.frames.push_back(python_frame(stack.calls[next++]));
    }

    OutsideFrame python_frame(const PythonCall& call) {
        const PythonCode& code = reader_->code(call.code);
        return {.name = short_path(code.filename, folder_) + "(" + std::to_string(code.first_line) +
                        "): " + code.qualname,
                .line = reader_->line(call),
                .is_python = true};
    }

    OutsideFrame native_frame(std::uintptr_t pc) {
        OutsideFrame frame;
        frame.is_interpreter = python_ && pc >= python_->begin && pc < python_->end;
        const ProcessModule* const module = modules_.find(pc);
        if (module == nullptr) {
            frame.name = hexadecimal(pc);
            return frame;
        }
        const std::string function = modules_.function_at(pc);
        frame.name = fs::path(module->name).filename().string() + ": " +
                     (function.empty() ? hexadecimal(pc - module->bias) : function);
        return frame;
    }

    std::int64_t tid_of(std::uint64_t id) const {
        const auto found = tids_.find(id);
        return found != tids_.end() ? found->second : 0;
    }

    void add_owners(OutsideProcess& found) const {
        std::int64_t holder = 0;
        std::unordered_map<std::int64_t, std::int64_t> waits;
        for (const OutsideThread& thread : found.threads) {
            if (thread.holds_gil) holder = thread.os_tid;
        }
        std::unordered_map<std::int64_t, std::uint64_t> ids;
        for (const auto& [id, tid] : tids_) ids[tid] = id;
        for (OutsideThread& thread : found.threads) {
            if (thread.wait == OutsideWait::Gil) thread.waits_for = holder;
            if (thread.wait == OutsideWait::Lock && thread.is_python)
                thread.waits_for = tid_of(owners_->owner(ids[thread.os_tid]));
            if (thread.waits_for != 0) waits[thread.os_tid] = thread.waits_for;
        }
        while (!waits.empty()) {
            std::vector<std::int64_t> path;
            std::int64_t at = waits.begin()->first;
            while (waits.contains(at)) {
                path.push_back(at);
                const std::int64_t next = waits[at];
                waits.erase(at);
                at = next;
            }
            const auto first = std::ranges::find(path, at);
            if (first != path.end()) found.deadlocks.emplace_back(first, path.end());
        }
    }

    ProcessFiles process_;
    ProcessModules modules_;
    std::optional<FoundPython> python_;
    std::string folder_;
    bool has_own_ids_;
    std::unique_ptr<PythonReader> reader_;
    std::unique_ptr<LockOwners> owners_;
    std::unordered_map<std::uint64_t, PythonThread> python_threads_;  ///< by native id
    std::unordered_map<std::uint64_t, std::int64_t> tids_;
};

}  // namespace

OutsideProcess look_at_process(std::int64_t pid) {
    return Look(pid).all();
}

std::vector<OutsideAccess> access_to_process(std::int64_t pid) {
    std::vector<OutsideAccess> found;
    if (!fs::exists("/proc/" + std::to_string(pid)))
        throw Error("process " + std::to_string(pid) + ": No such process");
    try {
        const ProcessFiles process(pid);
        found.push_back({"memory", true, "its memory can be read while it runs", ""});
        ProcessModules modules(process);
        std::size_t readable = 0;
        for (ProcessModule& module : modules.all()) readable += modules.open(module) ? 1 : 0;
        found.push_back({"native", readable != 0,
                         "frames of threads that wait, from " + std::to_string(readable) +
                             " mapped programs and libraries",
                         readable != 0 ? "" : "its files cannot be read: use sudo"});
        try {
            const auto python = find_python(process, modules);
            found.push_back({"python", python.has_value(),
                             python ? "Python " + python->version + ": threads, frames, GIL and locks"
                                    : "it has no Python, or one without symbols",
                             ""});
        } catch (const Error& error) {
            found.push_back({"python", false, error.what(), ""});
        }
    } catch (const Error& error) {
        found.push_back({"memory", false, error.what(), ""});
    }
    return found;
}

}  // namespace marey
