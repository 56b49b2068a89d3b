// control_client.cpp: asks other processes to record.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include <marey/control.h>
#include <marey/detail/counter.h>
#include <marey/error.h>

#include "base/descriptor.h"
#include "base/process_stat.h"
#include "record/control_page.h"

namespace marey {
namespace {

std::string page_path(std::int64_t pid) {
    const std::string folder = control_folder(false);
    return folder.empty() ? "" : folder + "/" + std::to_string(pid);
}

/// Whether the process that made this page is the one with this id now.
bool is_of(const ControlPage& page, std::int64_t pid) {
    return std::memcmp(page.magic, ControlPage::kMagic, sizeof page.magic) == 0 &&
           page.version == ControlPage::kVersion && page.pid == pid && page.start != 0 &&
           page.start == ProcessStat(pid).start();
}

std::string name_of(std::int64_t pid) {
    return "process " + std::to_string(pid);
}

/// The right to write a question, which one process has at a time: until it is closed.
Descriptor take_turn(const std::string& path, std::int64_t pid) {
    Descriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
    throw Error(name_of(pid) + " is busy with a request of another process");
}

std::string ask(std::int64_t pid, const std::string& question, std::chrono::nanoseconds timeout) {
    const std::string path = page_path(pid);
    if (path.empty() || ::access(path.c_str(), F_OK) != 0)
        throw Error(name_of(pid) +
                    " takes no requests (start it with MAREY=control=on, or call marey.allow_control())");
    const MappedPage page(path);
    if (!is_of(*page, pid)) throw Error(name_of(pid) + " has ended");
    const Descriptor turn = take_turn(path, pid);
    if (question.size() >= sizeof page->question) throw Error("the request is too long");
    set_text(page->question, question);
    const std::uint32_t number = page->request + 1;
    detail::store_release(page->request, number);
    wake_all(page->request);
    const std::int64_t end = monotonic_ns() + timeout.count();
    for (std::uint32_t answered; (answered = detail::load_acquire(page->answered)) != number;) {
        constexpr std::int64_t kLookNs = 100'000'000;  // whether it is still there
        if (ProcessStat(pid).start() != page->start) throw Error(name_of(pid) + " has ended");
        if (monotonic_ns() >= end) throw Error(name_of(pid) + " does not answer");
        wait_for_change(page->answered, answered,
                        std::min(kLookNs, std::max<std::int64_t>(end - monotonic_ns(), 1)));
    }
    std::string answer = text_of(page->answer);
    if (page->has_failed != 0) throw Error(name_of(pid) + ": " + answer);
    return answer;
}

}  // namespace

std::vector<ControlledProcess> controlled_processes() {
    std::vector<ControlledProcess> found;
    const std::string folder = control_folder(false);
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(folder.empty() ? nullptr : ::opendir(folder.c_str()),
                                                      ::closedir);
    while (const dirent* const entry = entries == nullptr ? nullptr : ::readdir(entries.get())) {
        const std::string name = entry->d_name;
        std::int64_t pid = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (error != std::errc() || *end != '\0') continue;
        const std::string path = folder + "/" + name;
        try {
            const MappedPage page(path);
            if (is_of(*page, pid)) {
                found.push_back({pid, page->rank, detail::load_relaxed(page->is_recording) != 0});
            } else if (page->pid == pid && ProcessStat(pid).start() != page->start) {
                ::unlink(path.c_str());  // of a process that was killed
            }
        } catch (const Error&) {  // it is something else
        }
    }
    std::ranges::sort(found, {}, &ControlledProcess::pid);
    return found;
}

std::string start_recording(std::int64_t pid, const StartRequest& request, std::chrono::nanoseconds timeout) {
    return ask(pid,
               "start " + std::to_string(request.at_ns) + " " + std::to_string(request.duration_ns) + " " +
                   request.options,
               timeout + std::chrono::nanoseconds(std::max<std::int64_t>(request.at_ns - monotonic_ns(), 0)));
}

std::string stop_recording(std::int64_t pid, std::chrono::nanoseconds timeout) {
    return ask(pid, "stop", timeout);
}

}  // namespace marey
