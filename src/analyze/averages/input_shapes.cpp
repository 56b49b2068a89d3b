// input_shapes.cpp: a hash table of argument slices that are compared by their shapes.
#include "analyze/averages/input_shapes.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace marey {

std::span<const std::int64_t> input_extents(const TraceData& data, const Argument& input) noexcept {
    if (input.kind != ValueKind::Array || input.array >= data.arrays.size()) return {};
    const ArrayInfo& array = data.arrays[input.array];
    const std::size_t known = data.array_extents.size();
    if (!array.is_defined || array.first_extent > known || array.dimensions > known - array.first_extent)
        return {};
    return {data.array_extents.data() + array.first_extent, array.dimensions};
}

std::uint64_t ShapeGroups::read(std::uint32_t base, std::uint32_t first, std::uint32_t count) {
    constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15u;
    std::uint64_t hash = (base + std::uint64_t{1}) * kFactor;
    current_size_ = 0;
    for (std::uint32_t i = first; i < first + count; ++i) {
        if (data_.arguments[i].role != ArgumentRole::Input) continue;
        const std::span<const std::int64_t> extents = input_extents(data_, data_.arguments[i]);
        if (current_size_ + extents.size() >= current_.size())
            current_.resize(2 * (current_size_ + extents.size() + 1));
        const auto put = [&](std::int64_t value) {
            current_[current_size_++] = value;
            hash = (std::rotl(hash, 5) ^ static_cast<std::uint64_t>(value)) * kFactor;
        };
        put(static_cast<std::int64_t>(extents.size()));
        for (const std::int64_t extent : extents) put(extent);
    }
    return hash ^ hash >> 32;
}

std::uint32_t ShapeGroups::find(std::uint32_t base, std::uint32_t first, std::uint32_t count) {
    const std::uint64_t wanted = read(base, first, count);
    std::size_t place = wanted & (entries_.size() - 1);
    for (; entries_[place].group != kFree; place = (place + 1) & (entries_.size() - 1)) {
        const Entry& entry = entries_[place];
        if (entry.hash == wanted && entry.base == base && entry.size == current_size_ &&
            std::equal(current_.begin(), current_.begin() + static_cast<std::ptrdiff_t>(current_size_),
                       shapes_.begin() + static_cast<std::ptrdiff_t>(entry.first)))
            return entry.group;
    }
    entries_[place] = {wanted, base, used_, shapes_.size(), current_size_};
    shapes_.insert(shapes_.end(), current_.begin(),
                   current_.begin() + static_cast<std::ptrdiff_t>(current_size_));
    ++used_;
    if (used_ * std::size_t{2} > entries_.size()) grow();
    return used_ - 1;
}

void ShapeGroups::grow() {
    std::vector<Entry> larger(entries_.size() * 2);
    for (const Entry& entry : entries_) {
        if (entry.group == kFree) continue;
        std::size_t place = entry.hash & (larger.size() - 1);
        while (larger[place].group != kFree) place = (place + 1) & (larger.size() - 1);
        larger[place] = entry;
    }
    entries_.swap(larger);
}

std::string input_shapes_text(const Trace& trace, std::span<const Argument> arguments) {
    std::string text = "[";
    for (const Argument& argument : arguments) {
        if (argument.role != ArgumentRole::Input) continue;
        text += text.size() > 1 ? ", [" : "[";
        bool is_first = true;
        for (const std::int64_t extent : input_extents(trace.data(), argument)) {
            if (!is_first) text += ", ";
            is_first = false;
            char digits[24];
            text.append(digits, std::to_chars(digits, digits + sizeof digits, extent).ptr);
        }
        text += ']';
    }
    return text += ']';
}

}  // namespace marey
