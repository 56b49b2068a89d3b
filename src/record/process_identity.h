// process_identity.h: which process this is, and where it came from. It travels by memory over fork and by
// the variable MAREY over exec.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <marey/detail/log_format.h>

#include "record/recorder_mutex.h"

namespace marey {

struct ProcessIdentity {
    detail::ProcessIdentityRecord record{};
    detail::AncestorRecord ancestors[detail::kMaxAncestors]{};  ///< record.ancestors of them

    std::span<const detail::AncestorRecord> known_ancestors() const noexcept {
        return std::span(ancestors).first(record.ancestors);
    }
    /// Names the clock of this process, as in ProcessInfo::clock.
    std::string clock() const;
};

/// The identity of this process, read at the first call in each process.
const ProcessIdentity& process_identity() noexcept MAREY_REQUIRES(recorder_mutex);

/// Names the clock of this process; "" if it is unknown.
std::string own_clock() MAREY_EXCLUDES(recorder_mutex);

/// Whether this process is the child of a fork, and still runs its parent's program.
bool is_forked_process() noexcept MAREY_REQUIRES(recorder_mutex);

/// Before a fork: the child takes over what is known here. `thread`: the logical id of the forking thread.
void identity_before_fork(std::uint32_t thread) noexcept MAREY_REQUIRES(recorder_mutex);
/// The same in a child for which that was not called: the fork was some time ago.
void set_fork(std::uint32_t thread) noexcept MAREY_REQUIRES(recorder_mutex);
/// In the child.
void identity_after_fork() noexcept MAREY_REQUIRES(recorder_mutex);

/// In the child of a fork: its messages are its own (token.cpp).
void forget_sender() noexcept;

/// The tree that the variable MAREY names (",tree=<32 hexadecimal digits>:<pid>[:<parent>]"), where `pid` is
/// the process that started the tree, and `parent` the last recorded process that passed the variable on, as
/// ancestor_text(). False: there is none.
struct RequestedTree {
    std::uint8_t id[16]{};
    std::int64_t pid = 0;
    detail::AncestorRecord parent{};  ///< pid 0: none
};
bool parse_tree(std::string_view text, RequestedTree& tree) noexcept;

/// Puts the tree of this process, and this process as the parent, into the variable MAREY, whose value is
/// `text`, so that programs that it starts belong to it, also where they cannot see it: in another process
/// namespace, or after their parents have ended. Changes nothing if there are other threads, which may be
/// reading the environment.
void pass_tree_on(const std::string& text) MAREY_EXCLUDES(recorder_mutex);

}  // namespace marey
