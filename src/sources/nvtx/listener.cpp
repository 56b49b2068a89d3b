// listener.cpp: the functions that NVTX calls: they record the ranges, marks and names of other libraries.
#include "sources/nvtx/listener.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <new>
#include <unordered_map>
#include <utility>
#include <variant>

#include <marey/detail/export.h>
#include <marey/detail/values.h>
#include <marey/range.h>

#include "base/fork_mutex.h"
#include "record/journal_writer.h"
#include "record/recorder_parts.h"
#include "record/source_writer.h"
#include "record/thread_log.h"
#include "sources/nvtx/category_names.h"
#include "sources/nvtx/event.h"
#include "sources/nvtx/nvtx_protocol.h"
#include "sources/nvtx/thread_ranges.h"

namespace marey {
namespace {

/// Any thread may call. Must live as long as the process.
class StartedRanges {
  public:
    /// Throws std::bad_alloc; the range then ends.
    void add(std::uint64_t number, Range range);
    /// Removes and returns the range, to be ended; returns a range that is not open if the number is unknown.
    Range take(std::uint64_t number) noexcept;

  private:
    struct Part {
        ForkMutex mutex;
        std::unordered_map<std::uint64_t, Range> ranges MAREY_GUARDED_BY(mutex);
    };
    Part& part(std::uint64_t number) noexcept { return parts_[(number >> 1 ^ number >> 40) % parts_.size()]; }
    std::array<Part, 16> parts_;
};

void StartedRanges::add(std::uint64_t number, Range range) {
    Part& own = part(number);
    const ScopedLock lock(own.mutex);
    own.ranges.emplace(number, std::move(range));
}

Range StartedRanges::take(std::uint64_t number) noexcept {
    Part& own = part(number);
    const ScopedLock lock(own.mutex);
    const auto found = own.ranges.find(number);
    if (found == own.ranges.end()) return {};
    Range range = std::move(found->second);
    own.ranges.erase(found);
    return range;
}

using detail::Opened;
using nvtx_protocol::kError;
using nvtx_protocol::kNotTracked;

/// Handles that programs get are numbers, so that an invalid one is harmless: a domain's handle is the id of
/// its name, a registered string's handle the id of its site.
using Handle = std::uintptr_t;
constexpr Handle kDefaultDomain = 0;
constexpr std::string_view kDefaultCategory = "nvtx";
constexpr std::string_view kUnnamed = "(unnamed)";

constinit CategoryNames category_names;

/// The highest handles returned so far. Ids have no gaps, so every handle up to here has a name.
constinit std::atomic<Handle> last_domain{0};
constinit std::atomic<Handle> last_registered{0};

/// Notes that programs have got this handle.
Handle returned(Handle handle, std::atomic<Handle>& last) noexcept {
    Handle before = last.load(std::memory_order_relaxed);
    while (before < handle && !last.compare_exchange_weak(before, handle, std::memory_order_relaxed)) {
    }
    return handle;
}

StartedRanges& started_ranges() {
    static StartedRanges& only = *new StartedRanges;  // outlives every thread
    return only;
}

/// Rejects calls made while the thread is in the listener, and calls made by Marey's emitters.
class ListenerScope {
  public:
    ListenerScope() noexcept {
        ThreadRanges* const ranges = EmitterCall::is_inside ? nullptr : ThreadRanges::own();
        if (ranges == nullptr || ranges->is_inside) return;
        ranges_ = ranges;
        ranges_->is_inside = true;
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    ~ListenerScope() {
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (ranges_ != nullptr) ranges_->is_inside = false;
    }
    ListenerScope(const ListenerScope&) = delete;
    ListenerScope& operator=(const ListenerScope&) = delete;
    explicit operator bool() const noexcept { return ranges_ != nullptr; }
    ThreadRanges* operator->() const noexcept { return ranges_; }

  private:
    ThreadRanges* ranges_ = nullptr;
};

/// 0: no space is left, or the thread is in the recorder (an allocator that uses NVTX).
std::uint32_t intern(std::string_view text) noexcept {
    const SlowPath path(kNoRecord);
    return path ? recorder_journal().intern(text) : 0;
}

/// The same for a constant text; `cached` keeps its id.
std::uint32_t intern_once(std::uint32_t& cached, std::string_view word) noexcept {
    if (const std::uint32_t known = detail::load_relaxed(cached)) return known;
    const std::uint32_t id = intern(word);
    detail::store_relaxed(cached, id);
    return id;
}

/// The string id of a domain's name; 0: the default domain, or an unknown handle.
std::uint32_t domain_name(Handle domain) noexcept {
    return domain <= last_domain.load(std::memory_order_relaxed) ? static_cast<std::uint32_t>(domain) : 0;
}

std::uint32_t named_site(std::uint32_t domain, std::string_view text) noexcept {
    static constinit std::uint32_t default_category = 0;
    const std::uint32_t category = domain != 0 ? domain : intern_once(default_category, kDefaultCategory);
    return categorised_site(text.empty() ? kUnnamed : text, Scope::User, category);
}

[[gnu::noinline]] std::uint32_t wide_site(std::uint32_t domain, const wchar_t* text) noexcept {
    return named_site(domain, NvtxWideText(text).view());
}

std::uint32_t site_of(std::uint32_t domain, const NvtxEvent& event) noexcept {
    if (event.registered != 0 && event.registered <= last_registered.load(std::memory_order_relaxed))
        return static_cast<std::uint32_t>(event.registered);
    return event.wide_text != nullptr ? wide_site(domain, event.wide_text) : named_site(domain, event.text);
}

void write_payload(detail::ValueWriter& writer, std::uint32_t key, const NvtxPayload& payload) noexcept {
    if (const auto* const number = std::get_if<std::int64_t>(&payload)) {
        writer.add(key, *number);
    } else if (const auto* const real = std::get_if<double>(&payload)) {
        writer.add(key, *real);
    } else if (const auto* const big = std::get_if<std::uint64_t>(&payload)) {
        if (std::in_range<std::int64_t>(*big)) return writer.add(key, *big);
        char digits[20];  // Marey's integers are signed
        const auto end = std::to_chars(std::begin(digits), std::end(digits), *big);
        writer.add(key, std::string_view(digits, static_cast<std::size_t>(end.ptr - digits)));
    }
}

void write_color(detail::ValueWriter& writer, std::uint32_t key, std::uint32_t argb) noexcept {
    char text[9] = {'#'};
    for (unsigned i = 0; i < 8; ++i) text[i + 1] = "0123456789abcdef"[argb >> (28 - 4 * i) & 15];
    writer.add(key, std::string_view(text, sizeof text));
}

/// Puts the event's values on the side stack; 0: it has none, or no session records values.
std::uint32_t push_values(std::uint32_t domain, const NvtxEvent& event) noexcept {
    if (!event.has_values() || !detail::values_wanted(Scope::User)) return 0;
    static constinit detail::KeyIds keys;
    const std::uint32_t category_key = intern_once(keys.ids[0], "category");
    const std::uint32_t color_key = intern_once(keys.ids[1], "color");
    const std::uint32_t payload_key = intern_once(keys.ids[2], "payload");
    const detail::SideBuffer room = detail::open_side();
    if (room.place == nullptr) return 0;
    detail::ValueWriter writer(room);
    if (event.category != 0) {
        if (const std::uint32_t name = category_names.find(domain, event.category)) {
            writer.add(category_key, recorder_names().text(name));
        } else {
            writer.add(category_key, event.category);
        }
    }
    if (event.has_color) write_color(writer, color_key, event.color);
    write_payload(writer, payload_key, event.payload);
    return detail::close_side(room, writer.end());
}

// A separate function, so that a push needs few registers when nothing records.
template <class Message>
[[gnu::noinline]] Opened open(Handle domain_handle, Message message) noexcept {
    const NvtxEvent event(message);
    const std::uint32_t domain = domain_name(domain_handle);
    const std::uint32_t side = push_values(domain, event);  // first: it may move the thread to a capture
    const std::uint32_t site = site_of(domain, event);
    if (side == 0) return detail::open_range(site, Scope::User);
    return detail::open_site_slow(site, Scope::User, side);
}

int push(Handle domain, auto message) noexcept {
    const ListenerScope inside;
    if (!inside) return kNotTracked;
    NvtxStack* const stack = inside->stack(domain);
    if (stack == nullptr || !stack->has_room()) return kError;
    const bool should_record = detail::should_record(Scope::User);
    return stack->push(should_record ? open(domain, message) : Opened{0, detail::kNotOpen});
}

int pop(Handle domain) noexcept {
    const ListenerScope inside;
    if (!inside) return kNotTracked;
    NvtxStack* const stack = inside->stack(domain);
    if (stack == nullptr || stack->empty()) return kError;
    const Opened opened = stack->pop();
    const int depth = stack->size();
    if (opened.index != detail::kNotOpen) detail::close_range(opened);
    return depth;
}

/// The numbers of recorded ranges are odd.
template <class Message>
std::uint64_t start(Handle domain_handle, Message message) noexcept {
    const ListenerScope inside;
    if (!inside) return 0;
    const std::uint64_t number = inside->next_number();
    if (!detail::should_record(Scope::User)) return number;
    const NvtxEvent event(message);
    const std::uint32_t domain = domain_name(domain_handle);
    const std::uint32_t site = site_of(domain, event);
    Range range = SiteRange::apart(site, Scope::User, push_values(domain, event));
    if (!range.is_open()) return number;
    try {
        started_ranges().add(number | 1, std::move(range));
        return number | 1;
    } catch (const std::bad_alloc&) {
        return number;
    }
}

void end(std::uint64_t number) noexcept {
    if ((number & 1) == 0) return;
    const ListenerScope inside;
    if (inside) started_ranges().take(number).end();
}

void mark(Handle domain_handle, auto message) noexcept {
    if (!detail::should_record(Scope::User)) return;
    const ListenerScope inside;
    if (!inside) return;
    const NvtxEvent event(message);
    const std::uint32_t domain = domain_name(domain_handle);
    const std::uint32_t site = site_of(domain, event);
    record_site_instant(site, Scope::User, push_values(domain, event));
}

/// Names a category. Interned text is never freed; there is space for 256 MiB of it.
void name_category(Handle domain, std::uint32_t category, std::string_view name) noexcept {
    if (category == 0 || name.empty()) return;
    if (const std::uint32_t id = intern(name)) category_names.set(domain_name(domain), category, id);
}

Handle make_domain(std::string_view name) noexcept {
    return name.empty() ? kDefaultDomain : returned(intern(name), last_domain);
}

// ---- called by NVTX, with the arguments of its interface; handles are as wide as pointers.

void end_in(Handle, std::uint64_t number) noexcept {
    end(number);
}
void name_category_a(Handle domain, std::uint32_t category, const char* name) noexcept {
    name_category(domain, category, nvtx_text(name));
}
void name_category_w(Handle domain, std::uint32_t category, const wchar_t* name) noexcept {
    name_category(domain, category, NvtxWideText(name).view());
}
void name_thread_a(std::uint32_t os_tid, const char* name) noexcept {
    name_thread(os_tid, nvtx_text(name));
}
void name_thread_w(std::uint32_t os_tid, const wchar_t* name) noexcept {
    name_thread(os_tid, NvtxWideText(name).view());
}
Handle register_a(Handle domain, const char* text) noexcept {
    return returned(named_site(domain_name(domain), nvtx_text(text)), last_registered);
}
Handle register_w(Handle domain, const wchar_t* text) noexcept {
    return returned(wide_site(domain_name(domain), text), last_registered);
}
Handle create_domain_a(const char* name) noexcept {
    return make_domain(nvtx_text(name));
}
Handle create_domain_w(const wchar_t* name) noexcept {
    return make_domain(NvtxWideText(name).view());
}
// Domains with the same name are one domain, so others may still use it.
void destroy_domain(Handle) noexcept {}

template <class Result, class... Arguments>
nvtx_protocol::Function plain(Result (*function)(Arguments...) noexcept) noexcept {
    return reinterpret_cast<nvtx_protocol::Function>(function);
}

/// The same function without its first argument: the default domain.
template <auto kFunction>
struct InDefaultDomain;
template <class Result, class... Arguments, Result (*kFunction)(Handle, Arguments...) noexcept>
struct InDefaultDomain<kFunction> {
    static Result call(Arguments... arguments) noexcept { return kFunction(kDefaultDomain, arguments...); }
};
template <auto kFunction>
nvtx_protocol::Function in_default() noexcept {
    return plain(InDefaultDomain<kFunction>::call);
}

struct SlotFunction {
    unsigned slot;
    nvtx_protocol::Function function;
};

/// Fills in the slots that this NVTX has.
bool answer(const nvtx_protocol::CallbacksTable& callbacks, nvtx_protocol::Module module,
            std::initializer_list<SlotFunction> answers) noexcept {
    nvtx_protocol::FunctionTable table = nullptr;
    unsigned slots = 0;
    if (callbacks.module_functions(module, &table, &slots) == 0 || table == nullptr) return false;
    for (const SlotFunction& each : answers) {
        if (each.slot < slots && table[each.slot] != nullptr) *table[each.slot] = each.function;
    }
    return true;
}

}  // namespace

bool attach_nvtx(NvtxGetTable get_table) noexcept {
    using namespace nvtx_protocol;
    if (get_table == nullptr) return false;
    const auto* const callbacks = static_cast<const CallbacksTable*>(get_table(kCallbacksTable));
    if (callbacks == nullptr || callbacks->bytes < sizeof *callbacks ||
        callbacks->module_functions == nullptr)
        return false;
    using Event = const EventAttributes*;
    const bool has_core = answer(*callbacks, kCore,
                                 {{kMarkEx, in_default<mark<Event>>()},
                                  {kMarkA, in_default<mark<const char*>>()},
                                  {kMarkW, in_default<mark<const wchar_t*>>()},
                                  {kRangeStartEx, in_default<start<Event>>()},
                                  {kRangeStartA, in_default<start<const char*>>()},
                                  {kRangeStartW, in_default<start<const wchar_t*>>()},
                                  {kRangeEnd, plain(end)},
                                  {kRangePushEx, in_default<push<Event>>()},
                                  {kRangePushA, in_default<push<const char*>>()},
                                  {kRangePushW, in_default<push<const wchar_t*>>()},
                                  {kRangePop, in_default<pop>()},
                                  {kNameCategoryA, in_default<name_category_a>()},
                                  {kNameCategoryW, in_default<name_category_w>()},
                                  {kNameOsThreadA, plain(name_thread_a)},
                                  {kNameOsThreadW, plain(name_thread_w)}});
    const bool has_domains = answer(*callbacks, kCore2,
                                    {{kDomainMarkEx, plain(mark<Event>)},
                                     {kDomainRangeStartEx, plain(start<Event>)},
                                     {kDomainRangeEnd, plain(end_in)},
                                     {kDomainRangePushEx, plain(push<Event>)},
                                     {kDomainRangePop, plain(pop)},
                                     {kDomainNameCategoryA, plain(name_category_a)},
                                     {kDomainNameCategoryW, plain(name_category_w)},
                                     {kDomainRegisterStringA, plain(register_a)},
                                     {kDomainRegisterStringW, plain(register_w)},
                                     {kDomainCreateA, plain(create_domain_a)},
                                     {kDomainCreateW, plain(create_domain_w)},
                                     {kDomainDestroy, plain(destroy_domain)}});
    if (!has_core && !has_domains) return false;
    started_ranges();  // created now, so that its locks are handled at forks from here on
    nvtx_attached.store(true, std::memory_order_relaxed);
    return true;
}

}  // namespace marey

/// NVTX looks this up in the library given in NVTX_INJECTION64_PATH and calls it once for each library that
/// contains NVTX. If it returns 0, that NVTX does nothing.
extern "C" MAREY_API int InitializeInjectionNvtx2(marey::NvtxGetTable get_table) {
    if (!marey::is_second_copy) return marey::attach_nvtx(get_table) ? 1 : 0;
    const marey::NvtxEntry other = marey::entry_of_first_copy;
    return other != nullptr ? other(get_table) : 0;
}
