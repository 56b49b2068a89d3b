// owned_ranges.cpp: ranges owned by separate objects: for end_on_future, for the lives of generators and
// coroutines, and with a name and values that are known at their end.
#include <nanobind/nanobind.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <marey/range.h>

#include "bindings/bind.h"
#include "bindings/inherited_context.h"
#include "bindings/range_objects.h"
#include "bindings/range_state.h"
#include "bindings/site_cache.h"
#include "sources/python/late_range.h"
#include "sources/python/live_calls.h"
#include "sources/python/tracer.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

/// A range that was transferred from its with statement.
class TransferredRange {
  public:
    explicit TransferredRange(RangeState& from) noexcept { from.move_to_range(range_); }
    ~TransferredRange() { end(); }
    TransferredRange(const TransferredRange&) = delete;
    TransferredRange& operator=(const TransferredRange&) = delete;
    void end() noexcept { range_.release(); }

  private:
    RangeState range_;
};

Range async_range(const nb::str& name, bool is_step) {
    if (!detail::should_record(Scope::User)) return {};
    return with_text(name.ptr(), [=](std::string_view text) {
        return is_step ? python::open_step(text) : Range::apart(text);
    });
}

/// Gets its name and values at its end, such as a web request, which is routed later. Ends when it is
/// destroyed, under its first name. Requires the GIL.
class LateNamedRange {
  public:
    /// `nests`: with the other ranges of this thread, if something records; otherwise it is async. It has
    /// this name until it ends.
    LateNamedRange(bool nests, nb::str name) noexcept {
        if (!nests) {
            range_.begin(0);
            return;
        }
        open_if_recording(Scope::User, [&]() noexcept {
            if (const std::uint32_t site = site_cache.site(name.ptr(), Scope::User); site != 0)
                range_.begin(site);
        });
    }
    ~LateNamedRange() { range_.drop(); }
    LateNamedRange(const LateNamedRange&) = delete;
    LateNamedRange& operator=(const LateNamedRange&) = delete;

    bool is_open() const noexcept { return range_.is_open(); }
    /// Ends it under another name, with these numbers and texts.
    void end(const nb::str& name, const nb::dict& values) noexcept {
        KeyedValue all[kMaxValues];
        std::size_t count = 0;
        for (const auto [key, value] : values) {
            if (count == kMaxValues) break;
            const char* const key_text = PyUnicode_AsUTF8(key.ptr());
            Py_ssize_t size = 0;
            if (key_text != nullptr && PyLong_Check(value.ptr())) {
                all[count++] = {key_text, static_cast<std::int64_t>(PyLong_AsLongLong(value.ptr()))};
            } else if (const char* const text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
                       key_text != nullptr && text != nullptr) {
                all[count++] = {key_text, std::string_view(text, static_cast<std::size_t>(size))};
            }
            if (PyErr_Occurred() != nullptr) PyErr_Clear();
        }
        std::optional<FollowedContext> context;
        if (!detail::should_record(Scope::User) && followed_variable != nullptr) context.emplace();
        range_.end(site_cache.site(name.ptr(), Scope::User), std::span(all, count));
    }
    /// The range is a further part of a call, for which the address of `call` stands.
    void begin_part(nb::handle call) const noexcept {
        if (range_.start() != 0) python::begin_part(call.ptr(), false, range_.start());
    }
    /// Ends it as a part of the call, or as a plain range if it is the only part. Between the records of the
    /// part and of the range there must be no other, such as that of a garbage collection.
    void end_part(nb::handle call, const nb::str& name, bool is_first, bool is_last) noexcept {
        const std::uint32_t site = site_cache.site(name.ptr(), Scope::User);
        const std::uint64_t start = range_.start();
        if (start != 0 && is_first && !is_last) python::begin_part(call.ptr(), true, start);
        if (start != 0 && !(is_first && is_last)) python::end_part(call.ptr(), start, is_last);
        range_.end(site, {});
    }

  private:
    static constexpr std::size_t kMaxValues = 16;

    python::LateRange range_{};
};

}  // namespace

PyObject* take_over(RangeState& from) noexcept {
    try {
        auto range = std::make_unique<TransferredRange>(from);
        return nb::cast(std::move(range)).release().ptr();
    } catch (const std::exception&) {
        return PyErr_NoMemory();
    }
}

void bind_owned_ranges(nb::module_& module) {
    nb::class_<TransferredRange>(module, "open_range", "A range transferred from its with statement.")
        .def("end", &TransferredRange::end, "End the range. Does nothing if it has ended.");
    nb::class_<Range>(module, "async_range",
                      "A range on an async track that is open until end(), on any thread.\n\n"
                      "A step is among the ranges of its thread, and nests with the calls there.")
        .def(
            "__init__",
            [](Range* place, const nb::str& name, bool is_step) {
                new (place) Range(async_range(name, is_step));
            },
            nb::arg("name"), nb::arg("is_step") = false)
        .def("end", &Range::end, "End the range, on any thread. Does nothing if it has ended.");
    nb::class_<LateNamedRange>(module, "late_range")
        .def(nb::init<bool, nb::str>(), nb::arg("nests"), nb::arg("name"))
        .def_prop_ro("is_open", &LateNamedRange::is_open)
        .def("end", &LateNamedRange::end, nb::arg("name"), nb::arg("values"))
        .def("begin_part", &LateNamedRange::begin_part, nb::arg("call"))
        .def("end_part", &LateNamedRange::end_part, nb::arg("call"), nb::arg("name"), nb::arg("is_first"),
             nb::arg("is_last"));
}

}  // namespace marey::bindings
