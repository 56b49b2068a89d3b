// process_report.cpp: one packet on a socket of its own each time: a program may close any descriptor that it
// did not open.
#include "record/process_report.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/small_file.h"
#include "record/process_identity.h"

namespace marey {
namespace {

// Set once: all processes of a program's memory belong to one tree.
std::atomic<bool> is_reported{false};
sockaddr_un reported_to{};
std::uint64_t reported_namespace = 0;

bool set_address(const std::string& tree) MAREY_REQUIRES(recorder_mutex) {
    const std::string path = run_socket_path(tree);
    if (path.size() >= sizeof reported_to.sun_path) return false;
    reported_to.sun_family = AF_UNIX;
    path.copy(reported_to.sun_path, path.size());
    reported_namespace = process_identity().record.pid_namespace;
    return true;
}

ProcessPacket packet_of_this(ProcessPacket::Kind kind) noexcept {
    ProcessPacket packet{};
    packet.magic = kPacketMagic;
    packet.kind = kind;
    packet.pid = ::getpid();
    packet.pid_namespace = reported_namespace;
    return packet;
}

bool send_once(int socket, const ProcessPacket& packet, int descriptor) noexcept {
    iovec part{const_cast<ProcessPacket*>(&packet), sizeof packet};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)]{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        cmsghdr* const head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    }
    return ::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(sizeof packet);
}

bool send_packet(const ProcessPacket& packet, int descriptor) noexcept {
    const int saved = errno;
    const int socket = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_sent = false;
    if (socket >= 0) {
        is_sent = ::connect(socket, reinterpret_cast<const sockaddr*>(&reported_to), sizeof reported_to) == 0;
        // Too many descriptors may be on their way; the packet alone is of use as well.
        if (is_sent && !send_once(socket, packet, descriptor))
            is_sent = descriptor >= 0 && send_once(socket, packet, -1);
        ::close(socket);
    }
    errno = saved;
    return is_sent;
}

}  // namespace

std::string run_socket_path(const std::string& tree) {
    return "/dev/shm/marey-" + tree + ".ends";
}

void report_process(const std::string& tree, const std::string& capture) noexcept {
    struct stat info {};
    const int saved = errno;
    if (::stat(capture.c_str(), &info) != 0 || !set_address(tree)) return;
    ProcessPacket packet = packet_of_this(ProcessPacket::Begins);
    packet.device = info.st_dev;
    packet.inode = info.st_ino;
    const int own = static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0));
    is_reported.store(send_packet(packet, own), std::memory_order_release);
    if (own >= 0) ::close(own);
    errno = saved;
}

void report_unrecorded(const std::string& tree, std::string_view reason) {
    if (!set_address(tree)) return;
    ProcessPacket packet = packet_of_this(ProcessPacket::NotRecorded);
    packet.start = process_identity().record.start;
    char executable[256];
    const ssize_t length = ::readlink("/proc/self/exe", executable, sizeof executable);
    const std::string text = std::string(reason.substr(0, sizeof packet.text / 2)) + '\0' +
                             std::string(executable, length < 0 ? 0 : static_cast<std::size_t>(length)) +
                             '\0' + read_small_file("/proc/self/cmdline", sizeof packet.text);
    text.copy(packet.text, sizeof packet.text - 1);
    static_cast<void>(send_packet(packet, -1));
}

void report_child_end(pid_t pid, int status) noexcept {
    if (pid <= 0 || !is_reported.load(std::memory_order_acquire)) return;
    if (!WIFEXITED(status) && !WIFSIGNALED(status)) return;
    ProcessPacket packet{};
    packet.magic = kPacketMagic;
    packet.kind = ProcessPacket::ChildEnded;
    packet.pid = pid;
    packet.pid_namespace = reported_namespace;
    packet.status = status;
    static_cast<void>(send_packet(packet, -1));
}

}  // namespace marey
