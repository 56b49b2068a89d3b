// late_range_binding.cpp: a range that gets its name and values at its end, such as a web request, which is
// routed later.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "bindings/bind.h"
#include "bindings/inherited_context.h"
#include "bindings/site_cache.h"
#include "sources/python/late_range.h"
#include "sources/python/live_calls.h"

namespace nb = nanobind;

namespace marey::bindings {
namespace {

/// Ends when it is destroyed, under its first name. Requires the GIL.
class OwnedRange {
  public:
    /// `nests`: with the other ranges of this thread, if something records; otherwise it is async. It has
    /// this name until it ends.
    OwnedRange(bool nests, nb::str name) noexcept {
        if (!nests) {
            range_.begin(0);
            return;
        }
        open_if_recording(Scope::User, [&]() noexcept {
            if (const std::uint32_t site = site_cache.site(name.ptr(), Scope::User); site != 0)
                range_.begin(site);
        });
    }
    ~OwnedRange() { range_.drop(); }
    OwnedRange(const OwnedRange&) = delete;
    OwnedRange& operator=(const OwnedRange&) = delete;

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

void bind_late_range(nb::module_& module) {
    nb::class_<OwnedRange>(module, "late_range")
        .def(nb::init<bool, nb::str>(), nb::arg("nests"), nb::arg("name"))
        .def_prop_ro("is_open", &OwnedRange::is_open)
        .def("end", &OwnedRange::end, nb::arg("name"), nb::arg("values"))
        .def("begin_part", &OwnedRange::begin_part, nb::arg("call"))
        .def("end_part", &OwnedRange::end_part, nb::arg("call"), nb::arg("name"), nb::arg("is_first"),
             nb::arg("is_last"));
}

}  // namespace marey::bindings
