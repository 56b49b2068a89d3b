// python_places.cpp: numbers for places in Python code objects.
#include "sources/sampling/python_places.h"

#include <array>
#include <atomic>

#include <marey/detail/log_format.h>

#include "record/journal_writer.h"
#include "record/recorder_parts.h"
#include "record/stack_numbers.h"

namespace marey {
namespace {

constexpr unsigned kStampShift = 48;
constexpr std::uint64_t kAddress = (std::uint64_t{1} << kStampShift) - 1;
constexpr std::size_t kStamps = 4096;

std::atomic<const detail::PythonSampling*> functions{nullptr};
// Places have numbers as stacks do: the instruction is in the place of the outer stack. Above the address is
// a stamp, which changes when a code object there has been freed.
constinit StackNumbers places;
constinit std::array<std::atomic<std::uint16_t>, kStamps> stamps{};
constinit std::atomic<std::uint32_t> named{0};

std::atomic<std::uint16_t>& stamp_of(std::uintptr_t code) noexcept {
    return stamps[(code >> 4) * 0x9e3779b97f4a7c15ULL >> 52];
}

std::uint64_t stamped(std::uintptr_t code) noexcept {
    return (code & kAddress) | std::uint64_t{stamp_of(code).load(std::memory_order_relaxed)} << kStampShift;
}

}  // namespace

namespace sampling {

const detail::PythonSampling* python_sampling() noexcept {
    return functions.load(std::memory_order_acquire);
}

std::uint64_t python_word(const detail::SampledFrame& frame) noexcept {
    const std::uint32_t place = places.add(frame.offset + 1, stamped(frame.code));
    return place != 0 ? detail::kFramePlace | place : 0;
}

bool has_unnamed_places() noexcept {
    return named.load(std::memory_order_relaxed) < places.count();
}

}  // namespace sampling

namespace detail {

void set_python_sampling(const PythonSampling* sampling) noexcept {
    functions.store(sampling, std::memory_order_release);
}

bool sampled_place(std::uint32_t place, std::uintptr_t& code, std::uint32_t& offset) noexcept {
    std::uint64_t frame = 0;
    if (place > places.count() || !places.get(place, offset, frame)) return false;
    --offset;
    code = frame & kAddress;
    if (stamped(code) != frame) code = 0;  // it has been freed since
    return true;
}

void name_sampled_place(std::uint32_t place, std::uint32_t site, std::uint32_t line) noexcept {
    if (site != ~std::uint32_t{0}) recorder_journal().add_code_place(place, site, line);
    named.store(place, std::memory_order_relaxed);
}

void forget_sampled_code(std::uintptr_t code) noexcept {
    stamp_of(code & kAddress).fetch_add(1, std::memory_order_relaxed);
}

}  // namespace detail
}  // namespace marey
