// large_capture_program.cpp: records many short ranges, up to 40 levels deep, on 8 threads.
// Usage: large_capture_program CAPTURE MILLIONS
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <marey/all.h>

namespace {

constexpr int kThreads = 8;
constexpr int kLevels = 40;

/// The state of a thread: random numbers, and the ranges that it has left to record.
struct Work {
    std::uint64_t random;
    std::int64_t left;

    std::uint64_t next() noexcept {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return random;
    }
};

void call_some(Work& work, int level, std::size_t caller);

#define FUNCTION(name)                                                               \
    __attribute__((noinline)) void name(Work& work, int level, std::size_t number) { \
        MAREY_RANGE(#name);                                                          \
        call_some(work, level + 1, number);                                          \
    }
FUNCTION(accept_request)
FUNCTION(parse_header)
FUNCTION(find_route)
FUNCTION(check_token)
FUNCTION(read_row)
FUNCTION(decode_row)
FUNCTION(compare_keys)
FUNCTION(insert_key)
FUNCTION(split_page)
FUNCTION(write_page)
FUNCTION(update_index)
FUNCTION(format_answer)
FUNCTION(compress)
FUNCTION(checksum)
FUNCTION(send_answer)
FUNCTION(log_request)
#undef FUNCTION

constexpr std::array kFunctions = {accept_request, parse_header, find_route,   check_token,
                                   read_row,       decode_row,   compare_keys, insert_key,
                                   split_page,     write_page,   update_index, format_answer,
                                   compress,       checksum,     send_answer,  log_request};

/// Calls 0 to 7 functions: fewer on deeper levels, so that most ranges are on the levels in the middle. As in
/// other programs, a function mostly calls the same ones, so there are far fewer call paths than ranges.
void call_some(Work& work, int level, std::size_t caller) {
    if (level >= kLevels) return;
    const std::uint64_t most = level < 6 ? 8 : 3;
    for (std::uint64_t i = work.next() % most; i-- != 0 && work.left > 0;) {
        --work.left;
        const std::size_t number = (caller + 1) % kFunctions.size();
        kFunctions[number](work, level, number);
        if (work.next() % 8 != 0 || work.left == 0) continue;
        --work.left;
        const std::size_t other = (caller + 5) % kFunctions.size();
        kFunctions[other](work, kLevels, other);  // calls nothing
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const std::int64_t count = std::atoll(argv[2]) * 1'000'000;
    marey::SessionOptions options;
    options.output = argv[1];
    options.max_bytes = std::uint64_t{1} << 36;
    marey::Session session(options);
    std::vector<std::thread> threads;
    for (int number = 0; number < kThreads; ++number) {
        threads.emplace_back([=] {
            marey::thread_name("worker " + std::to_string(number));
            Work work{static_cast<std::uint64_t>(number) * 7919 + 1, count / kThreads};
            while (work.left > 0) call_some(work, 0, work.next() % kFunctions.size());
        });
    }
    for (std::thread& thread : threads) thread.join();
    session.discard();
    return 0;
}
