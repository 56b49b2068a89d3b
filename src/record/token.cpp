// token.cpp: records both ends of a message, as blobs in the logs of their threads, and the time of a call to
// another process.
#include <marey/token.h>

#include <sys/random.h>

#include <atomic>
#include <cstring>

#include <marey/range.h>
#include <marey/remote.h>

#include "record/clocks/clock.h"
#include "record/process_identity.h"
#include "record/source_writer.h"
#include "record/thread_log.h"
#include "record/thread_registry.h"

namespace marey {
namespace {

std::atomic<std::uint64_t> own_number{0};  ///< of this process; 0: not chosen yet
std::atomic<std::uint64_t> messages{0};

std::uint64_t sender_number() noexcept {
    std::uint64_t number = own_number.load(std::memory_order_relaxed);
    if (number != 0) return number;
    if (::getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) number = Clock::now();
    if (number == 0) number = 1;
    std::uint64_t none = 0;
    return own_number.compare_exchange_strong(none, number) ? number : none;
}

/// False: nothing records this thread, or there is no space.
bool write_token(std::uint64_t tag, const Token& token, std::uint64_t now) noexcept {
    const ScopedEnable enabled;
    const SlowPath path(kNoRecord);
    detail::ThreadState* const state = path ? ready_thread() : nullptr;
    if (state == nullptr || (detail::load_relaxed(state->armed) & detail::kArmedRecorder) == 0) return false;
    constexpr std::size_t kBytes = (sizeof token + 15) / 16 * 16;
    if (!ensure_room(*state, sizeof(detail::LongRecord) + kBytes, now)) return false;
    detail::LongRecord* const record = append_long(*state, detail::RecordKind::Blob, sizeof token);
    record->time = now;
    record->word2 = tag;
    record->depth = state->depth;
    std::memset(record + 1, 0, kBytes);
    std::memcpy(record + 1, &token, sizeof token);
    commit(*state);
    return true;
}

}  // namespace

void forget_sender() noexcept {
    own_number.store(0, std::memory_order_relaxed);
}

Token send_token() noexcept {
    Token token;
    token.ticks = Clock::now();
    token.sender = sender_number();
    token.number = messages.fetch_add(1, std::memory_order_relaxed) + 1;
    return write_token(detail::kBlobSend, token, token.ticks) ? token : Token();
}

void receive_token(const Token& token) noexcept {
    if (token.sender != 0) write_token(detail::kBlobReceive, token, Clock::now());
}

RemoteCall::RemoteCall() noexcept {
    if (is_recording()) {
        const SlowPath path(kNoRecord);
        const detail::ThreadState* const state = path ? ready_thread() : nullptr;
        if (state != nullptr) thread_ = static_cast<const ThreadEntry*>(state->owner)->id;
    }
    start_ = Clock::now();
}

void RemoteCall::end() noexcept {
    if (end_ == 0) end_ = Clock::now();
}

}  // namespace marey
