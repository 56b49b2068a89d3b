// process_watch.cpp: learns how the processes of a tree end: from their pidfds, from /proc while nobody has
// waited for them, and from parents that report it.
#include <marey/process_end.h>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <utility>

#include "base/process_stat.h"
#include "record/process_report.h"

namespace marey {
namespace {

constexpr int kWaitingConnections = 4096;
constexpr std::size_t kMostProcesses = 1'000'000;

/// struct pidfd_info of <linux/pidfd.h>, which is newer than many systems' headers.
struct PidfdInfo {
    std::uint64_t mask;
    std::uint64_t cgroup;
    std::uint32_t ids[11];
    std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1 << 3;
constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);

ProcessEnd end_of_status(int status) {
    return WIFSIGNALED(status) ? ProcessEnd{0, WTERMSIG(status)} : ProcessEnd{WEXITSTATUS(status), 0};
}

/// The process that a pidfd leads to, as this process sees it; -1: somebody has waited for it.
std::int64_t pid_behind(int pidfd) {
    const std::string text = read_small_file(("/proc/self/fdinfo/" + std::to_string(pidfd)).c_str());
    constexpr std::string_view kKey = "Pid:\t";
    const std::size_t at = text.find(kKey);
    std::int64_t pid = -1;
    if (at != text.npos) std::from_chars(text.data() + at + kKey.size(), text.data() + text.size(), pid);
    return pid > 0 ? pid : -1;
}

/// How a process ended that has ended. Empty: the kernel does not tell it any more (before Linux 6.15).
std::optional<ProcessEnd> end_behind(int pidfd) {
    for (int attempt = 0; attempt < 2; ++attempt) {
        PidfdInfo info{};
        info.mask = kInfoExit;
        if (::ioctl(pidfd, kGetInfo, &info) == 0 && (info.mask & kInfoExit) != 0)
            return end_of_status(info.exit_code);
        // Nobody has waited for it yet, or somebody is just about to.
        const std::int64_t pid = pid_behind(pidfd);
        if (pid < 0) continue;
        const ProcessStat stat(pid);
        if (stat.text(ProcessStat::kState) == "Z" && !stat.text(ProcessStat::kExitStatus).empty() &&
            pid_behind(pidfd) == pid)
            return end_of_status(static_cast<int>(stat.number(ProcessStat::kExitStatus)));
    }
    return std::nullopt;
}

}  // namespace

class ProcessWatch::Processes {
  public:
    explicit Processes(const std::string& tree) : path_(run_socket_path(tree)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        if (path_.size() >= sizeof address.sun_path) return;
        path_.copy(address.sun_path, path_.size());
        socket_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const mode_t mask = ::umask(0177);
        const bool is_open = socket_ >= 0 &&
                             ::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
                             ::listen(socket_, kWaitingConnections) == 0;
        ::umask(mask);
        if (!is_open && socket_ >= 0) ::close(std::exchange(socket_, -1));
    }
    ~Processes() {
        if (socket_ < 0) return;
        ::unlink(path_.c_str());
        ::close(socket_);
        for (const int connection : silent_) ::close(connection);
        for (const auto& [capture, process] : all_) {
            if (process.pidfd >= 0) ::close(process.pidfd);
        }
    }
    Processes(const Processes&) = delete;
    Processes& operator=(const Processes&) = delete;

