// child_words.cpp: pages that are empty in child processes.
#include "record/child_words.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace marey {

namespace {

std::uint32_t first_mark = kOwnProcess;  // until there is a recorder, there is nothing to leave

}  // namespace

constinit std::uint32_t* process_mark = &first_mark;
constinit thread_local bool is_forking __attribute__((tls_model("initial-exec"))) = false;
constinit std::uint32_t left_parents = 0;
constinit thread_local std::uint32_t seen_left_parents __attribute__((tls_model("initial-exec"))) = 0;

std::uint32_t* ChildWords::take() noexcept {
    if (free_.empty()) {
        const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
        const std::size_t count = bytes / sizeof(std::uint32_t);
        try {
            free_.reserve(count);
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
        void* const page = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (page == MAP_FAILED) return nullptr;
        ::madvise(page, bytes, MADV_WIPEONFORK);
        for (std::size_t i = count; i-- != 0;) free_.push_back(static_cast<std::uint32_t*>(page) + i);
    }
    std::uint32_t* const word = free_.back();
    free_.pop_back();
    return word;
}

void ChildWords::give_back(std::uint32_t* word) noexcept {
    detail::store_relaxed(*word, 0u);
    try {
        free_.push_back(word);
    } catch (const std::bad_alloc&) {  // it is not used again
    }
}

}  // namespace marey
