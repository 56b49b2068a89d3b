// process_report.h: processes tell the command that started their tree that they record, or why they do
// not, and how their children ended. The kernel tells only a parent how a process ended; the command is
// rarely the parent.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include <marey/detail/export.h>

#include "record/recorder_mutex.h"

namespace marey {

/// One packet on the socket of a tree. A packet of kind Begins carries a pidfd of its sender, if the kernel
/// has them: with it, the command learns when the process ends, and from Linux 6.15 on also how.
struct ProcessPacket {
    enum Kind : std::uint32_t {
        Begins = 1,       ///< the sender starts to write a capture
        ChildEnded = 2,   ///< the sender has waited for its child `pid`
        NotRecorded = 3,  ///< the sender cannot create its capture
    };
    std::uint32_t magic;
    std::uint32_t kind;
    std::int64_t pid;             ///< as its sender sees it
    std::uint64_t pid_namespace;  ///< of the sender
    std::uint64_t device;         ///< Begins: with `inode`, the capture
    std::uint64_t inode;
    std::int32_t status;  ///< ChildEnded: as wait() returns it
    std::uint32_t reserved;
    std::uint64_t start;  ///< NotRecorded: clock ticks from boot to the start of the sender
    /// NotRecorded: the reason, the executable and the words of the command line, each ended by a zero.
    char text[1024];
};
inline constexpr std::uint32_t kPacketMagic = 0x4552414d;  // "MARE"

/// Where the command listens; the folder is that of the tree's ledger.
std::string run_socket_path(const std::string& tree);

/// This process writes `capture`. Never blocks; if the command does not listen, nothing happens.
void report_process(const std::string& tree, const std::string& capture) noexcept
    MAREY_REQUIRES(recorder_mutex);

/// This process belongs to a tree, but is not recorded. Never blocks.
void report_unrecorded(const std::string& tree, std::string_view reason) MAREY_REQUIRES(recorder_mutex);

/// This process has waited for a child. `status` as wait() returns it. Does nothing unless report_process()
/// was called in this process or in the one that it was forked from. Any thread.
MAREY_API void report_child_end(pid_t pid, int status) noexcept;

}  // namespace marey
