// keys.h: the keys of "args" that have a meaning, for reading and writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace marey {

// Each key once: its name here, and its text.
#define MAREY_CHROME_KEYS(KEY)                      \
    /* Lists with one entry per input or output. */ \
    KEY(InputDims, "Input Dims")                    \
    KEY(InputType, "Input type")                    \
    KEY(InputStrides, "Input Strides")              \
    KEY(ConcreteInputs, "Concrete Inputs")          \
    KEY(OutputDims, "Output Dims")                  \
    KEY(OutputType, "Output type")                  \
    KEY(OutputStrides, "Output Strides")            \
    KEY(ConcreteOutputs, "Concrete Outputs")        \
    /* Properties of a site or a range. */          \
    KEY(At, "at")                                   \
    KEY(ScopeName, "scope")                         \
    KEY(Overload, "Overload name")                  \
    KEY(MangledName, "Mangled name")                \
    KEY(BeganBefore, "began_before")                \
    KEY(Finished, "finished")                       \
    KEY(EndInferred, "end_inferred")                \
    /* Numbers of a range. */                       \
    KEY(Sequence, "Sequence number")                \
    KEY(ForwardThread, "Fwd thread id")             \
    KEY(RecordFunctionId, "Record function id")     \
    KEY(Correlation, "correlation")                 \
    KEY(DeviceNumber, "device")                     \
    KEY(Stream, "stream")                           \
    KEY(ExternalId, "External id")                  \
    KEY(EventIndex, "Ev Idx")                       \
    KEY(PythonId, "Python id")                      \
    KEY(PythonParent, "Python parent id")           \
    KEY(CallNumber, "Call number")                  \
    KEY(CallPart, "Call part")                      \
    KEY(PythonThread, "Python thread")              \
    /* Allocation reports. */                       \
    KEY(Bytes, "Bytes")                             \
    KEY(Address, "Addr")                            \
    KEY(TotalAllocated, "Total Allocated")          \
    KEY(TotalReserved, "Total Reserved")            \
    KEY(DeviceType, "Device Type")                  \
    KEY(DeviceId, "Device Id")                      \
    /* Names of processes and threads. */           \
    KEY(Name, "name")                               \
    KEY(Labels, "labels")                           \
    KEY(TrackKind, "track")                         \
    KEY(ThreadOwner, "thread")                      \
    KEY(ThreadPid, "thread_pid")                    \
    KEY(Derived, "derived")

#define MAREY_CHROME_KEY_NAME(name, text) name,
enum class ChromeKey : std::uint8_t { None, MAREY_CHROME_KEYS(MAREY_CHROME_KEY_NAME) Count };
#undef MAREY_CHROME_KEY_NAME
#define MAREY_CHROME_KEY_TEXT(name, text) text,
/// By ChromeKey.
inline constexpr std::string_view kChromeKeyTexts[] = {"", MAREY_CHROME_KEYS(MAREY_CHROME_KEY_TEXT)};
#undef MAREY_CHROME_KEY_TEXT
#undef MAREY_CHROME_KEYS

constexpr std::size_t index_of(ChromeKey key) noexcept {
    return static_cast<std::size_t>(key);
}
constexpr std::uint64_t bit_of(ChromeKey key) noexcept {
    return std::uint64_t{1} << index_of(key);
}
/// The key that is this many places after another one in the list.
constexpr ChromeKey key_after(ChromeKey key, std::size_t places) noexcept {
    return static_cast<ChromeKey>(index_of(key) + places);
}
constexpr ChromeKey chrome_key(std::string_view text) noexcept {
    for (std::size_t i = 1; i < std::size(kChromeKeyTexts); ++i) {
        if (kChromeKeyTexts[i] == text) return static_cast<ChromeKey>(i);
    }
    return ChromeKey::None;
}

}  // namespace marey