    void update() {
        if (socket_ < 0) return;
        if (updates_++ == 0) raise_descriptor_limit();
        std::vector<int> connections = std::exchange(silent_, {});
        for (const int connection : connections) receive(connection);
        for (int connection; all_.size() < kMostProcesses &&
                             (connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;)
            receive(connection);
        look_at_pidfds();
    }

    WatchedProcess find(const std::string& capture) const {
        struct stat info {};
        if (::stat(capture.c_str(), &info) != 0) return {};
        const auto found = all_.find({info.st_dev, info.st_ino});
        if (found == all_.end()) return {};
        const Process& process = found->second;
        // A parent that has waited for it reports that a moment later.
        const bool is_settled = process.end || (process.gone_at != 0 && process.gone_at < updates_);
        return {true, !is_settled && (process.pidfd >= 0 || process.gone_at != 0), is_settled, process.end};
    }

    std::vector<UnrecordedProcess> unrecorded() const { return unrecorded_; }

  private:
    using CaptureKey = std::pair<std::uint64_t, std::uint64_t>;  ///< device and inode
    struct Process {
        std::int64_t pid = 0;
        std::uint64_t pid_namespace = 0;
        int pidfd = -1;
        std::uint64_t gone_at = 0;  ///< the update that found that it has ended; 0: none yet
        std::optional<ProcessEnd> end{};
    };

    /// Each process that runs takes a descriptor of this one.
    static void raise_descriptor_limit() {
        rlimit limit{};
        if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
    }

    static bool is_from_same_user(int connection) {
        ucred peer{};
        socklen_t bytes = sizeof peer;
        return ::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
               peer.uid == ::geteuid();
    }

    /// Closes the connection, unless its packet has not arrived yet.
    void receive(int connection) {
        ProcessPacket packet{};
        iovec part{&packet, sizeof packet};
        int descriptor = -1;
        alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)]{};
        msghdr message{};
        message.msg_iov = &part;
        message.msg_iovlen = 1;
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        const ssize_t count = ::recvmsg(connection, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (count < 0 && errno == EAGAIN) {
            silent_.push_back(connection);
            return;
        }
        const cmsghdr* const head = count > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
        if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
            head->cmsg_len == CMSG_LEN(sizeof descriptor))
            std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
        const bool is_valid = count == static_cast<ssize_t>(sizeof packet) && packet.magic == kPacketMagic &&
                              is_from_same_user(connection);
        ::close(connection);
        if (is_valid && packet.kind == ProcessPacket::Begins) {
            Process& process = all_[{packet.device, packet.inode}];
            if (process.pidfd >= 0) ::close(process.pidfd);
            process = {packet.pid, packet.pid_namespace, std::exchange(descriptor, -1)};
        } else if (is_valid && packet.kind == ProcessPacket::ChildEnded) {
            settle(packet);
        } else if (is_valid && packet.kind == ProcessPacket::NotRecorded) {
            add_unrecorded(packet);
        }
        if (descriptor >= 0) ::close(descriptor);
    }

    void add_unrecorded(ProcessPacket& packet) {
        if (unrecorded_.size() >= kMostProcesses) return;
        packet.text[sizeof packet.text - 1] = '\0';
        const std::string_view text(packet.text, sizeof packet.text);
        const std::size_t reason = text.find('\0');
        const std::size_t executable = text.find('\0', std::min(reason + 1, text.size() - 1));
        std::string words(text.substr(std::min(executable + 1, text.size())));
        words.erase(words.find_last_not_of('\0') + 1);
        std::replace(words.begin(), words.end(), '\0', ' ');
        unrecorded_.push_back({packet.pid, packet.start, std::string(text.substr(0, reason)),
                               packet.text + reason + 1, std::move(words)});
    }

    /// A process that has replaced its program has several captures.
    void settle(const ProcessPacket& packet) {
        for (auto& [capture, process] : all_) {
            const bool is_it = process.pid == packet.pid && process.pid_namespace == packet.pid_namespace;
            const bool is_older = process.gone_at != 0 && process.gone_at + 1 < updates_;
            if (is_it && !is_older && !process.end) process.end = end_of_status(packet.status);
        }
    }

    void look_at_pidfds() {
        std::vector<pollfd> polled;
        std::vector<Process*> watched;
        for (auto& [capture, process] : all_) {
            if (process.pidfd < 0) continue;
            polled.push_back({process.pidfd, POLLIN, 0});
            watched.push_back(&process);
        }
        if (polled.empty() || ::poll(polled.data(), polled.size(), 0) <= 0) return;
        for (std::size_t i = 0; i < polled.size(); ++i) {
            if (polled[i].revents == 0) continue;
            Process& process = *watched[i];
            if (std::optional<ProcessEnd> end = end_behind(process.pidfd)) process.end = end;
            process.gone_at = updates_;
            ::close(std::exchange(process.pidfd, -1));
        }
    }

    const std::string path_;
    int socket_ = -1;
    std::uint64_t updates_ = 0;
    std::vector<int> silent_;  ///< connections without a packet so far
    std::map<CaptureKey, Process> all_;
    std::vector<UnrecordedProcess> unrecorded_;
};

ProcessWatch::ProcessWatch(const std::string& tree) : processes_(std::make_unique<Processes>(tree)) {}
ProcessWatch::~ProcessWatch() = default;
void ProcessWatch::update() {
    processes_->update();
}
WatchedProcess ProcessWatch::find(const std::string& capture) const {
    return processes_->find(capture);
}
std::vector<UnrecordedProcess> ProcessWatch::unrecorded() const {
    return processes_->unrecorded();
}

}  // namespace marey
