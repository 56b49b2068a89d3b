// chrome_arguments.h: the values of an event as members of its "args", under the keys that PyTorch's tools
// know.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <kymo/trace.h>

namespace kymo {

/// Appends members of a JSON object to a text, each after the first with a comma before it.
class ChromeArguments {
  public:
    /// Both must outlive this.
    ChromeArguments(const Trace& trace, std::string& out) : trace_(trace), out_(out) {}

    /// The members go behind what `out` holds now: call after the opening brace.
    void begin() { empty_ = out_.size(); }
    /// A comma, unless this is the first member.
    void separate() {
        if (out_.size() > empty_) out_ += ',';
    }

    /// Keyword values under their own keys, made different from each other; inputs as "Input Dims", "Input
    /// type", "Input Strides" and "Concrete Inputs", lists with one entry for each; outputs likewise.
    void append_values(std::span<const Argument> values);
    /// "Sequence number" and "Fwd thread id" if there is a number, "Record function id" if there is an id.
    void append_detail(const RangeDetail& detail);

  private:
    void append_key(const Argument& value, std::size_t index);
    void append_value(const Argument& value, int level);
    void append_positional(std::span<const Argument> values, ArgumentRole role);
    template <typename Entry>
    void append_list(std::string_view key, std::span<const Argument> values, ArgumentRole role, Entry entry);
    void append_extents(const Argument& value, bool strides);
    void append_extents(const ArrayInfo& array, bool strides);
    void append_concrete(std::string& text, const Argument& value, int level);
    const ArrayInfo* array_of(const Argument& value) const;
    std::span<const Argument> items_of(const Argument& value) const;
    bool is_array_list(const Argument& value) const;
    std::string_view type_of(const Argument& value) const;

    const Trace& trace_;
    std::string& out_;
    std::size_t empty_ = 0;
    std::string concrete_;
    std::set<std::string, std::less<>> keys_;  ///< of the event at hand
};

}  // namespace kymo
