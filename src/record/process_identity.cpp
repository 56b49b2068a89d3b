// process_identity.cpp: reads this process's identity and ancestors from /proc.
#include "record/process_identity.h"

#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <limits>

#include "base/environment.h"
#include "base/process_stat.h"
#include "base/process_text.h"
#include "record/clocks/clock.h"
#include "record/spool.h"

namespace marey {

using detail::AncestorRecord;
using detail::kMaxAncestors;
using detail::ProcessOriginCode;

namespace {

constexpr std::string_view kTreeKey = ",tree=";

struct OwnProcess {
    ProcessIdentity identity;
    std::int64_t pid = 0;  ///< the process that `identity` describes; 0: none yet
    bool has_tree = false;
    RequestedTree tree;
    bool is_forked = false;
    std::uint64_t fork_ticks = 0;
    std::uint32_t fork_thread = 0;
};
// Recorders live once per process, and so does this.
OwnProcess kept MAREY_GUARDED_BY(recorder_mutex);

std::uint64_t inode_of(const char* path) noexcept {
    struct stat info {};
    return ::stat(path, &info) == 0 ? info.st_ino : 0;
}

/// As ProcessIdentityRecord::wall_error_us. Sandboxes may forbid the question.
std::uint32_t wall_error_us() noexcept {
    timex state{};
    if (Clock::source() == detail::ClockSource::Injected) return 0;
    if (const int saved = errno; ::adjtimex(&state) < 0) errno = saved;
    if ((state.status & STA_UNSYNC) != 0 || state.maxerror <= 0) return 0;
    return static_cast<std::uint32_t>(
        std::min<long>(state.maxerror, std::numeric_limits<std::int32_t>::max()));
}

/// How a process counts in its own process namespace, which is not the one of /proc.
AncestorRecord in_own_namespace(const AncestorRecord& seen) noexcept {
    const std::string path = "/proc/" + std::to_string(seen.pid) + "/ns/pid";
    const std::uint64_t pid_namespace = inode_of(path.c_str());
    return pid_namespace == 0 ? seen : AncestorRecord{own_pid(seen.pid), seen.start, pid_namespace};
}

/// Whether /proc numbers processes as this process does.
bool is_proc_of_own_namespace() noexcept {
    char text[24]{};
    const ssize_t length = ::readlink("/proc/self", text, sizeof text - 1);
    std::int64_t pid = 0;
    return length <= 0 || std::from_chars(text, text + length, pid).ec != std::errc() || pid == ::getpid();
}

// Walks up to the process that started the tree. If it cannot be seen, the variable names an ancestor.
void read_ancestors(ProcessIdentity& identity, std::int64_t parent, const RequestedTree& tree) noexcept {
    const bool is_own_proc = is_proc_of_own_namespace();
    std::uint32_t count = 0;
    bool is_complete = false;
    while (parent > 0 && count < kMaxAncestors && !is_complete) {
        const ProcessStat stat(parent);
        AncestorRecord& ancestor = identity.ancestors[count];
        ancestor = {parent, stat.start(), identity.record.pid_namespace};
        is_complete = parent == tree.pid;
        if (ancestor.start == 0) break;
        parent = stat.number(ProcessStat::kParent);
        if (!is_own_proc) ancestor = in_own_namespace(ancestor);
        ++count;
    }
    const auto is_passed = [&](const AncestorRecord& each) {
        return std::memcmp(&each, &tree.parent, sizeof each) == 0;
    };
    if (!is_complete && tree.parent.pid != 0 && count < kMaxAncestors &&
        std::none_of(identity.ancestors, identity.ancestors + count, is_passed))
        identity.ancestors[count++] = tree.parent;
    identity.record.ancestors = count;
}

void choose_tree() noexcept MAREY_REQUIRES(recorder_mutex) {
    if (kept.has_tree) return;
    kept.has_tree = true;
    if (parse_tree(environment_text("MAREY"), kept.tree)) return;
    kept.tree.pid = ::getpid();
    if (::getrandom(kept.tree.id, sizeof kept.tree.id, GRND_NONBLOCK) != sizeof kept.tree.id) {
        const detail::ClockPair pair = Clock::pair();  // early in the boot
        std::memcpy(kept.tree.id, &pair.real_ns, sizeof pair.real_ns);
        std::memcpy(kept.tree.id + sizeof pair.real_ns, &kept.tree.pid, sizeof kept.tree.pid);
    }
}

}  // namespace

std::string ProcessIdentity::clock() const {
    const std::size_t length = strnlen(record.boot_id, sizeof record.boot_id);
    return length == 0 ? "" : clock_text({record.boot_id, length}, record.time_namespace);
}

const ProcessIdentity& process_identity() noexcept {
    ProcessIdentity& identity = kept.identity;
    const std::int64_t pid = ::getpid();
    if (kept.pid == pid) return identity;
    choose_tree();
    detail::ProcessIdentityRecord& record = identity.record;
    std::memcpy(record.tree, kept.tree.id, sizeof record.tree);
    if (record.boot_id[0] == '\0') {
        const std::string boot = read_small_file("/proc/sys/kernel/random/boot_id", sizeof record.boot_id);
        boot.substr(0, boot.find('\n')).copy(record.boot_id, sizeof record.boot_id - 1);
    }
    record.time_namespace = inode_of("/proc/self/ns/time");
    // A process that sees its parent under the same number is in the same namespace.
    const bool is_beside_parent = kept.is_forked && ::getppid() == identity.ancestors[0].pid;
    if (!is_beside_parent) record.pid_namespace = inode_of("/proc/self/ns/pid");
    const ProcessStat stat = ProcessStat::of_this();
    record.start = stat.start();
    record.origin =
        static_cast<std::uint32_t>(kept.is_forked ? ProcessOriginCode::Fork : ProcessOriginCode::Program);
    record.fork_ticks = kept.fork_ticks;
    record.fork_thread = kept.fork_thread;
    record.wall_error_us = wall_error_us();
    if (!kept.is_forked) read_ancestors(identity, stat.number(ProcessStat::kParent), kept.tree);
    kept.pid = pid;
    return identity;
}

std::string own_clock() {
    const ScopedLock lock(recorder_mutex);
    return process_identity().clock();
}

bool is_forked_process() noexcept {
    return kept.is_forked;
}

void identity_before_fork(std::uint32_t thread) noexcept {
    process_identity();
    set_fork(thread);
}

void set_fork(std::uint32_t thread) noexcept {
    kept.fork_ticks = Clock::now();
    kept.fork_thread = thread;
}

void identity_after_fork() noexcept {
    forget_sender();
    if (kept.pid == 0) return;  // nobody has asked for the parent's
    ProcessIdentity& identity = kept.identity;
    AncestorRecord* const first = identity.ancestors;
    std::copy_backward(first, first + kMaxAncestors - 1, first + kMaxAncestors);
    *first = {kept.pid, identity.record.start, identity.record.pid_namespace};
    identity.record.ancestors =
        std::min<std::uint32_t>(identity.record.ancestors + 1, static_cast<std::uint32_t>(kMaxAncestors));
    kept.is_forked = true;
    kept.pid = 0;
}

bool parse_tree(std::string_view text, RequestedTree& tree) noexcept {
    const std::size_t at = text.rfind(kTreeKey);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + kTreeKey.size());
    text = text.substr(0, text.find(','));
    if (text.size() < 2 * sizeof tree.id) return false;
    for (std::size_t i = 0; i < sizeof tree.id; ++i) {
        const char* const digits = text.data() + 2 * i;
        if (std::from_chars(digits, digits + 2, tree.id[i], 16).ptr != digits + 2) return false;
    }
    text.remove_prefix(2 * sizeof tree.id);
    std::int64_t* const pids[] = {&tree.pid, &tree.parent.pid};
    std::uint64_t* const numbers[] = {&tree.parent.start, &tree.parent.pid_namespace};
    const auto take = [&text](auto& number) {
        number = 0;
        if (!text.starts_with(':')) return false;
        const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), number);
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        return error == std::errc();
    };
    for (std::int64_t* const pid : pids) static_cast<void>(take(*pid));
    bool is_whole = true;
    for (std::uint64_t* const number : numbers) is_whole = take(*number) && is_whole;
    if (!is_whole) tree.parent = {};
    return true;
}

void pass_tree_on(const std::string& text) {
    struct stat tasks {};
    if (::stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink != 3) return;
    std::string value = text;
    if (const std::size_t at = text.rfind(kTreeKey); at != text.npos)
        value.erase(at, std::min(text.find(',', at + 1), text.size()) - at);
    {
        const ScopedLock lock(recorder_mutex);
        const detail::ProcessIdentityRecord& own = process_identity().record;
        value += std::string(kTreeKey) + tree_text(kept.tree.id) + ":" + std::to_string(kept.tree.pid) + ":" +
                 ancestor_text(kept.pid, own.start, own.pid_namespace);
    }
    if (value != text) ::setenv("MAREY", value.c_str(), 1);
}

}  // namespace marey
